-- A database shaped like the old system's: its tables, its enum types with their several spellings, and the state in
-- which such a system is found: work waiting, work done, work failed, and rows whose worker died long ago.

CREATE TYPE place_status_enum AS ENUM ('New', 'Selected', 'Maybe', 'Not a Fit', 'Archived');
CREATE TYPE gcp_api_deep_scan_status_enum AS ENUM ('Queued', 'Processing', 'Completed', 'Error');
CREATE TYPE domain_extraction_status AS ENUM ('Queued', 'Processing', 'Completed', 'Error');
CREATE TYPE "SitemapCurationStatusEnum" AS ENUM ('New', 'Selected', 'Maybe', 'Not a Fit', 'Archived', 'Completed');
CREATE TYPE sitemap_analysis_status_enum AS ENUM ('pending', 'queued', 'processing', 'submitted', 'failed');
CREATE TYPE sitemap_import_status_enum AS ENUM ('Queued', 'Processing', 'Complete', 'Error', 'Submitted');
CREATE TYPE page_curation_status AS ENUM ('New', 'Selected', 'Skipped', 'Rejected');
CREATE TYPE page_processing_status AS ENUM ('Queued', 'Processing', 'Complete', 'Error', 'Filtered');

CREATE TABLE places_staging (
    id               uuid PRIMARY KEY DEFAULT gen_random_uuid(),
    place_id         text NOT NULL UNIQUE,
    name             text,
    status           place_status_enum NOT NULL DEFAULT 'New',
    deep_scan_status gcp_api_deep_scan_status_enum,
    deep_scan_error  text,
    created_at       timestamptz NOT NULL DEFAULT now(),
    updated_at       timestamptz NOT NULL DEFAULT now()
);

CREATE TABLE local_businesses (
    id                       uuid PRIMARY KEY DEFAULT gen_random_uuid(),
    place_id                 text UNIQUE,
    business_name            text,
    website_url              text,
    status                   place_status_enum NOT NULL DEFAULT 'New',
    domain_extraction_status domain_extraction_status,
    domain_extraction_error  text,
    created_at               timestamptz NOT NULL DEFAULT now(),
    updated_at               timestamptz NOT NULL DEFAULT now()
);

CREATE TABLE domains (
    id                      uuid PRIMARY KEY DEFAULT gen_random_uuid(),
    domain                  text NOT NULL UNIQUE,
    status                  text NOT NULL DEFAULT 'pending',
    last_error              text,
    sitemap_curation_status "SitemapCurationStatusEnum" DEFAULT 'New',
    sitemap_analysis_status sitemap_analysis_status_enum,
    sitemap_analysis_error  text,
    created_at              timestamptz NOT NULL DEFAULT now(),
    updated_at              timestamptz NOT NULL DEFAULT now()
);

CREATE TABLE sitemap_files (
    id                          uuid PRIMARY KEY DEFAULT gen_random_uuid(),
    domain_id                   uuid REFERENCES domains,
    url                         text NOT NULL,
    deep_scrape_curation_status "SitemapCurationStatusEnum" DEFAULT 'New',
    sitemap_import_status       sitemap_import_status_enum,
    sitemap_import_error        text,
    created_at                  timestamptz NOT NULL DEFAULT now(),
    updated_at                  timestamptz NOT NULL DEFAULT now()
);

CREATE TABLE pages (
    id                     uuid PRIMARY KEY DEFAULT gen_random_uuid(),
    domain_id              uuid REFERENCES domains,
    url                    text NOT NULL,
    page_curation_status   page_curation_status NOT NULL DEFAULT 'New',
    page_processing_status page_processing_status,
    page_processing_error  text,
    created_at             timestamptz NOT NULL DEFAULT now(),
    updated_at             timestamptz NOT NULL DEFAULT now()
);

-- In each queue: 4 waiting, 3 selected and never queued (not in domain_metadata, where rows are born waiting), 2 zombies,
-- 1 that the old system has only just begun, 2 done, 1 failed, 3 that nobody asked for.
CREATE TEMPORARY VIEW state AS
SELECT row_number() OVER ()::integer AS n, w.word, now() - w.age * interval '1 minute' - w.n * interval '1 second' AS at
FROM (SELECT u.word, u.age, g.n
      FROM (VALUES ('waiting', 4, 30), ('selected', 3, 20), ('zombie', 2, 100000), ('begun', 1, 0), ('done', 2, 50),
                   ('failed', 1, 60), ('new', 3, 10)) AS u (word, many, age), generate_series(1, u.many) AS g (n)) AS w;

INSERT INTO places_staging (place_id, name, status, deep_scan_status, deep_scan_error, updated_at)
SELECT 'place-' || n, 'Place ' || n, CASE word WHEN 'new' THEN 'New' ELSE 'Selected' END::place_status_enum,
       CASE word WHEN 'waiting' THEN 'Queued' WHEN 'zombie' THEN 'Processing' WHEN 'begun' THEN 'Processing'
                 WHEN 'done' THEN 'Completed' WHEN 'failed' THEN 'Error' END::gcp_api_deep_scan_status_enum,
       CASE word WHEN 'failed' THEN 'NOT_FOUND' END, at
FROM state;

INSERT INTO local_businesses (place_id, business_name, website_url, status, domain_extraction_status, updated_at)
SELECT 'place-' || n, 'Business ' || n, 'https://business' || n || '.example', CASE word WHEN 'new' THEN 'New' ELSE 'Selected' END::place_status_enum,
       CASE word WHEN 'waiting' THEN 'Queued' WHEN 'zombie' THEN 'Processing' WHEN 'begun' THEN 'Processing'
                 WHEN 'done' THEN 'Completed' WHEN 'failed' THEN 'Error' END::domain_extraction_status, at
FROM state;

INSERT INTO domains (domain, status, sitemap_curation_status, sitemap_analysis_status, updated_at)
SELECT 'business' || n || '.example',
       CASE word WHEN 'waiting' THEN 'pending' WHEN 'zombie' THEN 'processing' WHEN 'begun' THEN 'processing'
                 WHEN 'failed' THEN 'error' ELSE 'completed' END,
       CASE word WHEN 'new' THEN 'New' ELSE 'Selected' END::"SitemapCurationStatusEnum",
       CASE word WHEN 'waiting' THEN 'queued' WHEN 'zombie' THEN 'processing' WHEN 'begun' THEN 'processing'
                 WHEN 'done' THEN 'submitted' WHEN 'failed' THEN 'failed' WHEN 'new' THEN 'pending' END::sitemap_analysis_status_enum, at
FROM state;

INSERT INTO sitemap_files (url, deep_scrape_curation_status, sitemap_import_status, updated_at)
SELECT 'https://business' || n || '.example/sitemap.xml', CASE word WHEN 'new' THEN 'New' ELSE 'Selected' END::"SitemapCurationStatusEnum",
       CASE word WHEN 'waiting' THEN 'Queued' WHEN 'zombie' THEN 'Processing' WHEN 'begun' THEN 'Processing'
                 WHEN 'done' THEN 'Complete' WHEN 'failed' THEN 'Error' END::sitemap_import_status_enum, at
FROM state;

INSERT INTO pages (url, page_curation_status, page_processing_status, updated_at)
SELECT 'https://business' || n || '.example/contact', CASE word WHEN 'new' THEN 'New' ELSE 'Selected' END::page_curation_status,
       CASE word WHEN 'waiting' THEN 'Queued' WHEN 'zombie' THEN 'Processing' WHEN 'begun' THEN 'Processing'
                 WHEN 'done' THEN 'Complete' WHEN 'failed' THEN 'Error' END::page_processing_status, at
FROM state;
DROP VIEW state;
