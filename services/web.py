"""What the pipeline adds to the web page: what follows what, tables of results, what an item came from and led to."""

from itertools import pairwise
from typing import Final, LiteralString

from listener.web.extension import Extension, Table

_STEPS: Final = (
    "place_search",
    "deep_scan",
    "domain_extraction",
    "domain_metadata",
    "sitemap_analysis",
    "sitemap_import",
    "page_curation",
)

# A few of many are enough to go on from.
_PLACES: LiteralString = """
(SELECT 'down' AS direction, 'deep_scan' AS workflow, p.id::text AS key, p.name AS label,
       p.deep_scan_status::text AS status
 FROM public.place AS p WHERE p.place_search_id = %(key)s::uuid ORDER BY p.created_at LIMIT 5)
"""
_SEARCH: LiteralString = """
SELECT 'up' AS direction, 'place_search' AS workflow, s.id::text AS key,
       s.business_type || ' in ' || s.location AS label, s.status::text AS status
FROM public.place AS p JOIN public.place_search AS s ON s.id = p.place_search_id WHERE p.id = %(key)s::uuid
UNION ALL
SELECT 'down', 'domain_extraction', b.id::text, b.name, b.domain_extraction_status::text
FROM public.place AS p JOIN public.local_business AS b ON b.place_id = p.place_id WHERE p.id = %(key)s::uuid
"""
_BUSINESS: LiteralString = """
SELECT 'up' AS direction, 'deep_scan' AS workflow, p.id::text AS key, p.name AS label,
       p.deep_scan_status::text AS status
FROM public.local_business AS b JOIN public.place AS p ON p.place_id = b.place_id WHERE b.id = %(key)s::uuid
UNION ALL
SELECT 'down', 'domain_metadata', d.id::text, d.domain, d.status::text
FROM public.local_business AS b JOIN public.domain AS d ON d.id = b.domain_id WHERE b.id = %(key)s::uuid
"""
_DOMAIN: LiteralString = """
(SELECT 'up' AS direction, 'domain_extraction' AS workflow, b.id::text AS key, b.name AS label,
        b.domain_extraction_status::text AS status
 FROM public.local_business AS b WHERE b.domain_id = %(key)s::uuid ORDER BY b.created_at LIMIT 5)
UNION ALL
SELECT 'down', 'sitemap_analysis', d.id::text, d.domain, d.sitemap_analysis_status::text
FROM public.domain AS d WHERE d.id = %(key)s::uuid
"""
_SITEMAPS: LiteralString = """
SELECT 'up' AS direction, 'domain_metadata' AS workflow, d.id::text AS key, d.domain AS label, d.status::text AS status
FROM public.domain AS d WHERE d.id = %(key)s::uuid
UNION ALL
(SELECT 'down', 'sitemap_import', f.id::text, f.url, f.sitemap_import_status::text
 FROM public.sitemap_file AS f WHERE f.domain_id = %(key)s::uuid ORDER BY f.created_at LIMIT 5)
"""
_PAGES: LiteralString = """
SELECT 'up' AS direction, 'sitemap_analysis' AS workflow, d.id::text AS key, d.domain AS label,
       d.sitemap_analysis_status::text AS status
FROM public.sitemap_file AS f JOIN public.domain AS d ON d.id = f.domain_id WHERE f.id = %(key)s::uuid
UNION ALL
(SELECT 'down', 'page_curation', p.id::text, p.url, p.page_processing_status::text
 FROM public.page AS p WHERE p.sitemap_file_id = %(key)s::uuid ORDER BY p.priority DESC, p.created_at LIMIT 5)
"""
_PAGE: LiteralString = """
SELECT 'up' AS direction, 'sitemap_import' AS workflow, f.id::text AS key, f.url AS label,
       f.sitemap_import_status::text AS status
FROM public.page AS p JOIN public.sitemap_file AS f ON f.id = p.sitemap_file_id WHERE p.id = %(key)s::uuid
UNION ALL
SELECT 'up', 'domain_metadata', d.id::text, d.domain, d.status::text
FROM public.page AS p JOIN public.domain AS d ON d.id = p.domain_id WHERE p.id = %(key)s::uuid
"""

pipeline = Extension(
    handovers=tuple(pairwise(_STEPS)),
    chain=dict(zip(_STEPS, (_PLACES, _SEARCH, _BUSINESS, _DOMAIN, _SITEMAPS, _PAGES, _PAGE), strict=True)),
    tables=(
        # newest by columns that have an index; the rows where people decide what goes on
        Table(
            "places",
            "Places",
            "place",
            columns=("name", "address", "rating", "review_count", "query", "status", "deep_scan_status", "updated_at"),
            search=("name", "address", "business_type", "query"),
            choices=("status", "deep_scan_status"),
            newest="updated_at",
            key="id",
            decided="status",
        ),
        Table(
            "businesses",
            "Businesses",
            "local_business",
            columns=(
                "name",
                "website",
                "phone",
                "city",
                "rating",
                "review_count",
                "status",
                "domain_extraction_status",
                "updated_at",
            ),
            search=("name", "website", "phone", "address"),
            choices=("status", "domain_extraction_status"),
            newest="updated_at",
            key="id",
            decided="status",
        ),
        Table(
            "sitemaps",
            "Sitemaps",
            "sitemap_file",
            columns=(
                "url",
                "sitemap_type",
                "url_count",
                "pages_found",
                "pages_selected",
                "deep_scrape_curation_status",
                "sitemap_import_status",
                "analyzed_at",
            ),
            search=("url",),
            choices=("sitemap_type", "deep_scrape_curation_status", "sitemap_import_status"),
            key="id",
            decided="deep_scrape_curation_status",
        ),
        Table(
            "contacts",
            "Contacts",
            "contact",
            columns=(
                "name",
                "role",
                "email",
                "email_type",
                "phone",
                "contact_curation_status",
                "source_url",
                "context",
                "created_at",
            ),
            search=("name", "role", "email", "phone", "source_url", "context"),
            choices=("email_type", "contact_curation_status"),
            newest="created_at",
            key="id",
            decided="contact_curation_status",
        ),
    ),
)
