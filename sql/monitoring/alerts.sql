-- What goes out of the database by itself: alerts for a webhook, sent by whichever listener takes them first. Nothing of
-- this happens unless a listener asks, which it does only with ALERT_WEBHOOK_URL, and never on an item's way.

CREATE OR REPLACE VIEW scheduler._alerting AS
SELECT s.workflow, 'breaker_open' AS code, format('%s: the breaker is open, because recent items mostly failed', s.workflow) AS text,
       format('SELECT * FROM scheduler.errors WHERE workflow = %1$L; SELECT scheduler.resume(%1$L);', s.workflow) AS fix
FROM scheduler.state AS s WHERE s.breaker_state <> 'closed'
UNION ALL
-- rising, not there: what somebody has seen and left for later is no news
SELECT a.workflow, 'dead_letters_rising', format('%s: %s item(s) came into the dead letter in the last 15 minutes', a.workflow, count(*)),
       format('SELECT * FROM scheduler.errors WHERE workflow = %1$L; SELECT scheduler.requeue(%1$L);', a.workflow)
FROM scheduler.workflow AS w JOIN scheduler.attempt AS a ON a.workflow = w.name AND a.state = 'dead' AND a.last_at > now() - interval '15 minutes'
GROUP BY a.workflow HAVING count(*) >= scheduler._threshold('alert_dead_letters', '1')::integer
UNION ALL
SELECT s.workflow, 'schedule_late', format('%s: its schedule was due at %s and no clock has fired it', s.workflow, date_trunc('second', s.next_slot)),
       'SELECT workflow, clock FROM scheduler.schedules; SELECT scheduler.maintain();'
FROM scheduler.state AS s WHERE s.next_slot < now() - interval '5 minutes';
COMMENT ON VIEW scheduler._alerting IS 'Internal: what an alert is raised for, as long as it lasts.';

CREATE OR REPLACE FUNCTION scheduler.take_alerts() RETURNS TABLE (id bigint, at timestamptz, workflow text, code text, event text, text text, fix text)
LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $$
#variable_conflict use_column
BEGIN
    PERFORM scheduler._require_read_committed();
    -- of many listeners one looks; the others have nothing to do
    IF NOT pg_try_advisory_xact_lock(hashtext('scheduler.take_alerts')) THEN
        RETURN;
    END IF;
    -- whether something changed since it was told last
    INSERT INTO scheduler.alert (workflow, code, event, text, fix, again_at)
    SELECT workflow, code, CASE WHEN n.text IS NULL THEN 'cleared' ELSE 'raised' END,
           coalesce(n.text, format('%s: %s is over', workflow, replace(code, '_', ' '))), coalesce(n.fix, ''), now()
    FROM scheduler._alerting AS n
    FULL JOIN (SELECT DISTINCT ON (a.workflow, a.code) a.workflow, a.code, a.event FROM scheduler.alert AS a ORDER BY a.workflow, a.code, a.id DESC) AS told
        USING (workflow, code)
    WHERE CASE WHEN n.text IS NULL THEN told.event = 'raised' ELSE told.event IS DISTINCT FROM 'raised' END;
    DELETE FROM scheduler.alert AS a WHERE a.at < now() - interval '30 days' AND a.again_at IS NULL
        AND EXISTS (SELECT FROM scheduler.alert AS later WHERE later.workflow = a.workflow AND later.code = a.code AND later.id > a.id);
    -- whoever takes one has a minute to say that it arrived; then another may try
    RETURN QUERY
        WITH taken AS (
            UPDATE scheduler.alert AS a
            SET tries = a.tries + 1, again_at = CASE WHEN a.tries < 4 THEN now() + interval '1 minute' * power(2, a.tries) END
            WHERE a.again_at <= now()
            RETURNING a.id, a.at, a.workflow, a.code, a.event, a.text, a.fix
        ) SELECT * FROM taken ORDER BY 1;
END
$$;
COMMENT ON FUNCTION scheduler.take_alerts() IS 'For a listener with a webhook: what changed (breaker open, dead letters rising, schedule late; raised or cleared) and has not been told. Each change is given out once; again after a minute, up to five times, unless alert_sent() says that it arrived.';

CREATE OR REPLACE FUNCTION scheduler.alert_sent(id bigint) RETURNS void
LANGUAGE sql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $$ UPDATE scheduler.alert AS a SET sent_at = now(), again_at = NULL WHERE a.id = alert_sent.id $$;
COMMENT ON FUNCTION scheduler.alert_sent(bigint) IS 'The webhook has taken this alert; see take_alerts().';
