-- What the triggers on a business table call: the doorbell, and the note that a person's write came first.
-- Business tables depend on these two functions, so an upgrade replaces them in place and never drops them.

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

CREATE OR REPLACE FUNCTION scheduler.taken_over() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    key text;
BEGIN
    IF TG_OP = 'TRUNCATE' THEN
        INSERT INTO scheduler.takeover (workflow, key, upto)
        SELECT r.workflow, k, s.last_value FROM scheduler.run AS r, unnest(r.keys) AS k, scheduler.run_id_seq AS s WHERE r.workflow = TG_ARGV[0] AND r.finished_at IS NULL;
        PERFORM pg_notify('scrapersky', TG_ARGV[0] || '!');
        RETURN NULL;
    END IF;
    BEGIN
        EXECUTE format('SELECT ($1).%I::text', TG_ARGV[1]) INTO key USING OLD;
    EXCEPTION
        -- its key was renamed or dropped: nothing of the workflow is claimed or finished any more, and the writer must not suffer
        WHEN undefined_column THEN
            RAISE WARNING 'workflow % has lost column %, the key of %', TG_ARGV[0], quote_ident(TG_ARGV[1]), TG_RELID::regclass USING HINT = 'SELECT * FROM scheduler.doctor();';
            RETURN NULL;
    END;
    -- run ids only grow, so this number tells the runs that had the item from those that claim it later
    INSERT INTO scheduler.takeover (workflow, key, upto)
    SELECT TG_ARGV[0], key, s.last_value FROM scheduler.run_id_seq AS s;
    PERFORM pg_notify('scrapersky', TG_ARGV[0] || '!');
    RETURN NULL;
END
$$;
COMMENT ON FUNCTION scheduler.taken_over() IS 'Trigger: someone changed the status of a running item, deleted its row or emptied the table, so the run that has it must not finish it any more.';

CREATE OR REPLACE FUNCTION scheduler._ring(workflow text) RETURNS void
LANGUAGE sql
SET search_path = pg_catalog, pg_temp
AS $$ SELECT pg_notify('scrapersky', workflow) $$;
COMMENT ON FUNCTION scheduler._ring(text) IS 'Internal: wakes the listeners of a workflow; with ! at the end, tells those that run its items to look after them.';
