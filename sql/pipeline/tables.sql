-- The pipeline's tables as they are today, in schema public, so that SELECT … FROM place works for everybody.
-- services/models/ describes the same tables to Python; a test compares the two.

-- Someone else's tables are never touched.
DO $$
DECLARE
    taken text := (
        SELECT string_agg(format('%I', c.relname), ', ' ORDER BY c.relname) FROM pg_class AS c
        WHERE c.relnamespace = 'public'::regnamespace
          AND c.relname IN ('tenant', 'place_search', 'place', 'local_business', 'domain', 'sitemap_file', 'page', 'contact')
    );
BEGIN
    IF taken IS NOT NULL THEN
        RAISE EXCEPTION 'schema public of this database has % already, but the pipeline needs these names', taken
            USING ERRCODE = 'duplicate_table',
                  HINT = 'Use another database, or install the engine alone: scrapersky migrate --engine-only (or: psql -v pipeline=off -f sql/install.sql).';
    END IF;
END
$$;

-- The status words: exactly these, in services/models/words.py too.
CREATE TYPE public.place_search_status AS ENUM ('pending', 'processing', 'complete', 'failed');
CREATE TYPE public.curation_status AS ENUM ('New', 'Selected', 'Maybe', 'Not a Fit', 'Archived');
CREATE TYPE public.deep_scan_status AS ENUM ('Queued', 'Processing', 'Completed', 'Error');
CREATE TYPE public.domain_status AS ENUM ('pending', 'processing', 'completed', 'error');
CREATE TYPE public.sitemap_analysis_status AS ENUM ('pending', 'queued', 'processing', 'submitted', 'failed');
CREATE TYPE public.sitemap_curation_status AS ENUM ('New', 'Selected', 'Maybe', 'Not a Fit', 'Archived', 'Completed');
CREATE TYPE public.domain_extraction_status AS ENUM ('Queued', 'Processing', 'Completed', 'Error');
CREATE TYPE public.sitemap_type AS ENUM ('index', 'standard', 'image', 'video', 'news');
CREATE TYPE public.sitemap_import_status AS ENUM ('Queued', 'Processing', 'Complete', 'Error');
CREATE TYPE public.page_curation_status AS ENUM ('New', 'Selected', 'Skipped', 'Rejected');
CREATE TYPE public.page_processing_status AS ENUM ('Queued', 'Processing', 'Complete', 'Error', 'Filtered');
CREATE TYPE public.email_type AS ENUM ('corporate', 'free', 'service', 'unknown');

CREATE TABLE public.tenant (
    id         uuid PRIMARY KEY DEFAULT gen_random_uuid(),
    name       text NOT NULL UNIQUE,
    created_at timestamptz NOT NULL DEFAULT now(),
    updated_at timestamptz NOT NULL DEFAULT now()
);
INSERT INTO public.tenant (id, name) VALUES ('00000000-0000-0000-0000-000000000001', 'default');
COMMENT ON TABLE public.tenant IS 'Whose data it is. There is one, default, unless someone adds more.';

CREATE TABLE public.place_search (
    id            uuid PRIMARY KEY DEFAULT gen_random_uuid(),
    tenant_id     uuid NOT NULL DEFAULT '00000000-0000-0000-0000-000000000001' REFERENCES public.tenant (id),
    business_type text NOT NULL CHECK (business_type ~ '\S'),
    location      text NOT NULL CHECK (location ~ '\S'),
    latitude      double precision,
    longitude     double precision,
    radius        integer CHECK (radius BETWEEN 1 AND 50000),
    max_results   smallint NOT NULL DEFAULT 60 CHECK (max_results BETWEEN 1 AND 60),
    language      text,
    region        text,
    status        public.place_search_status NOT NULL DEFAULT 'pending',
    error         text,
    places_found  integer,
    places_new    integer,
    pages_fetched integer,
    searched_at   timestamptz,
    created_by    text NOT NULL DEFAULT session_user,
    created_at    timestamptz NOT NULL DEFAULT now(),
    updated_at    timestamptz NOT NULL DEFAULT now()
);
COMMENT ON TABLE public.place_search IS 'WF1. A search for businesses: "<business_type> in <location>". INSERT one and it runs.';
COMMENT ON COLUMN public.place_search.radius IS 'In metres around latitude and longitude; 10,000 if it is not said.';
COMMENT ON COLUMN public.place_search.places_found IS 'How many the last run found; 0 is an answer, NULL is none yet.';

CREATE TABLE public.place (
    id               uuid PRIMARY KEY DEFAULT gen_random_uuid(),
    tenant_id        uuid NOT NULL DEFAULT '00000000-0000-0000-0000-000000000001' REFERENCES public.tenant (id),
    place_search_id  uuid REFERENCES public.place_search (id) ON DELETE SET NULL,
    place_id         text NOT NULL UNIQUE CHECK (place_id ~ '\S' AND octet_length(place_id) <= 1024),
    name             text,
    address          text,
    business_type    text,
    types            text[],
    latitude         double precision,
    longitude        double precision,
    rating           numeric(2, 1),
    review_count     integer,
    price_level      smallint,
    query            text,
    raw              jsonb,
    notes            text,
    status           public.curation_status NOT NULL DEFAULT 'New',
    deep_scan_status public.deep_scan_status,
    deep_scan_error  text,
    deep_scanned_at  timestamptz,
    created_by       text NOT NULL DEFAULT session_user,
    created_at       timestamptz NOT NULL DEFAULT now(),
    updated_at       timestamptz NOT NULL DEFAULT now()
);
CREATE INDEX place_deep_scan_status ON public.place (deep_scan_status);
CREATE INDEX place_place_search_id ON public.place (place_search_id);
CREATE INDEX place_updated_at ON public.place (updated_at);
COMMENT ON TABLE public.place IS 'WF2. One result of a search. UPDATE place SET status = ''Selected'' … makes it ready for the deep scan.';
COMMENT ON COLUMN public.place.place_id IS 'Google''s id.';
COMMENT ON COLUMN public.place.place_search_id IS 'The search that found it first.';
COMMENT ON COLUMN public.place.status IS 'What a person thinks of it; Selected makes it ready for the deep scan.';
COMMENT ON COLUMN public.place.price_level IS '0 (free) to 4 (very expensive).';
COMMENT ON COLUMN public.place.query IS 'The text that was searched for when it was last found.';
COMMENT ON COLUMN public.place.raw IS 'The result as Google gave it.';

CREATE TABLE public.domain (
    id                      uuid PRIMARY KEY DEFAULT gen_random_uuid(),
    tenant_id               uuid NOT NULL DEFAULT '00000000-0000-0000-0000-000000000001' REFERENCES public.tenant (id),
    domain                  text NOT NULL UNIQUE CHECK (domain = lower(domain) AND domain ~ '^[^\s/]{1,253}$'),
    country_code            text,
    status                  public.domain_status NOT NULL DEFAULT 'pending',
    last_error              text,
    home_url                text,
    http_status             smallint,
    title                   text,
    description             text,
    language                text,
    canonical_url           text,
    favicon_url             text,
    logo_url                text,
    generator               text,
    cms                     text,
    cms_version             text,
    technologies            text[],
    emails                  text[],
    phones                  text[],
    socials                 jsonb,
    structured_data         jsonb,
    metadata_at             timestamptz,
    sitemap_analysis_status public.sitemap_analysis_status NOT NULL DEFAULT 'pending',
    sitemap_analysis_error  text,
    sitemap_curation_status public.sitemap_curation_status NOT NULL DEFAULT 'New',
    sitemap_count           integer,
    sitemap_url_count       integer,
    sitemap_note            text,
    sitemap_analyzed_at     timestamptz,
    notes                   text,
    created_by              text NOT NULL DEFAULT session_user,
    created_at              timestamptz NOT NULL DEFAULT now(),
    updated_at              timestamptz NOT NULL DEFAULT now()
);
CREATE INDEX domain_created_at ON public.domain (created_at);
COMMENT ON TABLE public.domain IS 'WF4a and 4b. One website: its metadata, and how its sitemaps were analysed. Deleting it deletes its sitemaps, pages and contacts.';
COMMENT ON COLUMN public.domain.domain IS 'The registrable host in lower case, IDN as punycode.';
COMMENT ON COLUMN public.domain.country_code IS 'The country of the business that led here, for reading phone numbers.';
COMMENT ON COLUMN public.domain.home_url IS 'Where the home page was found in the end.';
COMMENT ON COLUMN public.domain.socials IS 'Platform → address of the profile.';
COMMENT ON COLUMN public.domain.sitemap_analysis_status IS 'pending: nobody has asked for it yet.';
COMMENT ON COLUMN public.domain.sitemap_count IS 'How many sitemaps the last analysis found; 0 is an answer, NULL is none yet.';
COMMENT ON COLUMN public.domain.sitemap_note IS 'What the analysis has to say, such as that there is no sitemap.';

CREATE TABLE public.local_business (
    id                       uuid PRIMARY KEY DEFAULT gen_random_uuid(),
    tenant_id                uuid NOT NULL DEFAULT '00000000-0000-0000-0000-000000000001' REFERENCES public.tenant (id),
    place_id                 text NOT NULL UNIQUE REFERENCES public.place (place_id) ON UPDATE CASCADE ON DELETE CASCADE,
    domain_id                uuid REFERENCES public.domain (id) ON DELETE SET NULL,
    name                     text,
    address                  text,
    street                   text,
    city                     text,
    state                    text,
    postal_code              text,
    country                  text,
    country_code             text,
    phone                    text,
    website                  text,
    business_type            text,
    categories               text[],
    latitude                 double precision,
    longitude                double precision,
    rating                   numeric(2, 1),
    review_count             integer,
    price_level              smallint,
    opening_hours            jsonb,
    business_status          text,
    utc_offset_minutes       smallint,
    scanned_at               timestamptz,
    notes                    text,
    status                   public.curation_status NOT NULL DEFAULT 'New',
    domain_extraction_status public.domain_extraction_status,
    domain_extraction_error  text,
    domain_extraction_note   text,
    created_by               text NOT NULL DEFAULT session_user,
    created_at               timestamptz NOT NULL DEFAULT now(),
    updated_at               timestamptz NOT NULL DEFAULT now()
);
CREATE INDEX local_business_domain_extraction_status ON public.local_business (domain_extraction_status);
CREATE INDEX local_business_domain_id ON public.local_business (domain_id);
CREATE INDEX local_business_updated_at ON public.local_business (updated_at);
COMMENT ON TABLE public.local_business IS 'WF3. The details of one place.';
COMMENT ON COLUMN public.local_business.status IS 'What a person thinks of it; Selected makes it ready for domain extraction.';
COMMENT ON COLUMN public.local_business.phone IS 'International, as Google writes it.';
COMMENT ON COLUMN public.local_business.domain_extraction_note IS 'Why it was completed without a domain, such as a website that is a social profile.';

CREATE TABLE public.sitemap_file (
    id                          uuid PRIMARY KEY DEFAULT gen_random_uuid(),
    tenant_id                   uuid NOT NULL DEFAULT '00000000-0000-0000-0000-000000000001' REFERENCES public.tenant (id),
    domain_id                   uuid NOT NULL REFERENCES public.domain (id) ON DELETE CASCADE,
    parent_id                   uuid REFERENCES public.sitemap_file (id) ON DELETE SET NULL,
    url                         text NOT NULL CHECK (url ~ '^https?://' AND octet_length(url) <= 2048),
    sitemap_type                public.sitemap_type,
    format                      text,
    found_by                    text,
    depth                       smallint NOT NULL DEFAULT 0,
    url_count                   integer,
    gzip                        boolean,
    size_bytes                  bigint,
    http_status                 smallint,
    response_ms                 integer,
    has_lastmod                 boolean,
    has_priority                boolean,
    has_changefreq              boolean,
    analyzed_at                 timestamptz,
    notes                       text,
    deep_scrape_curation_status public.sitemap_curation_status NOT NULL DEFAULT 'New',
    sitemap_import_status       public.sitemap_import_status,
    sitemap_import_error        text,
    pages_found                 integer,
    pages_new                   integer,
    pages_selected              integer,
    pages_filtered              integer,
    import_note                 text,
    imported_at                 timestamptz,
    created_by                  text NOT NULL DEFAULT session_user,
    created_at                  timestamptz NOT NULL DEFAULT now(),
    updated_at                  timestamptz NOT NULL DEFAULT now(),
    UNIQUE (domain_id, url)
);
CREATE INDEX sitemap_file_parent_id ON public.sitemap_file (parent_id);
COMMENT ON TABLE public.sitemap_file IS 'WF5 and 6. One sitemap of a domain.';
COMMENT ON COLUMN public.sitemap_file.parent_id IS 'The index that lists it.';
COMMENT ON COLUMN public.sitemap_file.format IS 'xml, text or feed.';
COMMENT ON COLUMN public.sitemap_file.found_by IS 'How it was found: robots.txt, usual path, home page, index, import.';
COMMENT ON COLUMN public.sitemap_file.depth IS 'How many indexes are above it.';
COMMENT ON COLUMN public.sitemap_file.deep_scrape_curation_status IS 'Selected makes it ready for the import of its pages.';
COMMENT ON COLUMN public.sitemap_file.import_note IS 'What the import has to say, such as that it stopped at a cap.';

CREATE TABLE public.page (
    id                     uuid PRIMARY KEY DEFAULT gen_random_uuid(),
    tenant_id              uuid NOT NULL DEFAULT '00000000-0000-0000-0000-000000000001' REFERENCES public.tenant (id),
    domain_id              uuid NOT NULL REFERENCES public.domain (id) ON DELETE CASCADE,
    sitemap_file_id        uuid REFERENCES public.sitemap_file (id) ON DELETE SET NULL,
    url                    text NOT NULL CHECK (url ~ '^https?://' AND octet_length(url) <= 2048),
    category               text,
    depth                  smallint,
    confidence             double precision,
    lastmod                timestamptz,
    sitemap_priority       double precision,
    priority               smallint NOT NULL DEFAULT 0,
    filter_rule            text,
    notes                  text,
    page_curation_status   public.page_curation_status NOT NULL DEFAULT 'New',
    page_processing_status public.page_processing_status,
    page_processing_error  text,
    http_status            smallint,
    final_url              text,
    content_type           text,
    title                  text,
    contacts_found         integer,
    fetched_at             timestamptz,
    created_by             text NOT NULL DEFAULT session_user,
    created_at             timestamptz NOT NULL DEFAULT now(),
    updated_at             timestamptz NOT NULL DEFAULT now(),
    UNIQUE (domain_id, url)
);
CREATE INDEX page_sitemap_file_id ON public.page (sitemap_file_id);
COMMENT ON TABLE public.page IS 'WF7. One page of a website; only those worth reading are queued.';
COMMENT ON COLUMN public.page.sitemap_file_id IS 'The sitemap that listed it first.';
COMMENT ON COLUMN public.page.depth IS 'Segments of its path.';
COMMENT ON COLUMN public.page.confidence IS 'How sure the category is, 0 to 1.';
COMMENT ON COLUMN public.page.sitemap_priority IS 'What the sitemap says, 0 to 1.';
COMMENT ON COLUMN public.page.priority IS 'How soon to read it: the queue''s order, highest first, then the oldest.';
COMMENT ON COLUMN public.page.filter_rule IS 'What made it Filtered.';
COMMENT ON COLUMN public.page.page_curation_status IS 'Selected makes it ready to be read.';
COMMENT ON COLUMN public.page.page_processing_status IS 'NULL: nobody has asked for it.';
COMMENT ON COLUMN public.page.contacts_found IS '0 is an answer, NULL is none yet.';

CREATE TABLE public.contact (
    id                      uuid PRIMARY KEY DEFAULT gen_random_uuid(),
    tenant_id               uuid NOT NULL DEFAULT '00000000-0000-0000-0000-000000000001' REFERENCES public.tenant (id),
    domain_id               uuid NOT NULL REFERENCES public.domain (id) ON DELETE CASCADE,
    page_id                 uuid REFERENCES public.page (id) ON DELETE SET NULL,
    source_url              text,
    email                   text CHECK (email = lower(email) AND email ~ '^[^@\s]{1,64}@[^@\s]{1,253}$'),
    email_type              public.email_type,
    phone                   text CHECK (phone ~ '^\+[1-9][0-9]{5,14}$'),
    name                    text,
    role                    text,
    socials                 jsonb,
    address                 text,
    context                 text,
    found_in                text,
    notes                   text,
    contact_curation_status public.curation_status NOT NULL DEFAULT 'New',
    created_by              text NOT NULL DEFAULT session_user,
    created_at              timestamptz NOT NULL DEFAULT now(),
    updated_at              timestamptz NOT NULL DEFAULT now(),
    UNIQUE (domain_id, email),
    CONSTRAINT contact_reachable_check CHECK (email IS NOT NULL OR phone IS NOT NULL)
);
CREATE INDEX contact_created_at ON public.contact (created_at);
CREATE INDEX contact_email ON public.contact (email);
CREATE INDEX contact_page_id ON public.contact (page_id);
-- a rerun finds its phone-only contacts again
CREATE UNIQUE INDEX contact_phone_only ON public.contact (domain_id, phone) WHERE email IS NULL;
COMMENT ON TABLE public.contact IS 'WF8. A way to reach someone: one row a domain and email; a phone without an email counts too.';
COMMENT ON COLUMN public.contact.page_id IS 'The page it was found on first.';
COMMENT ON COLUMN public.contact.source_url IS 'That page''s address, which outlives the row of the page.';
COMMENT ON COLUMN public.contact.email IS 'In lower case.';
COMMENT ON COLUMN public.contact.email_type IS 'NULL if there is no email.';
COMMENT ON COLUMN public.contact.phone IS 'E.164.';
COMMENT ON COLUMN public.contact.context IS 'The text around it on the page.';
COMMENT ON COLUMN public.contact.found_in IS 'mailto, text, JSON-LD, cloudflare and so on.';

-- The hand-overs of the pipeline: what makes an item ready while its gate is closed, and while it is open.
CREATE TABLE scheduler.gate (
    workflow     text PRIMARY KEY,
    open         boolean NOT NULL DEFAULT false,
    closed_ready text,
    open_ready   text
);
COMMENT ON TABLE scheduler.gate IS 'One row a workflow of the pipeline. Open and close a gate with scheduler.auto_advance().';
COMMENT ON COLUMN scheduler.gate.closed_ready IS 'Ready predicate while a person selects.';
COMMENT ON COLUMN scheduler.gate.open_ready IS 'Ready predicate while items go on by themselves. NULL: there is no gate to open.';

-- Calls that cost money, by the day.
CREATE TABLE scheduler.budget (
    name        text PRIMARY KEY CHECK (name ~ '^[a-z][a-z0-9_]{0,39}$'),
    daily_limit bigint CHECK (daily_limit >= 0),
    time_zone   text NOT NULL DEFAULT 'America/Los_Angeles',
    day         date,
    used        bigint NOT NULL DEFAULT 0,
    refused     bigint NOT NULL DEFAULT 0
);
COMMENT ON TABLE scheduler.budget IS 'How many calls of a paid service a day may have, and how many today has had. Change a limit with scheduler.set_budget().';
COMMENT ON COLUMN scheduler.budget.daily_limit IS 'NULL: no limit. 0: none at all.';
COMMENT ON COLUMN scheduler.budget.time_zone IS 'Whose midnight begins a new day. Google counts by Pacific time.';

CREATE TABLE scheduler.past_attempt (
    workflow text NOT NULL,
    key      text NOT NULL,
    attempts integer NOT NULL,
    error    text,
    last_at  timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (workflow, key)
);
COMMENT ON TABLE scheduler.past_attempt IS 'Failed attempts at items of the pipeline that have left the ledger, because they succeeded in the end or a person asked for them anew. Read by scheduler.trace().';
