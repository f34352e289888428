-- Dispatch: one firing of a schedule. Ready rows become Queued, due retries too, up to batch_size.
-- What is due is computed from data, so it does not matter how many clocks tick or how late.

CREATE OR REPLACE FUNCTION scheduler._requeue_due(w scheduler.workflow, most integer) RETURNS integer
LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
SET scheduler.engine = 'on'
AS $$
DECLARE
    due text[];
    moved integer;
BEGIN
    SELECT array_agg(d.key) INTO due
    FROM (SELECT a.key FROM scheduler.attempt AS a
          WHERE a.workflow = w.name AND a.state = 'waiting' AND a.retry_at <= now()
          ORDER BY a.retry_at LIMIT most FOR NO KEY UPDATE SKIP LOCKED) AS d;
    IF due IS NULL THEN
        RETURN 0;
    END IF;
    EXECUTE format($sql$
        WITH c AS MATERIALIZED (
            SELECT t.%1$I AS key FROM %2$s AS t WHERE t.%1$I = ANY ($1::%3$s[]) AND t.%4$I = %5$s
            FOR NO KEY UPDATE SKIP LOCKED
        ), u AS (
            UPDATE %2$s AS t SET %4$I = %6$s FROM c WHERE t.%1$I = c.key RETURNING t.%1$I
        )
        SELECT count(*)::integer FROM u
        $sql$, w.key_column, w.relation, format_type(w.key_type, -1), w.status_column, scheduler._word(w, w.failed), scheduler._word(w, w.queued))
        INTO moved USING due;
    -- a row that no longer shows the failed word was changed by a person or deleted: nothing to retry there either
    UPDATE scheduler.attempt AS a SET state = 'active', retry_at = NULL
    WHERE a.workflow = w.name AND a.key = ANY (due) AND a.key = ANY (scheduler._keys_with(w, due, w.queued, w.processing));
    EXECUTE format('DELETE FROM scheduler.attempt AS a WHERE a.workflow = $1 AND a.key = ANY ($2) AND a.state = ''waiting''
                    AND NOT EXISTS (SELECT FROM %s AS t WHERE t.%I = a.key::%s AND t.%I = %s)',
                   w.relation, w.key_column, format_type(w.key_type, -1), w.status_column, scheduler._word(w, w.failed)) USING w.name, due;
    IF moved > 0 AND w.doorbell = 'dispatch' THEN
        PERFORM scheduler._ring(w.name);
    END IF;
    RETURN moved;
END
$$;
COMMENT ON FUNCTION scheduler._requeue_due(scheduler.workflow, integer) IS 'Internal: failed items whose waiting time is over become Queued.';

CREATE OR REPLACE FUNCTION scheduler._keys_with(w scheduler.workflow, keys text[], VARIADIC words text[]) RETURNS text[]
LANGUAGE plpgsql STABLE
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    found text[];
BEGIN
    EXECUTE format('SELECT array_agg(t.%1$I::text) FROM %2$s AS t WHERE t.%1$I = ANY ($1::%3$s[]) AND t.%4$I = ANY ($2::text[]::%5$s[])',
                   w.key_column, w.relation, format_type(w.key_type, -1), w.status_column, format_type(w.status_type, -1))
        INTO found USING keys, array_remove(words, NULL);
    RETURN coalesce(found, '{}');
END
$$;
COMMENT ON FUNCTION scheduler._keys_with(scheduler.workflow, text[], text[]) IS 'Internal: those of the keys whose item shows one of the words.';

CREATE OR REPLACE FUNCTION scheduler._dispatchable_sql(w scheduler.workflow) RETURNS text
LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp
AS $$
    -- items that wait for their retry, are dead or were cancelled are not ready just because the predicate says so;
    -- once a person gives such an item another word, it is
    SELECT scheduler._ready_sql(w) || CASE
        WHEN EXISTS (SELECT FROM scheduler.attempt AS a WHERE a.workflow = w.name AND a.state <> 'active')
        THEN format(' AND NOT EXISTS (SELECT FROM scheduler.attempt AS a WHERE a.workflow = %L AND a.key = t.%I::text
                      AND (a.state IN (''waiting'', ''dead'') AND t.%3$I = %4$s OR a.state = ''cancelled'' AND t.%3$I IS NOT DISTINCT FROM %5$s))',
                    w.name, w.key_column, w.status_column, scheduler._word(w, w.failed), scheduler._word(w, w.idle))
        ELSE '' END
$$;
COMMENT ON FUNCTION scheduler._dispatchable_sql(scheduler.workflow) IS 'Internal: the ready predicate without items that wait, are dead or were cancelled.';

CREATE OR REPLACE FUNCTION scheduler._queue_ready(w scheduler.workflow, most integer) RETURNS integer
LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
SET scheduler.engine = 'on'
AS $$
DECLARE
    moved integer;
BEGIN
    EXECUTE format($sql$
        WITH c AS MATERIALIZED (
            SELECT t.%1$I AS key FROM %2$s AS t WHERE %3$s ORDER BY %4$s LIMIT $1
            FOR NO KEY UPDATE SKIP LOCKED
        ), u AS (
            UPDATE %2$s AS t SET %5$I = %6$s FROM c WHERE t.%1$I = c.key RETURNING t.%1$I
        )
        SELECT count(*)::integer FROM u
        $sql$, w.key_column, w.relation, scheduler._dispatchable_sql(w), scheduler._order_sql(w, 't.'), w.status_column, scheduler._word(w, w.queued))
        INTO moved USING most;
    IF moved > 0 AND w.doorbell = 'dispatch' THEN
        PERFORM scheduler._ring(w.name);
    END IF;
    RETURN moved;
END
$$;
COMMENT ON FUNCTION scheduler._queue_ready(scheduler.workflow, integer) IS 'Internal: the first ready items become Queued.';

CREATE OR REPLACE FUNCTION scheduler.dispatch(name text, clock text DEFAULT NULL)
RETURNS TABLE (queued integer, retried integer, note text)
LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    w scheduler.workflow;
    s scheduler.state;
    slot timestamptz;
    room integer;
    late integer := 0;
BEGIN
    PERFORM scheduler._require_read_committed();
    queued := 0;
    retried := 0;
    -- one dispatch of a workflow at a time; a clock does not wait for its turn, the slot is being served
    IF clock IS NULL THEN
        SELECT * INTO s FROM scheduler.state AS x WHERE x.workflow = dispatch.name FOR NO KEY UPDATE;
    ELSE
        SELECT * INTO s FROM scheduler.state AS x WHERE x.workflow = dispatch.name FOR NO KEY UPDATE SKIP LOCKED;
        IF NOT FOUND AND EXISTS (SELECT FROM scheduler.workflow AS x WHERE x.name = dispatch.name) THEN
            note := 'another dispatch of it is running';
            RETURN NEXT;
            RETURN;
        END IF;
    END IF;
    w := scheduler._live(dispatch.name);

    IF clock IS NOT NULL THEN
        IF s.next_slot IS NULL OR now() < s.next_slot THEN
            note := 'not due';
            RETURN NEXT;
            RETURN;
        END IF;
        slot := scheduler.cron_previous(w.schedule, now());
        IF slot > s.next_slot THEN
            note := 'slots were missed and are made up by this one';
            late := 1;
        END IF;
        s.next_slot := scheduler.cron_next(w.schedule, now());
        IF w.grace IS NOT NULL AND now() - slot > w.grace THEN
            note := format('skipped: the slot of %s was missed by more than %s', slot, w.grace);
            UPDATE scheduler.state AS x SET next_slot = s.next_slot, last_clock = clock, last_note = dispatch.note, missed_slots = x.missed_slots + 1
            WHERE x.workflow = w.name;
            RETURN NEXT;
            RETURN;
        END IF;
    END IF;

    room := w.batch_size - scheduler._count_queued(w, w.batch_size);
    IF w.paused_at IS NOT NULL THEN
        note := 'paused: ' || coalesce(w.paused_reason, 'no reason given');
    ELSIF EXISTS (SELECT FROM scheduler.control AS c WHERE c.paused_at IS NOT NULL) THEN
        note := 'everything is paused';
    ELSIF room <= 0 THEN
        note := format('%s items are Queued already, which is the batch size', w.batch_size);
    ELSIF w.downstream IS NOT NULL AND scheduler._count_queued(scheduler._live(w.downstream), w.downstream_limit) >= w.downstream_limit THEN
        note := format('held back: %s has %s or more items Queued', w.downstream, w.downstream_limit);
    ELSE
        retried := scheduler._requeue_due(w, room);
        IF w.ready IS NOT NULL AND retried < room THEN
            queued := scheduler._queue_ready(w, room - retried);
        END IF;
    END IF;
    UPDATE scheduler.state AS x SET
        next_slot = s.next_slot, last_slot = coalesce(slot, x.last_slot), last_dispatch_at = now(), last_clock = coalesce(clock, 'person'),
        last_queued = dispatch.queued + dispatch.retried, last_note = dispatch.note, missed_slots = x.missed_slots + late
    WHERE x.workflow = w.name;
    IF clock IS NULL THEN
        PERFORM scheduler._audit('dispatch', w.name, queued + retried, jsonb_build_object('note', note));
    END IF;
    RETURN NEXT;
END
$$;
COMMENT ON FUNCTION scheduler.dispatch(text, text) IS
'Marks ready rows and due retries Queued, up to batch_size, and says what it did. With a clock (pg_cron, listener) only if a slot of the schedule is due, so each slot is dispatched once.';
