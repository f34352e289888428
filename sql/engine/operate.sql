-- Operate: what a person does with a workflow. Each function returns what it did and leaves a row in scheduler.audit.

CREATE OR REPLACE FUNCTION scheduler.enqueue(name text, ids text[]) RETURNS TABLE (queued integer, already_queued integer, running integer, missing integer)
LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
SET scheduler.engine = 'on'
AS $$
DECLARE
    w scheduler.workflow := scheduler._live(name);
    wanted text[] := scheduler._check_keys(w, ids);
    moved text[];
BEGIN
    PERFORM scheduler._require_read_committed();
    running := CASE WHEN w.processing IS NULL
                    THEN (SELECT count(*) FROM scheduler.run AS r, unnest(r.keys) AS k WHERE r.workflow = w.name AND r.finished_at IS NULL AND k = ANY (wanted))
                    ELSE cardinality(scheduler._keys_with(w, wanted, w.processing)) END;
    already_queued := cardinality(scheduler._keys_with(w, wanted, w.queued)) - CASE WHEN w.processing IS NULL THEN running ELSE 0 END;
    -- never twice while in progress
    EXECUTE format('WITH u AS (UPDATE %2$s AS t SET %4$I = %5$s WHERE t.%1$I = ANY ($1::%3$s[]) AND (t.%4$I IS NULL OR t.%4$I <> ALL ($2::text[]::%6$s[])) RETURNING t.%1$I::text AS key) SELECT array_agg(key) FROM u',
                   w.key_column, w.relation, format_type(w.key_type, -1), w.status_column, scheduler._word(w, w.queued), format_type(w.status_type, -1))
        INTO moved USING wanted, array_remove(ARRAY[w.queued, w.processing], NULL);
    -- asked for by a person: it starts anew, also one that waited for a retry while Queued by hand
    DELETE FROM scheduler.attempt AS a WHERE a.workflow = w.name AND a.key = ANY (moved);
    queued := coalesce(cardinality(moved), 0);
    missing := cardinality(wanted) - queued - already_queued - running;
    PERFORM scheduler._audit('enqueue', w.name, queued, jsonb_build_object('asked', cardinality(ids), 'first', wanted[1:5]));
    IF queued > 0 AND w.doorbell = 'dispatch' THEN
        PERFORM scheduler._ring(w.name);
    END IF;
    RETURN NEXT;
END
$$;
COMMENT ON FUNCTION scheduler.enqueue(text, text[]) IS 'enqueue() with keys as text, as in enqueue(''deep_scan'', ''{1,2,3}'').';

CREATE OR REPLACE FUNCTION scheduler.enqueue(name text, ids anyarray) RETURNS TABLE (queued integer, already_queued integer, running integer, missing integer)
LANGUAGE sql
SET search_path = pg_catalog, pg_temp
AS $$ SELECT * FROM scheduler.enqueue(name, ids::text[]) $$;
COMMENT ON FUNCTION scheduler.enqueue(text, anyarray) IS
'Marks items Queued whatever their status, as a new start with all attempts; those Queued or running already are left alone. As in enqueue(''deep_scan'', ARRAY(SELECT id FROM place WHERE …)).';

CREATE OR REPLACE FUNCTION scheduler._requeue(name text, ids text[], error text, predicate text, stranded boolean) RETURNS integer
LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
SET scheduler.engine = 'on'
AS $$
DECLARE
    w scheduler.workflow := scheduler._live(name);
    condition text;
    moved text[];
BEGIN
    PERFORM scheduler._require_read_committed();
    -- this function can be called past requeue(), and what a predicate selects tells what is in the rows
    IF predicate IS NOT NULL AND NOT has_table_privilege(session_user, w.relation, 'SELECT') THEN
        RAISE EXCEPTION 'only who may read % can select its rows by a predicate', w.relation
            USING ERRCODE = 'insufficient_privilege', HINT = format('GRANT SELECT ON %s TO %I;', w.relation, session_user);
    END IF;
    predicate := scheduler._check_ready(w.relation, predicate);
    IF stranded THEN
        IF w.processing IS NULL THEN
            RAISE EXCEPTION 'workflow % has no processing word, so nothing can be stranded', w.name USING ERRCODE = 'invalid_parameter_value', HINT = 'Leave stranded out.';
        END IF;
        condition := format('t.%I = %s AND t.%I::text <> ALL ($3)', w.status_column, scheduler._word(w, w.processing), w.key_column);
    ELSE
        condition := format('t.%I = %s', w.status_column, scheduler._word(w, w.failed));
        -- by the ledger, unless the caller says otherwise: it knows what failed without searching the table
        IF ids IS NULL AND predicate IS NULL OR error IS NOT NULL THEN
            condition := condition || format(' AND t.%I IN (SELECT a.key::%s FROM scheduler.attempt AS a WHERE a.workflow = %L AND a.state IN (''dead'', ''waiting'') AND ($2 IS NULL OR a.error ILIKE $2))',
                                             w.key_column, format_type(w.key_type, -1), w.name);
        END IF;
    END IF;
    IF ids IS NOT NULL THEN
        condition := condition || format(' AND t.%I = ANY ($1::%s[])', w.key_column, format_type(w.key_type, -1));
    END IF;
    IF predicate IS NOT NULL THEN
        condition := condition || format(E' AND (%s\n)', predicate);
    END IF;
    EXECUTE format('WITH u AS (UPDATE %2$s AS t SET %3$I = %4$s WHERE %5$s RETURNING t.%1$I::text AS key) SELECT array_agg(key) FROM u',
                   w.key_column, w.relation, w.status_column, scheduler._word(w, w.queued), condition)
        INTO moved USING scheduler._check_keys(w, ids), error,
            coalesce((SELECT array_agg(k) FROM scheduler.run AS r, unnest(r.keys) AS k WHERE r.workflow = w.name AND r.finished_at IS NULL), '{}');
    DELETE FROM scheduler.attempt AS a WHERE a.workflow = w.name AND a.key = ANY (moved);
    PERFORM scheduler._audit('requeue', w.name, coalesce(cardinality(moved), 0),
                             jsonb_build_object('ids', cardinality(ids), 'error', error, 'predicate', predicate, 'stranded', nullif(stranded, false)));
    IF moved IS NOT NULL AND w.doorbell = 'dispatch' THEN
        PERFORM scheduler._ring(w.name);
    END IF;
    RETURN coalesce(cardinality(moved), 0);
END
$$;
COMMENT ON FUNCTION scheduler._requeue(text, text[], text, text, boolean) IS 'Internal: requeue() with keys as text.';

CREATE OR REPLACE FUNCTION scheduler.requeue(name text, ids anyarray, error text DEFAULT NULL, predicate text DEFAULT NULL) RETURNS integer
LANGUAGE sql
SET search_path = pg_catalog, pg_temp
-- no ids are none, and not all: array_agg() of no rows is NULL
AS $$ SELECT scheduler._requeue(name, coalesce(ids::text[], '{}'), error, predicate, false) $$;
COMMENT ON FUNCTION scheduler.requeue(text, anyarray, text, text) IS 'Failed items among these ids start again with all their attempts; returns how many.';

CREATE OR REPLACE FUNCTION scheduler.requeue(name text, error text DEFAULT NULL, predicate text DEFAULT NULL, stranded boolean DEFAULT false) RETURNS integer
LANGUAGE plpgsql
-- no SET search_path: the predicate is looked up the way the caller would
AS $$
DECLARE
    w scheduler.workflow := scheduler._live(name);
BEGIN
    RETURN scheduler._requeue(name, NULL, error, CASE WHEN predicate IS NOT NULL THEN scheduler._check_ready(w.relation, predicate) END, stranded);
END
$$;
COMMENT ON FUNCTION scheduler.requeue(text, text, text, boolean) IS
'Failed and dead items start again with all their attempts: all of them, those whose error is LIKE a pattern (''%timeout%''), or those a predicate on the table selects.
stranded => true takes items that show the processing word but belong to no run (from before the workflow was registered, or after a partial restore). Returns how many.';

CREATE OR REPLACE FUNCTION scheduler.cancel(name text, ids text[]) RETURNS TABLE (unqueued integer, revoked integer, untouched integer)
LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
SET scheduler.engine = 'on'
AS $$
DECLARE
    w scheduler.workflow := scheduler._live(name);
    wanted text[] := scheduler._check_keys(w, ids);
    r scheduler.run;
    hit text[];
    stopped text[] := '{}'::text[];
    moved text[];
    backed text[] := '{}'::text[];
BEGIN
    PERFORM scheduler._require_read_committed();
    LOOP
        -- the run first, then the row: the same order as in succeed(), so the two never wait for each other
        FOR r IN SELECT * FROM scheduler.run AS x WHERE x.workflow = w.name AND x.finished_at IS NULL AND x.keys && wanted ORDER BY x.id FOR NO KEY UPDATE LOOP
            -- a run that finished some while we waited has fewer left
            SELECT * INTO r FROM scheduler.run AS x WHERE x.id = r.id;
            SELECT array_agg(k) INTO hit FROM unnest(r.keys) AS k WHERE k = ANY (wanted);
            CONTINUE WHEN hit IS NULL;
            UPDATE scheduler.run AS x SET revoked = x.revoked || hit WHERE x.id = r.id;
            PERFORM scheduler._settle(r, hit, 'cancelled', cardinality(hit), 0, NULL);
            stopped := stopped || hit;
        END LOOP;
        EXECUTE format('WITH u AS (UPDATE %2$s AS t SET %4$I = %5$s WHERE t.%1$I = ANY ($1::%3$s[]) AND (t.%4$I = %6$s OR t.%1$I = ANY ($2::%3$s[]) AND t.%4$I = %7$s) RETURNING t.%1$I::text AS key) SELECT array_agg(key) FROM u',
                       w.key_column, w.relation, format_type(w.key_type, -1), w.status_column, scheduler._word(w, w.idle), scheduler._word(w, w.queued), scheduler._running_word(w))
            INTO moved USING wanted, stopped;
        backed := backed || coalesce(moved, '{}');
        -- claimed while we waited for their rows: they run now, so once more
        EXIT WHEN NOT EXISTS (SELECT FROM scheduler.run AS x WHERE x.workflow = w.name AND x.finished_at IS NULL AND x.keys && wanted);
    END LOOP;
    INSERT INTO scheduler.attempt AS a (workflow, key, state, reason)
    SELECT w.name, k, 'cancelled', 'cancelled by ' || scheduler._who() FROM unnest(backed) AS k
    ON CONFLICT (workflow, key) DO UPDATE SET state = 'cancelled', retry_at = NULL, reason = excluded.reason, last_at = now();
    revoked := (SELECT count(*) FROM unnest(backed) AS k WHERE k = ANY (stopped));
    unqueued := cardinality(backed) - revoked;
    untouched := cardinality(wanted) - cardinality(backed);
    PERFORM scheduler._audit('cancel', w.name, cardinality(backed), jsonb_build_object('revoked', revoked, 'first', backed[1:5]));
    IF cardinality(stopped) > 0 THEN
        PERFORM scheduler._ring(w.name || '!');
    END IF;
    RETURN NEXT;
END
$$;
COMMENT ON FUNCTION scheduler.cancel(text, text[]) IS 'cancel() with keys as text, as in cancel(''deep_scan'', ''{1,2,3}'').';

CREATE OR REPLACE FUNCTION scheduler.cancel(name text, ids anyarray) RETURNS TABLE (unqueued integer, revoked integer, untouched integer)
LANGUAGE sql
SET search_path = pg_catalog, pg_temp
AS $$ SELECT * FROM scheduler.cancel(name, ids::text[]) $$;
COMMENT ON FUNCTION scheduler.cancel(text, anyarray) IS
'Queued items go back to the idle word; running ones are taken from their run, which can no longer finish them, and the listener is told. The schedule leaves them alone until enqueue() or requeue().';

CREATE OR REPLACE FUNCTION scheduler.pause(name text, reason text DEFAULT NULL) RETURNS text
LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    w scheduler.workflow := scheduler._workflow(name);
BEGIN
    UPDATE scheduler.workflow AS x SET paused_at = coalesce(x.paused_at, now()), paused_by = scheduler._who(), paused_reason = left(pause.reason, 1024) WHERE x.name = pause.name;
    PERFORM scheduler._audit('pause', name, NULL, jsonb_build_object('reason', reason));
    RETURN format('%s %s; %s running items finish', name, CASE WHEN w.paused_at IS NULL THEN 'is paused' ELSE 'was paused already' END, scheduler._count_running(name));
END
$$;
COMMENT ON FUNCTION scheduler.pause(text, text) IS 'Nothing new of the workflow is queued or claimed; running items finish.';

CREATE OR REPLACE FUNCTION scheduler._count_running(name text) RETURNS bigint
LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp
AS $$ SELECT coalesce(sum(cardinality(r.keys)), 0) FROM scheduler.run AS r WHERE r.finished_at IS NULL AND (name IS NULL OR r.workflow = name) $$;
COMMENT ON FUNCTION scheduler._count_running(text) IS 'Internal: items in open runs, of one workflow or of all.';

CREATE OR REPLACE FUNCTION scheduler.resume(name text) RETURNS text
LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    w scheduler.workflow := scheduler._workflow(name);
    s scheduler.state;
BEGIN
    -- the settings first, as in alter_workflow(), so the two never wait for each other
    UPDATE scheduler.workflow AS x SET paused_at = NULL, paused_by = NULL, paused_reason = NULL WHERE x.name = resume.name;
    SELECT * INTO s FROM scheduler.state AS x WHERE x.workflow = resume.name FOR NO KEY UPDATE;
    UPDATE scheduler.state AS x SET hold_until = NULL, hold_reason = NULL, breaker_state = 'closed', breaker_until = NULL, breaker_trips = 0,
                                    breaker_closed_at = CASE WHEN x.breaker_state = 'closed' THEN x.breaker_closed_at ELSE now() END
    WHERE x.workflow = resume.name;
    PERFORM scheduler._audit('resume', name, NULL);
    PERFORM scheduler._ring(name || '!');
    RETURN concat_ws('; ', CASE WHEN w.paused_at IS NULL THEN name || ' was not paused' ELSE name || ' goes on' END,
                     CASE WHEN s.breaker_state <> 'closed' THEN 'its breaker is closed' END,
                     CASE WHEN s.hold_until > now() THEN 'its hold is over' END,
                     CASE WHEN EXISTS (SELECT FROM scheduler.control AS c WHERE c.paused_at IS NOT NULL) THEN 'but everything is paused: SELECT scheduler.resume_all()' END);
END
$$;
COMMENT ON FUNCTION scheduler.resume(text) IS 'The workflow goes on; also closes its breaker and ends a hold.';

CREATE OR REPLACE FUNCTION scheduler.pause_all(reason text DEFAULT NULL) RETURNS text
LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
    UPDATE scheduler.control SET paused_at = coalesce(paused_at, now()), paused_by = scheduler._who(), paused_reason = left(pause_all.reason, 1024);
    PERFORM scheduler._audit('pause_all', NULL, NULL, jsonb_build_object('reason', reason));
    RETURN format('everything is paused; %s running items finish', scheduler._count_running(NULL));
END
$$;
COMMENT ON FUNCTION scheduler.pause_all(text) IS 'Nothing is queued or claimed in any workflow until resume_all(); running items finish.';

CREATE OR REPLACE FUNCTION scheduler.resume_all() RETURNS text
LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    still text := (SELECT string_agg(w.name, ', ' ORDER BY w.name) FROM scheduler.workflow AS w WHERE w.paused_at IS NOT NULL);
BEGIN
    UPDATE scheduler.control SET paused_at = NULL, paused_by = NULL, paused_reason = NULL;
    PERFORM scheduler._audit('resume_all', NULL, NULL);
    PERFORM scheduler._ring(w.name || '!') FROM scheduler.workflow AS w;
    RETURN 'everything goes on' || coalesce(', except what is paused by itself: ' || still, '');
END
$$;
COMMENT ON FUNCTION scheduler.resume_all() IS 'Ends pause_all(); workflows that were paused one by one stay paused.';
