-- The first set-up registers the workflows. Later ones do not: what a DBA has dropped or changed stays so.

DO $$
BEGIN
    IF NOT EXISTS (SELECT FROM scheduler.gate) THEN
        PERFORM scheduler.create_pipeline();
    END IF;
END
$$;
