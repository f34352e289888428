-- The seven workflows. Their schedules here are the defaults; `scrapersky migrate` then applies those of the environment.

CREATE OR REPLACE FUNCTION scheduler.create_pipeline() RETURNS TABLE (workflow text, result text)
LANGUAGE plpgsql
-- no right of its own: only the owner of the tables may register them
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    w record;
BEGIN
    -- the last first: a workflow can only hold back for one that exists. A join keeps no order by itself: 18 returned another.
    FOR w IN
        SELECT * FROM (VALUES
            (1, 'page_curation', 'public.page', 'page_processing_status', 'page_processing_error', 'priority',
             'Queued', 'Processing', 'Complete', 'Error', NULL, '* * * * *', 10, 1, 10, interval '2 minutes', NULL, NULL,
             $r$page_curation_status = 'Selected' AND page_processing_status IS NULL$r$,
             $r$page_curation_status IN ('New', 'Selected') AND page_processing_status IS NULL$r$),
            (2, 'sitemap_import', 'public.sitemap_file', 'sitemap_import_status', 'sitemap_import_error', NULL,
             'Queued', 'Processing', 'Complete', 'Error', NULL, '* * * * *', 20, 1, 4, interval '15 minutes', 'page_curation', 10000,
             $r$deep_scrape_curation_status = 'Selected' AND sitemap_import_status IS NULL$r$,
             $r$deep_scrape_curation_status IN ('New', 'Selected', 'Maybe') AND sitemap_import_status IS NULL$r$),
            (3, 'sitemap_analysis', 'public.domain', 'sitemap_analysis_status', 'sitemap_analysis_error', NULL,
             'queued', 'processing', 'submitted', 'failed', 'pending', '* * * * *', 10, 1, 10, interval '10 minutes', NULL, NULL,
             $r$sitemap_curation_status = 'Selected' AND sitemap_analysis_status = 'pending'$r$,
             NULL),
            (4, 'domain_metadata', 'public.domain', 'status', 'last_error', NULL,
             'pending', 'processing', 'completed', 'error', NULL, '* * * * *', 50, 3, 25, interval '2 minutes', NULL, NULL,
             NULL,
             NULL),
            (5, 'domain_extraction', 'public.local_business', 'domain_extraction_status', 'domain_extraction_error', NULL,
             'Queued', 'Processing', 'Completed', 'Error', NULL, '*/2 * * * *', 20, 1, 20, interval '1 minute', 'domain_metadata', 5000,
             $r$status = 'Selected' AND domain_extraction_status IS NULL$r$,
             $r$status IN ('New', 'Selected', 'Maybe') AND domain_extraction_status IS NULL$r$),
            (6, 'deep_scan', 'public.place', 'deep_scan_status', 'deep_scan_error', NULL,
             'Queued', 'Processing', 'Completed', 'Error', NULL, '*/5 * * * *', 10, 1, 5, interval '1 minute', NULL, NULL,
             $r$status = 'Selected' AND deep_scan_status IS NULL$r$,
             $r$status IN ('New', 'Selected', 'Maybe') AND deep_scan_status IS NULL$r$),
            (7, 'place_search', 'public.place_search', 'status', 'error', NULL,
             'pending', 'processing', 'complete', 'failed', NULL, '* * * * *', 10, 1, 5, interval '5 minutes', NULL, NULL,
             NULL,
             NULL)
        ) AS v (turn, name, relation, status_column, error_column, priority_column, queued, processing, completed, failed, idle,
                schedule, batch_size, max_instances, concurrency, timeout, downstream, downstream_limit, closed_ready, open_ready)
        WHERE NOT EXISTS (SELECT FROM scheduler.workflow AS x WHERE x.name = v.name)
        ORDER BY v.turn
    LOOP
        workflow := w.name;
        result := scheduler.create_workflow(w.name, w.relation, w.status_column, w.error_column,
            priority_column => w.priority_column, age_column => 'created_at', ready => w.closed_ready,
            queued => w.queued, processing => w.processing, completed => w.completed, failed => w.failed, idle => w.idle,
            schedule => w.schedule, batch_size => w.batch_size, max_instances => w.max_instances, concurrency => w.concurrency,
            timeout => w.timeout, downstream => w.downstream, downstream_limit => coalesce(w.downstream_limit, 1000));
        INSERT INTO scheduler.gate AS g (workflow, closed_ready, open_ready) VALUES (w.name, w.closed_ready, w.open_ready)
        ON CONFLICT ON CONSTRAINT gate_pkey DO UPDATE SET open = false, closed_ready = excluded.closed_ready, open_ready = excluded.open_ready;
        RETURN NEXT;
    END LOOP;
END
$$;
COMMENT ON FUNCTION scheduler.create_pipeline() IS
'Registers those of the pipeline''s workflows that are not registered: all seven in a new database, or one that was dropped and is wanted again.';
