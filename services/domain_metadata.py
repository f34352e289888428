"""WF4a. The home page of a domain -> what it says of itself; then its sitemaps are asked for."""

import asyncio
import json
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncSession

from listener import Done, Tools, Workflow
from services.contacts import PageContacts, contacts
from services.crawl import CrawlSettings, page_of, visit
from services.evidence import Found
from services.fetch import (
    ConnectError,
    ConnectTimeoutError,
    DeadHostError,
    Fetched,
    Fetcher,
    FetchError,
    RedirectError,
    ResolveError,
    StatusError,
    TlsError,
    fetcher,
    verdicts,
)
from services.html.metadata import Metadata, metadata
from services.html.structured import structured
from services.models import Domain
from services.websites import is_of, unicode_host

MOST_LISTED = 100
"""Emails and phones kept on the domain itself; the contacts of its pages have no such limit."""
GONE = 410
_ELSEWHERE = (ConnectError, ConnectTimeoutError, TlsError, DeadHostError, ResolveError)
"""Failures after which another scheme or www. may still work."""


@dataclass(frozen=True, slots=True)
class HomePage:
    url: str
    status: int
    about: Metadata
    reach: PageContacts


async def work(domain: Domain, tools: Tools) -> HomePage:
    with verdicts():
        fetched = await home_page(fetcher(tools), domain.domain)
    return await asyncio.to_thread(read_home, fetched, domain.country_code)


async def home_page(fetch: Fetcher, domain: str) -> Fetched:
    """By https, then http, then the same with www.; what kept us from the first is the error if all fail."""
    failures: list[FetchError] = []
    for host in (domain, f"www.{domain}"):
        for scheme in ("https", "http"):
            try:
                return _of_site(await visit(fetch, f"{scheme}://{host}/"), domain)
            except _ELSEWHERE as error:
                failures.append(error)
            except StatusError as error:
                if error.retryable or error.status == GONE:
                    raise
                failures.append(error)
                break  # the host is there, and says no: many a site is only set up at its www.
    raise failures[0]


def _of_site(fetched: Fetched, domain: str) -> Fetched:
    """A page elsewhere is somebody else's; or the business has moved, which a person must say."""
    if is_of(fetched.final_url, domain):
        return fetched
    host = unicode_host(urlsplit(fetched.final_url).hostname or "")
    raise RedirectError(f"{domain} leads to another website, {host}", url=fetched.final_url)


def read_home(fetched: Fetched, country: str | None) -> HomePage:
    page = page_of(fetched)
    data = structured(page)
    return HomePage(fetched.final_url, fetched.status, metadata(page, data), contacts(page, country=country, data=data))


def columns(home: HomePage) -> dict[str, Any]:
    """The data columns of `domain` that a home page fills."""
    about, reach = home.about, home.reach
    return {
        "home_url": home.url[:2048],
        "http_status": home.status,
        "title": _value(about.title),
        "description": _value(about.description),
        "language": _value(about.language),
        "canonical_url": _value(about.canonical),
        "favicon_url": _value(about.favicon),
        "logo_url": _value(about.logo),
        "generator": _value(about.generator),
        "cms": about.cms.value.name if about.cms else None,
        "cms_version": about.cms.value.version if about.cms else None,
        "technologies": [found.value.name for found in about.technologies],
        "emails": reach.emails[:MOST_LISTED],
        "phones": reach.phones[:MOST_LISTED],
        "socials": {network: found.value for network, found in reach.socials.items()},
        "structured_data": about.structured_data,
    }


def _value(found: Found[str] | None) -> str | None:
    return found.value if found else None


# The next workflow is asked for in the same commit. One that is in progress is not asked for twice.
_SAVE = text("""
UPDATE domain AS d SET
    home_url = n.home_url, http_status = n.http_status, title = n.title, description = n.description,
    language = n.language, canonical_url = n.canonical_url, favicon_url = n.favicon_url, logo_url = n.logo_url,
    generator = n.generator, cms = n.cms, cms_version = n.cms_version, technologies = n.technologies,
    emails = n.emails, phones = n.phones, socials = n.socials, structured_data = n.structured_data, metadata_at = now(),
    sitemap_analysis_status = CASE WHEN d.sitemap_analysis_status = 'processing' THEN d.sitemap_analysis_status
                                   ELSE 'queued' END
FROM jsonb_to_recordset(CAST(:rows AS jsonb)) AS n (
    id uuid, home_url text, http_status smallint, title text, description text, language text, canonical_url text,
    favicon_url text, logo_url text, generator text, cms text, cms_version text, technologies text[], emails text[],
    phones text[], socials jsonb, structured_data jsonb)
WHERE d.id = n.id""")


async def save(session: AsyncSession, results: list[Done[Domain, HomePage]]) -> None:
    rows = [{"id": str(done.item.id), **columns(done.result)} for done in results]
    await session.execute(_SAVE, {"rows": json.dumps(rows)})


domain_metadata = Workflow(
    "domain_metadata", Domain, work, save, settings=CrawlSettings, env_prefix="DOMAIN_SCHEDULER_"
)
