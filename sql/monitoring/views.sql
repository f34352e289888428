-- The views. They read the engine's own small tables and, through _depth(), the partial indexes.

CREATE OR REPLACE VIEW scheduler.queue_depth AS
SELECT w.name AS workflow, d.queued, d.exact, coalesce(r.processing, 0) AS processing,
       coalesce(a.waiting, 0) AS waiting, coalesce(a.dead, 0) AS dead, coalesce(a.cancelled, 0) AS cancelled,
       now() - d.oldest_queued_at AS oldest_queued_age, d.problem
FROM scheduler.workflow AS w
CROSS JOIN LATERAL scheduler._depth(w.name) AS d
LEFT JOIN (SELECT x.workflow, sum(cardinality(x.keys)) AS processing FROM scheduler.run AS x WHERE x.finished_at IS NULL GROUP BY 1) AS r ON r.workflow = w.name
LEFT JOIN (SELECT x.workflow, count(*) FILTER (WHERE x.state = 'waiting') AS waiting, count(*) FILTER (WHERE x.state = 'dead') AS dead,
                  count(*) FILTER (WHERE x.state = 'cancelled') AS cancelled
           FROM scheduler.attempt AS x GROUP BY 1) AS a ON a.workflow = w.name;
COMMENT ON VIEW scheduler.queue_depth IS 'How many items are queued, running, waiting for a retry, dead, cancelled. exact is false where queued is an estimate.';

CREATE OR REPLACE VIEW scheduler.throughput AS
SELECT s.workflow, s.grain, s.at, s.runs, s.claimed, s.succeeded, s.failed, s.rejected, s.released, s.cancelled, s.discarded, s.rescued,
       scheduler.histogram_percentile(s.histogram, 0.5) AS p50, scheduler.histogram_percentile(s.histogram, 0.95) AS p95
FROM scheduler.stat AS s
WHERE s.grain IN ('minute', 'hour', 'day');
COMMENT ON VIEW scheduler.throughput IS 'What finished per minute (kept 2 days), hour (90 days) and day, with the median and 95th percentile of the work''s duration.';

CREATE OR REPLACE VIEW scheduler._last_hour AS
-- rolled up by maintain(), plus what it has not got to yet
SELECT x.workflow, sum(x.succeeded) AS succeeded, sum(x.failed) AS failed, sum(x.rejected) AS rejected,
       sum(x.succeeded + x.failed + x.rejected) FILTER (WHERE x.at > now() - interval '5 minutes') / 5.0 AS per_minute,
       scheduler.histogram_sum(x.histogram) AS histogram
FROM (
    SELECT s.workflow, s.at, s.succeeded, s.failed, s.rejected, s.histogram
    FROM scheduler.stat AS s WHERE s.grain = 'minute' AND s.at > now() - interval '1 hour'
    UNION ALL
    SELECT r.workflow, r.finished_at, r.succeeded, r.failed, r.rejected, r.histogram::bigint[]
    FROM scheduler.run AS r WHERE r.finished_at > now() - interval '1 hour' AND NOT r.rolled_up
) AS x
GROUP BY x.workflow;
COMMENT ON VIEW scheduler._last_hour IS 'Internal: outcomes and durations of the last hour, rate of the last five minutes.';

CREATE OR REPLACE VIEW scheduler.status AS
SELECT w.name AS workflow,
       CASE WHEN q.problem IS NOT NULL THEN 'broken'
            WHEN c.paused_at IS NOT NULL OR w.paused_at IS NOT NULL THEN 'paused'
            WHEN s.breaker_state <> 'closed' THEN 'breaker ' || s.breaker_state
            WHEN s.hold_until > now() THEN 'held'
            WHEN q.processing > 0 THEN 'running'
            WHEN q.queued > 0 THEN 'waiting'
            ELSE 'idle' END AS state,
       coalesce(q.problem, s.problem,
                CASE WHEN w.paused_at IS NOT NULL THEN concat_ws(' ', 'paused by', w.paused_by, 'since', to_char(w.paused_at, 'YYYY-MM-DD HH24:MI'), '- ' || w.paused_reason)
                     WHEN c.paused_at IS NOT NULL THEN concat_ws(' ', 'everything paused by', c.paused_by, '- ' || c.paused_reason)
                     WHEN s.breaker_state = 'open' THEN 'recent items mostly failed; next probe ' || to_char(s.breaker_until, 'HH24:MI:SS')
                     WHEN s.hold_until > now() THEN concat_ws(' ', 'held until', to_char(s.hold_until, 'HH24:MI:SS'), '- ' || s.hold_reason)
                     WHEN q.queued > 0 AND q.processing = 0 AND NOT scheduler._listened(w.name) THEN 'no listener that knows this workflow is alive' END,
                s.last_note) AS note,
       c.paused_at IS NOT NULL OR w.paused_at IS NOT NULL AS paused,
       w.schedule, s.next_slot AS next_dispatch, s.last_dispatch_at AS last_dispatch,
       q.queued, q.exact AS queued_exact, q.processing, q.waiting, q.dead, q.oldest_queued_age,
       round(coalesce(h.per_minute, 0), 1) AS per_minute,
       round(h.succeeded::numeric / nullif(h.succeeded + h.failed + h.rejected, 0), 3) AS success_rate_1h,
       scheduler.histogram_percentile(h.histogram, 0.5) AS p50, scheduler.histogram_percentile(h.histogram, 0.95) AS p95,
       CASE WHEN q.queued = 0 THEN interval '0' WHEN h.per_minute > 0 THEN make_interval(secs => round(q.queued / h.per_minute * 60)::double precision) END AS eta
FROM scheduler.workflow AS w
JOIN scheduler.state AS s ON s.workflow = w.name
JOIN scheduler.queue_depth AS q ON q.workflow = w.name
CROSS JOIN scheduler.control AS c
LEFT JOIN scheduler._last_hour AS h ON h.workflow = w.name
ORDER BY w.name;
COMMENT ON VIEW scheduler.status IS 'One row a workflow: how it is, why, how much waits and runs, how fast it goes, when it will be done.';

CREATE OR REPLACE VIEW scheduler.in_flight AS
SELECT r.id AS run, r.workflow, r.listener, l.host, l.pid, r.claimed, cardinality(r.keys) AS remaining, r.probe,
       r.started_at, now() - r.started_at AS running_for, r.lease_until, r.deadline, r.keys[1:5] AS first_keys
FROM scheduler.run AS r LEFT JOIN scheduler.listener AS l ON l.id = r.listener
WHERE r.finished_at IS NULL
ORDER BY r.started_at;
COMMENT ON VIEW scheduler.in_flight IS 'Runs that are open now, who runs them, and until when.';

CREATE OR REPLACE VIEW scheduler.runs AS
SELECT r.id AS run, r.workflow, r.listener, r.started_at, r.finished_at, coalesce(r.finished_at, now()) - r.started_at AS took,
       CASE WHEN r.finished_at IS NULL THEN 'open' WHEN r.rescued > 0 THEN 'rescued' WHEN r.failed + r.rejected > 0 THEN 'with failures' ELSE 'clean' END AS outcome,
       r.claimed, r.succeeded, r.failed, r.rejected, r.released, r.cancelled, r.discarded, r.rescued,
       scheduler.histogram_percentile(r.histogram::bigint[], 0.5) AS p50, scheduler.histogram_percentile(r.histogram::bigint[], 0.95) AS p95
FROM scheduler.run AS r
ORDER BY r.id DESC;
COMMENT ON VIEW scheduler.runs IS 'Every run of the last 7 days, the newest first.';

CREATE OR REPLACE VIEW scheduler.dead_letter AS
SELECT a.workflow, a.key, a.attempts, a.rescues, a.reason, a.error, a.first_at, a.last_at
FROM scheduler.attempt AS a WHERE a.state = 'dead' ORDER BY a.last_at DESC;
COMMENT ON VIEW scheduler.dead_letter IS 'Items given up: permanent errors and used-up attempts. SELECT scheduler.requeue(…) gives them a new start.';

CREATE OR REPLACE VIEW scheduler.errors AS
SELECT a.workflow, scheduler._shape(a.error) AS error, count(*) AS items, count(*) FILTER (WHERE a.state = 'dead') AS dead,
       count(*) FILTER (WHERE a.state = 'waiting') AS waiting, max(a.last_at) AS last_at,
       (array_agg(a.key ORDER BY a.last_at DESC))[1] AS example_key, (array_agg(a.error ORDER BY a.last_at DESC))[1] AS example
FROM scheduler.attempt AS a WHERE a.error IS NOT NULL AND a.state IN ('dead', 'waiting', 'active')
GROUP BY 1, 2 ORDER BY count(*) DESC, max(a.last_at) DESC;
COMMENT ON VIEW scheduler.errors IS 'Errors of items that have not succeeded yet, grouped: numbers, ids and quoted words in the text are folded together.';

CREATE OR REPLACE VIEW scheduler.listeners AS
SELECT l.id, l.host, l.pid, l.version, l.workflows,
       CASE WHEN l.stopped_at IS NOT NULL THEN 'stopped' WHEN l.seen_at > now() - interval '1 minute' THEN 'alive' ELSE 'silent' END AS state,
       l.started_at, l.seen_at, l.stopped_at, coalesce(r.runs, 0) AS open_runs, coalesce(r.items, 0) AS items, l.detail
FROM scheduler.listener AS l
LEFT JOIN (SELECT x.listener, count(*) AS runs, sum(cardinality(x.keys)) AS items FROM scheduler.run AS x WHERE x.finished_at IS NULL GROUP BY 1) AS r ON r.listener = l.id
ORDER BY l.seen_at DESC;
COMMENT ON VIEW scheduler.listeners IS 'Listener processes: alive, silent or stopped, and what they hold.';

CREATE OR REPLACE VIEW scheduler.schedules AS
SELECT x.workflow, x.schedule, x.next_fire,
       CASE WHEN x.schedule IS NULL THEN 'none'
            WHEN scheduler.cron_home() = 'here' AND j.job IS NULL THEN 'pg_cron, but its job is missing: SELECT scheduler.sync_cron()'
            WHEN scheduler.cron_home() = 'here' AND NOT j.active THEN 'pg_cron, but its job is switched off'
            WHEN scheduler.cron_alive() AND scheduler.cron_home() = 'here' THEN 'pg_cron'
            WHEN scheduler.cron_alive() THEN 'pg_cron in another database'
            WHEN EXISTS (SELECT FROM scheduler.listener AS l WHERE l.stopped_at IS NULL AND l.seen_at > now() - interval '1 minute')
                THEN CASE scheduler.cron_home() WHEN 'missing' THEN 'the listener (pg_cron is missing)' WHEN 'here' THEN 'the listener (pg_cron is silent)' ELSE 'the listener (pg_cron is in another database and silent)' END
            WHEN scheduler.cron_home() = 'here' THEN 'pg_cron, not heard for two minutes, and no listener runs'
            ELSE 'nobody: pg_cron is ' || scheduler.cron_home() || ' and no listener runs' END AS clock,
       x.last_slot, x.last_dispatch_at, x.last_clock, x.last_queued, x.last_note, x.missed_slots,
       j.job, j.active AS job_active, j.last_status AS cron_status, j.last_message AS cron_message, j.last_start AS cron_started_at
FROM (
    SELECT w.name AS workflow, w.schedule, s.next_slot AS next_fire, s.last_slot, s.last_dispatch_at, s.last_clock, s.last_queued, s.last_note, s.missed_slots
    FROM scheduler.workflow AS w JOIN scheduler.state AS s ON s.workflow = w.name
    UNION ALL
    SELECT 'maintain', '* * * * *', scheduler.cron_next('* * * * *', now()), NULL, c.maintained_at, c.maintained_by, NULL, NULL, 0 FROM scheduler.control AS c
) AS x
LEFT JOIN scheduler._cron_jobs() AS j ON j.workflow = x.workflow
ORDER BY x.workflow;
COMMENT ON VIEW scheduler.schedules IS 'Every schedule: when it fires next, which clock fires it, what the last dispatch did and what pg_cron says of it.';

CREATE OR REPLACE VIEW scheduler.stuck AS
SELECT r.workflow, 'run ' || r.id || ' has lost its listener and was not rescued' AS what, r.lease_until AS since, cardinality(r.keys) AS items, 'SELECT scheduler.rescue();' AS fix,
       'Claims and maintain() rescue such runs; that they did not says that neither happens.' AS meaning, 'run_lost' AS code
FROM scheduler.run AS r WHERE r.finished_at IS NULL AND r.lease_until < now() - interval '2 minutes'
UNION ALL
SELECT r.workflow, 'run ' || r.id || ' is past its deadline', r.deadline, cardinality(r.keys),
       format('SELECT * FROM scheduler.cancel(%L, (SELECT keys FROM scheduler.run WHERE id = %s));', r.workflow, r.id),
       format('Its work hangs; the lease is no longer renewed and its items are rescued soon. If listener %s does it again, restart that. To give the items up now:', coalesce(r.listener::text, '?')), 'run_overdue'
FROM scheduler.run AS r WHERE r.finished_at IS NULL AND r.deadline < now() AND r.lease_until >= now() - interval '2 minutes'
UNION ALL
SELECT a.workflow, 'retries are due but not queued', min(a.retry_at), count(*)::integer, 'SELECT scheduler.maintain();', 'Dispatches, claims and maintain() queue them; that they did not says that none of these happens.', 'retries_late'
FROM scheduler.attempt AS a JOIN scheduler.workflow AS w ON w.name = a.workflow AND w.paused_at IS NULL
WHERE a.state = 'waiting' AND a.retry_at < now() - interval '5 minutes' AND NOT EXISTS (SELECT FROM scheduler.control AS c WHERE c.paused_at IS NOT NULL) GROUP BY a.workflow
UNION ALL
SELECT w.name, 'items are queued and no listener that knows this workflow is alive', d.oldest_queued_at, d.queued::integer, '-- no SQL can: start one with scrapersky listen', 'They wait until one starts.', 'no_listener'
FROM (SELECT x.name FROM scheduler.workflow AS x, scheduler.control AS c
      WHERE x.paused_at IS NULL AND c.paused_at IS NULL
        AND NOT EXISTS (SELECT FROM scheduler.listener AS l WHERE l.stopped_at IS NULL AND l.seen_at > now() - interval '1 minute' AND (l.workflows IS NULL OR x.name = ANY (l.workflows)))
      -- counted only where nobody listens
      OFFSET 0) AS w
CROSS JOIN LATERAL scheduler._depth(w.name) AS d
WHERE d.queued > 0
UNION ALL
SELECT s.workflow, 'its schedule is late', s.next_slot, NULL, 'SELECT scheduler.maintain();', 'No clock fires it; the column clock of scheduler.schedules says which should. This makes the slot up once.', 'schedule_late'
FROM scheduler.state AS s WHERE s.next_slot < now() - interval '5 minutes';
COMMENT ON VIEW scheduler.stuck IS 'What should move and does not, since when, and what to do. Empty when all is well.';
