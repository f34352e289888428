-- pg_cron, reached through four functions that its job owner, scheduler_cron, owns. They take a workflow's name and
-- never a command, so nobody can make pg_cron run something else with them. Where pg_cron is missing they do nothing.

CREATE OR REPLACE FUNCTION scheduler.cron_home() RETURNS text
LANGUAGE sql STABLE SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $$
    SELECT CASE WHEN EXISTS (SELECT FROM pg_catalog.pg_extension WHERE extname = 'pg_cron') THEN 'here'
                WHEN scheduler._setting('cron.database_name') IS NOT NULL THEN 'elsewhere'
                ELSE 'missing' END
$$;
COMMENT ON FUNCTION scheduler.cron_home() IS 'Where pg_cron is: here (in this database), elsewhere (in another database of this server), or missing.';

CREATE OR REPLACE FUNCTION scheduler._cron_command(workflow text) RETURNS text
LANGUAGE sql IMMUTABLE
SET search_path = pg_catalog, pg_temp
AS $$
    SELECT CASE WHEN workflow = 'maintain' THEN 'SELECT scheduler.maintain(clock => ''pg_cron'')'
                ELSE format('SELECT scheduler.dispatch(%L, clock => ''pg_cron'')', workflow) END
$$;
COMMENT ON FUNCTION scheduler._cron_command(text) IS 'Internal: what the pg_cron job of a workflow runs.';

CREATE OR REPLACE FUNCTION scheduler._cron_jobs()
RETURNS TABLE (workflow text, job bigint, schedule text, command text, active boolean, last_status text, last_message text, last_start timestamptz, last_end timestamptz)
LANGUAGE plpgsql STABLE SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
    IF scheduler.cron_home() <> 'here' THEN
        RETURN;
    END IF;
    -- dynamic, because the tables may not exist when this function is created; row security shows only our own jobs
    RETURN QUERY EXECUTE $query$
        SELECT substr(j.jobname, 12)::text, j.jobid, j.schedule, j.command, j.active,
               d.status, d.return_message, d.start_time, d.end_time
        FROM cron.job AS j
        LEFT JOIN (
            SELECT DISTINCT ON (r.jobid) r.jobid, r.status, r.return_message, r.start_time, r.end_time
            FROM cron.job_run_details AS r
            WHERE r.runid > (SELECT max(runid) FROM cron.job_run_details) - 20000
            ORDER BY r.jobid, r.runid DESC
        ) AS d ON d.jobid = j.jobid
        WHERE j.jobname LIKE 'scrapersky:%' AND j.username = 'scheduler_cron' AND j.database = current_database()
    $query$;
END
$$;
COMMENT ON FUNCTION scheduler._cron_jobs() IS 'Internal: our pg_cron jobs with the result of their last run.';

CREATE OR REPLACE FUNCTION scheduler._cron_drop(workflow text) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
    IF scheduler.cron_home() = 'here' THEN
        -- by id: by name, pg_cron sees only one of several jobs of that name
        EXECUTE 'SELECT count(cron.unschedule(jobid)) FROM cron.job WHERE jobname = $1 AND username = ''scheduler_cron'' AND database = current_database()'
            USING 'scrapersky:' || _cron_drop.workflow;
    END IF;
END
$$;
COMMENT ON FUNCTION scheduler._cron_drop(text) IS 'Internal: removes the pg_cron job of a workflow.';

CREATE OR REPLACE FUNCTION scheduler._cron_put(workflow text, schedule text) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
    IF schedule IS NULL THEN
        PERFORM scheduler._cron_drop(_cron_put.workflow);
    ELSIF scheduler.cron_home() = 'here' THEN
        PERFORM scheduler._check_name(_cron_put.workflow);
        EXECUTE 'SELECT cron.schedule($1, $2, $3)'
            USING 'scrapersky:' || _cron_put.workflow, _cron_put.schedule, scheduler._cron_command(_cron_put.workflow);
    END IF;
END
$$;
COMMENT ON FUNCTION scheduler._cron_put(text, text) IS 'Internal: creates or changes the pg_cron job of a workflow, in the caller''s transaction.';

CREATE OR REPLACE FUNCTION scheduler._cron_prune(keep interval) RETURNS bigint
LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    gone bigint := 0;
BEGIN
    IF scheduler.cron_home() = 'here' THEN
        -- a bounded bite a minute; row security leaves other people's history alone; a run cut off by a crash has no end
        EXECUTE 'DELETE FROM cron.job_run_details WHERE runid IN (SELECT runid FROM cron.job_run_details WHERE coalesce(end_time, start_time) < now() - $1 ORDER BY runid LIMIT 5000)' USING keep;
        GET DIAGNOSTICS gone = ROW_COUNT;
    END IF;
    RETURN gone;
END
$$;
COMMENT ON FUNCTION scheduler._cron_prune(interval) IS 'Internal: forgets old rows of cron.job_run_details of our jobs, which pg_cron itself never does.';

CREATE OR REPLACE FUNCTION scheduler.sync_cron() RETURNS integer
LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    w record;
    changed integer := 0;
BEGIN
    IF scheduler.cron_home() <> 'here' THEN
        RETURN 0;
    END IF;
    FOR w IN
        SELECT coalesce(s.name, j.workflow) AS name, s.schedule
        FROM (SELECT x.name, x.schedule FROM scheduler.workflow AS x WHERE x.schedule IS NOT NULL
              UNION ALL SELECT 'maintain', '* * * * *') AS s
        FULL JOIN scheduler._cron_jobs() AS j ON j.workflow = s.name
        WHERE s.schedule IS DISTINCT FROM j.schedule OR j.command IS DISTINCT FROM scheduler._cron_command(s.name)
    LOOP
        PERFORM scheduler._cron_put(w.name, w.schedule);
        changed := changed + 1;
    END LOOP;
    RETURN changed;
END
$$;
COMMENT ON FUNCTION scheduler.sync_cron() IS 'Makes the pg_cron jobs match the registered schedules, after a restore or after pg_cron was added; returns how many it changed.';
