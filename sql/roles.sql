-- Roles. They belong to the whole cluster, so creating them twice is harmless.
--
--   scheduler_owner     owns the schema and its functions; nobody logs in as it
--   scheduler_cron      owns the pg_cron jobs; LOGIN because pg_cron demands it, but it has no password
--   scheduler_admin     registers and operates workflows
--   scheduler_listener  claims and finishes items
--   scheduler_monitor   reads the views
--
-- Give a person or a service one of the last three: GRANT scheduler_admin TO alice;

DO $$
DECLARE
    wanted record;
BEGIN
    FOR wanted IN
        SELECT * FROM (VALUES
            ('scheduler_owner', 'NOLOGIN'),
            ('scheduler_cron', 'LOGIN'),
            ('scheduler_admin', 'NOLOGIN'),
            ('scheduler_listener', 'NOLOGIN'),
            ('scheduler_monitor', 'NOLOGIN')
        ) AS r (name, login)
    LOOP
        IF NOT EXISTS (SELECT FROM pg_catalog.pg_roles WHERE rolname = wanted.name) THEN
            BEGIN
                EXECUTE format('CREATE ROLE %I %s NOSUPERUSER NOCREATEDB NOCREATEROLE', wanted.name, wanted.login);
            EXCEPTION
                -- another database of this cluster is being installed at the same moment
                WHEN duplicate_object OR unique_violation THEN NULL;
                WHEN insufficient_privilege THEN
                    RAISE EXCEPTION 'role % is missing and % may not create roles', wanted.name, current_user
                        USING HINT = format('Ask a superuser to run sql/roles.sql once, or: ALTER ROLE %I CREATEROLE;', current_user);
            END;
        END IF;
    END LOOP;

    -- an admin may do what a monitor may; a listener shows its metrics
    IF NOT pg_catalog.pg_has_role('scheduler_admin', 'scheduler_monitor', 'member') THEN
        GRANT scheduler_monitor TO scheduler_admin;
    END IF;
    IF NOT pg_catalog.pg_has_role('scheduler_listener', 'scheduler_monitor', 'member') THEN
        GRANT scheduler_monitor TO scheduler_listener;
    END IF;

    -- the installing role must be able to hand objects over to their owners
    IF NOT (SELECT rolsuper FROM pg_catalog.pg_roles WHERE rolname = current_user) THEN
        EXECUTE format('GRANT scheduler_owner, scheduler_cron TO %I', current_user);
    END IF;
END
$$;

-- The engine asks where pg_cron is and whether its launcher lives. Without these rights it works, and knows less.
DO $$
BEGIN
    GRANT pg_read_all_settings, pg_read_all_stats TO scheduler_owner;
EXCEPTION
    WHEN insufficient_privilege THEN
        RAISE NOTICE 'scheduler_owner may not read all settings and statistics: %', SQLERRM;
END
$$;

-- A job of pg_cron never waits long for a lock and never runs long: with pg_cron 1.4 one long job delays all the others.
DO $$
BEGIN
    ALTER ROLE scheduler_cron SET statement_timeout = '30s';
    ALTER ROLE scheduler_cron SET lock_timeout = '5s';
    -- also in a database whose default is another: the engine's functions refuse any other
    ALTER ROLE scheduler_cron SET default_transaction_isolation = 'read committed';
EXCEPTION
    WHEN insufficient_privilege THEN
        RAISE NOTICE 'could not change settings of role scheduler_cron: %', SQLERRM;
END
$$;
