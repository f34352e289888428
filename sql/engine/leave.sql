-- Before the engine is removed: takes every workflow off its table (triggers, indexes, grants) and every job out of pg_cron.

DO $$
DECLARE
    registered text[];
    workflow text;
BEGIN
    IF to_regclass('scheduler.workflow') IS NULL THEN
        RETURN;
    END IF;
    SELECT array_agg(w.name ORDER BY w.name) INTO registered FROM scheduler.workflow AS w;
    IF to_regprocedure('scheduler.drop_workflow(text, boolean)') IS NULL THEN
        IF registered IS NOT NULL THEN
            RAISE EXCEPTION 'the workflows % cannot be taken off their tables: the functions of the engine are missing', array_to_string(registered, ', ')
                USING ERRCODE = 'object_not_in_prerequisite_state', HINT = 'Install them with: scrapersky migrate (or: alembic upgrade head). Then again.';
        END IF;
        RETURN;
    END IF;
    FOREACH workflow IN ARRAY coalesce(registered, '{}') LOOP
        PERFORM scheduler.drop_workflow(workflow, force => true);
    END LOOP;
    -- what is left is the engine's own upkeep
    PERFORM scheduler._cron_drop(j.workflow) FROM scheduler._cron_jobs() AS j;
END
$$;
