-- Who owns what and who may do what. Nothing is granted to PUBLIC.

-- pg_cron, where this is its database and it can be had; elsewhere a listener is the clock
DO $$
BEGIN
    IF NOT EXISTS (SELECT FROM pg_catalog.pg_extension WHERE extname = 'pg_cron')
       AND current_setting('cron.database_name', true) = current_database()
       AND (SELECT rolsuper FROM pg_catalog.pg_roles WHERE rolname = current_user) THEN
        CREATE EXTENSION pg_cron;
    END IF;
    IF EXISTS (SELECT FROM pg_catalog.pg_extension WHERE extname = 'pg_cron') AND NOT has_schema_privilege('scheduler_cron', 'cron', 'USAGE') THEN
        GRANT USAGE ON SCHEMA cron TO scheduler_cron;
    END IF;
END
$$;

DO $$
DECLARE
    thing record;
    cron_functions CONSTANT text[] := '{_cron_jobs,_cron_put,_cron_drop,_cron_prune}';
BEGIN
    -- whoever installs hands everything over; the new owner of an object must be allowed to create in its schema
    ALTER SCHEMA scheduler OWNER TO scheduler_owner;
    GRANT CREATE ON SCHEMA scheduler TO scheduler_cron;
    FOR thing IN
        SELECT CASE c.relkind WHEN 'v' THEN 'VIEW' WHEN 'S' THEN 'SEQUENCE' WHEN 'c' THEN 'TYPE' ELSE 'TABLE' END AS kind, format('scheduler.%I', c.relname) AS name, 'scheduler_owner' AS owner
        FROM pg_catalog.pg_class AS c
        WHERE c.relnamespace = 'scheduler'::regnamespace AND c.relkind IN ('r', 'v', 'S', 'c')
          -- a sequence of an identity column follows its table
          AND NOT EXISTS (SELECT FROM pg_catalog.pg_depend AS d WHERE d.classid = 'pg_class'::regclass AND d.objid = c.oid AND d.deptype IN ('a', 'i') AND d.refclassid = 'pg_class'::regclass)
          AND c.relowner <> 'scheduler_owner'::regrole
        UNION ALL
        SELECT 'ROUTINE', p.oid::regprocedure::text, CASE WHEN p.proname = ANY (cron_functions) THEN 'scheduler_cron' ELSE 'scheduler_owner' END
        FROM pg_catalog.pg_proc AS p WHERE p.pronamespace = 'scheduler'::regnamespace
    LOOP
        EXECUTE format('ALTER %s %s OWNER TO %I', thing.kind, thing.name, thing.owner);
    END LOOP;
    REVOKE CREATE ON SCHEMA scheduler FROM scheduler_cron;
END
$$;

-- where a database is closed to PUBLIC: pg_cron connects as its job's owner, and predicates are tried on a temporary table
DO $$
DECLARE
    g record;
BEGIN
    FOR g IN
        SELECT * FROM (VALUES ('CONNECT', 'scheduler_cron'), ('TEMPORARY', 'scheduler_owner'), ('TEMPORARY', 'scheduler_admin')) AS x (privilege, role)
        WHERE NOT has_database_privilege(x.role, current_database(), x.privilege)
    LOOP
        BEGIN
            EXECUTE format('GRANT %s ON DATABASE %I TO %I', g.privilege, current_database(), g.role);
        EXCEPTION WHEN insufficient_privilege THEN
            RAISE WARNING 'role % lacks % on database %', g.role, g.privilege, current_database()
                USING HINT = format('As its owner: GRANT %s ON DATABASE %I TO %I;', g.privilege, current_database(), g.role);
        END;
    END LOOP;
END
$$;

REVOKE ALL ON SCHEMA scheduler FROM PUBLIC;
REVOKE ALL ON ALL TABLES IN SCHEMA scheduler FROM PUBLIC, scheduler_admin, scheduler_listener, scheduler_monitor;
REVOKE ALL ON ALL FUNCTIONS IN SCHEMA scheduler FROM PUBLIC, scheduler_admin, scheduler_listener, scheduler_monitor, scheduler_cron;
-- not IN SCHEMA: that can only add to what everybody gets by default
ALTER DEFAULT PRIVILEGES FOR ROLE scheduler_owner REVOKE ALL ON FUNCTIONS FROM PUBLIC;

GRANT USAGE ON SCHEMA scheduler TO scheduler_owner, scheduler_cron, scheduler_admin, scheduler_listener, scheduler_monitor;

-- reads everything the engine knows, writes nothing; the pure functions are what the views are made of
GRANT SELECT ON ALL TABLES IN SCHEMA scheduler TO scheduler_monitor;
DO $$
DECLARE
    f record;
    listener_calls CONSTANT text[] := '{claim,claimable,heartbeat,succeed,fail,defer,release,rescue,maintain,tick,dispatch,take_alerts,alert_sent}';
    monitor_calls CONSTANT text[] := '{why,preview,doctor,verify_deploy,_examine_cron,_examine_table,_examine_vacuum,_examine_server,_examine_listeners,_examine_environment,_threshold,_index_missing,_key_needs_index,_rows_hidden,_base_type,_trigger_missing,_launcher_lives,_session,_listened,_grants,_cron_command,_setting,cron_home,cron_alive,cron_next,cron_previous,cron_parse,cron_timezone,_cron_nearest,_cron_field,_cron_day_matches,redact,duration_bucket,histogram_percentile,histogram_add,histogram_sum,_shape,_depth,_cron_jobs}';
    cron_calls CONSTANT text[] := '{dispatch,maintain,tick,cron_home,_setting,_cron_command,_check_name,_cron_drop}';
BEGIN
    FOR f IN SELECT p.oid::regprocedure::text AS name, p.proname FROM pg_catalog.pg_proc AS p WHERE p.pronamespace = 'scheduler'::regnamespace LOOP
        -- the owner's own rights went with those of PUBLIC on what it does not own
        EXECUTE format('GRANT EXECUTE ON ROUTINE %s TO scheduler_owner', f.name);
        -- an admin registers tables with functions that run in his name, so he may call them all; those that reach further check for themselves
        EXECUTE format('GRANT EXECUTE ON ROUTINE %s TO scheduler_admin', f.name);
        IF f.proname = ANY (listener_calls) THEN
            EXECUTE format('GRANT EXECUTE ON ROUTINE %s TO scheduler_listener', f.name);
        END IF;
        IF f.proname = ANY (monitor_calls) THEN
            EXECUTE format('GRANT EXECUTE ON ROUTINE %s TO scheduler_monitor', f.name);
        END IF;
        IF f.proname = ANY (cron_calls) THEN
            EXECUTE format('GRANT EXECUTE ON ROUTINE %s TO scheduler_cron', f.name);
        END IF;
    END LOOP;
END
$$;

-- the job of maintain(), and any that changed with this version
DO $$ BEGIN PERFORM scheduler.sync_cron(); END $$;
