-- The schema, and the turn to change it: whoever installs or migrates waits here until nobody else does.

DO $$
BEGIN
    PERFORM pg_advisory_xact_lock(hashtext('scrapersky migrate'));

    IF to_regnamespace('scheduler') IS NULL THEN
        CREATE SCHEMA scheduler;
        COMMENT ON SCHEMA scheduler IS 'ScraperSky: PostgreSQL as the scheduler. Start with SELECT * FROM scheduler.status;';
    -- engine/clean.sql empties the schema, so it must be ours
    ELSIF to_regclass('scheduler.schema_version') IS NULL
          AND (EXISTS (SELECT FROM pg_class WHERE relnamespace = 'scheduler'::regnamespace)
               OR EXISTS (SELECT FROM pg_proc WHERE pronamespace = 'scheduler'::regnamespace)
               OR EXISTS (SELECT FROM pg_type WHERE typnamespace = 'scheduler'::regnamespace)) THEN
        RAISE EXCEPTION 'schema scheduler belongs to something else: it has objects, but no table schema_version'
            USING ERRCODE = 'duplicate_schema', HINT = 'Use another database, or rename that schema: ALTER SCHEMA scheduler RENAME TO ...;';
    END IF;
END
$$;
