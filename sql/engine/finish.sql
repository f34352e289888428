-- Finish: succeed, fail, release. The lock on the run's row is the fence: whoever holds it owns the items in its keys,
-- and what the caller writes in the same transaction commits with their status or not at all.

CREATE OR REPLACE FUNCTION scheduler._fence(run bigint, wanted text[], OUT r scheduler.run, OUT mine text[], OUT asked text[])
LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    taken text[];
BEGIN
    PERFORM scheduler._require_read_committed();
    SELECT * INTO r FROM scheduler.run AS x WHERE x.id = _fence.run FOR NO KEY UPDATE;
    IF NOT FOUND OR r.finished_at IS NOT NULL THEN
        -- rescued, dropped or forgotten: the caller owns nothing any more
        asked := coalesce(wanted, '{}');
        mine := '{}';
        RETURN;
    END IF;
    asked := coalesce(wanted, r.keys);
    IF wanted IS NULL OR wanted = r.keys THEN
        mine := r.keys;
    ELSE
        SELECT coalesce(array_agg(a.key), '{}') INTO mine
        FROM (SELECT DISTINCT u.key FROM unnest(wanted) AS u (key)) AS a JOIN unnest(r.keys) AS k (key) ON k.key = a.key;
    END IF;
    -- what a person wrote over meanwhile is no longer the run's, whatever the row says now
    IF EXISTS (SELECT FROM scheduler.takeover AS t WHERE t.workflow = r.workflow) THEN
        SELECT array_agg(m) INTO taken FROM unnest(mine) AS m
        WHERE EXISTS (SELECT FROM scheduler.takeover AS t WHERE t.workflow = r.workflow AND t.upto >= r.id AND t.key = m);
    END IF;
    IF taken IS NOT NULL THEN
        PERFORM scheduler._settle(r, taken, 'discarded', 0, cardinality(taken), NULL);
        SELECT * INTO r FROM scheduler.run AS x WHERE x.id = _fence.run;
        mine := (SELECT coalesce(array_agg(m), '{}') FROM unnest(mine) AS m WHERE m <> ALL (taken));
    END IF;
END
$$;
COMMENT ON FUNCTION scheduler._fence(bigint, text[]) IS 'Internal: locks the run and returns which of the keys it still owns.';

CREATE OR REPLACE FUNCTION scheduler._settle(r scheduler.run, handled text[], outcome text, accepted integer, lost integer, histogram integer[], rejected integer DEFAULT 0) RETURNS void
LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    remaining text[] := '{}'::text[];
BEGIN
    IF cardinality(handled) < cardinality(r.keys) THEN
        SELECT coalesce(array_agg(k.key), '{}') INTO remaining
        FROM unnest(r.keys) AS k (key) LEFT JOIN unnest(handled) AS h (key) ON h.key = k.key WHERE h.key IS NULL;
    END IF;
    UPDATE scheduler.run AS x SET
        keys = remaining,
        places = CASE WHEN cardinality(remaining) > 0 THEN x.places END,
        succeeded = x.succeeded + CASE WHEN outcome = 'succeeded' THEN accepted ELSE 0 END,
        failed = x.failed + CASE WHEN outcome = 'failed' THEN accepted - _settle.rejected ELSE 0 END,
        rejected = x.rejected + _settle.rejected,
        released = x.released + CASE WHEN outcome = 'released' THEN accepted ELSE 0 END,
        cancelled = x.cancelled + CASE WHEN outcome = 'cancelled' THEN accepted ELSE 0 END,
        discarded = x.discarded + lost,
        histogram = CASE WHEN _settle.histogram IS NULL THEN x.histogram
                         ELSE scheduler.histogram_add(x.histogram::bigint[], _settle.histogram::bigint[])::integer[] END,
        finished_at = CASE WHEN cardinality(remaining) = 0 THEN now() END
    WHERE x.id = r.id;
    -- closed with its last key, in one write; what is left is its slot, which r.slot does not tell: alter_workflow() may have given it one since
    IF cardinality(remaining) = 0 AND EXISTS (SELECT FROM scheduler.slot AS s WHERE s.workflow = r.workflow AND s.run = r.id) THEN
        PERFORM scheduler._close_run(r.id);
    END IF;
END
$$;
COMMENT ON FUNCTION scheduler._settle(scheduler.run, text[], text, integer, integer, integer[], integer) IS 'Internal: takes finished keys off a run, counts them, and closes the run after the last.';

CREATE OR REPLACE FUNCTION scheduler._without_taken(w scheduler.workflow, r scheduler.run, done text[]) RETURNS text[]
LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    taken text[];
BEGIN
    -- A person's write may have been committed, and its item claimed by another run, since the fence looked. Now that the
    -- rows are ours it shows; such an item was running in the other run, and so it is again.
    SELECT array_agg(DISTINCT t.key) INTO taken FROM scheduler.takeover AS t
    WHERE t.workflow = r.workflow AND t.upto >= r.id AND t.key = ANY (done);
    IF taken IS NULL THEN
        RETURN coalesce(done, '{}');
    END IF;
    EXECUTE format('UPDATE %s AS t SET %I = %s WHERE t.%I = ANY ($1::%s[])',
                   w.relation, w.status_column, scheduler._word(w, w.processing), w.key_column, format_type(w.key_type, -1)) USING taken;
    RETURN (SELECT coalesce(array_agg(d), '{}') FROM unnest(done) AS d WHERE d <> ALL (taken));
END
$$;
COMMENT ON FUNCTION scheduler._without_taken(scheduler.workflow, scheduler.run, text[]) IS 'Internal: the keys just finished or put back without those that became another run''s in the very moment; these get their running word back.';

CREATE OR REPLACE FUNCTION scheduler._refused(asked text[], accepted text[]) RETURNS text[]
LANGUAGE sql IMMUTABLE
SET search_path = pg_catalog, pg_temp
AS $$
    SELECT coalesce(array_agg(DISTINCT a.key), '{}') FROM unnest(asked) AS a (key) LEFT JOIN unnest(accepted) AS b (key) ON b.key = a.key WHERE b.key IS NULL
$$;
COMMENT ON FUNCTION scheduler._refused(text[], text[]) IS 'Internal: the keys that were asked for and not accepted.';

CREATE OR REPLACE FUNCTION scheduler._check_histogram(histogram integer[]) RETURNS void
LANGUAGE plpgsql IMMUTABLE
SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
    -- counts beyond the largest batch are nonsense, and many of them would no longer fit
    IF array_ndims(histogram) > 1 OR array_lower(histogram, 1) <> 1 OR cardinality(histogram) > 48
       OR 0 > ANY (histogram) OR 10000 < ANY (histogram) OR array_position(histogram, NULL) IS NOT NULL THEN
        RAISE EXCEPTION 'a histogram is a plain list of at most 48 counts from 0 to 10000'
            USING ERRCODE = 'invalid_parameter_value', HINT = 'Count durations by scheduler.duration_bucket(milliseconds).';
    END IF;
END
$$;
COMMENT ON FUNCTION scheduler._check_histogram(integer[]) IS 'Internal: refuses a histogram that would spoil the statistics.';

CREATE OR REPLACE FUNCTION scheduler._check_lengths(keys text[], VARIADIC lengths integer[]) RETURNS void
LANGUAGE plpgsql IMMUTABLE
SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
    IF cardinality(keys) <> ANY (lengths) THEN
        RAISE EXCEPTION 'there are % keys, but other arrays have % entries', cardinality(keys), array_to_string(lengths, ', ')
            USING ERRCODE = 'invalid_parameter_value', HINT = 'Give one entry a key, in the same order, or leave the array out.';
    END IF;
END
$$;
COMMENT ON FUNCTION scheduler._check_lengths(text[], integer[]) IS 'Internal: arrays that belong together must be equally long.';

CREATE OR REPLACE FUNCTION scheduler.succeed(run bigint, keys text[] DEFAULT NULL, words text[] DEFAULT NULL, histogram integer[] DEFAULT NULL)
RETURNS TABLE (accepted integer, refused text[])
LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
SET scheduler.engine = 'on'
AS $$
DECLARE
    f record := scheduler._fence(succeed.run, succeed.keys);
    r scheduler.run := f.r;
    w scheduler.workflow;
    done text[] := '{}'::text[];
    missing text[] := f.mine;
    found text[];
    word text;
    changes text;
    finish text;
    told text;
BEGIN
    IF cardinality(f.mine) > 0 THEN
        PERFORM scheduler._check_histogram(histogram);
        w := scheduler._live(r.workflow);
        changes := CASE WHEN w.error_column IS NOT NULL THEN format(', %I = NULL', w.error_column) ELSE '' END;
        IF words IS NULL THEN
            -- (SELECT …) hides how many there are. Told of a thousand, the planner reads the whole of a middling table
            -- instead of its index: 16 ms for 1000 of 33,000 rows, and more with each dead row.
            finish := format('WITH u AS (UPDATE %s AS t SET %2$I = %3$s%4$s WHERE t.%2$I = %5$s AND ',
                             w.relation, w.status_column, scheduler._word(w, w.completed), changes, scheduler._running_word(w));
            told := format(' RETURNING t.%I::text AS key) SELECT array_agg(key) FROM u', w.key_column);
            IF w.processing IS NULL AND 2 * cardinality(f.mine) > cardinality(r.places) THEN
                -- Where they were when they were claimed: that saves looking up each key. Another row may be there by now, so
                -- its key counts, too; $1 is a constant to the planner, and such a list is hashed. Rows that were marked
                -- are better looked up by an index, which clears their old versions out of the page that the new ones
                -- need: a fifth more of them would go to another page.
                EXECUTE finish || format('t.ctid = ANY ((SELECT $2)::tid[]) AND t.%I::text = ANY ($1)', w.key_column) || told INTO found USING f.mine, r.places;
                done := coalesce(found, done);
                missing := CASE WHEN cardinality(done) < cardinality(f.mine) THEN scheduler._refused(f.mine, done) ELSE '{}' END;
            END IF;
            IF cardinality(missing) > 0 THEN
                EXECUTE finish || format('t.%I = ANY ((SELECT $1)::%s[])', w.key_column, format_type(w.key_type, -1)) || told INTO found USING missing;
                done := done || found;
            END IF;
        ELSE
            IF keys IS NULL THEN
                RAISE EXCEPTION 'words need the keys they belong to' USING ERRCODE = 'invalid_parameter_value', HINT = 'Give keys and words, one entry a key, or leave both out.';
            END IF;
            PERFORM scheduler._check_lengths(keys, cardinality(words));
            FOR word IN SELECT DISTINCT u.word FROM unnest(words) AS u (word) WHERE u.word IS NOT NULL LOOP
                PERFORM scheduler._check_word(w.relation, w.status_column, word, 'final');
                IF word IN (w.queued, w.processing, w.failed) THEN
                    RAISE EXCEPTION '% is not a final word of workflow %', quote_literal(word), w.name
                        USING ERRCODE = 'invalid_parameter_value', HINT = 'Use scheduler.fail() or scheduler.release(), or another word of the status column.';
                END IF;
            END LOOP;
            EXECUTE format('WITH u AS (UPDATE %2$s AS t SET %4$I = coalesce(g.word, %5$L)::%8$s%6$s FROM unnest($1::%3$s[], $2) AS g (key, word), unnest($3::%3$s[]) AS m (key)
                                       WHERE t.%1$I = g.key AND m.key = g.key AND t.%4$I = %7$s RETURNING t.%1$I::text AS key) SELECT array_agg(key) FROM u',
                           w.key_column, w.relation, format_type(w.key_type, -1), w.status_column, w.completed, changes, scheduler._running_word(w), format_type(w.status_type, -1))
                INTO done USING keys, words, f.mine;
        END IF;
        done := scheduler._without_taken(w, r, done);
        IF EXISTS (SELECT FROM scheduler.attempt AS a WHERE a.workflow = w.name) THEN
            DELETE FROM scheduler.attempt AS a WHERE a.workflow = w.name AND a.key = ANY (done);
        END IF;
        PERFORM scheduler._settle(r, f.mine, 'succeeded', cardinality(done), cardinality(f.mine) - cardinality(done), histogram);
        IF r.probe AND cardinality(done) > 0 THEN
            PERFORM scheduler._close_breaker(w);
        END IF;
    END IF;
    accepted := cardinality(done);
    refused := CASE WHEN cardinality(f.asked) = cardinality(done) THEN '{}' ELSE scheduler._refused(f.asked, done) END;
    RETURN NEXT;
END
$$;
COMMENT ON FUNCTION scheduler.succeed(bigint, text[], text[], integer[]) IS
'Items of a run get their final word: the completed word, or one of their own in words. keys NULL means all that are left. Call it first in the transaction that saves their results, and save only what was not refused.';

CREATE OR REPLACE FUNCTION scheduler._show_failed(w scheduler.workflow, r scheduler.run, mine text[], keys text[], errors text[]) RETURNS text[]
LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    done text[];
BEGIN
    EXECUTE format('WITH u AS (UPDATE %2$s AS t SET %4$s FROM unnest($1::%3$s[], $2) AS g (key, error), unnest($3::%3$s[]) AS m (key)
                               WHERE t.%1$I = g.key AND m.key = g.key AND t.%5$I = %6$s RETURNING t.%1$I::text AS key) SELECT array_agg(key) FROM u',
                   w.key_column, w.relation, format_type(w.key_type, -1),
                   concat_ws(', ', format('%I = %s', w.status_column, scheduler._word(w, w.failed)), quote_ident(w.error_column) || ' = scheduler.redact(g.error)'),
                   w.status_column, scheduler._running_word(w))
        INTO done USING keys, errors, mine;
    RETURN scheduler._without_taken(w, r, done);
END
$$;
COMMENT ON FUNCTION scheduler._show_failed(scheduler.workflow, scheduler.run, text[], text[], text[]) IS 'Internal: gives running items the failed word and their errors, and returns the keys of those that were still this run''s.';

CREATE OR REPLACE FUNCTION scheduler.fail(run bigint, keys text[], errors text[], permanent boolean[] DEFAULT NULL, retry_after interval[] DEFAULT NULL, histogram integer[] DEFAULT NULL)
RETURNS TABLE (accepted integer, refused text[], dead text[])
LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
SET scheduler.engine = 'on'
AS $$
DECLARE
    f record := scheduler._fence(fail.run, fail.keys);
    r scheduler.run := f.r;
    w scheduler.workflow;
    done text[] := '{}'::text[];
    rejects integer := 0;
BEGIN
    dead := '{}';
    IF keys IS NULL THEN
        RAISE EXCEPTION 'fail() needs the keys that failed' USING ERRCODE = 'invalid_parameter_value', HINT = 'Give keys and errors, one error a key.';
    END IF;
    PERFORM scheduler._check_lengths(keys, cardinality(errors), coalesce(cardinality(permanent), cardinality(keys)), coalesce(cardinality(retry_after), cardinality(keys)));
    IF cardinality(f.mine) > 0 THEN
        PERFORM scheduler._check_histogram(histogram);
        w := scheduler._live(r.workflow);
        done := scheduler._show_failed(w, r, f.mine, keys, errors);
        WITH given AS (
            SELECT DISTINCT ON (g.key) g.key, scheduler.redact(g.error) AS error, coalesce(g.permanent, false) AS permanent, g.retry_after
            FROM unnest(fail.keys, fail.errors, fail.permanent, fail.retry_after) AS g (key, error, permanent, retry_after)
            JOIN unnest(done) AS d (key) ON d.key = g.key
        ), judged AS (
            SELECT g.*, coalesce(a.attempts, 0) + 1 AS attempts, g.permanent OR coalesce(a.attempts, 0) + 1 >= w.max_attempts AS is_dead
            FROM given AS g LEFT JOIN scheduler.attempt AS a ON a.workflow = w.name AND a.key = g.key
        ), noted AS (
            INSERT INTO scheduler.attempt AS a (workflow, key, state, attempts, retry_at, error, reason)
            SELECT w.name, j.key, CASE WHEN j.is_dead THEN 'dead' ELSE 'waiting' END, j.attempts,
                   CASE WHEN NOT j.is_dead THEN now() + scheduler._backoff(w, j.attempts, j.retry_after) END, j.error,
                   CASE WHEN j.permanent THEN 'permanent' WHEN j.is_dead THEN 'attempts used up' END
            FROM judged AS j
            ON CONFLICT (workflow, key) DO UPDATE SET
                state = excluded.state, attempts = excluded.attempts, retry_at = excluded.retry_at, error = excluded.error, reason = excluded.reason, last_at = now()
            RETURNING a.key, a.state, a.reason
        )
        SELECT coalesce(array_agg(n.key) FILTER (WHERE n.state = 'dead'), '{}'), count(*) FILTER (WHERE n.reason = 'permanent')
        INTO dead, rejects FROM noted AS n;
        PERFORM scheduler._settle(r, f.mine, 'failed', cardinality(done), cardinality(f.mine) - cardinality(done), histogram, rejects);
        IF w.breaker THEN
            PERFORM scheduler._judge_breaker(w, r, cardinality(done), rejects);
        END IF;
    END IF;
    accepted := cardinality(done);
    refused := CASE WHEN cardinality(f.asked) = cardinality(done) THEN '{}' ELSE scheduler._refused(f.asked, done) END;
    RETURN NEXT;
END
$$;
COMMENT ON FUNCTION scheduler.fail(bigint, text[], text[], boolean[], interval[], integer[]) IS
'Items of a run failed: they show the failed word and the error, and are retried after a backoff (or retry_after) until max_attempts; permanent ones go to the dead letter at once.';

CREATE OR REPLACE FUNCTION scheduler.defer(run bigint, keys text[], reasons text[], after interval[])
RETURNS TABLE (accepted integer, refused text[])
LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
SET scheduler.engine = 'on'
AS $$
DECLARE
    f record := scheduler._fence(defer.run, defer.keys);
    r scheduler.run := f.r;
    w scheduler.workflow;
    done text[] := '{}'::text[];
BEGIN
    IF keys IS NULL THEN
        RAISE EXCEPTION 'defer() needs the keys that wait' USING ERRCODE = 'invalid_parameter_value', HINT = 'Give keys, reasons and intervals, one of each a key.';
    END IF;
    PERFORM scheduler._check_lengths(keys, cardinality(reasons), cardinality(after), cardinality(keys));
    IF cardinality(f.mine) > 0 THEN
        w := scheduler._live(r.workflow);
        done := scheduler._show_failed(w, r, f.mine, keys, reasons);
        -- no attempt, and nothing for the breaker: it is nobody's failure
        INSERT INTO scheduler.attempt AS a (workflow, key, state, retry_at, error, reason)
        SELECT DISTINCT ON (g.key) w.name, g.key, 'waiting', now() + scheduler._backoff(w, 1, g.after), scheduler.redact(g.reason), 'put off'
        FROM unnest(defer.keys, defer.reasons, defer.after) AS g (key, reason, after)
        JOIN unnest(done) AS d (key) ON d.key = g.key
        ON CONFLICT ON CONSTRAINT attempt_pkey DO UPDATE SET
            state = excluded.state, retry_at = excluded.retry_at, error = excluded.error, reason = excluded.reason, last_at = now();
        PERFORM scheduler._settle(r, f.mine, 'released', cardinality(done), cardinality(f.mine) - cardinality(done), NULL);
    END IF;
    accepted := cardinality(done);
    refused := CASE WHEN cardinality(f.asked) = cardinality(done) THEN '{}' ELSE scheduler._refused(f.asked, done) END;
    RETURN NEXT;
END
$$;
COMMENT ON FUNCTION scheduler.defer(bigint, text[], text[], interval[]) IS
'Running items wait for their turn (a rate limit): they show the failed word and the reason, and are queued again after so long, with no attempt spent.';

CREATE OR REPLACE FUNCTION scheduler.release(run bigint, keys text[] DEFAULT NULL, reason text DEFAULT NULL, hold interval DEFAULT NULL) RETURNS integer
LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    f record := scheduler._fence(release.run, release.keys);
    r scheduler.run := f.r;
    w scheduler.workflow;
    done text[];
BEGIN
    IF hold < '0' OR hold > '1 day' THEN
        RAISE EXCEPTION 'a workflow cannot be held for %', hold USING ERRCODE = 'invalid_parameter_value', HINT = 'Give an interval from 0 to 1 day, or pause() it.';
    END IF;
    IF cardinality(f.mine) = 0 THEN
        RETURN 0;
    END IF;
    w := scheduler._live(r.workflow);
    done := scheduler._without_taken(w, r, scheduler._put_back(w, f.mine));
    PERFORM scheduler._settle(r, f.mine, 'released', cardinality(done), cardinality(f.mine) - cardinality(done), NULL);
    IF hold > '0' THEN
        UPDATE scheduler.state AS s SET hold_until = greatest(s.hold_until, now() + hold), hold_reason = scheduler.redact(release.reason)
        WHERE s.workflow = w.name;
    ELSIF w.doorbell <> 'off' THEN
        PERFORM scheduler._ring(w.name);
    END IF;
    RETURN cardinality(done);
END
$$;
COMMENT ON FUNCTION scheduler.release(bigint, text[], text, interval) IS
'Running items go back to Queued without spending an attempt (drain, missing dependency). With hold, nothing of the workflow is claimed for that long.';

CREATE OR REPLACE FUNCTION scheduler._close_breaker(w scheduler.workflow) RETURNS void
LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
    UPDATE scheduler.state AS s SET breaker_state = 'closed', breaker_until = NULL, breaker_closed_at = now() WHERE s.workflow = w.name;
    IF w.doorbell <> 'off' THEN
        PERFORM scheduler._ring(w.name || '!');
    END IF;
END
$$;
COMMENT ON FUNCTION scheduler._close_breaker(scheduler.workflow) IS 'Internal: the probe went well, the workflow goes on.';

CREATE OR REPLACE FUNCTION scheduler._judge_breaker(w scheduler.workflow, r scheduler.run, failed integer, rejected integer) RETURNS void
LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    s scheduler.state;
    good bigint;
    bad bigint;
    trips integer;
BEGIN
    IF r.probe AND failed = rejected AND failed > 0 THEN
        -- a clear no is an answer too: what the items depend on is alive
        PERFORM scheduler._close_breaker(w);
        RETURN;
    END IF;
    SELECT * INTO s FROM scheduler.state AS x WHERE x.workflow = w.name;
    IF NOT r.probe THEN
        SELECT sum(x.succeeded + x.rejected), sum(x.failed) INTO good, bad
        FROM (SELECT y.succeeded, y.rejected, y.failed FROM scheduler.run AS y
              WHERE y.workflow = w.name AND y.started_at > greatest(now() - interval '10 minutes', s.breaker_closed_at)
              ORDER BY y.started_at DESC LIMIT 50) AS x;
        IF s.breaker_state <> 'closed' OR good + bad < 20 OR bad < 0.8 * (good + bad) THEN
            RETURN;
        END IF;
    END IF;
    -- again soon after the last time: wait twice as long
    trips := CASE WHEN s.breaker_state <> 'closed' OR s.breaker_closed_at > now() - interval '1 hour' THEN s.breaker_trips + 1 ELSE 1 END;
    UPDATE scheduler.state AS x SET breaker_state = 'open', breaker_trips = trips,
                                    breaker_until = now() + least(interval '1 minute' * power(2, least(trips - 1, 10)), interval '1 hour')
    WHERE x.workflow = w.name;
END
$$;
COMMENT ON FUNCTION scheduler._judge_breaker(scheduler.workflow, scheduler.run, integer, integer) IS 'Internal: trips the breaker when of at least 20 recent items four in five failed, or when the probe failed.';
