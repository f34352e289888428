"""Where a site's sitemaps are: robots.txt, the usual paths, links on the home page, and the children of indexes."""

import re
from collections import deque
from collections.abc import AsyncIterator, Iterable, Iterator
from dataclasses import dataclass, field
from urllib.parse import urljoin, urlsplit

from listener import Clock
from services.crawl import HTML, page_of
from services.fetch import DisallowedError, Fetcher, FetchError, StatusError
from services.models.words import SitemapType
from services.sitemaps.reader import MOST_BYTES, NotASitemapError, SitemapReader
from services.sitemaps.urls import UnusableUrlError, normal_url
from services.websites import is_of

DEEPEST = 5
MOST_SITEMAPS = 200
MOST_REQUESTS = 300
MOST_CHILDREN = 5_000
MOST_SECONDS = 420.0
"""A look ends before its workflow's timeout, also where a crawl delay makes each request wait half a minute."""
ACCEPT = "application/xml,text/xml,text/plain;q=0.9,*/*;q=0.8"

ROBOTS, USUAL, HOME, INDEX = "robots.txt", "usual path", "home page", "index"
FIRST_PATHS = ("/sitemap.xml", "/sitemap_index.xml", "/wp-sitemap.xml")
"""Tried always: a robots.txt often names only one of several."""
MORE_PATHS = [
    "/sitemap-index.xml",
    "/sitemap.xml.gz",
    "/sitemap_index.xml.gz",
    "/sitemap-index.xml.gz",
    "/sitemap.txt",
    "/sitemap.php",
    "/sitemap",
    "/sitemap1.xml",
    "/sitemap/sitemap.xml",
    "/sitemap/sitemap-index.xml",
    "/sitemap/index.xml",
    "/sitemaps.xml",
    "/page-sitemap.xml",
    "/post-sitemap.xml",
    "/sitemap-news.xml",
    "/sitemap_news.xml",
    "/.sitemap.xml",
    "/admin/config/search/xmlsitemap",
]
"""Tried only if nothing was found before: every one is a request that a host without a sitemap answers in vain."""
_LINK = re.compile(r"sitemap[^/]*\.(?:xml|txt|gz)|/wp-sitemap|sitemap[_-]?index", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Candidate:
    url: str
    found_by: str
    depth: int = 0
    parent: str | None = None


@dataclass(frozen=True, slots=True)
class Sitemap:
    """One sitemap that was read, as its row says it."""

    url: str
    kind: SitemapType
    format: str
    found_by: str
    depth: int
    parent: str | None
    url_count: int
    gzip: bool
    size: int
    status: int
    response_ms: int
    has_lastmod: bool
    has_priority: bool
    has_changefreq: bool
    note: str | None
    children: tuple[str, ...] = ()


@dataclass(slots=True)
class Discovery:
    sitemaps: list[Sitemap] = field(default_factory=list)
    refused: list[tuple[str, str, str]] = field(default_factory=list)
    """(url, how it was found, why it is none)."""
    stopped: str = ""
    trouble: FetchError | None = None
    """The first failure that may pass; it counts only if nothing was found."""

    @property
    def url_count(self) -> int:
        return sum(one.url_count for one in self.sitemaps if one.kind is not SitemapType.INDEX)

    @property
    def note(self) -> str:
        """What a person should know of it, in one line."""
        parts = [self._summary()]
        named = [f"{url}: {why}" for url, how, why in self.refused if how in (ROBOTS, INDEX)]
        if named:
            parts.append(f"{len(named)} named but not readable ({'; '.join(named[:3])})")
        if self.stopped:
            parts.append(f"stopped: {self.stopped}")
        return "; ".join(parts)[:1000]

    def _summary(self) -> str:
        if not self.sitemaps:
            return "there is no sitemap: looked in robots.txt, at the usual paths and on the home page"
        sitemaps = "1 sitemap" if len(self.sitemaps) == 1 else f"{len(self.sitemaps)} sitemaps"
        return f"{sitemaps} with {self.url_count:,} address{'' if self.url_count == 1 else 'es'}"


class Discoverer:
    """One look at one site."""

    def __init__(self, fetch: Fetcher, home: str, site: str, clock: Clock) -> None:
        self._fetch = fetch
        self._home = home
        self._site = site
        self._clock = clock
        self._until = clock.monotonic() + MOST_SECONDS
        self._seen: set[str] = set()
        self._requests = 0
        self.found = Discovery()

    async def run(self) -> Discovery:
        robots = await self._fetch.robots(self._home)
        await self._read_all(Candidate(url, ROBOTS) for url in robots.sitemaps)
        await self._read_all(Candidate(path, USUAL) for path in FIRST_PATHS)
        await self._read_all([Candidate(url, HOME) async for url in self._home_links()])
        if not self.found.sitemaps:
            await self._read_all((Candidate(path, USUAL) for path in MORE_PATHS), first_only=True)
        return self.found

    async def _read_all(self, candidates: Iterable[Candidate], *, first_only: bool = False) -> None:
        """These, and what the indexes among them lead to, level by level."""
        queue = deque(candidates)
        while queue:
            if len(self.found.sitemaps) >= MOST_SITEMAPS or self._requests >= MOST_REQUESTS:
                self.found.stopped = f"more than {MOST_SITEMAPS} sitemaps or {MOST_REQUESTS} requests"
                return
            if self._clock.monotonic() > self._until:
                self.found.stopped = f"not done after {MOST_SECONDS:.0f} s, at the pace the site asks for"
                return
            candidate = queue.popleft()
            sitemap = await self._try(candidate)
            if sitemap is None:
                continue
            if first_only and sitemap.depth == 0:
                queue.clear()
            queue.extend(self._children(sitemap))

    def _children(self, sitemap: Sitemap) -> Iterator[Candidate]:
        if sitemap.children and sitemap.depth >= DEEPEST:
            self.found.stopped = f"indexes nested deeper than {DEEPEST}"
            return
        for url in sitemap.children:
            yield Candidate(url, INDEX, sitemap.depth + 1, sitemap.url)

    async def _try(self, candidate: Candidate) -> Sitemap | None:
        try:
            url = normal_url(candidate.url, candidate.parent or self._home)
        except UnusableUrlError as error:
            self.found.refused.append((candidate.url[:200], candidate.found_by, str(error)))
            return None
        if url in self._seen:
            return None
        self._seen.add(url)
        if not self._may_be_at(url, candidate):
            self.found.refused.append((url, candidate.found_by, "on another site"))
            return None
        self._requests += 1
        try:
            sitemap = await read_sitemap(self._fetch, url, candidate)
        except (NotASitemapError, FetchError) as error:
            self.found.refused.append((url, candidate.found_by, str(error)))
            if isinstance(error, FetchError) and error.retryable:
                self.found.trouble = self.found.trouble or error
            return None
        if sitemap.url != url and sitemap.url in self._seen:
            return None  # a redirect to one that is known
        if not self._may_be_at(sitemap.url, candidate):
            self.found.refused.append((url, candidate.found_by, "redirected to another site"))
            return None
        self._seen.add(sitemap.url)
        self.found.sitemaps.append(sitemap)
        return sitemap

    def _may_be_at(self, url: str, candidate: Candidate) -> bool:
        """On its own website, or where its index is; robots.txt alone may name any place, as the protocol has it."""
        if candidate.found_by == ROBOTS or is_of(url, self._site):
            return True
        return candidate.parent is not None and urlsplit(url).hostname == urlsplit(candidate.parent).hostname

    async def _home_links(self) -> AsyncIterator[str]:
        self._requests += 1
        try:
            fetched = await self._fetch.get(self._home, only=HTML, ungzip=True)
        except (StatusError, DisallowedError):
            return
        except FetchError as error:
            self.found.trouble = self.found.trouble or (error if error.retryable else None)
            return
        if "sitemap" not in fetched.text().lower():
            return  # no link can lead to one, and parsing a page costs more than asking for it
        page = page_of(fetched)
        named = [node.attributes.get("href") or "" for node in page.tree.css('link[rel~="sitemap" i][href]')[:10]]
        linked = [href for href, _ in page.links[:2000] if _LINK.search(href[:500])]
        for href in dict.fromkeys([*named, *linked[:10]]):
            yield urljoin(fetched.final_url, href)


async def read_sitemap(fetch: Fetcher, url: str, candidate: Candidate) -> Sitemap:
    """Fetch and read one; raises NotASitemapError at the first bytes of anything else."""
    reader = SitemapReader()
    children: list[str] = []
    async with fetch.stream(url, limit=MOST_BYTES, cut=True, accept=ACCEPT, ungzip=True) as answer:
        async for chunk in answer.chunks():
            entries = reader.feed(chunk)
            if reader.is_index and len(children) < MOST_CHILDREN:
                children += [entry.loc for entry in entries]
            if reader.stopped:
                break
        entries = reader.finish()
        if reader.is_index:
            children += [entry.loc for entry in entries]
        stopped = reader.stopped or (f"longer than {MOST_BYTES:,} bytes" if answer.was_cut else "")
        return Sitemap(
            url=normal_url(answer.final_url),
            kind=reader.kind,
            format=reader.format,
            found_by=candidate.found_by,
            depth=candidate.depth,
            parent=candidate.parent,
            url_count=reader.count,
            gzip=answer.gzipped,
            size=answer.size,
            status=answer.status,
            response_ms=round(answer.elapsed_ms),
            has_lastmod=reader.has_lastmod,
            has_priority=reader.has_priority,
            has_changefreq=reader.has_changefreq,
            note=f"stopped: {stopped}" if stopped else None,
            children=tuple(dict.fromkeys(children[:MOST_CHILDREN])),
        )
