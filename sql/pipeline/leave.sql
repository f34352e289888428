-- Before the pipeline is removed: takes every workflow off its tables, those that others have registered there too.

DO $$
DECLARE
    workflow text;
BEGIN
    IF to_regclass('scheduler.gate') IS NULL THEN
        RETURN;
    END IF;
    FOR workflow IN
        SELECT w.name FROM scheduler.workflow AS w
        WHERE w.relation IN ('public.place_search'::regclass, 'public.place'::regclass, 'public.local_business'::regclass,
                             'public.domain'::regclass, 'public.sitemap_file'::regclass, 'public.page'::regclass, 'public.contact'::regclass)
        ORDER BY w.name
    LOOP
        PERFORM scheduler.drop_workflow(workflow, force => true);
    END LOOP;
END
$$;
