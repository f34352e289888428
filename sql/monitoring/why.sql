-- In words: why an item is not running, and what the next dispatch would queue.

CREATE OR REPLACE FUNCTION scheduler._why_not_claimed(w scheduler.workflow) RETURNS text
LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp
AS $$
    SELECT CASE
        WHEN w.paused_at IS NOT NULL THEN format('the workflow is paused by %s since %s%s: SELECT scheduler.resume(%L)', w.paused_by, date_trunc('second', w.paused_at), coalesce(' (' || w.paused_reason || ')', ''), w.name)
        WHEN c.paused_at IS NOT NULL THEN format('everything is paused by %s since %s: SELECT scheduler.resume_all()', c.paused_by, date_trunc('second', c.paused_at))
        WHEN s.hold_until > now() THEN format('the workflow is held until %s%s', date_trunc('second', s.hold_until), coalesce(' (' || s.hold_reason || ')', ''))
        WHEN s.breaker_state = 'open' AND s.breaker_until > now() THEN format('recent items mostly failed, so the breaker is open until %s; when the cause is gone: SELECT scheduler.resume(%L)', date_trunc('second', s.breaker_until), w.name)
        WHEN s.breaker_state <> 'closed' THEN 'recent items mostly failed, so the breaker lets one item be tried before the others'
        WHEN w.max_instances IS NOT NULL AND (SELECT count(*) FROM scheduler.run AS r WHERE r.workflow = w.name AND r.finished_at IS NULL) >= w.max_instances
            THEN format('%s run(s) are open, which is max_instances', w.max_instances)
        WHEN w.rate_limit IS NOT NULL AND (SELECT coalesce(sum(r.claimed), 0) FROM scheduler.run AS r WHERE r.workflow = w.name AND r.started_at > now() - w.rate_period) >= w.rate_limit
            THEN format('the rate limit of %s in %s is used up', w.rate_limit, w.rate_period)
        -- first what a listener says of itself: where its module cannot be loaded, starting another would not help
        ELSE coalesce(
            (SELECT format('the listener on %s (process %s) reports: %s', l.host, l.pid, rtrim(l.detail -> 'problems' ->> w.name, '.'))
             FROM scheduler.listener AS l
             WHERE l.stopped_at IS NULL AND l.seen_at > now() - interval '1 minute' AND l.detail -> 'problems' ? w.name ORDER BY l.seen_at DESC LIMIT 1),
            CASE WHEN NOT scheduler._listened(w.name) THEN 'no listener that knows this workflow is alive: start one with scrapersky listen' END) END
    FROM scheduler.state AS s, scheduler.control AS c WHERE s.workflow = w.name
$$;
COMMENT ON FUNCTION scheduler._why_not_claimed(scheduler.workflow) IS 'Internal: what keeps the whole workflow from claiming, or NULL.';

CREATE OR REPLACE FUNCTION scheduler._why_not_dispatched(w scheduler.workflow) RETURNS text
LANGUAGE plpgsql STABLE
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    s scheduler.state;
BEGIN
    SELECT * INTO s FROM scheduler.state AS x WHERE x.workflow = w.name;
    IF w.downstream IS NOT NULL AND scheduler._count_queued(scheduler._live(w.downstream), w.downstream_limit) >= w.downstream_limit THEN
        RETURN format('Downstream is full: %s has %s or more items Queued, so dispatch holds back until it has fewer.', w.downstream, w.downstream_limit);
    ELSIF scheduler._count_queued(w, w.batch_size) >= w.batch_size THEN
        RETURN format('The queue is full: %s items are Queued, which is batch_size; a dispatch tops it up once some are claimed.', w.batch_size);
    ELSIF w.schedule IS NULL THEN
        RETURN format('The workflow has no schedule: SELECT * FROM scheduler.dispatch(%L)', w.name);
    ELSIF s.next_slot < now() - interval '1 minute' THEN
        RETURN format('Its dispatch is late: it was due at %s, and the clock is %s. By hand: SELECT * FROM scheduler.dispatch(%L)', s.next_slot,
                      (SELECT x.clock FROM scheduler.schedules AS x WHERE x.workflow = w.name), w.name);
    END IF;
    RETURN format('The next dispatch is at %s and queues up to %s items, oldest first.%s', s.next_slot, w.batch_size, ' The last one said: ' || s.last_note || '.');
END
$$;
COMMENT ON FUNCTION scheduler._why_not_dispatched(scheduler.workflow) IS 'Internal: when a ready item becomes Queued, or what keeps it from that.';

CREATE OR REPLACE FUNCTION scheduler._clauses(predicate text) RETURNS SETOF text
LANGUAGE plpgsql IMMUTABLE STRICT
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    body text := btrim(predicate);
    quote text;
    c text;
    depth integer := 0;
    began integer := 1;
    closed integer;
    parts text[] := ARRAY[]::text[];
    part text;
BEGIN
    -- the server's own text has every AND in parentheses and every quote doubled, so counting both is enough
    FOR i IN 1 .. length(body) LOOP
        c := substr(body, i, 1);
        IF quote IS NOT NULL THEN
            quote := nullif(quote, c);
        ELSIF c IN ('''', '"') THEN
            quote := c;
        ELSIF c = '(' THEN
            depth := depth + 1;
        ELSIF c = ')' THEN
            depth := depth - 1;
            closed := coalesce(closed, CASE WHEN depth = 0 THEN i END);
        ELSIF depth = 0 AND substr(body, i, 5) = ' AND ' THEN
            parts := parts || substr(body, began, i - began);
            began := i + 5;
        END IF;
    END LOOP;
    IF body LIKE '(%' AND closed = length(body) THEN
        RETURN QUERY SELECT * FROM scheduler._clauses(substr(body, 2, length(body) - 2));
    ELSIF cardinality(parts) = 0 THEN
        RETURN NEXT body;
    ELSE
        FOREACH part IN ARRAY parts || substr(body, began) LOOP
            RETURN QUERY SELECT * FROM scheduler._clauses(part);
        END LOOP;
    END IF;
END
$$;
COMMENT ON FUNCTION scheduler._clauses(text) IS 'Internal: the clauses of a stored predicate that AND joins.';

CREATE OR REPLACE FUNCTION scheduler._gate(w scheduler.workflow, clause text, item text) RETURNS text
LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp
AS $$
    -- a column of another meaning that must hold a word, or be true: what a person, an application or an earlier workflow decides
    SELECT format('UPDATE %s SET %s = %s WHERE %I = %L', w.relation, g.name, g.value, w.key_column, item)
    FROM (SELECT m[1] AS name, coalesce(m[2], 'true') AS value
          FROM regexp_match(clause, $re$^\(?("[^"]+"|[a-z_][a-z0-9_$]*)\)?(?:(?:::[a-z0-9_ ."]+)? = ('(?:[^']|'')*')(?:::.+)?)?\Z$re$) AS m) AS g
    WHERE EXISTS (SELECT FROM pg_catalog.pg_attribute AS a WHERE a.attrelid = w.relation AND a.attnum > 0 AND NOT a.attisdropped
                  AND quote_ident(a.attname) = g.name AND a.attname <> w.status_column)
$$;
COMMENT ON FUNCTION scheduler._gate(scheduler.workflow, text, text) IS 'Internal: the UPDATE that makes such a clause true for an item; NULL if the clause is not of that kind.';

CREATE OR REPLACE FUNCTION scheduler._why_not_ready(w scheduler.workflow, item text) RETURNS text
LANGUAGE plpgsql STABLE
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    clause text;
    holds boolean;
    unmet text[] := ARRAY[]::text[];
    gates text[] := ARRAY[]::text[];
BEGIN
    IF w.ready IS NULL THEN
        RETURN format('the workflow has no ready predicate; SELECT * FROM scheduler.enqueue(%L, ARRAY[%L])', w.name, item);
    END IF;
    FOR clause IN SELECT * FROM scheduler._clauses(w.ready) LOOP
        EXECUTE format(E'SELECT (%s\n) IS TRUE FROM %s AS t WHERE t.%I = $1::%s', clause, w.relation, w.key_column, format_type(w.key_type, -1)) INTO holds USING item;
        IF NOT holds THEN
            unmet := unmet || clause;
            gates := gates || scheduler._gate(w, clause, item);
        END IF;
    END LOOP;
    gates := array_remove(gates, NULL);
    IF unmet = '{}' THEN
        RETURN format('the ready predicate holds, but says nothing of %I, so items that had their turn are left alone; SELECT * FROM scheduler.enqueue(%L, ARRAY[%L])', w.status_column, w.name, item);
    ELSIF cardinality(gates) = cardinality(unmet) THEN
        RETURN format('it is gated until someone decides: %s. To let it through: %s', array_to_string(unmet, ' and '), array_to_string(gates, '; '));
    END IF;
    RETURN format('it is not ready, because of the ready predicate this does not hold: %s%s', array_to_string(unmet, ' and '), coalesce('. One part is a gate: ' || nullif(array_to_string(gates, '; '), ''), ''));
END
$$;
COMMENT ON FUNCTION scheduler._why_not_ready(scheduler.workflow, text) IS 'Internal: which clauses of the ready predicate an item does not meet.';

CREATE OR REPLACE FUNCTION scheduler._session(pid integer) RETURNS text
LANGUAGE sql STABLE STRICT SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $$
    SELECT format('session %s (%s)', _session.pid,
                  concat_ws(', ', a.usename, nullif(a.application_name, ''), a.state || coalesce(' since ' || to_char(a.state_change, 'YYYY-MM-DD HH24:MI:SS'), '')))
    FROM (SELECT) AS one LEFT JOIN pg_catalog.pg_stat_activity AS a ON a.pid = _session.pid
$$;
COMMENT ON FUNCTION scheduler._session(integer) IS 'Internal: a server process in words.';

CREATE OR REPLACE FUNCTION scheduler._row_holder(lock_id xid) RETURNS integer
LANGUAGE plpgsql STABLE
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    holder integer := (SELECT l.pid FROM pg_catalog.pg_locks AS l WHERE l.locktype = 'transactionid' AND l.transactionid = lock_id AND l.granted LIMIT 1);
BEGIN
    IF holder IS NULL AND lock_id::text <> '0' THEN
        -- several transactions at once share a number of its own kind; a number that is none of those is refused, which says that nobody holds it
        SELECT l.pid INTO holder FROM pg_catalog.pg_get_multixact_members(lock_id) AS m
        JOIN pg_catalog.pg_locks AS l ON l.locktype = 'transactionid' AND l.transactionid = m.xid AND l.granted
        WHERE m.mode <> 'keysh' LIMIT 1;
    END IF;
    RETURN holder;
EXCEPTION WHEN OTHERS THEN
    RETURN NULL;
END
$$;
COMMENT ON FUNCTION scheduler._row_holder(xid) IS 'Internal: the server process whose open transaction has locked or changed a row with this xmax, or NULL.';

CREATE OR REPLACE FUNCTION scheduler._table_holder(relation regclass) RETURNS integer
LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp
AS $$
    SELECT l.pid FROM pg_catalog.pg_locks AS l
    WHERE l.locktype = 'relation' AND l.relation = _table_holder.relation AND l.database = (SELECT d.oid FROM pg_catalog.pg_database AS d WHERE d.datname = current_database())
      AND l.mode = 'AccessExclusiveLock' ORDER BY l.granted DESC LIMIT 1
$$;
COMMENT ON FUNCTION scheduler._table_holder(regclass) IS 'Internal: the server process that has locked the whole table, or waits to and so makes others wait.';

CREATE OR REPLACE FUNCTION scheduler.why(name text, id text) RETURNS text
LANGUAGE plpgsql STABLE SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
-- a locked table is an answer, not a reason to wait
SET lock_timeout = '1s'
AS $$
DECLARE
    w scheduler.workflow := scheduler._live(name);
    item text;
    shown text;
    lock_id xid;
    present boolean;
    ready boolean;
    a scheduler.attempt;
    r record;
    before integer;
    blocked text := scheduler._why_not_claimed(w);
    holder text;
BEGIN
    -- not above: what stands there is not covered by the exception below
    item := (scheduler._check_keys(w, ARRAY[id]))[1];
    EXECUTE format('SELECT true, t.%I::text, t.xmax, %s FROM %s AS t WHERE t.%I = $1::%s', w.status_column,
                   CASE WHEN w.ready IS NULL THEN 'NULL::boolean' ELSE format('coalesce((%s), false)', scheduler._ready_sql(w)) END, w.relation, w.key_column, format_type(w.key_type, -1))
        INTO present, shown, lock_id, ready USING item;
    IF present IS NULL THEN
        RETURN format('There is no row with %I = %L in %s.', w.key_column, item, w.relation);
    END IF;
    SELECT * INTO a FROM scheduler.attempt AS x WHERE x.workflow = w.name AND x.key = item;
    SELECT x.id, x.started_at, x.lease_until, x.lease_until < now() AS lapsed, x.listener, l.host, l.pid INTO r
    FROM scheduler.run AS x LEFT JOIN scheduler.listener AS l ON l.id = x.listener
    WHERE x.workflow = w.name AND x.finished_at IS NULL AND item = ANY (x.keys) ORDER BY x.id DESC LIMIT 1;
    holder := ' Its row is locked by ' || scheduler._session(scheduler._row_holder(lock_id)) || ', so claims pass it over until that transaction ends.';

    IF r.id IS NOT NULL AND shown = coalesce(w.processing, w.queued) THEN
        RETURN format('It runs since %s as attempt %s of %s, in run %s, leased by listener %s%s until %s.%s', date_trunc('second', r.started_at), coalesce(a.attempts, 0) + 1, w.max_attempts, r.id,
                      coalesce(r.listener::text, 'unknown'), coalesce(' on ' || r.host || ' (process ' || r.pid || ')', ''), date_trunc('second', r.lease_until),
                      CASE WHEN r.lapsed THEN ' That has passed, so its listener is lost: the next claim gives it back, or at once SELECT scheduler.rescue()' ELSE '' END);
    ELSIF shown = w.processing THEN
        RETURN format('It shows %L, but no run has it: someone else wrote that word. SELECT scheduler.requeue(%L, stranded => true) queues such items.', shown, w.name);
    ELSIF shown = w.queued THEN
        EXECUTE format('SELECT count(*)::integer FROM (SELECT FROM %1$s AS t, %1$s AS me WHERE me.%2$I = $1::%3$s AND t.%4$I = %5$s AND (%6$s) LIMIT 20000) AS q',
                       w.relation, w.key_column, format_type(w.key_type, -1), w.status_column, scheduler._word(w, w.queued), scheduler._before_sql(w))
            INTO before USING item;
        RETURN concat_ws(' ', 'It is queued' || CASE WHEN before = 0 THEN ' and the next to be claimed' WHEN before >= 20000 THEN ' behind 20000 others or more' WHEN before = 1 THEN ' behind one other' ELSE format(' behind %s others', before) END
                              || coalesce(', for attempt ' || a.attempts + 1 || ' of ' || w.max_attempts, '') || '.',
                         CASE WHEN blocked IS NOT NULL THEN 'It waits because ' || blocked || '.' END) || coalesce(holder, '');
    ELSIF shown = w.failed AND a.state = 'waiting' AND a.reason = 'put off' THEN
        RETURN concat_ws(' ', format('It was put off at %s: %s. That spends no attempt; it is queued again at %s.', date_trunc('second', a.last_at), a.error, date_trunc('second', a.retry_at)),
                         CASE WHEN blocked IS NOT NULL THEN 'But ' || blocked || '.' END);
    ELSIF shown = w.failed AND a.state = 'waiting' THEN
        RETURN concat_ws(' ', format('Attempt %s of %s failed at %s: %s. It backs off until %s and is queued again then.', a.attempts, w.max_attempts, date_trunc('second', a.last_at), a.error, date_trunc('second', a.retry_at)),
                         CASE WHEN blocked IS NOT NULL THEN 'But ' || blocked || '.' END);
    ELSIF shown = w.failed AND a.state = 'dead' THEN
        RETURN format('It is in the dead letter since %s, after %s (%s): %s. A new start: SELECT scheduler.requeue(%L, ARRAY[%L])', date_trunc('second', a.last_at),
                      CASE a.attempts WHEN 1 THEN '1 attempt' ELSE a.attempts || ' attempts' END, a.reason, a.error, w.name, item);
    ELSIF shown = w.completed THEN
        RETURN format('It is done (%L). Once more: SELECT * FROM scheduler.enqueue(%L, ARRAY[%L])', shown, w.name, item);
    ELSIF a.state = 'cancelled' AND shown IS NOT DISTINCT FROM w.idle THEN
        RETURN format('It was cancelled (%s), so the schedule leaves it alone. After all: SELECT * FROM scheduler.enqueue(%L, ARRAY[%L])', a.reason, w.name, item);
    ELSIF ready THEN
        RETURN concat_ws(' ', 'It is ready.', scheduler._why_not_dispatched(w), CASE WHEN blocked IS NOT NULL THEN 'And then ' || blocked || '.' END) || coalesce(holder, '');
    ELSIF shown = w.failed THEN
        RETURN format('It shows %L, but the engine did not fail it. SELECT scheduler.requeue(%L, ARRAY[%L]) queues it.', shown, w.name, item);
    END IF;
    RETURN format('Its status is %s and nothing asks for it: %s.', coalesce(quote_literal(shown), 'NULL'), scheduler._why_not_ready(w, item));
EXCEPTION WHEN lock_not_available THEN
    RETURN format('The whole table %s is locked by %s: nothing of this workflow moves until that transaction ends.', w.relation, scheduler._session(scheduler._table_holder(w.relation)));
END
$$;
COMMENT ON FUNCTION scheduler.why(text, text) IS
'In words: what an item is doing, or why it is not running and what would make it: not ready (which clause), gated, paused, limited, backing off, locked (by which session), leased (by which listener), no listener, breaker, late, downstream full, dead.';

CREATE OR REPLACE FUNCTION scheduler.why(name text, id anyelement) RETURNS text
LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp
AS $$ SELECT scheduler.why(name, id::text) $$;
COMMENT ON FUNCTION scheduler.why(text, anyelement) IS 'why() with the key as it is, as in SELECT scheduler.why(''deep_scan'', id) FROM place WHERE …';

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
    RETURN QUERY SELECT row_number() OVER (ORDER BY a.retry_at), a.key, format('retry due since %s', date_trunc('second', a.retry_at))
        FROM scheduler.attempt AS a WHERE a.workflow = w.name AND a.state = 'waiting' AND a.retry_at <= now() ORDER BY a.retry_at LIMIT room;
    GET DIAGNOSTICS due = ROW_COUNT;
    IF w.ready IS NOT NULL AND due < room THEN
        RETURN QUERY EXECUTE format('SELECT $2 + row_number() OVER (), q.key, ''ready''::text FROM (SELECT t.%I::text AS key FROM %s AS t WHERE %s ORDER BY %s LIMIT $1) AS q',
                                    w.key_column, w.relation, scheduler._dispatchable_sql(w), scheduler._order_sql(w, 't.')) USING room - due, due::bigint;
    END IF;
END
$$;
COMMENT ON FUNCTION scheduler.preview(text, integer) IS 'What the next dispatch would queue, in order; changes nothing. With most, that many whatever the room.';
