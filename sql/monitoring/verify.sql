-- After a deploy: questions with yes or no for an answer. Thresholds are written in the question.

CREATE OR REPLACE FUNCTION scheduler.verify_deploy(stage text DEFAULT 'hour') RETURNS TABLE ("check" text, ok boolean, detail text)
LANGUAGE plpgsql STABLE
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    span interval := CASE stage WHEN 'hour' THEN interval '1 hour' WHEN 'day' THEN interval '1 day' WHEN 'week' THEN interval '7 days' END;
BEGIN
    IF span IS NULL THEN
        RAISE EXCEPTION 'there is no stage %', coalesce(quote_literal(stage), 'NULL') USING ERRCODE = 'invalid_parameter_value', HINT = 'Use hour, day or week.';
    END IF;
    -- A question is answered by what speaks against it: no such row, and the answer is yes.
    RETURN QUERY
    WITH asked (place, first_stage, about, question) AS (VALUES
        (1, 'hour', 'doctor', 'the doctor finds no error'),
        (2, 'hour', 'stuck', 'nothing is stuck'),
        (3, 'hour', 'listener', 'a living listener knows every workflow that is not paused'),
        (4, 'hour', 'version', 'all living listeners are of one version'),
        (5, 'hour', 'maintain', 'maintenance ran within three minutes'),
        (6, 'hour', 'schedule', 'every schedule was fired at its last slot'),
        (7, 'hour', 'breaker', 'no breaker is open'),
        (8, 'hour', 'success', 'of ten or more items at least 80 % succeeded'),
        (9, 'hour', 'movement', 'what is queued has moved'),
        (10, 'day', 'age', 'no item has been queued for more than a day'),
        (11, 'day', 'rescue', 'fewer than 1 % of claimed items had to be rescued'),
        (12, 'day', 'vanished', 'no listener vanished without saying goodbye'),
        (13, 'day', 'pause', 'no pause was forgotten'),
        (14, 'week', 'dispatch', 'every scheduled workflow was dispatched this week'),
        (15, 'week', 'history', 'history is being forgotten as it should'),
        (16, 'week', 'dead', 'the dead letter holds fewer items than succeeded this week')
    ), active AS MATERIALIZED (
        SELECT s.* FROM scheduler.status AS s WHERE NOT s.paused
    ), outcome AS MATERIALIZED (
        -- minutes are kept for two days, hours longer; what is not rolled up yet is at most a minute old
        SELECT t.workflow, sum(t.succeeded) AS good, sum(t.failed + t.rejected) AS bad, sum(t.claimed) AS claimed, sum(t.rescued) AS rescued
        FROM scheduler.stat AS t WHERE t.grain = CASE stage WHEN 'week' THEN 'hour' ELSE 'minute' END AND t.at > now() - span GROUP BY t.workflow
    ), objection (about, against) AS (
        SELECT 'doctor', concat_ws(': ', d.workflow, d.finding) FROM scheduler.doctor() AS d WHERE d.severity = 'error'
        UNION ALL
        SELECT 'stuck', concat_ws(': ', k.workflow, k.what) FROM scheduler.stuck AS k
        UNION ALL
        SELECT 'listener', a.workflow FROM active AS a
        WHERE NOT EXISTS (SELECT FROM scheduler.listener AS l WHERE l.stopped_at IS NULL AND l.seen_at > now() - interval '1 minute' AND (l.workflows IS NULL OR a.workflow = ANY (l.workflows)))
        UNION ALL
        SELECT 'version', string_agg(DISTINCT coalesce(l.version, '?'), ', ') FROM scheduler.listener AS l
        WHERE l.stopped_at IS NULL AND l.seen_at > now() - interval '1 minute' HAVING count(DISTINCT coalesce(l.version, '?')) > 1
        UNION ALL
        SELECT 'maintain', coalesce('last at ' || c.maintained_at, 'never') FROM scheduler.control AS c
        WHERE coalesce(c.maintained_at < now() - interval '3 minutes', true)
        UNION ALL
        SELECT 'schedule', format('%s: due at %s', s.workflow, s.next_slot) FROM scheduler.state AS s JOIN active AS a ON a.workflow = s.workflow
        WHERE s.next_slot < now() - interval '3 minutes'
        UNION ALL
        SELECT 'breaker', a.workflow FROM active AS a WHERE a.state LIKE 'breaker %'
        UNION ALL
        SELECT 'success', format('%s: %s of %s', o.workflow, o.good, o.good + o.bad) FROM outcome AS o
        WHERE o.good + o.bad >= 10 AND o.good < 0.8 * (o.good + o.bad)
        UNION ALL
        SELECT 'movement', format('%s: %s queued, none finished', a.workflow, a.queued) FROM active AS a LEFT JOIN outcome AS o ON o.workflow = a.workflow
        WHERE a.oldest_queued_age > interval '15 minutes' AND a.processing = 0 AND coalesce(o.good + o.bad, 0) = 0
        UNION ALL
        SELECT 'age', format('%s: %s', a.workflow, a.oldest_queued_age) FROM active AS a
        WHERE stage <> 'hour' AND a.oldest_queued_age > interval '1 day'
        UNION ALL
        SELECT 'rescue', format('%s: %s of %s', o.workflow, o.rescued, o.claimed) FROM outcome AS o
        WHERE stage <> 'hour' AND o.rescued > 0.01 * o.claimed
        UNION ALL
        SELECT 'vanished', format('process %s on %s, last seen %s', l.pid, l.host, l.seen_at) FROM scheduler.listener AS l
        WHERE stage <> 'hour' AND l.stopped_at IS NULL AND l.seen_at < now() - interval '5 minutes'
        UNION ALL
        SELECT 'pause', format('%s since %s', w.name, w.paused_at) FROM scheduler.workflow AS w
        WHERE stage <> 'hour' AND w.paused_at < now() - interval '1 day'
        UNION ALL
        SELECT 'dispatch', w.name FROM scheduler.workflow AS w JOIN scheduler.state AS s ON s.workflow = w.name
        WHERE stage = 'week' AND w.schedule IS NOT NULL AND w.paused_at IS NULL AND w.created_at < now() - span AND coalesce(s.last_dispatch_at < now() - span, true)
        UNION ALL
        SELECT 'history', format('a run of %s has been kept since %s', r.workflow, r.started_at)
        FROM (SELECT x.workflow, min(x.started_at) AS started_at FROM scheduler.run AS x
              WHERE stage = 'week' AND x.started_at < now() - interval '9 days' AND x.finished_at < now() - interval '9 days' GROUP BY 1) AS r
        UNION ALL
        SELECT 'dead', format('%s: %s dead', q.workflow, q.dead)
        FROM (SELECT x.workflow, count(*) AS dead FROM scheduler.attempt AS x WHERE stage = 'week' AND x.state = 'dead' GROUP BY 1) AS q LEFT JOIN outcome AS o ON o.workflow = q.workflow
        WHERE q.dead > coalesce(o.good, 0)
    )
    SELECT q.question, count(j.against) = 0, string_agg(j.against, '; ' ORDER BY j.against)
    FROM asked AS q LEFT JOIN objection AS j ON j.about = q.about
    WHERE array_position(ARRAY['hour', 'day', 'week'], q.first_stage) <= array_position(ARRAY['hour', 'day', 'week'], stage)
    GROUP BY q.place, q.question ORDER BY q.place;
END
$$;
COMMENT ON FUNCTION scheduler.verify_deploy(text) IS
'The first hour, day or week after a deploy, as questions answered yes (ok) or no, with what speaks against it in detail; a later stage asks those of the earlier ones too.';
