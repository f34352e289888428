-- Reading and moving items: the few statements on business tables that several functions share.

CREATE OR REPLACE FUNCTION scheduler._live(name text) RETURNS scheduler.workflow
LANGUAGE plpgsql STABLE
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    w scheduler.workflow := scheduler._workflow(name);
    secured boolean;
BEGIN
    SELECT c.relrowsecurity INTO secured FROM pg_catalog.pg_class AS c WHERE c.oid = w.relation;
    IF NOT FOUND THEN
        RAISE EXCEPTION 'the table of workflow % has been dropped', w.name
            USING ERRCODE = 'undefined_table', HINT = format('SELECT scheduler.drop_workflow(%L);', w.name);
    END IF;
    -- rows that are only hidden must not be taken for rows that were deleted
    IF secured THEN
        PERFORM scheduler._check_visible(w.relation);
    END IF;
    RETURN w;
END
$$;
COMMENT ON FUNCTION scheduler._live(text) IS 'Internal: a workflow whose table still exists and shows its rows.';

CREATE OR REPLACE FUNCTION scheduler._running_word(w scheduler.workflow) RETURNS text
LANGUAGE sql STABLE
-- no SET: callers pin the path, and without it the planner inlines this (30 µs a call)
AS $$ SELECT scheduler._word(w, coalesce(w.processing, w.queued)) $$;
COMMENT ON FUNCTION scheduler._running_word(scheduler.workflow) IS 'Internal: what the status of a running item must still be; without a processing word it stays queued.';

CREATE OR REPLACE FUNCTION scheduler._count_queued(w scheduler.workflow, most integer) RETURNS integer
LANGUAGE plpgsql STABLE
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    n integer;
BEGIN
    -- ordered, because after a large backlog has been worked off the planner still believes in it and would search the table
    EXECUTE format('SELECT count(*)::integer FROM (SELECT FROM %s WHERE %I = %s ORDER BY %s LIMIT $1) AS q', w.relation, w.status_column, scheduler._word(w, w.queued), scheduler._order_sql(w))
        INTO n USING most;
    RETURN n;
END
$$;
COMMENT ON FUNCTION scheduler._count_queued(scheduler.workflow, integer) IS 'Internal: how many items are Queued, counted no further than most.';

CREATE OR REPLACE FUNCTION scheduler._check_keys(w scheduler.workflow, ids text[]) RETURNS text[]
LANGUAGE plpgsql STABLE
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    canonical text[];
BEGIN
    -- as the row spells it: 1 and 1.00 are one number
    EXECUTE format('SELECT array_agg(DISTINCT coalesce(t.%2$I::text, k::%1$s::text)) FROM unnest($1) AS k LEFT JOIN %3$s AS t ON t.%2$I = k::%1$s WHERE k IS NOT NULL',
                   format_type(w.key_type, -1), w.key_column, w.relation) INTO canonical USING ids;
    RETURN coalesce(canonical, '{}');
EXCEPTION
    WHEN data_exception THEN
        RAISE EXCEPTION 'these are not keys of %: %', w.relation, SQLERRM
            USING ERRCODE = 'invalid_parameter_value', HINT = format('Give values of %I, of type %s.', w.key_column, format_type(w.key_type, -1));
END
$$;
COMMENT ON FUNCTION scheduler._check_keys(scheduler.workflow, text[]) IS 'Internal: keys as the engine writes them, each once; an error if they are not of the key''s type.';

CREATE OR REPLACE FUNCTION scheduler._put_back(w scheduler.workflow, keys text[], wait boolean DEFAULT true) RETURNS text[]
LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
SET scheduler.engine = 'on'
AS $$
DECLARE
    moved text[];
BEGIN
    IF w.processing IS NULL THEN
        -- the row never left Queued
        EXECUTE format('SELECT array_agg(t.%1$I::text) FROM %2$s AS t WHERE t.%1$I = ANY ((SELECT $1)::%3$s[]) AND t.%4$I = %5$s',
                       w.key_column, w.relation, format_type(w.key_type, -1), w.status_column, scheduler._word(w, w.queued))
            INTO moved USING keys;
    ELSE
        EXECUTE format($sql$
            WITH c AS MATERIALIZED (
                SELECT t.%1$I AS key FROM %2$s AS t
                WHERE t.%1$I = ANY ((SELECT $1)::%3$s[]) AND t.%4$I = %6$s
                FOR NO KEY UPDATE %7$s
            ), u AS (
                UPDATE %2$s AS t SET %4$I = %5$s FROM c WHERE t.%1$I = c.key RETURNING t.%1$I::text AS key
            )
            SELECT array_agg(key) FROM u
            $sql$, w.key_column, w.relation, format_type(w.key_type, -1), w.status_column, scheduler._word(w, w.queued), scheduler._word(w, w.processing),
            CASE WHEN wait THEN '' ELSE 'SKIP LOCKED' END)
            INTO moved USING keys;
    END IF;
    RETURN coalesce(moved, '{}');
END
$$;
COMMENT ON FUNCTION scheduler._put_back(scheduler.workflow, text[], boolean) IS 'Internal: running items back to Queued; returns those that still were running.';

CREATE OR REPLACE FUNCTION scheduler._close_run(run bigint) RETURNS void
LANGUAGE sql
SET search_path = pg_catalog, pg_temp
AS $$
    UPDATE scheduler.run AS r SET finished_at = now(), places = NULL WHERE r.id = run AND r.finished_at IS NULL;
    -- a slot beyond a limit that was lowered meanwhile goes with its run
    DELETE FROM scheduler.slot AS s USING scheduler.workflow AS w
    WHERE s.run = _close_run.run AND w.name = s.workflow AND s.n > coalesce(w.max_instances, 0);
    UPDATE scheduler.slot AS s SET run = NULL WHERE s.run = _close_run.run;
$$;
COMMENT ON FUNCTION scheduler._close_run(bigint) IS 'Internal: ends a run and frees its slot.';

CREATE OR REPLACE FUNCTION scheduler._backoff(w scheduler.workflow, attempts integer, retry_after interval) RETURNS interval
LANGUAGE sql VOLATILE
SET search_path = pg_catalog, pg_temp
AS $$
    -- the server's own wish is kept, but not beyond a day; else doubled each time; jitter keeps a crowd from coming back at once
    SELECT CASE WHEN retry_after IS NOT NULL THEN least(greatest(retry_after, '0'), interval '1 day') * (1 + random() / 10)
                ELSE w.backoff * least(power(2, least(attempts - 1, 1000)), extract(epoch FROM w.backoff_max) / nullif(extract(epoch FROM w.backoff), 0)) * (0.5 + random()) END
$$;
COMMENT ON FUNCTION scheduler._backoff(scheduler.workflow, integer, interval) IS 'Internal: how long an item waits after its nth failed attempt.';
