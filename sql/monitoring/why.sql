-- In words: why an item is not running, and what the next dispatch would queue.

CREATE OR REPLACE FUNCTION scheduler._why_not_claimed(w scheduler.workflow) RETURNS text
LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp
AS $$
    SELECT CASE
        WHEN w.paused_at IS NOT NULL THEN format('the workflow is paused by %s since %s%s: SELECT scheduler.resume(%L)', w.paused_by, w.paused_at, coalesce(' (' || w.paused_reason || ')', ''), w.name)
        WHEN c.paused_at IS NOT NULL THEN format('everything is paused by %s since %s: SELECT scheduler.resume_all()', c.paused_by, c.paused_at)
        WHEN s.hold_until > now() THEN format('the workflow is held until %s%s', s.hold_until, coalesce(' (' || s.hold_reason || ')', ''))
        WHEN s.breaker_state = 'open' AND s.breaker_until > now() THEN format('recent items mostly failed, so the breaker is open until %s', s.breaker_until)
        WHEN s.breaker_state <> 'closed' THEN 'recent items mostly failed; one item is being tried before the others'
        WHEN w.max_instances IS NOT NULL AND (SELECT count(*) FROM scheduler.run AS r WHERE r.workflow = w.name AND r.finished_at IS NULL) >= w.max_instances
            THEN format('%s runs are open, which is max_instances', w.max_instances)
        WHEN w.rate_limit IS NOT NULL AND (SELECT coalesce(sum(r.claimed), 0) FROM scheduler.run AS r WHERE r.workflow = w.name AND r.started_at > now() - w.rate_period) >= w.rate_limit
            THEN format('the rate limit of %s in %s is used up', w.rate_limit, w.rate_period)
        WHEN NOT EXISTS (SELECT FROM scheduler.listener AS l WHERE l.stopped_at IS NULL AND l.seen_at > now() - interval '1 minute' AND (l.workflows IS NULL OR w.name = ANY (l.workflows)))
            THEN 'no listener that knows this workflow is alive: scrapersky listen' END
    FROM scheduler.state AS s, scheduler.control AS c WHERE s.workflow = w.name
$$;
COMMENT ON FUNCTION scheduler._why_not_claimed(scheduler.workflow) IS 'Internal: what keeps the whole workflow from claiming, or NULL.';

CREATE OR REPLACE FUNCTION scheduler.why(name text, id text) RETURNS text
LANGUAGE plpgsql STABLE SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    w scheduler.workflow := scheduler._live(name);
    item text := (scheduler._check_keys(w, ARRAY[id]))[1];
    shown text;
    present boolean;
    ready boolean;
    a scheduler.attempt;
    r record;
    before integer;
    blocked text := scheduler._why_not_claimed(w);
BEGIN
    EXECUTE format('SELECT true, t.%I::text, %s FROM %s AS t WHERE t.%I = $1::%s', w.status_column,
                   CASE WHEN w.ready IS NULL THEN 'NULL::boolean' ELSE format('coalesce((%s), false)', scheduler._ready_sql(w)) END, w.relation, w.key_column, format_type(w.key_type, -1))
        INTO present, shown, ready USING item;
    IF present IS NULL THEN
        RETURN format('There is no row with %I = %L in %s.', w.key_column, item, w.relation);
    END IF;
    SELECT * INTO a FROM scheduler.attempt AS x WHERE x.workflow = w.name AND x.key = item;
    SELECT x.id, x.started_at, x.lease_until, l.host, l.pid INTO r
    FROM scheduler.run AS x LEFT JOIN scheduler.listener AS l ON l.id = x.listener
    WHERE x.workflow = w.name AND x.finished_at IS NULL AND item = ANY (x.keys) ORDER BY x.id DESC LIMIT 1;

    IF r.id IS NOT NULL AND shown = coalesce(w.processing, w.queued) THEN
        RETURN format('It runs since %s as attempt %s of %s, in run %s%s; its lease lasts until %s.', r.started_at, coalesce(a.attempts, 0) + 1, w.max_attempts, r.id,
                      coalesce(' on ' || r.host || ' (process ' || r.pid || ')', ''), r.lease_until);
    ELSIF shown = w.processing THEN
        RETURN format('It shows %L, but no run has it: someone else wrote that word. SELECT scheduler.requeue(%L, stranded => true) queues such items.', shown, w.name);
    ELSIF shown = w.queued THEN
        EXECUTE format('SELECT count(*)::integer FROM (SELECT FROM %1$s AS t, %1$s AS me WHERE me.%2$I = $1::%3$s AND t.%4$I = %5$s AND (%6$s) LIMIT 20000) AS q',
                       w.relation, w.key_column, format_type(w.key_type, -1), w.status_column, scheduler._word(w, w.queued), scheduler._before_sql(w))
            INTO before USING item;
        RETURN concat_ws(' ', 'It is queued' || CASE WHEN before = 0 THEN ' and the next to be claimed' WHEN before >= 20000 THEN ' behind 20000 others or more' ELSE format(' behind %s others', before) END
                              || coalesce(', for attempt ' || a.attempts + 1 || ' of ' || w.max_attempts, '') || '.',
                         CASE WHEN blocked IS NOT NULL THEN 'It waits because ' || blocked || '.' END);
    ELSIF shown = w.failed AND a.state = 'waiting' THEN
        RETURN format('Attempt %s of %s failed at %s: %s. It is queued again at %s.', a.attempts, w.max_attempts, a.last_at, a.error, a.retry_at);
    ELSIF shown = w.failed AND a.state = 'dead' THEN
        RETURN format('It is in the dead letter since %s (%s, attempt %s of %s): %s. A new start: SELECT scheduler.requeue(%L, ARRAY[%L])', a.last_at, a.reason, a.attempts, w.max_attempts, a.error, w.name, item);
    ELSIF shown = w.completed THEN
        RETURN format('It is done (%L). Once more: SELECT * FROM scheduler.enqueue(%L, ARRAY[%L])', shown, w.name, item);
    ELSIF a.state = 'cancelled' AND shown IS NOT DISTINCT FROM w.idle THEN
        RETURN format('It was cancelled (%s), so the schedule leaves it alone. After all: SELECT * FROM scheduler.enqueue(%L, ARRAY[%L])', a.reason, w.name, item);
    ELSIF ready THEN
        RETURN concat_ws(' ', 'It is ready.', CASE
            WHEN w.schedule IS NULL THEN format('The workflow has no schedule: SELECT * FROM scheduler.dispatch(%L)', w.name)
            ELSE (SELECT format('The next dispatch is at %s and queues up to %s items, oldest first.%s', s.next_slot, w.batch_size, ' The last one said: ' || s.last_note || '.') FROM scheduler.state AS s WHERE s.workflow = w.name) END,
            CASE WHEN blocked IS NOT NULL THEN 'And then ' || blocked || '.' END);
    ELSIF shown = w.failed THEN
        RETURN format('It shows %L, but the engine did not fail it. SELECT scheduler.requeue(%L, ARRAY[%L]) queues it.', shown, w.name, item);
    ELSE
        RETURN format('Its status is %s and nothing asks for it: %s.', coalesce(quote_literal(shown), 'NULL'),
                      coalesce('the ready predicate is not true for it: ' || w.ready, format('the workflow has no ready predicate; SELECT * FROM scheduler.enqueue(%L, ARRAY[%L])', w.name, item)));
    END IF;
END
$$;
COMMENT ON FUNCTION scheduler.why(text, text) IS 'In words: what an item is doing, or why it is not running and what would make it.';

CREATE OR REPLACE FUNCTION scheduler.why(name text, id anyelement) RETURNS text
LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp
AS $$ SELECT scheduler.why(name, id::text) $$;
COMMENT ON FUNCTION scheduler.why(text, anyelement) IS 'In words: what an item is doing, or why it is not running and what would make it.';

CREATE OR REPLACE FUNCTION scheduler._before_sql(w scheduler.workflow) RETURNS text
LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp
AS $$
    SELECT CASE
        WHEN w.priority_column IS NULL AND w.age_column IS NULL THEN format('t.%1$I < me.%1$I', w.key_column)
        WHEN w.priority_column IS NULL THEN format('t.%1$I < me.%1$I', w.age_column)
        ELSE format('t.%1$I > me.%1$I OR t.%1$I IS NOT NULL AND me.%1$I IS NULL%2$s', w.priority_column,
                    coalesce(format(' OR t.%1$I IS NOT DISTINCT FROM me.%1$I AND t.%2$s < me.%2$s', w.priority_column, quote_ident(w.age_column)), '')) END
$$;
COMMENT ON FUNCTION scheduler._before_sql(scheduler.workflow) IS 'Internal: the condition that row t stands before row me in the queue.';

CREATE OR REPLACE FUNCTION scheduler.preview(name text, most integer DEFAULT NULL) RETURNS TABLE (n bigint, key text, cause text)
LANGUAGE plpgsql STABLE SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    w scheduler.workflow := scheduler._live(name);
    room integer := w.batch_size - scheduler._count_queued(w, w.batch_size);
    due integer;
BEGIN
    IF w.paused_at IS NOT NULL OR EXISTS (SELECT FROM scheduler.control AS c WHERE c.paused_at IS NOT NULL) THEN
        RAISE NOTICE 'workflow % is paused: a dispatch would queue nothing until it is resumed; this is what it would queue then', w.name;
    ELSIF room <= 0 THEN
        RAISE NOTICE '% items are Queued already, which is the batch size: a dispatch now would queue nothing', w.batch_size;
    ELSIF w.downstream IS NOT NULL AND scheduler._count_queued(scheduler._live(w.downstream), w.downstream_limit) >= w.downstream_limit THEN
        RAISE NOTICE 'held back: % has % or more items Queued; this is what would be queued once it has fewer', w.downstream, w.downstream_limit;
    END IF;
    room := coalesce(most, greatest(room, 0));
    RETURN QUERY SELECT row_number() OVER (ORDER BY a.retry_at), a.key, format('retry due since %s', a.retry_at)
        FROM scheduler.attempt AS a WHERE a.workflow = w.name AND a.state = 'waiting' AND a.retry_at <= now() ORDER BY a.retry_at LIMIT room;
    GET DIAGNOSTICS due = ROW_COUNT;
    IF w.ready IS NOT NULL AND due < room THEN
        RETURN QUERY EXECUTE format('SELECT $2 + row_number() OVER (), q.key, ''ready''::text FROM (SELECT t.%I::text AS key FROM %s AS t WHERE %s ORDER BY %s LIMIT $1) AS q',
                                    w.key_column, w.relation, scheduler._dispatchable_sql(w), scheduler._order_sql(w)) USING room - due, due::bigint;
    END IF;
END
$$;
COMMENT ON FUNCTION scheduler.preview(text, integer) IS 'What the next dispatch would queue, in order; changes nothing. With most, that many whatever the room.';
