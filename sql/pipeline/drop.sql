-- Removes the pipeline's tables, rows and all. One statement and without CASCADE, so that a view or a foreign key of yours
-- on one of them stops it. pipeline/leave.sql comes before.

DO $$
BEGIN
    IF to_regclass('scheduler.gate') IS NULL THEN
        RETURN;
    END IF;
    DROP TRIGGER IF EXISTS keep_attempts ON scheduler.attempt;
    DROP TABLE scheduler.gate, scheduler.budget, scheduler.past_attempt,
        public.contact, public.page, public.sitemap_file, public.local_business, public.domain, public.place, public.place_search, public.tenant;
    DROP TYPE public.place_search_status, public.curation_status, public.deep_scan_status, public.domain_status,
        public.sitemap_analysis_status, public.sitemap_curation_status, public.domain_extraction_status, public.sitemap_type,
        public.sitemap_import_status, public.page_curation_status, public.page_processing_status, public.email_type;
    -- clean.sql left what the triggers needed
    DROP FUNCTION IF EXISTS scheduler.touch(), scheduler.selected_again(), scheduler.keep_attempts();
END
$$;
