"""WF4b and WF5. A domain -> its sitemaps, each a row; how many there are is written by the work itself."""

import json
from dataclasses import dataclass
from typing import Any

from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncSession

from listener import Done, Tools, Workflow
from services.crawl import CrawlSettings, author
from services.fetch import fetcher, verdicts
from services.models import Domain
from services.sitemaps.discover import Discoverer, Discovery, Sitemap


@dataclass(frozen=True, slots=True)
class Analysed:
    discovery: Discovery
    created_by: str


async def work(domain: Domain, tools: Tools) -> Analysed:
    home = domain.home_url or f"https://{domain.domain}/"
    with verdicts():
        discovery = await Discoverer(fetcher(tools), home, domain.domain, tools.clock).run()
        if not discovery.sitemaps and discovery.trouble is not None:
            raise discovery.trouble  # "there is none" must not be said of a site that did not answer
    return Analysed(discovery, author(tools))


def columns(sitemap: Sitemap) -> dict[str, Any]:
    """The data columns of `sitemap_file`."""
    return {
        "url": sitemap.url,
        "sitemap_type": sitemap.kind.value,
        "format": sitemap.format,
        "found_by": sitemap.found_by,
        "depth": sitemap.depth,
        "url_count": sitemap.url_count,
        "gzip": sitemap.gzip,
        "size_bytes": sitemap.size,
        "http_status": sitemap.status,
        "response_ms": sitemap.response_ms,
        "has_lastmod": sitemap.has_lastmod,
        "has_priority": sitemap.has_priority,
        "has_changefreq": sitemap.has_changefreq,
    }


# Data columns only: what a person thinks of a sitemap, and how far its import is, outlives the next analysis.
_FILES = text("""
INSERT INTO sitemap_file AS f (domain_id, tenant_id, created_by, url, sitemap_type, format, found_by, depth, url_count,
    gzip, size_bytes, http_status, response_ms, has_lastmod, has_priority, has_changefreq, analyzed_at)
SELECT domain_id, tenant_id, created_by, url, CAST(sitemap_type AS sitemap_type), format, found_by, depth, url_count,
    gzip, size_bytes, http_status, response_ms, has_lastmod, has_priority, has_changefreq, now()
FROM jsonb_to_recordset(CAST(:rows AS jsonb)) AS n (
    domain_id uuid, tenant_id uuid, created_by text, url text, sitemap_type text, format text, found_by text,
    depth smallint, url_count integer, gzip boolean, size_bytes bigint, http_status smallint, response_ms integer,
    has_lastmod boolean, has_priority boolean, has_changefreq boolean)
ORDER BY domain_id, url
ON CONFLICT (domain_id, url) DO UPDATE SET
    sitemap_type = excluded.sitemap_type, format = excluded.format, found_by = excluded.found_by,
    depth = excluded.depth,
    url_count = excluded.url_count, gzip = excluded.gzip, size_bytes = excluded.size_bytes,
    http_status = excluded.http_status, response_ms = excluded.response_ms, has_lastmod = excluded.has_lastmod,
    has_priority = excluded.has_priority, has_changefreq = excluded.has_changefreq,
    analyzed_at = excluded.analyzed_at""")

_PARENTS = text("""
UPDATE sitemap_file AS child SET parent_id = parent.id
FROM jsonb_to_recordset(CAST(:rows AS jsonb)) AS n (domain_id uuid, url text, parent text)
JOIN sitemap_file AS parent ON parent.domain_id = n.domain_id AND parent.url = n.parent
WHERE child.domain_id = n.domain_id AND child.url = n.url AND child.parent_id IS DISTINCT FROM parent.id""")

_DOMAINS = text("""
UPDATE domain AS d SET sitemap_count = n.sitemap_count, sitemap_url_count = n.sitemap_url_count,
    sitemap_note = n.sitemap_note, sitemap_analyzed_at = now()
FROM jsonb_to_recordset(CAST(:rows AS jsonb)) AS n (
    id uuid, sitemap_count integer, sitemap_url_count integer, sitemap_note text)
WHERE d.id = n.id""")


async def save(session: AsyncSession, results: list[Done[Domain, Analysed]]) -> None:
    files: list[dict[str, Any]] = []
    domains: list[dict[str, Any]] = []
    for done in results:
        found = done.result.discovery
        owner = {
            "domain_id": str(done.item.id),
            "tenant_id": str(done.item.tenant_id),
            "created_by": done.result.created_by,
        }
        files += [{**owner, **columns(sitemap), "parent": sitemap.parent} for sitemap in found.sitemaps]
        domains.append(
            {
                "id": str(done.item.id),
                "sitemap_count": len(found.sitemaps),
                "sitemap_url_count": found.url_count,
                "sitemap_note": found.note,
            }
        )
    if files:
        await session.execute(_FILES, {"rows": json.dumps(files)})
        await session.execute(_PARENTS, {"rows": json.dumps([file for file in files if file["parent"]])})
    await session.execute(_DOMAINS, {"rows": json.dumps(domains)})


sitemap_analysis = Workflow(
    "sitemap_analysis",
    Domain,
    work,
    save,
    settings=CrawlSettings,
    env_prefix="DOMAIN_SITEMAP_SCHEDULER_",
    retired_env_prefixes=("SITEMAP_SCHEDULER_",),
)
