"""What the workflows that read websites share: their settings, who they write as, and how a page is visited."""

import re
from collections.abc import Collection
from dataclasses import replace
from urllib.parse import urljoin
from uuid import UUID

from pydantic import Field
from selectolax.lexbor import LexborHTMLParser

from listener import Tools
from services.fetch import Fetched, Fetcher, FetchSettings
from services.fetch.charset import decode
from services.html import Page, read_page
from services.settings import DEFAULT_SYSTEM_USER

PATIENCE = 10.0
"""Seconds that one of many items of a host waits for its turn. While it waits, its run holds a place that the items of
other hosts could use, so one that has to wait longer is put off."""
HTML = ("text/html", "application/xhtml+xml")
_MOST_REFRESHES = 2
_SOON = 5.0
"""Seconds. A page that stays longer is there to be read."""
_HEAD = 16_384
"""Bytes that are looked at; also what keeps a hostile page from taking long."""
_LONGEST = 2_000
_REFRESH = re.compile(
    r"\s*(\d{1,4}(?:\.\d*)?|\.\d+)\s*[;,]\s*(?:url\s*=\s*)?[\"']?\s*([^\"'\s>][^\"'>]*)", re.IGNORECASE
)


class CrawlSettings(FetchSettings):
    """The fetcher's settings, and the system user of PipelineSettings."""

    scheduler_system_user_id: UUID = Field(default=DEFAULT_SYSTEM_USER, validation_alias="SCHEDULER_SYSTEM_USER_ID")


def author(tools: Tools) -> str:
    """The `created_by` of the rows this work leads to."""
    settings = tools.settings
    return str(settings.scheduler_system_user_id if isinstance(settings, CrawlSettings) else DEFAULT_SYSTEM_USER)


async def visit(fetch: Fetcher, url: str, *, only: Collection[str] = HTML, patience: float | None = None) -> Fetched:
    """The page at which a browser ends, also where a page itself sends its visitors on (a meta refresh)."""
    # some servers send the gzip file itself and do not say so
    fetched = await fetch.get(url, only=only, ungzip=True, patience=patience)
    passed = [fetched.final_url]
    while len(passed) <= _MOST_REFRESHES and (onward := sent_on_to(fetched)) and onward not in passed:
        before, fetched = fetched, await fetch.get(onward, only=only, ungzip=True)
        passed.append(fetched.final_url)
        fetched = replace(fetched, url=before.url, redirects=(*before.redirects, before.final_url, *fetched.redirects))
    return fetched


def sent_on_to(fetched: Fetched) -> str | None:
    """Where a page sends its visitors at once; None for nearly all, which are not even parsed for it."""
    head = decode(fetched.body[:_HEAD], fetched.charset)
    if "http-equiv" not in (lowered := head.lower()) or "refresh" not in lowered:
        return None
    # in a noscript it is for those who see nothing else
    for node in LexborHTMLParser(head).css('meta[http-equiv="refresh" i][content]:not(noscript *)'):
        said = _REFRESH.match((node.attributes.get("content") or "")[:_LONGEST])
        if said is None or float(said[1]) > _SOON:
            continue
        try:
            onward: str = urljoin(fetched.final_url, said[2].strip()).partition("#")[0]
        except ValueError:
            continue
        if onward.startswith(("http://", "https://")):
            return onward
    return None


def page_of(fetched: Fetched) -> Page:
    return read_page(fetched.text(), fetched.final_url, fetched.headers)
