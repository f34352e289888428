-- The doctor: what is wrong or will be, each finding with what it means and the SQL that fixes it.

CREATE OR REPLACE FUNCTION scheduler.doctor(environment jsonb DEFAULT NULL) RETURNS TABLE (severity text, workflow text, finding text, meaning text, fix text, code text)
LANGUAGE plpgsql STABLE
SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
    RETURN QUERY
    SELECT d.severity, d.workflow, d.finding, d.meaning, d.fix, d.code FROM (
        SELECT * FROM scheduler._examine_cron()
        UNION ALL
        SELECT x.* FROM scheduler.workflow AS w, LATERAL scheduler._examine_table(w) AS x
        UNION ALL
        SELECT x.* FROM scheduler.workflow AS w, LATERAL scheduler._examine_vacuum(w) AS x WHERE EXISTS (SELECT FROM pg_catalog.pg_class WHERE oid = w.relation)
        UNION ALL
        SELECT * FROM scheduler._examine_server()
        UNION ALL
        SELECT * FROM scheduler._examine_listeners()
        UNION ALL
        SELECT * FROM scheduler._examine_environment(doctor.environment)
        UNION ALL
        SELECT 'error', s.code, s.workflow, s.what || coalesce(' since ' || date_trunc('second', s.since), ''), s.meaning, s.fix FROM scheduler.stuck AS s
        UNION ALL
        SELECT 'error', 'maintenance_fails', s.workflow, 'maintenance fails: ' || s.problem, 'Retries, rescues or dispatches of this workflow may be late. Put right what it says; then this clears it.',
               format('SELECT scheduler.maintain(); UPDATE scheduler.state SET problem = NULL WHERE workflow = %L;', s.workflow)
        FROM scheduler.state AS s WHERE s.problem IS NOT NULL
        UNION ALL
        SELECT 'warning', 'breaker', s.workflow, 'its breaker is ' || s.breaker_state, 'Recent items mostly failed (see scheduler.errors), so it only probes. It goes on by itself when a probe succeeds; when you know the cause is gone, at once:',
               format('SELECT scheduler.resume(%L);', s.workflow)
        FROM scheduler.state AS s WHERE s.breaker_state <> 'closed'
        UNION ALL
        SELECT 'info', 'dead_letters', q.workflow, q.dead || CASE q.dead WHEN 1 THEN ' item is' ELSE ' items are' END || ' in the dead letter', 'What failed for good (see scheduler.errors) waits for a person. When the cause is gone:', format('SELECT scheduler.requeue(%L);', q.workflow)
        FROM (SELECT a.workflow, count(*) AS dead FROM scheduler.attempt AS a WHERE a.state = 'dead' GROUP BY 1) AS q
    ) AS d
    ORDER BY array_position(ARRAY['error', 'warning', 'info'], d.severity), d.workflow NULLS FIRST, d.finding;
END
$$;
COMMENT ON FUNCTION scheduler.doctor(jsonb) IS
'What is wrong or will be, the worst first: severity (error, warning, info), what it means, the SQL that fixes it, and a code that stays the same. Empty when all is well.
scrapersky doctor also passes what its environment says of schedules, as {"deep_scan": {"batch_size": 10}}, to find settings that are no longer in force.';

CREATE OR REPLACE FUNCTION scheduler.repair_workflow(name text) RETURNS text
LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    w scheduler.workflow := scheduler._live(name);
    kind text;
BEGIN
    PERFORM scheduler._check_table(w.relation);
    PERFORM scheduler._check_column(w.relation, given.name, given.role)
    FROM (VALUES (w.key_column::text, 'key_column'), (w.status_column, 'status_column'), (w.error_column, 'error_column'), (w.priority_column, 'priority_column'), (w.age_column, 'age_column')) AS given (name, role)
    WHERE given.name IS NOT NULL;
    PERFORM scheduler._check_words(w);
    PERFORM scheduler._grant_table(w);
    FOREACH kind IN ARRAY ARRAY['queued', 'ready', 'key'] LOOP
        IF scheduler._index_missing(w, kind) THEN
            PERFORM scheduler._drop_index(w, kind);
        END IF;
    END LOOP;
    PERFORM scheduler._build_indexes(w);
    PERFORM scheduler._build_triggers(w);
    PERFORM scheduler.sync_cron();
    RETURN format('grants, indexes, triggers and job of %s are as create_workflow() made them', name);
END
$$;
COMMENT ON FUNCTION scheduler.repair_workflow(text) IS 'Puts grants, indexes, triggers and the pg_cron job of a workflow back, as the owner of its table.';
