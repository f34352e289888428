-- How deep the queues are, without ever reading a whole business table.

CREATE OR REPLACE FUNCTION scheduler._depth(name text, OUT queued bigint, OUT exact boolean, OUT oldest_queued_at timestamptz, OUT problem text) RETURNS record
-- one workflow a call, so that who asks the views for one of them pays for no other
LANGUAGE plpgsql STABLE SECURITY DEFINER
COST 10000
SET search_path = pg_catalog, pg_temp
-- a table that someone has locked must not hide the others
SET lock_timeout = '1s'
AS $$
DECLARE
    w scheduler.workflow;
    counted_upto CONSTANT integer := 10000;
    age text;
BEGIN
    w := scheduler._live(name);
    queued := scheduler._count_queued(w, counted_upto);
    exact := queued < counted_upto;
    IF NOT exact THEN
        -- beyond that, what the server knows of the index over the Queued rows; autovacuum keeps it fresh
        SELECT greatest(queued, sum(i.reltuples)::bigint) INTO queued
        FROM pg_catalog.pg_inherits AS h RIGHT JOIN pg_catalog.pg_class AS root ON root.oid = h.inhparent
        JOIN pg_catalog.pg_class AS i ON i.oid = coalesce(h.inhrelid, root.oid)
        WHERE root.relname = 'scheduler_' || w.name || '_queued'
          AND EXISTS (SELECT FROM pg_catalog.pg_index AS x WHERE x.indexrelid = root.oid AND x.indrelid = w.relation);
    END IF;
    IF queued > 0 AND w.age_column IS NOT NULL AND (SELECT atttypid IN ('timestamptz'::regtype, 'timestamp'::regtype) FROM pg_catalog.pg_attribute WHERE attrelid = w.relation AND attname = w.age_column) THEN
        age := format('SELECT t.%I AS at FROM %s AS t WHERE t.%I = %s', w.age_column, w.relation, w.status_column, scheduler._word(w, w.queued));
        -- with the age first in the index one row answers; with a priority before it, a bounded look does
        EXECUTE format('SELECT min(q.at)::timestamptz FROM (%s %s) AS q', age,
                       format('ORDER BY %s LIMIT %s', scheduler._order_sql(w, 't.'), CASE WHEN w.priority_column IS NULL THEN 1 ELSE counted_upto END))
            INTO oldest_queued_at;
    END IF;
EXCEPTION WHEN OTHERS THEN
    -- one broken workflow must not hide the others
    problem := SQLERRM;
END
$$;
COMMENT ON FUNCTION scheduler._depth(text) IS 'Internal: Queued items of a workflow, exact below 10000, else estimated from the index; and since when the oldest waits.';

CREATE OR REPLACE FUNCTION scheduler._listened(workflow text) RETURNS boolean
LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp
AS $$
    SELECT EXISTS (SELECT FROM scheduler.listener AS l WHERE l.stopped_at IS NULL AND l.seen_at > now() - interval '1 minute' AND (l.workflows IS NULL OR _listened.workflow = ANY (l.workflows)))
$$;
COMMENT ON FUNCTION scheduler._listened(text) IS 'Internal: whether a listener that has this workflow''s function is alive.';
