-- Removes the engine's tables. One statement, so that their foreign keys do not matter, and without CASCADE, so that a
-- view or a foreign key of yours on one of them stops it. engine/leave.sql comes before, engine/clean.sql after.

DO $$
DECLARE
    tables text := (
        SELECT string_agg(format('scheduler.%I', relname), ', ') FROM pg_class
        WHERE relnamespace = 'scheduler'::regnamespace AND relkind IN ('r', 'p') AND NOT relispartition AND relname <> 'schema_version'
    );
BEGIN
    IF tables IS NOT NULL THEN
        EXECUTE 'DROP TABLE ' || tables;
    END IF;
END
$$;
