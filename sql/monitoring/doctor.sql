-- The doctor: what is wrong or will be, each finding with the SQL that fixes it.

CREATE OR REPLACE FUNCTION scheduler._index_missing(w scheduler.workflow, kind text) RETURNS boolean
LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp
AS $$
    SELECT NOT EXISTS (SELECT FROM pg_catalog.pg_index AS i JOIN pg_catalog.pg_class AS c ON c.oid = i.indexrelid
                       WHERE i.indrelid = w.relation AND c.relname = format('scheduler_%s_%s', w.name, kind) AND i.indisvalid)
$$;
COMMENT ON FUNCTION scheduler._index_missing(scheduler.workflow, text) IS 'Internal: whether one of the workflow''s indexes is missing or invalid.';

CREATE OR REPLACE FUNCTION scheduler._examine(w scheduler.workflow) RETURNS TABLE (severity text, finding text, fix text)
LANGUAGE plpgsql STABLE
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    repair text := format('SELECT scheduler.repair_workflow(%L);', w.name);
    wanted text;
    c pg_catalog.pg_class;
BEGIN
    SELECT * INTO c FROM pg_catalog.pg_class WHERE oid = w.relation;
    IF NOT FOUND THEN
        RETURN QUERY SELECT 'error', 'its table has been dropped', format('SELECT scheduler.drop_workflow(%L, force => true);', w.name);
        RETURN;
    END IF;
    FOREACH wanted IN ARRAY array_remove(ARRAY[w.key_column, w.status_column, w.error_column, w.priority_column, w.age_column]::text[], NULL) LOOP
        IF NOT EXISTS (SELECT FROM pg_catalog.pg_attribute WHERE attrelid = w.relation AND attname = wanted AND NOT attisdropped) THEN
            RETURN QUERY SELECT 'error', format('column %I of %s is gone or was renamed', wanted, w.relation),
                                format('SELECT scheduler.drop_workflow(%L, force => true); then create_workflow() with the new name', w.name);
            RETURN;
        END IF;
    END LOOP;
    IF scheduler._index_missing(w, 'queued') THEN
        RETURN QUERY SELECT 'error', 'the index of its queue is missing or invalid: each claim reads the whole table', repair;
    END IF;
    IF w.ready IS NOT NULL AND scheduler._index_missing(w, 'ready') THEN
        RETURN QUERY SELECT 'info', 'no index serves its ready predicate: each dispatch may search the table',
                            format('keep changing values such as now() out of the predicate (scheduler.alter_workflow(%L, ready => …)), or give the table an index that fits', w.name);
    END IF;
    IF w.doorbell = 'commit' AND (SELECT count(*) FROM pg_catalog.pg_trigger WHERE tgrelid = w.relation AND tgenabled <> 'D' AND tgname IN ('scheduler_' || w.name || '_insert', 'scheduler_' || w.name || '_update')) < 2 THEN
        RETURN QUERY SELECT 'warning', 'its doorbell is missing or disabled: rows queued by applications wait for the next poll', repair;
    END IF;
    IF w.processing IS NOT NULL AND NOT EXISTS (SELECT FROM pg_catalog.pg_trigger WHERE tgrelid = w.relation AND tgenabled <> 'D' AND tgname = 'scheduler_' || w.name || '_takeover') THEN
        RETURN QUERY SELECT 'warning', 'the trigger that notices a person''s write to a running item is missing or disabled', repair;
    END IF;
    IF NOT has_table_privilege('scheduler_owner', w.relation, 'SELECT') OR NOT has_column_privilege('scheduler_owner', w.relation, w.status_column, 'UPDATE')
       OR w.error_column IS NOT NULL AND NOT has_column_privilege('scheduler_owner', w.relation, w.error_column, 'UPDATE') OR NOT has_table_privilege('scheduler_listener', w.relation, 'SELECT') THEN
        RETURN QUERY SELECT 'error', format('the engine has lost rights on %s', w.relation), repair;
    END IF;
    IF c.relrowsecurity AND NOT EXISTS (SELECT FROM pg_catalog.pg_policy WHERE polrelid = w.relation AND 'scheduler_owner'::regrole = ANY (polroles))
       AND NOT EXISTS (SELECT FROM pg_catalog.pg_roles WHERE rolname = 'scheduler_owner' AND rolbypassrls) THEN
        RETURN QUERY SELECT 'error', format('row security of %s hides its rows from the engine', w.relation),
                            format('CREATE POLICY scrapersky ON %s TO scheduler_owner, scheduler_listener USING (true);', w.relation);
    END IF;
END
$$;
COMMENT ON FUNCTION scheduler._examine(scheduler.workflow) IS 'Internal: what is wrong between a workflow and its table.';

CREATE OR REPLACE FUNCTION scheduler._examine_cron() RETURNS TABLE (severity text, workflow text, finding text, fix text)
LANGUAGE plpgsql STABLE
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    home text := scheduler.cron_home();
BEGIN
    IF home = 'missing' THEN
        RETURN QUERY SELECT 'info', NULL, 'pg_cron is not loaded; listeners are the clock',
            'install the package of pg_cron for this server, then: ALTER SYSTEM SET shared_preload_libraries = ''pg_cron''; ALTER SYSTEM SET cron.database_name = ' || quote_literal(current_database()) || '; restart; CREATE EXTENSION pg_cron; GRANT USAGE ON SCHEMA cron TO scheduler_cron; SELECT scheduler.sync_cron();';
    ELSIF home = 'elsewhere' AND NOT scheduler.cron_alive() THEN
        RETURN QUERY SELECT 'warning', NULL, 'pg_cron lives in another database and does not call this one; listeners are the clock',
            format('in database %s, as a superuser: SELECT cron.schedule_in_database(%L, ''* * * * *'', ''SELECT scheduler.tick(''''pg_cron'''')'', %L, ''scheduler_cron'');',
                   coalesce(scheduler._setting('cron.database_name'), 'of pg_cron'), 'scrapersky:tick:' || current_database(), current_database());
    END IF;
    IF home <> 'here' THEN
        RETURN;
    END IF;
    IF NOT scheduler._launcher_lives() THEN
        RETURN QUERY SELECT 'error', NULL, 'pg_cron''s launcher does not run, so nothing is scheduled by it; listeners take over', 'restart the server (pg_cron before 1.5 does not come back by itself)';
    ELSIF NOT scheduler.cron_alive() AND (SELECT c.maintained_at IS NOT NULL FROM scheduler.control AS c) THEN
        RETURN QUERY SELECT 'warning', NULL, 'pg_cron has not been heard for more than two minutes', 'SELECT * FROM scheduler.schedules; see cron_message; then the server log';
    END IF;
    RETURN QUERY
        SELECT 'error', w.name, 'its pg_cron job is missing or differs from its schedule', 'SELECT scheduler.sync_cron();'
        FROM (SELECT x.name, x.schedule FROM scheduler.workflow AS x WHERE x.schedule IS NOT NULL UNION ALL SELECT 'maintain', '* * * * *') AS w
        LEFT JOIN scheduler._cron_jobs() AS j ON j.workflow = w.name
        WHERE j.job IS NULL OR j.schedule <> w.schedule OR j.command <> scheduler._cron_command(w.name)
        UNION ALL
        SELECT 'warning', j.workflow, 'its pg_cron job is switched off', format('UPDATE cron.job SET active = true WHERE jobid = %s;', j.job) FROM scheduler._cron_jobs() AS j WHERE NOT j.active
        UNION ALL
        SELECT 'warning', j.workflow, 'the last firing of its pg_cron job failed: ' || coalesce(j.last_message, '?'), 'SELECT * FROM scheduler.schedules;' FROM scheduler._cron_jobs() AS j WHERE j.last_status = 'failed';
    -- other people's jobs are visible to a superuser only; a job of a dropped role stops every job of the server
    -- without USAGE on its schema even the question would fail
    IF (CASE WHEN has_schema_privilege('cron', 'USAGE') THEN has_table_privilege('cron.job', 'SELECT') END) THEN
        RETURN QUERY EXECUTE $q$
            SELECT 'error', NULL::text, format('pg_cron job %s belongs to role %I, which does not exist: pg_cron crashes each second and no job runs', j.jobid, j.username), format('DELETE FROM cron.job WHERE jobid = %s;', j.jobid)
            FROM cron.job AS j WHERE NOT EXISTS (SELECT FROM pg_catalog.pg_roles AS r WHERE r.rolname = j.username)
        $q$;
    END IF;
END
$$;
COMMENT ON FUNCTION scheduler._examine_cron() IS 'Internal: what is wrong with pg_cron and our jobs.';

CREATE OR REPLACE FUNCTION scheduler._launcher_lives() RETURNS boolean
LANGUAGE sql STABLE SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $$ SELECT EXISTS (SELECT FROM pg_catalog.pg_stat_activity WHERE backend_type = 'pg_cron launcher' OR application_name LIKE 'pg_cron%') $$;
COMMENT ON FUNCTION scheduler._launcher_lives() IS 'Internal: whether the background process of pg_cron runs.';

CREATE OR REPLACE FUNCTION scheduler._oldest_snapshot() RETURNS TABLE (pid integer, usename name, state text, since timestamptz)
LANGUAGE sql STABLE SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $$
    SELECT a.pid, a.usename, a.state, a.xact_start FROM pg_catalog.pg_stat_activity AS a
    WHERE a.xact_start < now() - interval '1 hour' AND a.backend_xmin IS NOT NULL AND a.backend_type = 'client backend' ORDER BY a.xact_start LIMIT 3
$$;
COMMENT ON FUNCTION scheduler._oldest_snapshot() IS 'Internal: transactions open for more than an hour, which keep dead rows from being cleaned up.';

CREATE OR REPLACE FUNCTION scheduler.doctor() RETURNS TABLE (severity text, workflow text, finding text, fix text)
LANGUAGE plpgsql STABLE
SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
    RETURN QUERY
    SELECT d.severity, d.workflow, d.finding, d.fix FROM (
        SELECT * FROM scheduler._examine_cron()
        UNION ALL
        SELECT x.severity, w.name, x.finding, x.fix FROM scheduler.workflow AS w, LATERAL scheduler._examine(w) AS x
        UNION ALL
        SELECT 'error', s.workflow, s.what || coalesce(' since ' || s.since, ''), s.fix FROM scheduler.stuck AS s
        UNION ALL
        SELECT 'error', s.workflow, 'maintenance fails: ' || s.problem, 'SELECT * FROM scheduler.status; the column note has the error' FROM scheduler.state AS s WHERE s.problem IS NOT NULL
        UNION ALL
        SELECT 'warning', s.workflow, 'recent items mostly failed and its breaker is ' || s.breaker_state, format('SELECT * FROM scheduler.errors WHERE workflow = %1$L; when the cause is gone: SELECT scheduler.resume(%1$L);', s.workflow)
        FROM scheduler.state AS s WHERE s.breaker_state <> 'closed'
        UNION ALL
        SELECT 'info', q.workflow, q.dead || ' items are in the dead letter', format('SELECT * FROM scheduler.errors WHERE workflow = %1$L; then: SELECT scheduler.requeue(%1$L);', q.workflow)
        FROM (SELECT a.workflow, count(*) AS dead FROM scheduler.attempt AS a WHERE a.state = 'dead' GROUP BY 1) AS q
        UNION ALL
        SELECT 'warning', NULL, format('session %s of %s has a transaction open since %s, so dead rows pile up in the queues', o.pid, o.usename, o.since), format('SELECT pg_terminate_backend(%s);', o.pid)
        FROM scheduler._oldest_snapshot() AS o
        UNION ALL
        SELECT 'warning', NULL, format('the notification queue is %s %% full: a listening session does not read', round(100 * pg_notification_queue_usage())), 'find it: SELECT pid, query, state, wait_event FROM pg_stat_activity WHERE query ILIKE ''listen%'';'
        WHERE pg_notification_queue_usage() > 0.1
    ) AS d
    ORDER BY array_position(ARRAY['error', 'warning', 'info'], d.severity), d.workflow NULLS FIRST, d.finding;
END
$$;
COMMENT ON FUNCTION scheduler.doctor() IS 'What is wrong or will be, the worst first, each with the SQL that fixes it. Empty when all is well.';

CREATE OR REPLACE FUNCTION scheduler.repair_workflow(name text) RETURNS text
LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    w scheduler.workflow := scheduler._live(name);
    kind text;
BEGIN
    PERFORM scheduler._check_table(w.relation);
    PERFORM scheduler._grant_table(w);
    FOREACH kind IN ARRAY ARRAY['queued', 'ready'] LOOP
        IF scheduler._index_missing(w, kind) THEN
            PERFORM scheduler._drop_index(w, kind);
        END IF;
    END LOOP;
    PERFORM scheduler._build_indexes(w);
    PERFORM scheduler._build_triggers(w);
    PERFORM scheduler.sync_cron();
    RETURN format('grants, indexes, triggers and job of %s are as create_workflow() made them', name);
END
$$;
COMMENT ON FUNCTION scheduler.repair_workflow(text) IS 'Puts grants, indexes, triggers and the pg_cron job of a workflow back, as the owner of its table.';
