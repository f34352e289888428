"""What would be stored for one URL or file, and why, as plain data. No database is touched."""

import asyncio
import dataclasses
from collections.abc import Awaitable, Callable, Iterator
from datetime import datetime
from enum import Enum
from pathlib import Path
from typing import Any, TypeVar

import httpx
import phonenumbers

from listener.errors import UserError
from services.contacts import contacts
from services.crawl import HTML, CrawlSettings, visit
from services.evidence import Evidence, Found, Refused
from services.fetch import Fetched, Fetcher, FetchError, Robots
from services.fetch.inflate import Unpacking
from services.fetch.robots import LIMIT as ROBOTS_LIMIT
from services.html import read_page
from services.html.metadata import metadata
from services.html.structured import structured
from services.page_curation import unworthy
from services.sitemap_import import Imported, PageRow, Taker
from services.sitemaps import NotASitemapError, SitemapReader
from services.sitemaps.classify import classify
from services.sitemaps.reader import MOST_BYTES, Entry
from services.sitemaps.urls import UnusableUrlError, normal_url
from services.websites import Kind, site_of, website

Answer = TypeVar("Answer")

CHUNK = 65_536
SHOWN = 100
"""Pages of a sitemap that are printed; all are counted."""


def page(target: str, url: str = "", country: str | None = None) -> Any:
    """Contacts and metadata of a page."""
    country = _country(country)
    fetched = _document(target, url)
    read = read_page(fetched.text(), fetched.final_url, fetched.headers, explain=True)
    data = structured(read)
    about = metadata(read, data)
    reach = contacts(read, country=country, data=data)
    title = about.title.value if about.title else ""
    filtered = None
    if "content-type" in fetched.headers and fetched.media_type not in HTML:
        filtered = f"not HTML: {fetched.media_type or 'of no kind'}"
    elif fetched.url:
        filtered = unworthy(read, title, fetched.url, fetched.final_url, site_of(fetched.url) or "")
    kind = classify(fetched.final_url) if fetched.final_url else None
    return _plain(
        {
            "url": fetched.final_url,
            "status": fetched.status,
            "site": read.site,
            "category": kind,
            "filtered": filtered,
            "metadata": about,
            "contacts": [
                {
                    "email": one.email,
                    "email_type": one.email_type,
                    "phone": one.phone,
                    "name": one.name,
                    "role": one.role,
                    "context": one.context,
                    "evidence": one.evidence,
                }
                for one in reach.contacts
            ],
            "socials": reach.socials,
            "address": reach.address,
            "phone_region": reach.region,
            "refused": reach.refused,
        }
    )


def sitemap(target: str, url: str = "") -> Any:
    """The pages of a sitemap, each with its category and what becomes of it."""
    fetched = _document(target, url, ungzip=True, limit=MOST_BYTES)
    base = fetched.final_url
    found, reader = Imported(), SitemapReader()
    refused: list[tuple[str, str]] = []
    taker: Taker | None = None
    try:
        for entries in _entries(reader, fetched.body):
            if taker is None and entries:
                # of a file we only know what it lists: the first address says whose it is
                base = base or entries[0].loc
                taker = Taker(found, reader, base, site_of(base) or "", refused)
            if taker is not None:
                taker.take(entries)
    except NotASitemapError as error:
        return {"url": fetched.final_url, "sitemap": False, "reason": str(error)}
    found.stopped, found.flaw = reader.stopped, reader.flaw
    pages = list(found.pages.values())
    return _plain(
        {
            "url": fetched.final_url,
            "site": site_of(base) if base else None,
            "sitemap": True,
            "type": reader.kind,
            "format": reader.format,
            "gzip": fetched.gzipped,
            "size_bytes": len(fetched.body),
            "url_count": reader.count,
            "has_lastmod": reader.has_lastmod,
            "has_priority": reader.has_priority,
            "has_changefreq": reader.has_changefreq,
            "pages_found": len(pages),
            "pages_selected": sum(one.selected for one in pages),
            "pages_filtered": sum(one.filter_rule is not None for one in pages),
            "note": found.note,
            "dropped": found.dropped,
            "refused": [{"value": loc, "reason": why} for loc, why in refused[:SHOWN]],
            "children": list(found.children)[:SHOWN],
            "pages": [_page(one) for one in sorted(pages, key=lambda one: (-one.priority, one.url))[:SHOWN]],
        }
    )


def robots(target: str, url: str = "") -> Any:
    """What a robots.txt allows us, the pause it asks for, and the sitemaps it names."""
    settings = _settings()
    path = _file(target)
    if path is not None:
        with path.open("rb") as source:
            rules = Robots.read(source.read(ROBOTS_LIMIT).decode("utf-8", "replace"), settings.robot)
    else:
        url = url or _absolute(target)
        rules = asyncio.run(_with_fetcher(settings, lambda fetch: fetch.robots(target_of(url))))
    return _plain(
        {
            "found": rules.found,
            "reason": "" if rules.found else "there is none, or an HTML page in its place: everything is allowed",
            "agent": rules.agent,
            "allows": {one: rules.allows(one) for one in ([target_of(url)] if url else [])},
            "crawl_delay": rules.crawl_delay,
            "sitemaps": rules.sitemaps,
        }
    )


def _entries(reader: SitemapReader, body: bytes) -> Iterator[list[Entry]]:
    for start in range(0, len(body), CHUNK):
        yield reader.feed(body[start : start + CHUNK])
        if reader.stopped:
            break
    yield reader.finish()


def website_of(text: str) -> Any:
    """The registrable domain, or the reason there is none."""
    found = website(text)
    return _plain({"website": text, **_plain(found), "shown": found.shown or None})


def target_of(url: str) -> str:
    try:
        return normal_url(url)
    except UnusableUrlError as error:
        raise UserError(f"{url} cannot be fetched: {error}.", "Give a URL such as https://example.com/.") from None


def _page(one: PageRow) -> dict[str, Any]:
    status = "Queued" if one.selected else "Filtered" if one.filter_rule else None
    return {**one._asdict(), "page_processing_status": status, "rule": classify(one.url).rule}


def _file(target: str) -> Path | None:
    if "://" in target:
        return None
    path = Path(target)
    return path if path.is_file() else None


def _absolute(target: str) -> str:
    if "://" in target:
        return target
    if website(target).kind not in (Kind.DOMAIN, Kind.PLATFORM):
        raise UserError(
            f"There is no file {target!r}, and it is no URL.", "Give a URL with https:// or the path of a file."
        )
    return f"https://{target}"


def _document(target: str, url: str, *, ungzip: bool = False, limit: int | None = None) -> Fetched:
    path = _file(target)
    if path is None:
        address = target_of(_absolute(target))
        if not ungzip:
            return asyncio.run(_with_fetcher(_settings(), lambda fetch: visit(fetch, address, only=())))
        return asyncio.run(
            _with_fetcher(_settings(), lambda fetch: fetch.get(address, ungzip=True, limit=limit, cut=True))
        )
    url = target_of(url) if url else ""
    try:
        body, gzipped = _unpacked(path, limit or MOST_BYTES) if ungzip else (_beginning(path), False)
    except OSError as error:
        raise UserError(f"{path} cannot be read: {error.strerror}.", "") from None
    return Fetched(url, url, 200, httpx.Headers(), body, 0.0, (), gzipped)


def _beginning(path: Path) -> bytes:
    with path.open("rb") as source:
        return source.read(MOST_BYTES)


def _country(text: str | None) -> str | None:
    if text is not None and text.upper() not in phonenumbers.SUPPORTED_REGIONS | {"UK"}:
        raise UserError(f"--country cannot be {text!r}.", "Give two letters, such as US or DE.")
    return text


def _unpacked(path: Path, limit: int) -> tuple[bytes, bool]:
    """A file that may be gzip, up to the cap."""
    unpacking = Unpacking((), ungzip=True, ratio=CrawlSettings.model_fields["ratio"].default)
    body = bytearray()
    try:
        with path.open("rb") as source:
            while len(body) <= limit and (chunk := source.read(CHUNK)):
                for piece in unpacking.feed(chunk):
                    body += piece
                    if len(body) > limit:
                        break
    except FetchError as error:
        raise UserError(f"{path}: {error}.", "") from error
    return bytes(body[:limit]), unpacking.gzipped


async def _with_fetcher(settings: CrawlSettings, use: Callable[[Fetcher], Awaitable[Answer]]) -> Answer:
    async with Fetcher(settings) as fetch:
        try:
            return await use(fetch)
        except FetchError as error:
            raise UserError(f"{error.url or 'It'} was not fetched: {error}.", "") from error


def _settings() -> CrawlSettings:
    try:
        return CrawlSettings()
    except ValueError as error:
        raise UserError(f"The settings do not fit: {error}", "Correct FETCH_* in the environment or .env.") from None


def _plain(value: Any) -> Any:
    """As JSON has it; what is absent is left out of evidence, and kept everywhere else."""
    if isinstance(value, Found):
        return {"value": _plain(value.value), "evidence": _plain(value.evidence)}
    if isinstance(value, Evidence):
        return {name: text for name, text in dataclasses.asdict(value).items() if text}
    if isinstance(value, Refused):
        return {"kind": value.kind, "value": value.value, "reason": value.reason, "evidence": _plain(value.evidence)}
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, datetime):
        return value.isoformat()
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {one.name: _plain(getattr(value, one.name)) for one in dataclasses.fields(value)}
    if isinstance(value, dict):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    return value
