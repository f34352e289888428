-- What the doctor looks at: pg_cron, each workflow and its table, the server, the listeners. One function a patient,
-- all with the same columns: severity, code (a stable name), workflow, finding, meaning, fix. A fix is SQL that can be
-- run as it stands; where no SQL helps it is a comment that says what does.

CREATE OR REPLACE FUNCTION scheduler._threshold(name text, fallback text) RETURNS text
LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp
AS $$ SELECT coalesce(nullif(current_setting('scheduler.' || name, true), ''), fallback) $$;
COMMENT ON FUNCTION scheduler._threshold(text, text) IS 'Internal: a limit of the doctor; change it with SET, or for good: ALTER DATABASE … SET scheduler.long_transaction = ''1 hour''.';

CREATE OR REPLACE FUNCTION scheduler._index_missing(w scheduler.workflow, kind text) RETURNS boolean
-- plpgsql, here and below, because it keeps its plan: the doctor asks for each workflow
LANGUAGE plpgsql STABLE
SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
    RETURN NOT EXISTS (SELECT FROM pg_catalog.pg_index AS i JOIN pg_catalog.pg_class AS c ON c.oid = i.indexrelid
                       WHERE i.indrelid = w.relation AND c.relname = format('scheduler_%s_%s', w.name, kind) AND i.indisvalid);
END
$$;
COMMENT ON FUNCTION scheduler._index_missing(scheduler.workflow, text) IS 'Internal: whether one of the workflow''s indexes is missing or invalid.';

CREATE OR REPLACE FUNCTION scheduler._trigger_missing(w scheduler.workflow, kind text) RETURNS boolean
LANGUAGE plpgsql STABLE
SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
    RETURN NOT EXISTS (SELECT FROM pg_catalog.pg_trigger WHERE tgrelid = w.relation AND tgenabled <> 'D' AND tgname = format('scheduler_%s_%s', w.name, kind));
END
$$;
COMMENT ON FUNCTION scheduler._trigger_missing(scheduler.workflow, text) IS 'Internal: whether one of the workflow''s triggers is missing or disabled.';

CREATE OR REPLACE FUNCTION scheduler._examine_table(w scheduler.workflow) RETURNS TABLE (severity text, code text, workflow text, finding text, meaning text, fix text)
LANGUAGE plpgsql STABLE
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    repair CONSTANT text := format('SELECT scheduler.repair_workflow(%L);', w.name);
    remove CONSTANT text := format('SELECT scheduler.drop_workflow(%L, force => true);', w.name);
    wanted text;
    registered_as text := (SELECT a.detail ->> 'table' FROM scheduler.audit AS a WHERE a.action = 'create_workflow' AND a.workflow = w.name ORDER BY a.id DESC LIMIT 1);
BEGIN
    IF NOT EXISTS (SELECT FROM pg_catalog.pg_class WHERE oid = w.relation) THEN
        RETURN QUERY SELECT 'error', 'table_dropped', w.name, coalesce(format('its table, registered as %s, has been dropped', registered_as), 'its table has been dropped'),
                            'It can neither queue nor run anything. Remove the workflow; if the table came back, register it again with create_workflow().', remove;
        RETURN;
    END IF;
    FOREACH wanted IN ARRAY array_remove(ARRAY[w.key_column, w.status_column, w.error_column, w.priority_column, w.age_column]::text[], NULL) LOOP
        IF NOT EXISTS (SELECT FROM pg_catalog.pg_attribute WHERE attrelid = w.relation AND attname = wanted AND NOT attisdropped) THEN
            RETURN QUERY SELECT 'error', 'column_gone', w.name, format('column %I of %s is gone or was renamed', wanted, w.relation),
                                'It can neither queue nor run anything. Rename the column back, or remove the workflow and register it again with the new name.', remove;
            RETURN;
        END IF;
    END LOOP;
    IF to_regclass(registered_as) <> w.relation THEN
        RETURN QUERY SELECT 'warning', 'table_renamed', w.name, format('its table was renamed from %s to %s, and there is a new %1$s', registered_as, w.relation),
                            'The workflow follows the table it was registered on, so rows of the new one are not worked on. Remove it here and register it on the new table.', remove;
    END IF;
    FOR wanted IN
        SELECT format('column %I of %s is %s now and was %s', a.attname, w.relation, scheduler._base_type(a.atttypid), CASE a.attname WHEN w.key_column THEN w.key_type ELSE w.status_type END)
        FROM pg_catalog.pg_attribute AS a
        WHERE a.attrelid = w.relation AND (a.attname = w.key_column AND a.atttypid <> w.key_type AND scheduler._base_type(a.atttypid) <> w.key_type
               OR a.attname = w.status_column AND a.atttypid <> w.status_type AND scheduler._base_type(a.atttypid) <> w.status_type)
    LOOP
        RETURN QUERY SELECT 'error', 'type_changed', w.name, wanted, 'The engine still writes its values as of the type it was registered with, which fails now or with the first value that does not fit. Remove the workflow and register it again; the rows stay.', remove;
    END LOOP;
    FOR wanted IN
        SELECT v.word FROM unnest(ARRAY[w.queued, w.processing, w.completed, w.failed, w.idle]) AS v (word)
        WHERE EXISTS (SELECT FROM pg_catalog.pg_enum WHERE enumtypid = w.status_type) AND v.word IS NOT NULL
          AND NOT EXISTS (SELECT FROM pg_catalog.pg_enum WHERE enumtypid = w.status_type AND enumlabel = v.word)
    LOOP
        RETURN QUERY SELECT 'error', 'word_gone', w.name, format('type %s has no value %L any more', w.status_type, wanted),
                            'It can neither queue nor run anything. Rename the value back (ALTER TYPE … RENAME VALUE), or remove the workflow and register it again with the new word.', remove;
    END LOOP;
    IF scheduler._index_missing(w, 'queued') THEN
        RETURN QUERY SELECT 'error', 'index_missing', w.name, 'the index of its queue is missing or invalid', 'Each claim reads the whole table.', repair;
    END IF;
    IF scheduler._key_needs_index(w) AND scheduler._index_missing(w, 'key') THEN
        RETURN QUERY SELECT 'error', 'index_missing', w.name, 'the index of its keys as text is missing or invalid', 'Each result reads the whole table.', repair;
    END IF;
    IF w.ready IS NOT NULL AND scheduler._index_missing(w, 'ready') THEN
        RETURN QUERY SELECT 'info', 'ready_unindexed', w.name, 'no index serves its ready predicate',
                            'Each dispatch may search the table. If this repair does not help, the predicate has a changing value such as now(): give the table an index that fits the rest of it.', repair;
    END IF;
    IF w.doorbell = 'commit' AND (scheduler._trigger_missing(w, 'insert') OR scheduler._trigger_missing(w, 'update')) THEN
        RETURN QUERY SELECT 'warning', 'trigger_missing', w.name, 'a trigger of its doorbell is missing or disabled', 'Rows queued by applications wait for the next poll.', repair;
    END IF;
    IF w.processing IS NOT NULL AND (scheduler._trigger_missing(w, 'takeover') OR scheduler._trigger_missing(w, 'delete') OR scheduler._trigger_missing(w, 'truncate')) THEN
        RETURN QUERY SELECT 'warning', 'trigger_missing', w.name, 'a trigger that notices a person''s write to a running item is missing or disabled',
                            'A result may be written over what a person decided meanwhile.', repair;
    END IF;
    RETURN QUERY
        SELECT 'error', 'grant_missing', w.name, format('the engine lacks %s', string_agg(g.item, ', ' ORDER BY g.item)), format('It cannot work on %s.', w.relation), repair
        FROM scheduler._grants(w) AS g WHERE NOT g.held HAVING count(*) > 0;
    IF scheduler._rows_hidden(w.relation) THEN
        RETURN QUERY SELECT 'error', 'rows_hidden', w.name, format('row security of %s hides its rows from the engine', w.relation), 'What the engine cannot see is never worked on.',
                            format('CREATE POLICY scrapersky ON %s TO scheduler_owner, scheduler_listener USING (true);', w.relation);
    END IF;
END
$$;
COMMENT ON FUNCTION scheduler._examine_table(scheduler.workflow) IS 'Internal: what is wrong between a workflow and its table.';

CREATE OR REPLACE FUNCTION scheduler._examine_vacuum(w scheduler.workflow) RETURNS TABLE (severity text, code text, workflow text, finding text, meaning text, fix text)
LANGUAGE plpgsql STABLE SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
    RETURN QUERY
    WITH leaf AS (
        -- rows live in the partitions of a partitioned table
        SELECT c.oid::regclass AS name, c.reltuples, coalesce(o.enabled, 'true')::boolean AS vacuumed,
               coalesce(o.scale, current_setting('autovacuum_vacuum_scale_factor'))::double precision AS scale, pg_catalog.pg_stat_get_live_tuples(c.oid) AS live, pg_catalog.pg_stat_get_dead_tuples(c.oid) AS dead
        FROM (SELECT w.relation AS id UNION SELECT p.relid FROM pg_catalog.pg_partition_tree(w.relation) AS p) AS t
        JOIN pg_catalog.pg_class AS c ON c.oid = t.id AND c.relkind = 'r'
        CROSS JOIN LATERAL (SELECT max(x.option_value) FILTER (WHERE x.option_name = 'autovacuum_enabled') AS enabled,
                                   max(x.option_value) FILTER (WHERE x.option_name = 'autovacuum_vacuum_scale_factor') AS scale
                            FROM pg_catalog.pg_options_to_table(c.reloptions) AS x) AS o
    )
    SELECT 'warning', 'dead_tuples', w.name, format('%s has %s dead rows beside %s live ones', l.name, l.dead, l.live),
           'Claims and dispatches wade through them. Vacuum now; if they come back, look for a long transaction.', format('VACUUM (ANALYZE) %s;', l.name)
    FROM leaf AS l WHERE l.dead > 10000 AND l.dead > l.live / 4
    UNION ALL
    SELECT 'warning', 'autovacuum_off', w.name, format('autovacuum is switched off for %s', l.name), 'Dead rows of the queue are never cleaned up.', format('ALTER TABLE %s RESET (autovacuum_enabled);', l.name)
    FROM leaf AS l WHERE NOT l.vacuumed
    UNION ALL
    SELECT 'info', 'autovacuum_late', w.name, format('%s has about %s rows, and autovacuum comes after %s of them are dead', l.name, round(l.reltuples::numeric, -3), round((l.reltuples * l.scale)::numeric, -3)),
           'Each item leaves two dead rows, so the queue is slow long before that.', format('ALTER TABLE %s SET (autovacuum_vacuum_scale_factor = 0.01);', l.name)
    FROM leaf AS l WHERE l.vacuumed AND l.reltuples > 1000000 AND l.scale > 0.05;
END
$$;
COMMENT ON FUNCTION scheduler._examine_vacuum(scheduler.workflow) IS 'Internal: dead rows of a workflow''s table, and whether autovacuum will clean them up in time.';

CREATE OR REPLACE FUNCTION scheduler._launcher_lives() RETURNS boolean
LANGUAGE sql STABLE SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $$ SELECT EXISTS (SELECT FROM pg_catalog.pg_stat_activity WHERE backend_type = 'pg_cron launcher' OR application_name LIKE 'pg_cron%') $$;
COMMENT ON FUNCTION scheduler._launcher_lives() IS 'Internal: whether the background process of pg_cron runs.';

CREATE OR REPLACE FUNCTION scheduler._examine_cron() RETURNS TABLE (severity text, code text, workflow text, finding text, meaning text, fix text)
LANGUAGE plpgsql STABLE
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    home text := scheduler.cron_home();
BEGIN
    IF home = 'missing' THEN
        RETURN QUERY SELECT 'info', 'cron_missing', NULL, 'pg_cron is not loaded', 'Listeners are the clock: while none runs, nothing is dispatched.',
            format('-- install the package of pg_cron for this server; then: ALTER SYSTEM SET shared_preload_libraries = ''pg_cron''; ALTER SYSTEM SET cron.database_name = %L; restart; CREATE EXTENSION pg_cron; GRANT USAGE ON SCHEMA cron TO scheduler_cron; SELECT scheduler.sync_cron();', current_database());
    ELSIF home = 'elsewhere' AND NOT scheduler.cron_alive() THEN
        RETURN QUERY SELECT 'warning', 'cron_elsewhere', NULL, 'pg_cron lives in another database and does not call this one', 'Listeners are the clock: while none runs, nothing is dispatched.',
            format('-- in database %s, as a superuser: SELECT cron.schedule_in_database(%L, ''* * * * *'', ''SELECT scheduler.tick(''''pg_cron'''')'', %L, ''scheduler_cron'');',
                   coalesce(scheduler._setting('cron.database_name'), 'of pg_cron'), 'scrapersky:tick:' || current_database(), current_database());
    END IF;
    IF home <> 'here' THEN
        RETURN;
    END IF;
    IF NOT scheduler._launcher_lives() THEN
        RETURN QUERY SELECT 'error', 'launcher_missing', NULL, 'pg_cron''s launcher does not run', 'It fires nothing; listeners take over while one runs. pg_cron before 1.5 does not come back by itself.',
                            '-- no SQL can: restart the server';
    ELSIF NOT scheduler.cron_alive() AND (SELECT c.maintained_at < now() - interval '150 seconds' FROM scheduler.control AS c) THEN
        RETURN QUERY SELECT 'warning', 'cron_silent', NULL, 'pg_cron has not been heard for more than two minutes', 'Listeners take over while one runs. See cron_message in scheduler.schedules, then the server log.',
                            'SELECT scheduler.sync_cron(); SELECT scheduler.maintain();';
    END IF;
    RETURN QUERY
        SELECT 'error', CASE WHEN j.job IS NULL THEN 'job_missing' ELSE 'job_changed' END, w.name,
               CASE WHEN j.job IS NULL THEN 'its pg_cron job is missing' ELSE format('its pg_cron job was changed: it runs %s at %s', j.command, j.schedule) END,
               'It does not fire when its schedule says, but only when maintain() or a listener makes up for it.', 'SELECT scheduler.sync_cron();'
        FROM (SELECT x.name, x.schedule FROM scheduler.workflow AS x WHERE x.schedule IS NOT NULL UNION ALL SELECT 'maintain', '* * * * *') AS w
        LEFT JOIN scheduler._cron_jobs() AS j ON j.workflow = w.name
        WHERE j.job IS NULL OR j.schedule <> w.schedule OR j.command <> scheduler._cron_command(w.name)
        UNION ALL
        SELECT 'warning', 'job_off', j.workflow, 'its pg_cron job is switched off', 'Nobody fires its schedule; this is respected by listeners too.', format('UPDATE cron.job SET active = true WHERE jobid = %s;', j.job)
        FROM scheduler._cron_jobs() AS j WHERE NOT j.active
        UNION ALL
        SELECT 'warning', 'job_failed', j.workflow, 'the last firing of its pg_cron job failed: ' || coalesce(j.last_message, '?'), 'A slot may be late; the next firing makes it up.', 'SELECT scheduler.maintain();'
        FROM scheduler._cron_jobs() AS j WHERE j.last_status = 'failed' AND j.last_start > now() - interval '1 day';
    -- other people's jobs are visible to a superuser only; a job of a dropped role stops every job of the server
    IF has_schema_privilege('cron', 'USAGE') THEN
        RETURN QUERY EXECUTE $q$
            SELECT 'error', 'job_orphaned', NULL::text, format('pg_cron job %s belongs to role %I, which does not exist', j.jobid, j.username),
                   'pg_cron crashes each second and no job of anybody runs.', format('DELETE FROM cron.job WHERE jobid = %s;', j.jobid)
            FROM cron.job AS j WHERE NOT EXISTS (SELECT FROM pg_catalog.pg_roles AS r WHERE r.rolname = j.username)
        $q$;
    END IF;
END
$$;
COMMENT ON FUNCTION scheduler._examine_cron() IS 'Internal: what is wrong with pg_cron and our jobs.';

CREATE OR REPLACE FUNCTION scheduler._examine_server() RETURNS TABLE (severity text, code text, workflow text, finding text, meaning text, fix text)
LANGUAGE plpgsql STABLE SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
    RETURN QUERY
        SELECT 'warning', 'old_transaction', NULL::text, format('%s has had a transaction open since %s', scheduler._session(a.pid), date_trunc('second', a.xact_start)),
               'It is the oldest that holds back vacuum: dead rows pile up in every queue until it ends.', format('SELECT pg_terminate_backend(%s);', a.pid)
        FROM pg_catalog.pg_stat_activity AS a
        WHERE a.xact_start < now() - scheduler._threshold('long_transaction', '10 minutes')::interval AND a.backend_type = 'client backend' AND a.pid <> pg_backend_pid()
          AND (a.backend_xmin IS NOT NULL OR a.backend_xid IS NOT NULL)
        ORDER BY greatest(age(a.backend_xmin), age(a.backend_xid)) DESC LIMIT 1;
    -- no session shows these, and they survive a restart
    RETURN QUERY
        SELECT 'warning', 'prepared_transaction', NULL::text, format('transaction %L, prepared by %s in database %s, is neither committed nor rolled back since %s', p.gid, p.owner, p.database, date_trunc('second', p.prepared)),
               'Until it is, it holds its locks and holds back vacuum: dead rows pile up in every queue. Commit it if its transaction manager says so; else, in its database:',
               format('ROLLBACK PREPARED %L;', p.gid)
        FROM pg_catalog.pg_prepared_xacts AS p
        WHERE p.prepared < now() - scheduler._threshold('long_transaction', '10 minutes')::interval;
    IF current_setting('autovacuum') = 'off' THEN
        RETURN QUERY SELECT 'warning', 'autovacuum_off', NULL::text, 'autovacuum is switched off in the whole server', 'Dead rows are never cleaned up.', E'ALTER SYSTEM RESET autovacuum;\nSELECT pg_reload_conf();';
    END IF;
    IF pg_notification_queue_usage() > scheduler._threshold('notify_queue', '0.1')::double precision THEN
        -- the server does not tell who listens; whoever neither reads nor ends its transaction is the likely one
        RETURN QUERY
            SELECT 'warning', 'notify_queue', NULL::text, format('the notification queue is %s %% full', round((100 * pg_notification_queue_usage())::numeric, 3)),
                   'A listening session does not read. When the queue is full, every commit that rings fails.' || coalesce(' The likely one is ' || scheduler._session(a.pid) || '.', ''),
                   coalesce(format('SELECT pg_terminate_backend(%s);', a.pid), '-- SELECT pid, state, wait_event, query FROM pg_stat_activity; then pg_terminate_backend() of the one that listens and does not read')
            FROM (SELECT) AS one
            LEFT JOIN LATERAL (SELECT x.pid FROM pg_catalog.pg_stat_activity AS x
                               WHERE x.datname = current_database() AND x.backend_type = 'client backend' AND x.pid <> pg_backend_pid()
                                 AND (x.state LIKE 'idle in transaction%' OR x.wait_event = 'ClientWrite')
                               ORDER BY coalesce(x.xact_start, x.state_change) LIMIT 1) AS a ON true;
    END IF;
END
$$;
COMMENT ON FUNCTION scheduler._examine_server() IS 'Internal: what in the server harms every queue: old transactions, no vacuum, a full notification queue.';

CREATE OR REPLACE FUNCTION scheduler._examine_listeners() RETURNS TABLE (severity text, code text, workflow text, finding text, meaning text, fix text)
LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp
AS $$
    WITH alive AS (
        SELECT l.* FROM scheduler.listener AS l WHERE l.stopped_at IS NULL AND l.seen_at > now() - interval '1 minute'
    )
    SELECT 'warning', 'listener_gone', NULL::text, format('listener %s on %s (process %s) was last heard at %s', l.id, coalesce(l.host, '?'), coalesce(l.pid::text, '?'), date_trunc('second', l.seen_at)),
           'It was killed or cut off without a goodbye. Its items are rescued when their lease ends; this forgets it if it is gone for good.', format('SELECT * FROM scheduler.heartbeat(%L, stopped => true);', l.id)
    FROM scheduler.listener AS l WHERE l.stopped_at IS NULL AND l.seen_at <= now() - interval '1 minute'
    UNION ALL
    SELECT 'warning', 'listener_version', NULL, format('listener %s on %s (process %s) runs version %s, others run %s', l.id, coalesce(l.host, '?'), coalesce(l.pid::text, '?'), l.version, n.version),
           'Two versions of the code work on the same rows. Fine during a deploy, not for long.', format('-- no SQL can: restart it with version %s, as in kill -TERM %s on %s', n.version, l.pid, l.host)
    FROM alive AS l JOIN LATERAL (SELECT a.version FROM alive AS a WHERE a.version IS NOT NULL ORDER BY a.started_at DESC, a.id LIMIT 1) AS n ON n.version <> l.version
    UNION ALL
    SELECT 'warning', 'no_function', w.name, 'no listener that is alive has a function for it',
           'Its items stay Queued. Install the package that brings it where a listener runs and restart that; or pause it until then.', format('SELECT scheduler.pause(%L, ''no function installed'');', w.name)
    FROM scheduler.workflow AS w
    WHERE EXISTS (SELECT FROM alive) AND NOT scheduler._listened(w.name) AND w.paused_at IS NULL
      -- one that has it and cannot use it says more
      AND NOT EXISTS (SELECT FROM alive AS l WHERE l.detail -> 'problems' ? w.name)
    UNION ALL
    SELECT 'warning', 'listener_problem', p.key, format('the listener on %s (process %s) cannot work on it', l.host, l.pid), p.value, '-- no SQL can: put right what it says, in its code or its environment'
    FROM alive AS l, jsonb_each_text(CASE WHEN jsonb_typeof(l.detail -> 'problems') = 'object' THEN l.detail -> 'problems' ELSE '{}' END) AS p
$$;
COMMENT ON FUNCTION scheduler._examine_listeners() IS 'Internal: listeners that vanished, run another version or lack a workflow''s function.';

CREATE OR REPLACE FUNCTION scheduler._examine_environment(environment jsonb) RETURNS TABLE (severity text, code text, workflow text, finding text, meaning text, fix text)
LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp
AS $$
    SELECT 'warning', 'stale_setting', w.name, format('the environment says %s = %s, the database %s', s.key, s.value, coalesce(to_jsonb(w) ->> s.key, 'NULL')),
           'The variable only seeded the first registration; the database decides now. Take the value over, or remove the variable.',
           format('SELECT scheduler.alter_workflow(%L, %I => %L);', w.name, s.key, s.value)
    FROM jsonb_each(environment) AS e
    JOIN scheduler.workflow AS w ON w.name = e.key
    CROSS JOIN LATERAL jsonb_each_text(e.value) AS s
    WHERE s.key IN ('schedule', 'batch_size', 'max_instances') AND s.value IS DISTINCT FROM to_jsonb(w) ->> s.key AND s.value IS NOT NULL
$$;
COMMENT ON FUNCTION scheduler._examine_environment(jsonb) IS 'Internal: settings an environment still carries that are no longer those in force.';
