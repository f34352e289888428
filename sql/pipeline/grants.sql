-- Who may do what with the pipeline. A listener writes results and spends budgets, an admin curates, a monitor looks.
-- After grants.sql, which takes everything from everybody first.

GRANT SELECT, INSERT, UPDATE, DELETE ON public.place_search, public.place, public.local_business, public.domain, public.sitemap_file, public.page, public.contact
    TO scheduler_listener, scheduler_admin;
GRANT SELECT ON public.tenant TO scheduler_listener;
GRANT SELECT, INSERT, UPDATE, DELETE ON public.tenant TO scheduler_admin;
GRANT SELECT ON public.tenant, public.place_search, public.place, public.local_business, public.domain, public.sitemap_file, public.page, public.contact
    TO scheduler_monitor;
GRANT EXECUTE ON FUNCTION scheduler.reserve(text, integer, bigint) TO scheduler_listener;
GRANT EXECUTE ON FUNCTION scheduler.trace(uuid), scheduler._attempts(text, uuid, text) TO scheduler_monitor;
