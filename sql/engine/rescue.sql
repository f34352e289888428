-- Rescue: a run whose lease has passed lost its listener. Its items go back to the queue and the attempt counts.

CREATE OR REPLACE FUNCTION scheduler._rescue(w scheduler.workflow) RETURNS integer
LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
SET scheduler.engine = 'on'
AS $$
DECLARE
    r scheduler.run;
    saved text[];
    left_over text[];
    spent text[];
    total integer := 0;
    lost text;
BEGIN
    -- what a person wrote over, and another run may have claimed since, is not the lost run's any more
    IF EXISTS (SELECT FROM scheduler.takeover AS t WHERE t.workflow = w.name) THEN
        PERFORM scheduler._take_over(w.name);
    END IF;
    -- a run that is being finished right now is locked by its listener: it is alive after all
    FOR r IN SELECT * FROM scheduler.run AS x
             WHERE x.workflow = w.name AND x.finished_at IS NULL AND x.lease_until < now()
             ORDER BY x.id FOR UPDATE SKIP LOCKED
    LOOP
        lost := format('its listener was lost while it ran (run %s)', r.id);
        -- rows locked by someone else stay with the run, and are looked at again the next time
        saved := scheduler._without_taken(w, r, scheduler._put_back(w, r.keys, wait => false));
        left_over := CASE WHEN w.processing IS NULL OR cardinality(saved) = cardinality(r.keys) THEN '{}'
                          ELSE scheduler._keys_with(w, (SELECT array_agg(k) FROM unnest(r.keys) AS k WHERE k <> ALL (saved)), w.processing) END;
        WITH counted AS (
            INSERT INTO scheduler.attempt AS a (workflow, key, state, attempts, rescues, error)
            SELECT w.name, k, CASE WHEN w.max_attempts <= 1 THEN 'dead' ELSE 'active' END, 1, 1, lost FROM unnest(saved) AS k
            ON CONFLICT (workflow, key) DO UPDATE SET
                attempts = a.attempts + 1, rescues = a.rescues + 1, error = lost, last_at = now(), retry_at = NULL,
                state = CASE WHEN a.attempts + 1 >= w.max_attempts THEN 'dead' ELSE 'active' END
            RETURNING a.key, a.state
        )
        SELECT array_agg(c.key) FILTER (WHERE c.state = 'dead') INTO spent FROM counted AS c;
        IF spent IS NOT NULL THEN
            EXECUTE format('UPDATE %s AS t SET %s WHERE t.%I = ANY ($1::%s[]) AND t.%I = %s',
                           w.relation, concat_ws(', ', format('%I = %s', w.status_column, scheduler._word(w, w.failed)), quote_ident(w.error_column) || ' = ' || quote_literal(lost || ', and its attempts are used up')),
                           w.key_column, format_type(w.key_type, -1), w.status_column, scheduler._word(w, w.queued)) USING spent;
            UPDATE scheduler.attempt AS a SET reason = 'attempts used up' WHERE a.workflow = w.name AND a.key = ANY (spent);
        END IF;
        UPDATE scheduler.run AS x SET keys = left_over, rescued = x.rescued + cardinality(saved),
                                      discarded = x.discarded + cardinality(r.keys) - cardinality(saved) - cardinality(left_over)
        WHERE x.id = r.id;
        IF cardinality(left_over) = 0 THEN
            PERFORM scheduler._close_run(r.id);
        END IF;
        total := total + cardinality(saved);
    END LOOP;
    IF total > 0 AND w.doorbell <> 'off' THEN
        PERFORM scheduler._ring(w.name);
    END IF;
    RETURN total;
END
$$;
COMMENT ON FUNCTION scheduler._rescue(scheduler.workflow) IS 'Internal: closes runs whose lease has passed and puts their items back.';

CREATE OR REPLACE FUNCTION scheduler.rescue(workflow text DEFAULT NULL) RETURNS integer
LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    name text;
    total integer := 0;
BEGIN
    PERFORM scheduler._require_read_committed();
    IF rescue.workflow IS NOT NULL THEN
        RETURN scheduler._rescue(scheduler._live(rescue.workflow));
    END IF;
    FOR name IN SELECT DISTINCT r.workflow FROM scheduler.run AS r WHERE r.finished_at IS NULL AND r.lease_until < now() LOOP
        BEGIN
            total := total + scheduler._rescue(scheduler._live(name));
        EXCEPTION WHEN OTHERS THEN
            -- one broken table must not keep the others waiting
            PERFORM scheduler._problem(name, 'rescue', SQLERRM);
        END;
    END LOOP;
    RETURN total;
END
$$;
COMMENT ON FUNCTION scheduler.rescue(text) IS 'Puts the items of runs whose lease has passed back to Queued; returns how many. Done by every claim and by maintain().';

CREATE OR REPLACE FUNCTION scheduler._problem(workflow text, step text, message text) RETURNS void
LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
    UPDATE scheduler.state AS s SET problem = left(step || ': ' || message, 1024), problem_at = now() WHERE s.workflow = _problem.workflow;
    RAISE WARNING 'workflow %: % failed: %', workflow, step, message;
END
$$;
COMMENT ON FUNCTION scheduler._problem(text, text, text) IS 'Internal: notes that a step of maintenance failed for one workflow.';

CREATE OR REPLACE FUNCTION scheduler.heartbeat(
    listener uuid, runs bigint[] DEFAULT '{}', host text DEFAULT NULL, pid integer DEFAULT NULL, version text DEFAULT NULL,
    workflows text[] DEFAULT NULL, detail jsonb DEFAULT NULL, stopped boolean DEFAULT false
) RETURNS TABLE (run bigint, lost boolean, revoked text[], lease_until timestamptz)
LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $$
#variable_conflict use_column
BEGIN
    IF heartbeat.listener IS NULL THEN
        RAISE EXCEPTION 'a heartbeat needs the id of its listener' USING ERRCODE = 'invalid_parameter_value', HINT = 'Give a new uuid on every start of a listener, the one its claims have.';
    END IF;
    INSERT INTO scheduler.listener AS l (id, host, pid, version, workflows, detail, stopped_at)
    VALUES (heartbeat.listener, left(heartbeat.host, 255), heartbeat.pid, left(heartbeat.version, 100), heartbeat.workflows, coalesce(heartbeat.detail, '{}'),
            CASE WHEN heartbeat.stopped THEN now() END)
    ON CONFLICT (id) DO UPDATE SET
        seen_at = now(), host = coalesce(excluded.host, l.host), pid = coalesce(excluded.pid, l.pid), version = coalesce(excluded.version, l.version),
        workflows = coalesce(excluded.workflows, l.workflows), stopped_at = excluded.stopped_at,
        detail = CASE WHEN heartbeat.detail IS NULL THEN l.detail ELSE excluded.detail END;

    IF cardinality(heartbeat.runs) > 0 THEN
        PERFORM scheduler._take_over(t.workflow) FROM (
            SELECT DISTINCT r.workflow FROM scheduler.run AS r JOIN scheduler.takeover AS o ON o.workflow = r.workflow WHERE r.id = ANY (heartbeat.runs)
        ) AS t;
        -- never beyond the deadline: a hung run must end. One that is locked is being finished and needs no lease.
        WITH mine AS MATERIALIZED (
            SELECT r.id FROM scheduler.run AS r
            WHERE r.id = ANY (heartbeat.runs) AND r.listener = heartbeat.listener AND r.finished_at IS NULL
            FOR NO KEY UPDATE SKIP LOCKED
        )
        UPDATE scheduler.run AS r SET lease_until = least(now() + w.lease, r.deadline)
        FROM mine, scheduler.workflow AS w
        WHERE r.id = mine.id AND w.name = r.workflow;
        RETURN QUERY
            SELECT asked.id, r.id IS NULL, coalesce(r.revoked, '{}'), r.lease_until
            FROM unnest(heartbeat.runs) AS asked (id)
            LEFT JOIN scheduler.run AS r ON r.id = asked.id AND r.listener = heartbeat.listener AND r.finished_at IS NULL;
    END IF;
END
$$;
COMMENT ON FUNCTION scheduler.heartbeat IS 'A listener says it is alive: renews the leases of its runs up to their deadlines, and learns which runs it lost and which items were taken from it.';
