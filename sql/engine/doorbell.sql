-- The doorbell: one channel for everything, the workflow's name as a hint. Losing it costs latency, never work.

CREATE OR REPLACE FUNCTION scheduler._ring(workflow text) RETURNS void
LANGUAGE sql
SET search_path = pg_catalog, pg_temp
AS $$ SELECT pg_notify('scrapersky', workflow) $$;
COMMENT ON FUNCTION scheduler._ring(text) IS 'Internal: wakes the listeners of a workflow.';

CREATE OR REPLACE FUNCTION scheduler.doorbell() RETURNS trigger
LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
    -- fires once for each row that became Queued (see the WHEN clauses); the server folds equal notifications of a transaction
    PERFORM pg_notify('scrapersky', TG_ARGV[0]);
    RETURN NULL;
END
$$;
COMMENT ON FUNCTION scheduler.doorbell() IS 'Trigger: rings when a row becomes Queued. Put on the table by create_workflow(doorbell => ''commit'').';
