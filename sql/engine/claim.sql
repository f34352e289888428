-- Claim: Queued items become a run. One short transaction; a claim never waits for another one's rows.

CREATE OR REPLACE FUNCTION scheduler._take_over(workflow text) RETURNS void
LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    r record;
    note record;
    busy boolean := false;
BEGIN
    -- rare: someone changed the status of a running item, so the runs that had it give it up
    FOR note IN SELECT t.ctid AS tid, t.key, t.upto FROM scheduler.takeover AS t WHERE t.workflow = _take_over.workflow FOR UPDATE SKIP LOCKED LOOP
        busy := false;
        FOR r IN SELECT x.id FROM scheduler.run AS x
                 WHERE x.workflow = _take_over.workflow AND x.finished_at IS NULL AND x.id <= note.upto AND note.key = ANY (x.keys)
        LOOP
            -- not waiting for a run that is being finished keeps claims and completions from blocking each other
            PERFORM FROM scheduler.run AS x WHERE x.id = r.id FOR NO KEY UPDATE SKIP LOCKED;
            IF FOUND THEN
                UPDATE scheduler.run AS x SET keys = array_remove(x.keys, note.key), revoked = x.revoked || note.key, discarded = x.discarded + 1
                WHERE x.id = r.id AND note.key = ANY (x.keys);
                IF (SELECT cardinality(x.keys) = 0 FROM scheduler.run AS x WHERE x.id = r.id) THEN
                    PERFORM scheduler._close_run(r.id);
                END IF;
            ELSE
                busy := true;
            END IF;
        END LOOP;
        IF NOT busy THEN
            DELETE FROM scheduler.takeover AS t WHERE t.ctid = note.tid;
        END IF;
    END LOOP;
END
$$;
COMMENT ON FUNCTION scheduler._take_over(text) IS 'Internal: runs give up the items whose status someone changed meanwhile.';

CREATE OR REPLACE FUNCTION scheduler._pick(w scheduler.workflow, ambiguous boolean, most integer, only_keys text[], not_suspects boolean, OUT keys text[], OUT places tid[])
LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
SET scheduler.engine = 'on'
AS $$
DECLARE
    condition text := format('t.%I = %s', w.status_column, scheduler._word(w, w.queued));
    taken text[];
BEGIN
    IF only_keys IS NOT NULL THEN
        condition := condition || format(' AND t.%I = ANY ($2::%s[])', w.key_column, format_type(w.key_type, -1));
    ELSIF not_suspects THEN
        condition := condition || format(' AND NOT EXISTS (SELECT FROM scheduler.attempt AS a WHERE a.workflow = %L AND a.key = t.%I::text AND a.state = ''active'' AND a.rescues > 0)', w.name, w.key_column);
    END IF;
    IF w.processing IS NULL THEN
        -- the caller holds the turn; what runs already is left out, and the rows themselves are not touched
        SELECT array_agg(k) INTO taken FROM scheduler.run AS r, unnest(r.keys) AS k WHERE r.workflow = w.name AND r.finished_at IS NULL;
        EXECUTE format('SELECT array_agg(q.key), array_agg(q.place) FROM (SELECT t.%1$I::text AS key, t.ctid AS place FROM %2$s AS t WHERE %3$s AND t.%1$I <> ALL ($3::%4$s[]) ORDER BY %5$s LIMIT $1) AS q',
                       w.key_column, w.relation, condition, format_type(w.key_type, -1), scheduler._order_sql(w, 't.'))
            INTO keys, places USING most, only_keys, coalesce(taken, '{}');
    ELSE
        -- MATERIALIZED: without it the planner may lock and claim more rows than the limit.
        -- By an array of ctids: 3.9 ms for 1000 of 20,000 rows; joined to c by ctid 5.4 ms, as the planner then reads the whole
        -- table for a hash join. Partitions, and tables that inherit, may hold the same ctid twice, so there by key.
        -- Counted, not compared key by key: 66 µs of processor time for one item instead of 76. Two statements instead of the
        -- CTE would take 53, but a distributed table refuses them.
        EXECUTE format($sql$
            WITH c AS MATERIALIZED (
                SELECT t.ctid AS tid, t.%1$I AS key FROM %2$s AS t WHERE %3$s ORDER BY %4$s LIMIT $1
                FOR NO KEY UPDATE SKIP LOCKED
            ), u AS (
                UPDATE %2$s AS t SET %5$I = %6$s %7$s RETURNING t.ctid AS place
            )
            SELECT array_agg(c.key::text), (SELECT array_agg(u.place) FROM u) FROM c
            $sql$, w.key_column, w.relation, condition, scheduler._order_sql(w, 't.'), w.status_column, scheduler._word(w, w.processing),
            CASE WHEN ambiguous THEN format('FROM c WHERE t.%I = c.key', w.key_column)
                 ELSE 'WHERE t.ctid = ANY (ARRAY(SELECT c.tid FROM c))' END)
            INTO keys, places USING most, only_keys;
        IF cardinality(keys) > coalesce(cardinality(places), 0) THEN
            -- a trigger of the application kept some rows as they were: these are not ours
            EXECUTE format('SELECT array_agg(t.%1$I::text) FROM %2$s AS t WHERE t.%1$I = ANY ((SELECT $1)::%3$s[]) AND t.%4$I = %5$s',
                           w.key_column, w.relation, format_type(w.key_type, -1), w.status_column, scheduler._word(w, w.queued))
                INTO taken USING keys;
            keys := (SELECT array_agg(p.key ORDER BY p.n) FROM unnest(keys) WITH ORDINALITY AS p (key, n) WHERE p.key <> ALL (coalesce(taken, '{}')));
        END IF;
    END IF;
    IF ambiguous THEN
        places := NULL;
    END IF;
END
$$;
COMMENT ON FUNCTION scheduler._pick(scheduler.workflow, boolean, integer, text[], boolean) IS 'Internal: marks the first Queued items as running and returns their keys, and where their rows now are.';

CREATE OR REPLACE FUNCTION scheduler._pick_suspects(w scheduler.workflow, ambiguous boolean, most integer, OUT keys text[], OUT places tid[])
LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    level record;
    bite integer;
BEGIN
    -- An item that kills its listener takes its whole run with it. So items that were rescued run in ever smaller
    -- groups, alone before their attempts are used up: the innocent get through and the killer is found.
    FOR level IN
        SELECT a.rescues, a.attempts >= w.max_attempts - 1 AS last_chance, array_agg(a.key) AS keys
        FROM scheduler.attempt AS a
        WHERE a.workflow = w.name AND a.state = 'active' AND a.rescues > 0
        GROUP BY 1, 2 ORDER BY 1 DESC, 2 DESC
    LOOP
        bite := CASE WHEN level.last_chance THEN 1 ELSE greatest(1, (most / power(10, least(level.rescues, 9)))::integer) END;
        SELECT p.keys, p.places INTO keys, places FROM scheduler._pick(w, ambiguous, bite, level.keys, false) AS p;
        EXIT WHEN keys IS NOT NULL;
    END LOOP;
END
$$;
COMMENT ON FUNCTION scheduler._pick_suspects(scheduler.workflow, boolean, integer) IS 'Internal: a small group of items whose listener vanished before, if any are Queued.';

CREATE OR REPLACE FUNCTION scheduler._count_attempts(w scheduler.workflow, keys text[]) RETURNS integer[]
LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
    -- dead or cancelled, and yet Queued: a person asked for it again, so it starts anew
    UPDATE scheduler.attempt AS a SET
        state = 'active', retry_at = NULL, reason = NULL,
        attempts = CASE WHEN a.state IN ('dead', 'cancelled') THEN 0 ELSE a.attempts END,
        rescues = CASE WHEN a.state IN ('dead', 'cancelled') THEN 0 ELSE a.rescues END
    WHERE a.workflow = w.name AND a.key = ANY (keys) AND a.state <> 'active';
    RETURN (SELECT array_agg(coalesce(a.attempts, 0) + 1 ORDER BY k.n)
            FROM unnest(keys) WITH ORDINALITY AS k (key, n)
            LEFT JOIN scheduler.attempt AS a ON a.workflow = w.name AND a.key = k.key);
END
$$;
COMMENT ON FUNCTION scheduler._count_attempts(scheduler.workflow, text[]) IS 'Internal: which attempt this is for each key, and the ledger told that they run.';

CREATE OR REPLACE FUNCTION scheduler._may_probe(w scheduler.workflow, OUT until timestamptz, OUT allowed boolean)
LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    s scheduler.state;
BEGIN
    -- locked: of all listeners only one gets to probe
    SELECT * INTO s FROM scheduler.state AS x WHERE x.workflow = w.name FOR NO KEY UPDATE;
    IF s.breaker_state = 'open' AND s.breaker_until > now() THEN
        until := s.breaker_until;
        allowed := false;
    ELSIF s.breaker_state = 'closed' THEN
        allowed := NULL;
    ELSE
        -- a probe that was released, cancelled or rescued gave no verdict, so there may be another
        SELECT min(r.lease_until) INTO until FROM scheduler.run AS r WHERE r.workflow = w.name AND r.finished_at IS NULL AND r.probe;
        allowed := until IS NULL;
        IF allowed THEN
            UPDATE scheduler.state AS x SET breaker_state = 'probing' WHERE x.workflow = w.name;
        END IF;
    END IF;
END
$$;
COMMENT ON FUNCTION scheduler._may_probe(scheduler.workflow) IS 'Internal: with a tripped breaker, whether this claim may try one item (NULL: the breaker has closed meanwhile), and if not, until when to wait.';

CREATE OR REPLACE FUNCTION scheduler._allowance(w scheduler.workflow, wanted integer, OUT allowed integer, OUT moment timestamptz, OUT again_at timestamptz)
LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    used bigint;
BEGIN
    -- one claim at a time may look at the clock and spend, so the limit holds in every window, over all listeners
    PERFORM FROM scheduler.state AS x WHERE x.workflow = w.name FOR NO KEY UPDATE;
    moment := clock_timestamp();
    SELECT coalesce(sum(r.claimed), 0) INTO used
    FROM scheduler.run AS r WHERE r.workflow = w.name AND r.started_at > _allowance.moment - w.rate_period;
    allowed := least(wanted, w.rate_limit - used);
    IF allowed <= 0 THEN
        SELECT min(r.started_at) + w.rate_period INTO again_at
        FROM scheduler.run AS r WHERE r.workflow = w.name AND r.claimed > 0 AND r.started_at > _allowance.moment - w.rate_period;
    END IF;
END
$$;
COMMENT ON FUNCTION scheduler._allowance(scheduler.workflow, integer) IS 'Internal: how many items the rate limit allows now, and if none, when the next one.';

CREATE OR REPLACE FUNCTION scheduler.claim(workflow text, listener uuid DEFAULT NULL, items integer DEFAULT NULL)
RETURNS TABLE (run bigint, keys text[], attempts integer[], lease_until timestamptz, deadline timestamptz, reason text, again_at timestamptz)
LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    w scheduler.workflow;
    s scheduler.state;
    f record;
    wanted integer;
    moment timestamptz := now();
    place integer;
    places tid[];
    is_probe boolean := false;
    verdict record;
BEGIN
    PERFORM scheduler._require_read_committed();
    -- What is seldom so, asked in one statement: an empty claim took 0.65 ms with seven small ones, and takes 0.47.
    -- Whatever changes right after is seen by the next claim, or below, where it matters.
    SELECT x AS settings, y AS state,
           (SELECT c.relhassubclass FROM pg_catalog.pg_class AS c WHERE c.oid = x.relation) AS has_subclass,
           EXISTS (SELECT FROM scheduler.takeover AS t WHERE t.workflow = x.name) AS has_takeovers,
           EXISTS (SELECT FROM scheduler.run AS r WHERE r.workflow = x.name AND r.finished_at IS NULL AND r.lease_until < now()) AS has_lost_runs,
           EXISTS (SELECT FROM scheduler.control AS c WHERE c.paused_at IS NOT NULL) AS all_paused,
           EXISTS (SELECT FROM scheduler.attempt AS a WHERE a.workflow = x.name) AS has_ledger
    INTO f FROM scheduler.workflow AS x LEFT JOIN scheduler.state AS y ON y.workflow = x.name WHERE x.name = claim.workflow;
    IF f.has_subclass IS NOT NULL THEN
        w := f.settings;
        s := f.state;
    ELSE
        w := scheduler._live(claim.workflow);
    END IF;
    IF items < 1 THEN
        RAISE EXCEPTION 'cannot claim % items', items USING ERRCODE = 'invalid_parameter_value', HINT = 'Give a number above 0, or nothing for the batch size.';
    END IF;
    wanted := least(items, w.batch_size);

    IF f.has_takeovers THEN
        PERFORM scheduler._take_over(w.name);
    END IF;
    IF f.has_lost_runs THEN
        f.has_ledger := scheduler._rescue(w) > 0 OR f.has_ledger;
    END IF;

    CASE
        WHEN w.paused_at IS NOT NULL OR f.all_paused THEN
            reason := 'paused';
        WHEN s.hold_until > now() THEN
            reason := 'held';
            again_at := s.hold_until;
        WHEN s.breaker_state <> 'closed' THEN
            verdict := scheduler._may_probe(w);
            IF verdict.allowed THEN
                is_probe := true;
                wanted := 1;
            ELSIF NOT verdict.allowed THEN
                reason := 'breaker';
                again_at := verdict.until;
            END IF;
        ELSE
            NULL;
    END CASE;

    IF reason IS NULL AND f.has_ledger AND EXISTS (SELECT FROM scheduler.attempt AS a WHERE a.workflow = w.name AND a.state = 'waiting' AND a.retry_at <= now()) THEN
        PERFORM scheduler._requeue_due(w, w.batch_size);
    END IF;

    IF reason IS NULL AND w.max_instances IS NOT NULL THEN
        -- a free slot is the right to run; one that another claim holds at this moment is passed over
        IF NOT EXISTS (SELECT FROM scheduler.slot AS x WHERE x.workflow = w.name AND x.n > w.max_instances AND x.run IS NOT NULL) THEN
            SELECT x.n INTO place FROM scheduler.slot AS x
            WHERE x.workflow = w.name AND x.n <= w.max_instances AND x.run IS NULL
            ORDER BY x.n LIMIT 1 FOR NO KEY UPDATE SKIP LOCKED;
        END IF;
        IF place IS NULL THEN
            reason := 'max_instances';
            -- the other claim may find nothing and give its slot back at once
            IF EXISTS (SELECT FROM scheduler.slot AS x WHERE x.workflow = w.name AND x.n <= w.max_instances AND x.run IS NULL) THEN
                again_at := clock_timestamp() + interval '50 milliseconds';
            END IF;
        END IF;
    END IF;

    IF reason IS NULL AND w.rate_limit IS NOT NULL THEN
        verdict := scheduler._allowance(w, wanted);
        wanted := verdict.allowed;
        moment := verdict.moment;
        IF wanted <= 0 THEN
            reason := 'rate_limit';
            again_at := verdict.again_at;
        END IF;
    ELSIF reason IS NULL AND w.processing IS NULL THEN
        PERFORM FROM scheduler.state AS x WHERE x.workflow = w.name FOR NO KEY UPDATE;
    END IF;

    IF reason IS NULL THEN
        IF f.has_ledger AND EXISTS (SELECT FROM scheduler.attempt AS a WHERE a.workflow = w.name AND a.state = 'active' AND a.rescues > 0) THEN
            SELECT p.keys, p.places INTO keys, places FROM scheduler._pick_suspects(w, f.has_subclass, wanted) AS p;
            IF keys IS NULL THEN
                SELECT p.keys, p.places INTO keys, places FROM scheduler._pick(w, f.has_subclass, wanted, NULL, true) AS p;
            END IF;
        ELSE
            SELECT p.keys, p.places INTO keys, places FROM scheduler._pick(w, f.has_subclass, wanted, NULL, false) AS p;
        END IF;
        IF keys IS NULL THEN
            reason := 'empty';
            -- a retry that comes due, or the end of a lease: while its listener lives, that is always some beats away
            SELECT least(min(a.retry_at), (SELECT min(r.lease_until) FROM scheduler.run AS r WHERE r.workflow = w.name AND r.finished_at IS NULL AND r.lease_until > now()))
            INTO again_at FROM scheduler.attempt AS a WHERE a.workflow = w.name AND a.state = 'waiting';
        END IF;
    END IF;
    IF reason IS NOT NULL THEN
        keys := '{}';
        attempts := '{}';
        RETURN NEXT;
        RETURN;
    END IF;

    -- dropped while we waited for the table: nobody would ever finish these items
    IF NOT EXISTS (SELECT FROM scheduler.workflow AS x WHERE x.name = w.name) THEN
        PERFORM scheduler._workflow(w.name);
    END IF;
    IF EXISTS (SELECT FROM scheduler.attempt AS a WHERE a.workflow = w.name) THEN
        attempts := scheduler._count_attempts(w, keys);
    ELSE
        attempts := array_fill(1, ARRAY[cardinality(keys)]);
    END IF;
    lease_until := moment + w.lease;
    -- every item its full time, one after the other as many times as concurrency makes it necessary
    deadline := moment + w.timeout * ceil(cardinality(keys)::numeric / w.concurrency)::double precision + w.lease;
    INSERT INTO scheduler.run (workflow, listener, slot, probe, keys, places, claimed, started_at, lease_until, deadline)
    VALUES (w.name, claim.listener, place, is_probe, claim.keys, places, cardinality(claim.keys), moment, claim.lease_until, claim.deadline)
    RETURNING id INTO run;
    IF place IS NOT NULL THEN
        UPDATE scheduler.slot AS x SET run = claim.run WHERE x.workflow = w.name AND x.n = place;
    END IF;
    RETURN NEXT;
END
$$;
COMMENT ON FUNCTION scheduler.claim(text, uuid, integer) IS
'Takes up to batch_size Queued items as one run with a lease. Always one row: run and keys, or the reason there are none and when asking again is worth it.';
