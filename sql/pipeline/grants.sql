-- Who may do what with the pipeline's tables. A listener writes results, an admin curates, a monitor looks.

GRANT SELECT, INSERT, UPDATE, DELETE ON public.place_search, public.place, public.local_business, public.domain, public.sitemap_file, public.page, public.contact
    TO scheduler_listener, scheduler_admin;
GRANT SELECT ON public.tenant TO scheduler_listener;
GRANT SELECT, INSERT, UPDATE, DELETE ON public.tenant TO scheduler_admin;
GRANT SELECT ON public.tenant, public.place_search, public.place, public.local_business, public.domain, public.sitemap_file, public.page, public.contact
    TO scheduler_monitor;
