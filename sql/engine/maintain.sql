-- Maintain: rescue, due retries, missed slots, roll-up, retention. Short, idempotent, one at a time; run every minute.

CREATE OR REPLACE FUNCTION scheduler._roll_up(w text) RETURNS integer
LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    n integer;
BEGIN
    WITH taken AS MATERIALIZED (
        SELECT r.id FROM scheduler.run AS r WHERE r.workflow = w AND r.finished_at IS NOT NULL AND NOT r.rolled_up LIMIT 20000 FOR NO KEY UPDATE SKIP LOCKED
    ), marked AS (
        UPDATE scheduler.run AS r SET rolled_up = true FROM taken WHERE r.id = taken.id RETURNING r.*
    ), summed AS (
        SELECT g.grain, date_trunc(g.grain, m.finished_at, 'UTC') AS at, count(*) AS runs, sum(m.claimed) AS claimed, sum(m.succeeded) AS succeeded, sum(m.failed) AS failed,
               sum(m.rejected) AS rejected, sum(m.released) AS released, sum(m.cancelled) AS cancelled, sum(m.discarded) AS discarded, sum(m.rescued) AS rescued,
               scheduler.histogram_sum(m.histogram::bigint[]) AS histogram
        FROM marked AS m, (VALUES ('minute'), ('hour'), ('day')) AS g (grain)
        GROUP BY 1, 2
    ), stored AS (
        INSERT INTO scheduler.stat AS s (workflow, grain, at, runs, claimed, succeeded, failed, rejected, released, cancelled, discarded, rescued, histogram)
        SELECT w, u.grain, u.at, u.runs, u.claimed, u.succeeded, u.failed, u.rejected, u.released, u.cancelled, u.discarded, u.rescued, coalesce(u.histogram, '{}') FROM summed AS u
        ON CONFLICT (workflow, grain, at) DO UPDATE SET
            runs = s.runs + excluded.runs, claimed = s.claimed + excluded.claimed, succeeded = s.succeeded + excluded.succeeded, failed = s.failed + excluded.failed,
            rejected = s.rejected + excluded.rejected, released = s.released + excluded.released, cancelled = s.cancelled + excluded.cancelled,
            discarded = s.discarded + excluded.discarded, rescued = s.rescued + excluded.rescued, histogram = scheduler.histogram_add(s.histogram, excluded.histogram)
    )
    SELECT count(*) INTO n FROM marked;
    RETURN n;
END
$$;
COMMENT ON FUNCTION scheduler._roll_up(text) IS 'Internal: adds finished runs to the statistics per minute, hour and day.';

CREATE OR REPLACE FUNCTION scheduler._retain() RETURNS bigint
LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    gone bigint;
    total bigint := 0;
BEGIN
    -- a bounded bite each minute keeps this short however far behind it is
    -- (by workflow and start, because that is what an index knows: 600 thousand younger runs cost nothing then, 80 ms else)
    DELETE FROM scheduler.run AS r WHERE r.id IN (
        SELECT o.id FROM scheduler.workflow AS w, LATERAL (
            SELECT x.id FROM scheduler.run AS x
            WHERE x.workflow = w.name AND x.started_at < now() - interval '7 days' AND x.rolled_up AND x.finished_at < now() - interval '7 days'
            ORDER BY x.started_at LIMIT 5000) AS o
        LIMIT 5000);
    GET DIAGNOSTICS gone = ROW_COUNT; total := total + gone;
    DELETE FROM scheduler.audit AS a WHERE a.id IN (SELECT x.id FROM scheduler.audit AS x WHERE x.at < now() - interval '90 days' ORDER BY x.at LIMIT 5000);
    GET DIAGNOSTICS gone = ROW_COUNT; total := total + gone;
    DELETE FROM scheduler.stat AS s
    WHERE s.at < now() - CASE s.grain WHEN 'minute' THEN interval '2 days' WHEN 'hour' THEN interval '90 days' ELSE interval '5 years' END;
    GET DIAGNOSTICS gone = ROW_COUNT; total := total + gone;
    DELETE FROM scheduler.listener AS l
    WHERE l.seen_at < now() - interval '1 day' AND NOT EXISTS (SELECT FROM scheduler.run AS r WHERE r.listener = l.id AND r.finished_at IS NULL);
    GET DIAGNOSTICS gone = ROW_COUNT; total := total + gone;
    RETURN total + scheduler._cron_prune(interval '2 days');
END
$$;
COMMENT ON FUNCTION scheduler._retain() IS 'Internal: forgets runs after 7 days, audit after 90, statistics per minute after 2 days, cron history after 2 days.';

CREATE OR REPLACE FUNCTION scheduler._forget_settled(w scheduler.workflow) RETURNS integer
LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    gone integer;
BEGIN
    -- A person deleted the row or gave it another word, so the ledger has nothing to say of it any more. Each entry has its
    -- minute of the hour, and its row is looked up by key: a long dead letter costs little, and the table is never read.
    EXECUTE format($sql$
        WITH mine AS MATERIALIZED (
            SELECT a.key FROM scheduler.attempt AS a
            WHERE a.workflow = $1 AND a.state <> 'waiting' AND a.last_at < now() - interval '1 minute'
              AND (hashtext(a.key) & 1073741823) %% 60 = extract(minute FROM now())
              AND (SELECT t.%1$I IN (%2$s, %3$s)
                          OR CASE a.state WHEN 'cancelled' THEN t.%1$I IS NOT DISTINCT FROM %4$s ELSE t.%1$I = %5$s END
                   FROM %6$s AS t WHERE t.%7$I = a.key::%8$s) IS NOT TRUE
            LIMIT 1000 FOR NO KEY UPDATE SKIP LOCKED
        )
        DELETE FROM scheduler.attempt AS a USING mine WHERE a.workflow = $1 AND a.key = mine.key
        $sql$, w.status_column, scheduler._word(w, w.queued), scheduler._running_word(w), scheduler._word(w, w.idle), scheduler._word(w, w.failed), w.relation, w.key_column, format_type(w.key_type, -1))
        USING w.name;
    GET DIAGNOSTICS gone = ROW_COUNT;
    RETURN gone;
END
$$;
COMMENT ON FUNCTION scheduler._forget_settled(scheduler.workflow) IS 'Internal: takes items out of the ledger whose row is gone or shows another word by now; each is looked at once an hour.';

CREATE OR REPLACE FUNCTION scheduler._catch_up(clock text, tolerance interval) RETURNS TABLE (workflow text, queued integer, note text)
LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
-- a table that someone has locked must not keep the others waiting
SET lock_timeout = '2s'
AS $$
#variable_conflict use_column
DECLARE
    due record;
    outcome record;
BEGIN
    FOR due IN
        SELECT s.workflow FROM scheduler.state AS s
        WHERE s.next_slot <= now() - tolerance
          -- a DBA who switched the job off meant it
          AND NOT (scheduler.cron_home() = 'here' AND EXISTS (SELECT FROM scheduler._cron_jobs() AS j WHERE j.workflow = s.workflow AND NOT j.active))
        ORDER BY s.next_slot
    LOOP
        BEGIN
            SELECT * INTO outcome FROM scheduler.dispatch(due.workflow, _catch_up.clock);
            workflow := due.workflow;
            queued := outcome.queued + outcome.retried;
            note := outcome.note;
            RETURN NEXT;
        EXCEPTION WHEN OTHERS THEN
            PERFORM scheduler._problem(due.workflow, 'dispatch', SQLERRM);
        END;
    END LOOP;
END
$$;
COMMENT ON FUNCTION scheduler._catch_up(text, interval) IS 'Internal: dispatches every workflow whose slot is overdue by more than the tolerance.';

CREATE OR REPLACE FUNCTION scheduler.maintain(clock text DEFAULT NULL)
RETURNS TABLE (rescued integer, retried integer, caught_up integer, rolled_up integer, forgotten bigint)
LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
-- a table that someone has locked must not keep the others waiting
SET lock_timeout = '2s'
AS $$
DECLARE
    name text;
    settled bigint := 0;
    began timestamptz := clock_timestamp();
BEGIN
    PERFORM scheduler._require_read_committed();
    rescued := 0; retried := 0; caught_up := 0; rolled_up := 0; forgotten := 0;
    -- off the hot path, so an advisory lock is fine; a second one has nothing to do
    IF NOT pg_try_advisory_xact_lock(hashtext('scheduler.maintain')) THEN
        RETURN NEXT;
        RETURN;
    END IF;
    rescued := scheduler.rescue();
    FOR name IN SELECT w.name FROM scheduler.workflow AS w ORDER BY w.name LOOP
        BEGIN
            IF EXISTS (SELECT FROM scheduler.attempt AS a WHERE a.workflow = name AND a.state = 'waiting' AND a.retry_at <= now()
                       AND NOT EXISTS (SELECT FROM scheduler.workflow AS w WHERE w.name = a.workflow AND w.paused_at IS NOT NULL))
               AND NOT EXISTS (SELECT FROM scheduler.control AS c WHERE c.paused_at IS NOT NULL) THEN
                retried := retried + scheduler._requeue_due(scheduler._live(name), 10000);
            END IF;
            IF EXISTS (SELECT FROM scheduler.takeover AS t WHERE t.workflow = name) THEN
                PERFORM scheduler._take_over(name);
            END IF;
            rolled_up := rolled_up + scheduler._roll_up(name);
            IF EXISTS (SELECT FROM scheduler.attempt AS a WHERE a.workflow = name AND a.state <> 'waiting') THEN
                settled := settled + scheduler._forget_settled(scheduler._live(name));
            END IF;
            UPDATE scheduler.state AS s SET problem = NULL, problem_at = NULL
            WHERE s.workflow = name AND s.problem IS NOT NULL AND s.problem_at < now() - interval '5 minutes';
        EXCEPTION WHEN OTHERS THEN
            PERFORM scheduler._problem(name, 'maintain', SQLERRM);
        END;
    END LOOP;
    -- pg_cron never makes up slots that passed while the server was down
    SELECT count(*) INTO caught_up FROM scheduler._catch_up(coalesce(clock, 'maintain'), interval '30 seconds');
    forgotten := settled + scheduler._retain();
    UPDATE scheduler.control SET maintained_at = now(), maintained_by = coalesce(clock, 'person'), maintain_took = clock_timestamp() - began,
                                 pg_cron_seen_at = CASE WHEN clock = 'pg_cron' THEN now() ELSE pg_cron_seen_at END;
    RETURN NEXT;
END
$$;
COMMENT ON FUNCTION scheduler.maintain(text) IS 'Once a minute: rescues lost runs, queues due retries, makes up missed slots, rolls up statistics, forgets old history.';

CREATE OR REPLACE FUNCTION scheduler.cron_alive() RETURNS boolean
LANGUAGE sql STABLE SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $$ SELECT coalesce(pg_cron_seen_at > now() - interval '150 seconds', false) FROM scheduler.control $$;
COMMENT ON FUNCTION scheduler.cron_alive() IS 'Whether pg_cron was heard in the last two and a half minutes.';

CREATE OR REPLACE FUNCTION scheduler.tick(clock text DEFAULT 'listener') RETURNS TABLE (workflow text, queued integer, note text)
LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    c scheduler.control;
BEGIN
    PERFORM scheduler._require_read_committed();
    IF clock = 'pg_cron' THEN
        -- pg_cron in another database: this one job serves all workflows
        RETURN QUERY SELECT * FROM scheduler._catch_up(clock, interval '0');
        PERFORM scheduler.maintain(clock);
        RETURN;
    END IF;
    SELECT * INTO c FROM scheduler.control;
    IF scheduler.cron_alive() THEN
        RETURN;
    END IF;
    -- a pg_cron that was just installed gets its first minutes to show up
    IF scheduler.cron_home() = 'here' AND c.pg_cron_seen_at IS NULL THEN
        RETURN QUERY SELECT * FROM scheduler._catch_up(clock, interval '150 seconds');
    ELSE
        RETURN QUERY SELECT * FROM scheduler._catch_up(clock, interval '0');
    END IF;
    IF coalesce(c.maintained_at < now() - interval '55 seconds', true) THEN
        PERFORM scheduler.maintain(clock);
    END IF;
END
$$;
COMMENT ON FUNCTION scheduler.tick(text) IS 'The clock of a listener: does nothing while pg_cron is heard; else dispatches overdue slots and runs maintain() when due.';
