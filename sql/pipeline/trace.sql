-- Where a contact comes from: every step back to the search, with its times and attempts.

-- The ledger forgets an item when it succeeds; how often it took is kept here.
CREATE OR REPLACE FUNCTION scheduler.keep_attempts() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
    INSERT INTO scheduler.past_attempt AS p (workflow, key, attempts, error)
    SELECT g.workflow, g.key, g.attempts, g.error FROM gone AS g JOIN scheduler.gate AS ours ON ours.workflow = g.workflow WHERE g.attempts > 0
    ON CONFLICT (workflow, key) DO UPDATE SET attempts = p.attempts + excluded.attempts, error = excluded.error, last_at = now();
    RETURN NULL;
END
$$;
COMMENT ON FUNCTION scheduler.keep_attempts() IS 'Trigger: attempts that leave the ledger are kept for scheduler.trace().';

CREATE OR REPLACE TRIGGER keep_attempts AFTER DELETE ON scheduler.attempt
    REFERENCING OLD TABLE AS gone FOR EACH STATEMENT EXECUTE FUNCTION scheduler.keep_attempts();

CREATE OR REPLACE FUNCTION scheduler._attempts(workflow text, id uuid, status text) RETURNS integer
LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp
AS $$
    -- those that failed, and the one that did not
    SELECT (coalesce((SELECT p.attempts FROM scheduler.past_attempt AS p WHERE p.workflow = _attempts.workflow AND p.key = _attempts.id::text), 0)
            + coalesce((SELECT a.attempts FROM scheduler.attempt AS a WHERE a.workflow = _attempts.workflow AND a.key = _attempts.id::text), 0)
            + CASE WHEN status IS NULL OR status IN (w.queued, w.failed, w.idle) THEN 0 ELSE 1 END)::integer
    FROM scheduler.workflow AS w WHERE w.name = _attempts.workflow
$$;
COMMENT ON FUNCTION scheduler._attempts(text, uuid, text) IS 'Internal: how often an item was tried.';

CREATE OR REPLACE FUNCTION scheduler.trace(contact uuid)
RETURNS TABLE (step integer, kind text, workflow text, id uuid, what text, status text, attempts integer, error text, created_at timestamptz, created_by text, done_at timestamptz)
LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp
AS $$
    WITH RECURSIVE c AS (
        SELECT * FROM public.contact AS x WHERE x.id = trace.contact
    ), p AS (
        SELECT x.* FROM c JOIN public.page AS x ON x.id = c.page_id
    ), s AS (
        SELECT x.*, 0 AS up FROM p JOIN public.sitemap_file AS x ON x.id = p.sitemap_file_id
        UNION
        -- an index that lists itself must not go on for ever
        SELECT x.*, s.up + 1 FROM s JOIN public.sitemap_file AS x ON x.id = s.parent_id WHERE s.up < 10
    ), d AS (
        SELECT x.* FROM c JOIN public.domain AS x ON x.id = c.domain_id
    ), b AS (
        SELECT x.* FROM d JOIN public.local_business AS x ON x.domain_id = d.id
    ), l AS (
        SELECT x.* FROM b JOIN public.place AS x ON x.place_id = b.place_id
    ), q AS (
        SELECT DISTINCT x.* FROM l JOIN public.place_search AS x ON x.id = l.place_search_id
    ), chain AS (
        SELECT 1 AS rank, 'place_search' AS kind, 'place_search' AS workflow, q.id, q.business_type || ' in ' || q.location AS what, q.status::text AS status, q.error, q.created_at, q.created_by, q.searched_at AS done_at FROM q
        UNION ALL
        SELECT 2, 'place', 'deep_scan', l.id, coalesce(l.name, l.place_id), l.deep_scan_status::text, l.deep_scan_error, l.created_at, l.created_by, l.deep_scanned_at FROM l
        UNION ALL
        SELECT 3, 'local_business', 'domain_extraction', b.id, concat_ws(', ', b.name, b.website), b.domain_extraction_status::text, b.domain_extraction_error, b.created_at, b.created_by, b.scanned_at FROM b
        UNION ALL
        SELECT 4, 'domain', 'domain_metadata', d.id, d.domain, d.status::text, d.last_error, d.created_at, d.created_by, d.metadata_at FROM d
        UNION ALL
        SELECT 5, 'domain', 'sitemap_analysis', d.id, coalesce(d.sitemap_count || CASE d.sitemap_count WHEN 1 THEN ' sitemap' ELSE ' sitemaps' END, d.domain), d.sitemap_analysis_status::text, d.sitemap_analysis_error, d.created_at, d.created_by, d.sitemap_analyzed_at FROM d
        UNION ALL
        SELECT 100 - s.up, 'sitemap_file', 'sitemap_import', s.id, s.url, s.sitemap_import_status::text, s.sitemap_import_error, s.created_at, s.created_by, s.imported_at FROM s
        UNION ALL
        SELECT 200, 'page', 'page_curation', p.id, p.url, p.page_processing_status::text, p.page_processing_error, p.created_at, p.created_by, p.fetched_at FROM p
        UNION ALL
        SELECT 300, 'contact', NULL, c.id, concat_ws(', ', c.email, c.phone, c.name), c.contact_curation_status::text, NULL, c.created_at, c.created_by, NULL FROM c
    )
    SELECT row_number() OVER (ORDER BY n.rank, n.created_at, n.id)::integer, n.kind, n.workflow, n.id, n.what, n.status,
           scheduler._attempts(n.workflow, n.id, n.status), n.error, n.created_at, n.created_by, n.done_at
    FROM chain AS n ORDER BY 1
$$;
COMMENT ON FUNCTION scheduler.trace(uuid) IS 'The way from the search to this contact: one row a step, what it was, its status, how often it was tried and when it was done.';
