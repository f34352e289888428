-- Set up: create_workflow, alter_workflow, drop_workflow.
-- They run with the caller's rights, because only the owner of a table may put an index and triggers on it. What goes
-- into the engine's own tables goes through _register and _unregister, which check again.

CREATE OR REPLACE FUNCTION scheduler._default_idle(w scheduler.workflow) RETURNS text
LANGUAGE plpgsql STABLE
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    nullable boolean;
    fallback text;
BEGIN
    SELECT NOT a.attnotnull AND coalesce(NOT t.typnotnull, true), pg_get_expr(d.adbin, d.adrelid) INTO nullable, fallback
    FROM pg_catalog.pg_attribute AS a
    JOIN pg_catalog.pg_type AS t ON t.oid = a.atttypid
    LEFT JOIN pg_catalog.pg_attrdef AS d ON d.adrelid = a.attrelid AND d.adnum = a.attnum
    WHERE a.attrelid = w.relation AND a.attname = w.status_column;
    IF nullable THEN
        RETURN NULL;
    END IF;
    IF fallback IS NOT NULL THEN
        EXECUTE format('SELECT (%s)::text', fallback) INTO fallback;
    END IF;
    IF fallback IS NULL OR fallback IN (w.queued, w.processing, w.completed) THEN
        RETURN w.failed;
    END IF;
    RETURN fallback;
END
$$;
COMMENT ON FUNCTION scheduler._default_idle(scheduler.workflow) IS 'Internal: where cancel puts an item back: NULL, else the column''s default, else the failed word.';

CREATE OR REPLACE FUNCTION scheduler._find_age(relation regclass) RETURNS name
LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp
AS $$
    SELECT attname FROM pg_catalog.pg_attribute
    WHERE attrelid = relation AND attnum > 0 AND NOT attisdropped AND attname IN ('queued_at', 'updated_at', 'created_at')
      AND atttypid IN ('timestamptz'::regtype, 'timestamp'::regtype)
    ORDER BY array_position(ARRAY['queued_at', 'updated_at', 'created_at']::name[], attname) LIMIT 1
$$;
COMMENT ON FUNCTION scheduler._find_age(regclass) IS 'Internal: the column that tells the age of an item, if it has one of the usual names.';

CREATE OR REPLACE FUNCTION scheduler._register(w scheduler.workflow) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
    -- this function can be called past create_workflow(): nothing it was given is believed
    PERFORM scheduler._check_free(w.name);
    PERFORM scheduler._check_owner(w.relation, session_user);
    PERFORM scheduler._check_settings(w);
    PERFORM scheduler._check_words(w);
    IF NOT has_column_privilege(w.relation, w.status_column, 'UPDATE') OR NOT has_table_privilege(w.relation, 'SELECT') THEN
        RAISE EXCEPTION 'the engine has no rights on %', w.relation
            USING ERRCODE = 'insufficient_privilege', HINT = 'Its owner registers it with scheduler.create_workflow().';
    END IF;
    w.ready := scheduler._check_ready(w.relation, w.ready);
    w.created_at := now();
    w.created_by := session_user;
    w.paused_at := NULL;
    w.granted := coalesce(w.granted, '{}');
    INSERT INTO scheduler.workflow SELECT (w).*;
    INSERT INTO scheduler.state (workflow, next_slot) VALUES (w.name, scheduler.cron_next(w.schedule, now()));
    INSERT INTO scheduler.slot (workflow, n) SELECT w.name, n FROM generate_series(1, coalesce(w.max_instances, 0)) AS n;
    PERFORM scheduler._cron_put(w.name, w.schedule);
    PERFORM scheduler.sync_cron();
    PERFORM scheduler._audit('create_workflow', w.name, NULL, jsonb_build_object('table', w.relation::text, 'schedule', w.schedule));
END
$$;
COMMENT ON FUNCTION scheduler._register(scheduler.workflow) IS 'Internal: the rows of a new workflow and its pg_cron job, after checking everything once more.';

CREATE OR REPLACE FUNCTION scheduler._create_workflow(w scheduler.workflow) RETURNS text
LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    a pg_catalog.pg_attribute;
    extra text;
    stranded bigint;
    facts text[];
BEGIN
    -- one registration at a time: two at once would grant on one table or schema, which the server answers with an error of its own
    PERFORM pg_advisory_xact_lock(hashtext('scheduler.create_workflow'));
    PERFORM scheduler._check_free(w.name);
    PERFORM scheduler._check_table(w.relation);
    a := scheduler._check_column(w.relation, w.status_column, 'status_column');
    w.status_type := scheduler._base_type(a.atttypid);
    IF w.key_column IS NOT NULL THEN
        a := scheduler._check_column(w.relation, w.key_column, 'key_column');
    END IF;
    w.key_column := scheduler._find_key(w.relation, w.key_column);
    a := scheduler._check_column(w.relation, w.key_column, 'key_column');
    w.key_type := scheduler._base_type(a.atttypid);
    PERFORM scheduler._check_key(w);
    PERFORM scheduler._check_error_column(w);
    IF w.error_column = w.status_column OR w.key_column IN (w.status_column, w.error_column) THEN
        RAISE EXCEPTION 'key, status and error must be three different columns' USING ERRCODE = 'invalid_parameter_value', HINT = 'Name a column of its own for each.';
    END IF;
    FOREACH extra IN ARRAY array_remove(ARRAY[w.priority_column, w.age_column]::text[], NULL) LOOP
        a := scheduler._check_column(w.relation, extra, CASE WHEN extra = w.priority_column THEN 'priority_column' ELSE 'age_column' END);
        IF NOT EXISTS (SELECT FROM pg_catalog.pg_opclass AS o JOIN pg_catalog.pg_am AS m ON m.oid = o.opcmethod
                       WHERE m.amname = 'btree' AND o.opcdefault AND o.opcintype = scheduler._base_type(a.atttypid))
           AND NOT EXISTS (SELECT FROM pg_catalog.pg_type WHERE oid = scheduler._base_type(a.atttypid) AND typtype IN ('e', 'r')) 
           AND scheduler._base_type(a.atttypid) <> 'varchar'::regtype THEN
            RAISE EXCEPTION 'column % of % has type %, which has no order', quote_ident(extra), w.relation, format_type(a.atttypid, a.atttypmod)
                USING ERRCODE = 'invalid_parameter_value', HINT = 'Order by a number, a date or a text.';
        END IF;
    END LOOP;
    w.age_column := coalesce(w.age_column, scheduler._find_age(w.relation));
    IF w.idle IS NULL THEN
        w.idle := scheduler._default_idle(w);
    END IF;
    PERFORM scheduler._check_words(w);
    PERFORM scheduler._check_settings(w);

    w.granted := scheduler._grant_table(w);
    PERFORM scheduler._register(w);
    -- as stored: the predicate in the server's own words
    SELECT * INTO w FROM scheduler.workflow AS x WHERE x.name = w.name;
    PERFORM scheduler._build_indexes(w);
    PERFORM scheduler._build_triggers(w);

    facts := ARRAY[format('workflow %s on %s: %s queued', w.name, w.relation, scheduler._count_queued(w, 100000))];
    IF w.processing IS NOT NULL THEN
        EXECUTE format('SELECT count(*) FROM %s WHERE %I = %s', w.relation, w.status_column, scheduler._word(w, w.processing)) INTO stranded;
        IF stranded > 0 THEN
            facts := facts || format('%s in %L without a run, left as they are: SELECT * FROM scheduler.requeue(%L, stranded => true) queues them', stranded, w.processing, w.name);
        END IF;
    END IF;
    facts := facts || CASE WHEN w.schedule IS NULL THEN 'no schedule'
                           ELSE format('next dispatch %s, clock: %s', to_char(scheduler.cron_next(w.schedule, now()) AT TIME ZONE 'UTC', 'YYYY-MM-DD HH24:MI "UTC"'),
                                       CASE scheduler.cron_home() WHEN 'here' THEN 'pg_cron' WHEN 'elsewhere' THEN 'pg_cron in another database, see scheduler.doctor()' ELSE 'the listener' END) END;
    RETURN array_to_string(facts, '; ');
END
$$;
COMMENT ON FUNCTION scheduler._create_workflow(scheduler.workflow) IS 'Internal: checks a new workflow, registers it and prepares its table.';

CREATE OR REPLACE FUNCTION scheduler.create_workflow(
    name             text,
    relation         text,
    status_column    text,
    error_column     text DEFAULT NULL,
    key_column       text DEFAULT NULL,
    priority_column  text DEFAULT NULL,
    age_column       text DEFAULT NULL,
    ready            text DEFAULT NULL,
    queued           text DEFAULT 'Queued',
    processing       text DEFAULT 'Processing',
    completed        text DEFAULT 'Completed',
    failed           text DEFAULT 'Failed',
    idle             text DEFAULT NULL,
    schedule         text DEFAULT NULL,
    grace            interval DEFAULT NULL,
    batch_size       integer DEFAULT 100,
    max_instances    integer DEFAULT NULL,
    concurrency      integer DEFAULT 10,
    rate_limit       integer DEFAULT NULL,
    rate_period      interval DEFAULT '1 minute',
    lease            interval DEFAULT '1 minute',
    timeout          interval DEFAULT '5 minutes',
    max_attempts     integer DEFAULT 5,
    backoff          interval DEFAULT '30 seconds',
    backoff_max      interval DEFAULT '1 hour',
    breaker          boolean DEFAULT true,
    downstream       text DEFAULT NULL,
    downstream_limit integer DEFAULT 1000,
    doorbell         text DEFAULT 'commit'
) RETURNS text
LANGUAGE plpgsql
-- no SET search_path: the table and the predicate are looked up the way the caller would
AS $$
DECLARE
    w scheduler.workflow;
BEGIN
    w.name := name;
    BEGIN
        w.relation := pg_catalog.to_regclass(relation);
    EXCEPTION WHEN syntax_error OR invalid_name OR feature_not_supported THEN
        w.relation := NULL;
    END;
    IF w.relation IS NULL THEN
        RAISE EXCEPTION 'there is no table %', coalesce(pg_catalog.quote_literal(relation), 'NULL')
            USING ERRCODE = 'undefined_table',
                  HINT = coalesce('Did you mean ' || (SELECT pg_catalog.string_agg(pg_catalog.format('%I.%I', n.nspname, c.relname), ' or ')
                                                       FROM pg_catalog.pg_class AS c JOIN pg_catalog.pg_namespace AS n ON n.oid = c.relnamespace
                                                       WHERE c.relkind IN ('r', 'p') AND pg_catalog.lower(c.relname::text) = pg_catalog.lower(pg_catalog.regexp_replace(relation, '^.*\.|"', '', 'g'))) || '?',
                                  'Create the table first; name it with its schema, and put mixed-case names in double quotes.');
    END IF;
    w.status_column := status_column;
    w.error_column := error_column;
    w.key_column := key_column;
    w.priority_column := priority_column;
    w.age_column := age_column;
    w.ready := scheduler._check_ready(w.relation, ready);
    w.queued := queued;
    w.processing := processing;
    w.completed := completed;
    w.failed := failed;
    w.idle := idle;
    w.schedule := pg_catalog.btrim(schedule);
    w.grace := grace;
    w.batch_size := batch_size;
    w.max_instances := max_instances;
    w.concurrency := concurrency;
    w.rate_limit := rate_limit;
    w.rate_period := rate_period;
    w.lease := lease;
    w.timeout := timeout;
    w.max_attempts := max_attempts;
    w.backoff := backoff;
    w.backoff_max := backoff_max;
    w.breaker := breaker;
    w.downstream := downstream;
    w.downstream_limit := downstream_limit;
    w.doorbell := doorbell;
    RETURN scheduler._create_workflow(w);
END
$$;
COMMENT ON FUNCTION scheduler.create_workflow IS
'Makes a queue of a table you own: checks everything, then builds the partial index, the triggers and the pg_cron job in one transaction.
Only name, table and status_column are needed; the defaults of the rest are in the signature (\df scheduler.create_workflow).
To spare a large busy table the lock of CREATE INDEX, build scheduler_<name>_queued with CONCURRENTLY first.';

CREATE OR REPLACE FUNCTION scheduler._alter(name text, changes scheduler.workflow) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    old scheduler.workflow;
BEGIN
    SELECT * INTO old FROM scheduler.workflow AS x WHERE x.name = _alter.name FOR NO KEY UPDATE;
    PERFORM scheduler._check_settings(changes);
    IF changes.ready IS DISTINCT FROM old.ready OR changes.doorbell IS DISTINCT FROM old.doorbell THEN
        PERFORM scheduler._check_owner(old.relation, session_user);
    END IF;
    UPDATE scheduler.workflow AS x SET
        ready = scheduler._check_ready(old.relation, changes.ready), schedule = changes.schedule, grace = changes.grace, batch_size = changes.batch_size,
        max_instances = changes.max_instances, concurrency = changes.concurrency, rate_limit = changes.rate_limit,
        rate_period = changes.rate_period, lease = changes.lease, timeout = changes.timeout, max_attempts = changes.max_attempts,
        backoff = changes.backoff, backoff_max = changes.backoff_max, breaker = changes.breaker, downstream = changes.downstream,
        downstream_limit = changes.downstream_limit, doorbell = changes.doorbell
    WHERE x.name = _alter.name;
    IF changes.schedule IS DISTINCT FROM old.schedule THEN
        UPDATE scheduler.state AS s SET next_slot = scheduler.cron_next(changes.schedule, now()) WHERE s.workflow = _alter.name;
        PERFORM scheduler._cron_put(_alter.name, changes.schedule);
    END IF;
    IF changes.max_instances IS DISTINCT FROM old.max_instances THEN
        PERFORM scheduler._resize_slots(_alter.name, changes.max_instances);
    END IF;
    IF old.breaker AND NOT changes.breaker THEN
        UPDATE scheduler.state AS s SET breaker_state = 'closed', breaker_until = NULL, breaker_closed_at = now() WHERE s.workflow = _alter.name;
    END IF;
    PERFORM scheduler._audit('alter_workflow', _alter.name, NULL,
                             (SELECT jsonb_object_agg(n.key, coalesce(n.value #>> '{}', 'NULL')) FROM jsonb_each(to_jsonb(changes)) AS n
                              WHERE n.value IS DISTINCT FROM to_jsonb(old) -> n.key));
END
$$;
COMMENT ON FUNCTION scheduler._alter(text, scheduler.workflow) IS 'Internal: writes changed settings and what follows from them.';

CREATE OR REPLACE FUNCTION scheduler._resize_slots(workflow text, wanted integer) RETURNS void
LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
    INSERT INTO scheduler.slot (workflow, n)
    SELECT _resize_slots.workflow, n FROM generate_series(1, coalesce(wanted, 0)) AS n
    ON CONFLICT DO NOTHING;
    -- runs that began without a slot take one now, else a new limit would not see them
    UPDATE scheduler.slot AS s SET run = p.run
    FROM (SELECT r.id AS run, row_number() OVER (ORDER BY r.id) AS rank FROM scheduler.run AS r
          WHERE r.workflow = _resize_slots.workflow AND r.finished_at IS NULL
            AND NOT EXISTS (SELECT FROM scheduler.slot AS o WHERE o.workflow = _resize_slots.workflow AND o.run = r.id)) AS p
    JOIN (SELECT f.n, row_number() OVER (ORDER BY f.n) AS rank FROM scheduler.slot AS f
          WHERE f.workflow = _resize_slots.workflow AND f.run IS NULL) AS f ON f.rank = p.rank
    WHERE s.workflow = _resize_slots.workflow AND s.n = f.n;
    -- more runs than slots: they keep extra ones, beyond the limit, until they end
    INSERT INTO scheduler.slot (workflow, n, run)
    SELECT _resize_slots.workflow, (SELECT coalesce(max(x.n), 0) FROM scheduler.slot AS x WHERE x.workflow = _resize_slots.workflow) + row_number() OVER (ORDER BY r.id), r.id
    FROM scheduler.run AS r
    WHERE wanted IS NOT NULL AND r.workflow = _resize_slots.workflow AND r.finished_at IS NULL
      AND NOT EXISTS (SELECT FROM scheduler.slot AS o WHERE o.workflow = _resize_slots.workflow AND o.run = r.id);
    DELETE FROM scheduler.slot AS s WHERE s.workflow = _resize_slots.workflow AND s.n > coalesce(wanted, 0) AND s.run IS NULL;
END
$$;
COMMENT ON FUNCTION scheduler._resize_slots(text, integer) IS 'Internal: as many slots as max_instances; occupied ones beyond it stay until their run ends.';

CREATE OR REPLACE FUNCTION scheduler.alter_workflow(
    name             text,
    ready            text DEFAULT NULL,
    schedule         text DEFAULT NULL,
    grace            interval DEFAULT NULL,
    batch_size       integer DEFAULT NULL,
    max_instances    integer DEFAULT NULL,
    concurrency      integer DEFAULT NULL,
    rate_limit       integer DEFAULT NULL,
    rate_period      interval DEFAULT NULL,
    lease            interval DEFAULT NULL,
    timeout          interval DEFAULT NULL,
    max_attempts     integer DEFAULT NULL,
    backoff          interval DEFAULT NULL,
    backoff_max      interval DEFAULT NULL,
    breaker          boolean DEFAULT NULL,
    downstream       text DEFAULT NULL,
    downstream_limit integer DEFAULT NULL,
    doorbell         text DEFAULT NULL,
    clear            text[] DEFAULT '{}'
) RETURNS text
LANGUAGE plpgsql
-- no SET search_path: the predicate is looked up the way the caller would
AS $$
DECLARE
    old scheduler.workflow := scheduler._live(name);
    w scheduler.workflow := old;
    unknown text;
    changed text;
BEGIN
    w.ready := coalesce(scheduler._check_ready(old.relation, ready), old.ready);
    w.schedule := coalesce(pg_catalog.btrim(schedule), old.schedule);
    w.grace := coalesce(grace, old.grace);
    w.batch_size := coalesce(batch_size, old.batch_size);
    w.max_instances := coalesce(max_instances, old.max_instances);
    w.concurrency := coalesce(concurrency, old.concurrency);
    w.rate_limit := coalesce(rate_limit, old.rate_limit);
    w.rate_period := coalesce(rate_period, old.rate_period);
    w.lease := coalesce(lease, old.lease);
    w.timeout := coalesce(timeout, old.timeout);
    w.max_attempts := coalesce(max_attempts, old.max_attempts);
    w.backoff := coalesce(backoff, old.backoff);
    w.backoff_max := coalesce(backoff_max, old.backoff_max);
    w.breaker := coalesce(breaker, old.breaker);
    w.downstream := coalesce(downstream, old.downstream);
    w.downstream_limit := coalesce(downstream_limit, old.downstream_limit);
    w.doorbell := coalesce(doorbell, old.doorbell);
    -- NULL means unchanged, so what is to become NULL is named
    FOREACH unknown IN ARRAY coalesce(clear, '{}') LOOP
        CASE unknown
            WHEN 'ready' THEN w.ready := NULL;
            WHEN 'schedule' THEN w.schedule := NULL;
            WHEN 'grace' THEN w.grace := NULL;
            WHEN 'max_instances' THEN w.max_instances := NULL;
            WHEN 'rate_limit' THEN w.rate_limit := NULL;
            WHEN 'downstream' THEN w.downstream := NULL;
            ELSE
                RAISE EXCEPTION '% cannot be cleared', pg_catalog.quote_literal(unknown)
                    USING ERRCODE = 'invalid_parameter_value', HINT = 'These can: ready, schedule, grace, max_instances, rate_limit, downstream.';
        END CASE;
    END LOOP;
    PERFORM scheduler._check_settings(w);
    IF w.ready IS DISTINCT FROM old.ready OR w.doorbell IS DISTINCT FROM old.doorbell THEN
        PERFORM scheduler._check_table(old.relation);
    END IF;
    PERFORM scheduler._alter(name, w);
    w := scheduler._workflow(name);
    IF w.ready IS DISTINCT FROM old.ready THEN
        PERFORM scheduler._drop_index(w, 'ready');
        PERFORM scheduler._build_indexes(w);
    END IF;
    IF w.doorbell IS DISTINCT FROM old.doorbell THEN
        PERFORM scheduler._build_triggers(w);
    END IF;
    SELECT pg_catalog.string_agg(n.key || ' = ' || (n.value #>> '{}'), ', ' ORDER BY n.key) INTO changed
    FROM pg_catalog.jsonb_each(pg_catalog.jsonb_strip_nulls(pg_catalog.to_jsonb(w))) AS n
    WHERE n.value IS DISTINCT FROM pg_catalog.to_jsonb(old) OPERATOR(pg_catalog.->) n.key;
    RETURN pg_catalog.format('workflow %s: %s', name, pg_catalog.concat_ws('; ', changed, 'cleared ' || nullif(pg_catalog.array_to_string(clear, ', '), '')));
END
$$;
COMMENT ON FUNCTION scheduler.alter_workflow IS
'Changes settings of a workflow, at once: what is left out or NULL stays as it is; to make a setting NULL, name it in clear, as in clear => ''{schedule}''.
Columns and words cannot be altered: drop the workflow and create it again, the rows stay as they are.';

CREATE OR REPLACE FUNCTION scheduler._unregister(name text, force boolean, OUT running integer, OUT back integer, OUT problem text)
LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    w scheduler.workflow;
BEGIN
    SELECT * INTO w FROM scheduler.workflow AS x WHERE x.name = _unregister.name FOR UPDATE;
    IF EXISTS (SELECT FROM pg_catalog.pg_class WHERE oid = w.relation) THEN
        PERFORM scheduler._check_owner(w.relation, session_user);
    END IF;
    SELECT coalesce(sum(cardinality(r.keys)), 0) INTO running FROM scheduler.run AS r WHERE r.workflow = _unregister.name AND r.finished_at IS NULL;
    IF running > 0 AND force IS NOT TRUE THEN
        RAISE EXCEPTION '% items of workflow % are running', running, _unregister.name
            USING ERRCODE = 'object_in_use',
                  HINT = format('Stop it first: SELECT scheduler.pause(%1$L), wait until scheduler.in_flight shows none; or give them up: SELECT scheduler.drop_workflow(%1$L, force => true).', _unregister.name);
    END IF;
    IF running > 0 AND w.processing IS NOT NULL AND EXISTS (SELECT FROM pg_catalog.pg_class WHERE oid = w.relation) THEN
        -- nobody would ever take them out of Processing again
        BEGIN
            PERFORM scheduler._check_visible(w.relation);
            back := cardinality(scheduler._put_back(w, (SELECT array_agg(k) FROM scheduler.run AS r, unnest(r.keys) AS k WHERE r.workflow = _unregister.name AND r.finished_at IS NULL)));
        EXCEPTION
            -- a column, word or right that is gone, which is why it is dropped; what only was in the way is told to the caller
            WHEN undefined_column OR undefined_object OR undefined_function OR datatype_mismatch OR data_exception OR insufficient_privilege THEN
                problem := SQLERRM;
        END;
    END IF;
    PERFORM scheduler._cron_drop(_unregister.name);
    -- what was granted for this workflow and another needs too, that one takes back some day
    UPDATE scheduler.workflow AS o SET granted = o.granted || h.items
    FROM (SELECT x.name, array_agg(g.item) AS items
          FROM scheduler.workflow AS x, LATERAL scheduler._grants(x) AS g, scheduler._grants(w) AS mine
          WHERE x.name <> w.name AND mine.object = g.object AND mine.item = g.item AND g.item = ANY (w.granted) AND g.item <> ALL (x.granted)
          GROUP BY x.name) AS h
    WHERE o.name = h.name;
    DELETE FROM scheduler.run AS r WHERE r.workflow = _unregister.name;
    DELETE FROM scheduler.takeover AS t WHERE t.workflow = _unregister.name;
    DELETE FROM scheduler.workflow AS x WHERE x.name = _unregister.name;
    PERFORM scheduler._audit('drop_workflow', _unregister.name, running, jsonb_build_object('force', force));
    PERFORM scheduler._ring(_unregister.name || '!');
END
$$;
COMMENT ON FUNCTION scheduler._unregister(text, boolean) IS 'Internal: removes the rows of a workflow and its pg_cron job; says how many items ran, how many of them are Queued again, and if they cannot be, why.';

CREATE OR REPLACE FUNCTION scheduler.drop_workflow(name text, force boolean DEFAULT false) RETURNS text
LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    w scheduler.workflow := scheduler._workflow(name);
    exists_still boolean := EXISTS (SELECT FROM pg_catalog.pg_class WHERE oid = w.relation);
    gone record;
BEGIN
    PERFORM pg_advisory_xact_lock(hashtext('scheduler.create_workflow'));
    IF exists_still THEN
        PERFORM scheduler._check_owner(w.relation, current_user);
        -- needed for the triggers anyway; taken first, claims that have begun are seen and none begins meanwhile
        EXECUTE format('LOCK TABLE %s IN ACCESS EXCLUSIVE MODE', w.relation);
    END IF;
    gone := scheduler._unregister(name, force);
    IF exists_still THEN
        PERFORM scheduler._leave_table(w);
    END IF;
    RETURN format('workflow %s is gone; its rows stay as they are%s', name,
                  CASE WHEN gone.problem IS NOT NULL THEN format(', also %s in %L, which could not be put back: %s', gone.running, w.processing, gone.problem)
                       WHEN gone.back > 0 THEN format(', %s running ones are %s again', gone.back, w.queued) ELSE '' END);
END
$$;
COMMENT ON FUNCTION scheduler.drop_workflow(text, boolean) IS 'Removes a workflow with its index, triggers, grants, job and history; the table''s rows stay. Refused while items run, unless forced.';
