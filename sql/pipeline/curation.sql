-- Curation: Selected makes a row ready, whoever writes it. What ready means is in the workflows (register.sql); here is
-- what a second selection means, who may go on without one, and how to select many at once.

CREATE OR REPLACE FUNCTION scheduler.selected_again() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
    -- TG_ARGV: workflow, status column, error column, the word of an item nobody has asked for
    NEW := jsonb_populate_record(NEW, jsonb_build_object(TG_ARGV[1], TG_ARGV[3], TG_ARGV[2], NULL));
    -- a person asked for it: it has all its attempts again, also if it had been cancelled
    DELETE FROM scheduler.attempt AS a WHERE a.workflow = TG_ARGV[0] AND a.key = NEW.id::text;
    RETURN NEW;
END
$$;
COMMENT ON FUNCTION scheduler.selected_again() IS
'Trigger: a failed row that is Selected again becomes ready again, with all its attempts. One that is queued or running is left alone.';

-- UPDATE OF fires whenever the column is named, also if it was Selected before: that is what "again" means.
-- Never while the item is queued or running, and never for a row that is done.
CREATE OR REPLACE TRIGGER selected_again BEFORE UPDATE OF status ON public.place FOR EACH ROW
    WHEN (NEW.status = 'Selected' AND coalesce(OLD.deep_scan_status = 'Error', true) AND OLD.deep_scan_status IS NOT DISTINCT FROM NEW.deep_scan_status)
    EXECUTE FUNCTION scheduler.selected_again('deep_scan', 'deep_scan_status', 'deep_scan_error');
CREATE OR REPLACE TRIGGER selected_again BEFORE UPDATE OF status ON public.local_business FOR EACH ROW
    WHEN (NEW.status = 'Selected' AND coalesce(OLD.domain_extraction_status = 'Error', true) AND OLD.domain_extraction_status IS NOT DISTINCT FROM NEW.domain_extraction_status)
    EXECUTE FUNCTION scheduler.selected_again('domain_extraction', 'domain_extraction_status', 'domain_extraction_error');
CREATE OR REPLACE TRIGGER selected_again BEFORE UPDATE OF sitemap_curation_status ON public.domain FOR EACH ROW
    WHEN (NEW.sitemap_curation_status = 'Selected' AND OLD.sitemap_analysis_status IN ('failed', 'pending') AND OLD.sitemap_analysis_status = NEW.sitemap_analysis_status)
    EXECUTE FUNCTION scheduler.selected_again('sitemap_analysis', 'sitemap_analysis_status', 'sitemap_analysis_error', 'pending');
CREATE OR REPLACE TRIGGER selected_again BEFORE UPDATE OF deep_scrape_curation_status ON public.sitemap_file FOR EACH ROW
    WHEN (NEW.deep_scrape_curation_status = 'Selected' AND coalesce(OLD.sitemap_import_status = 'Error', true) AND OLD.sitemap_import_status IS NOT DISTINCT FROM NEW.sitemap_import_status)
    EXECUTE FUNCTION scheduler.selected_again('sitemap_import', 'sitemap_import_status', 'sitemap_import_error');
-- a person who selects a page that a rule had filtered out knows better than the rule
CREATE OR REPLACE TRIGGER selected_again BEFORE UPDATE OF page_curation_status ON public.page FOR EACH ROW
    WHEN (NEW.page_curation_status = 'Selected' AND coalesce(OLD.page_processing_status IN ('Error', 'Filtered'), true) AND OLD.page_processing_status IS NOT DISTINCT FROM NEW.page_processing_status)
    EXECUTE FUNCTION scheduler.selected_again('page_curation', 'page_processing_status', 'page_processing_error');

COMMENT ON COLUMN scheduler.gate.open IS 'Whether items go on without being Selected. Change it with scheduler.auto_advance().';

CREATE OR REPLACE FUNCTION scheduler._gate(workflow text) RETURNS scheduler.gate
LANGUAGE plpgsql STABLE
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    g scheduler.gate;
BEGIN
    SELECT * INTO g FROM scheduler.gate AS x WHERE x.workflow = _gate.workflow;
    IF g.open_ready IS NULL THEN
        RAISE EXCEPTION '% has no gate%', coalesce(quote_literal(workflow), 'NULL'),
                CASE WHEN g.workflow IS NULL THEN '' ELSE ': its items are queued in the same commit as the results they come from' END
            USING ERRCODE = 'invalid_parameter_value',
                  HINT = format('These have one: %s. scheduler.pause(name) stops any workflow.',
                                (SELECT string_agg(x.workflow, ', ' ORDER BY x.workflow) FROM scheduler.gate AS x WHERE x.open_ready IS NOT NULL));
    END IF;
    RETURN g;
END
$$;
COMMENT ON FUNCTION scheduler._gate(text) IS 'Internal: the gate before a workflow, or an error that lists those there are.';

CREATE OR REPLACE FUNCTION scheduler._set_gate(workflow text, open boolean) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
    PERFORM scheduler._check_owner((scheduler._workflow(workflow)).relation, session_user);
    UPDATE scheduler.gate AS g SET open = _set_gate.open WHERE g.workflow = _set_gate.workflow;
    PERFORM scheduler._audit('auto_advance', workflow, NULL, jsonb_build_object('open', open));
END
$$;
COMMENT ON FUNCTION scheduler._set_gate(text, boolean) IS 'Internal: notes that a gate is open or closed.';

CREATE OR REPLACE FUNCTION scheduler.auto_advance(workflow text, open boolean) RETURNS text
LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    g scheduler.gate := scheduler._gate(workflow);
    w scheduler.workflow;
    ready bigint;
BEGIN
    IF open IS NULL THEN
        RAISE EXCEPTION 'open cannot be NULL' USING ERRCODE = 'invalid_parameter_value', HINT = 'Say true to let items go on by themselves, false to have a person select them.';
    END IF;
    -- it builds an index, which only the owner of the table may
    PERFORM scheduler._check_table((scheduler._workflow(workflow)).relation);
    PERFORM scheduler.alter_workflow(workflow, ready => CASE WHEN open THEN g.open_ready ELSE g.closed_ready END);
    PERFORM scheduler._set_gate(workflow, open);
    w := scheduler._workflow(workflow);
    EXECUTE format('SELECT count(*) FROM (SELECT FROM %s AS t WHERE %s LIMIT 10000) AS r', w.relation, scheduler._ready_sql(w)) INTO ready;
    RETURN format('%s: %s; %s ready now', workflow, CASE WHEN open THEN 'items go on by themselves' ELSE 'a person selects' END,
                  CASE ready WHEN 10000 THEN '10000 or more' ELSE ready::text END);
END
$$;
COMMENT ON FUNCTION scheduler.auto_advance(text, boolean) IS
'Opens (true) or closes (false) the gate before a workflow: open, items go on without being Selected, except those a person has turned down. What is queued stays queued.';

CREATE OR REPLACE FUNCTION scheduler._note_curation(relation text, predicate text, word text, affected bigint) RETURNS void
LANGUAGE sql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $$ SELECT scheduler._audit('curate', NULL, affected, jsonb_build_object('table', relation, 'word', word, 'predicate', left(predicate, 500))) $$;
COMMENT ON FUNCTION scheduler._note_curation(text, text, text, bigint) IS 'Internal: notes who curated what; curate() itself has only the rights of its caller.';

CREATE OR REPLACE FUNCTION scheduler.curate(relation text, predicate text, word text DEFAULT 'Selected', most integer DEFAULT NULL, dry_run boolean DEFAULT false)
RETURNS TABLE (matched bigint, changed bigint, again bigint, unchanged bigint, in_progress bigint)
LANGUAGE plpgsql
-- the caller's rights and search_path: the predicate can do what its author can, and means what it means to him
AS $$
DECLARE
    c record;
BEGIN
    SELECT * INTO c FROM (VALUES
        ('place', 'status', 'deep_scan_status', '{Error}'::text[], '{Queued,Processing}'::text[]),
        ('local_business', 'status', 'domain_extraction_status', '{Error}', '{Queued,Processing}'),
        ('domain', 'sitemap_curation_status', 'sitemap_analysis_status', '{failed}', '{queued,processing}'),
        ('sitemap_file', 'deep_scrape_curation_status', 'sitemap_import_status', '{Error}', '{Queued,Processing}'),
        ('page', 'page_curation_status', 'page_processing_status', '{Error,Filtered}', '{Queued,Processing}'),
        ('contact', 'contact_curation_status', NULL, '{}', '{}')
    ) AS v (name, curation, status, failed, busy) WHERE v.name OPERATOR(pg_catalog.=) relation;
    IF NOT FOUND THEN
        RAISE EXCEPTION '% is not a table that people curate', coalesce(pg_catalog.quote_literal(relation), 'NULL')
            USING ERRCODE = 'invalid_parameter_value', HINT = 'These are: place, local_business, domain, sitemap_file, page, contact.';
    END IF;
    PERFORM scheduler._check_word(pg_catalog.format('public.%I', c.name)::pg_catalog.regclass, c.curation, word, 'curation');
    IF most OPERATOR(pg_catalog.<) 1 THEN
        RAISE EXCEPTION 'most cannot be %', most USING ERRCODE = 'invalid_parameter_value', HINT = 'Give a number above 0, or leave it out.';
    END IF;
    IF predicate IS NULL THEN
        RAISE EXCEPTION 'the predicate cannot be NULL' USING ERRCODE = 'invalid_parameter_value', HINT = 'Say ''true'' if all rows are meant.';
    END IF;
    -- one expression and nothing else: without this a predicate could close the bracket and write more
    PERFORM scheduler._check_ready(pg_catalog.format('public.%I', c.name)::pg_catalog.regclass, predicate);
    EXECUTE pg_catalog.format($sql$
        WITH found AS MATERIALIZED (
            SELECT t.id, t.%2$I::text AS word, %3$s AS shown FROM public.%1$I AS t WHERE (%4$s
) ORDER BY t.created_at, t.id LIMIT $1 %5$s
        ), written AS (%6$s)
        SELECT count(*) AS matched,
               count(*) FILTER (WHERE f.word <> $2) AS changed,
               count(*) FILTER (WHERE $2 = 'Selected' AND f.shown = ANY ($3)) AS again,
               count(*) FILTER (WHERE f.word = $2 AND ($2 <> 'Selected' OR f.shown IS NULL OR f.shown <> ALL ($3))) AS unchanged,
               count(*) FILTER (WHERE f.shown = ANY ($4)) AS in_progress
        FROM found AS f
        $sql$, c.name, c.curation, coalesce('t.' || pg_catalog.quote_ident(c.status) || '::text', 'NULL::text'), predicate,
        CASE WHEN dry_run THEN '' ELSE 'FOR NO KEY UPDATE' END,
        CASE WHEN dry_run THEN 'SELECT' ELSE pg_catalog.format(
            'UPDATE public.%1$I AS t SET %2$I = $2::%3$s FROM found AS f WHERE t.id = f.id AND (f.word <> $2 OR $2 = ''Selected'' AND f.shown = ANY ($3))', c.name, c.curation,
            (SELECT pg_catalog.format_type(a.atttypid, -1) FROM pg_catalog.pg_attribute AS a
             WHERE a.attrelid OPERATOR(pg_catalog.=) pg_catalog.format('public.%I', c.name)::pg_catalog.regclass AND a.attname OPERATOR(pg_catalog.=) c.curation)) END)
        INTO matched, changed, again, unchanged, in_progress USING most, word, c.failed, c.busy;
    IF NOT dry_run THEN
        PERFORM scheduler._note_curation(relation, predicate, word, changed OPERATOR(pg_catalog.+) again);
    END IF;
    RETURN NEXT;
END
$$;
COMMENT ON FUNCTION scheduler.curate(text, text, text, integer, boolean) IS
'Gives every row a predicate finds a curation word, Selected unless another is named, and counts: matched; changed; again, failed ones that are ready once more; unchanged;
in_progress, queued or running and left so. As in curate(''place'', $$rating > 4 AND review_count > 20$$). dry_run => true only counts; most limits it to the oldest.';
