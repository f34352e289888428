"""WF6. A sitemap -> its pages, read as it comes; an index -> its sitemaps, handed on to this same workflow."""

import json
from dataclasses import dataclass, field
from datetime import datetime
from typing import NamedTuple
from urllib.parse import urlsplit

from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncSession

from listener import Done, Reject, Tools, Workflow
from services.crawl import PATIENCE, CrawlSettings, author
from services.fetch import fetcher, verdicts
from services.models import SitemapFile
from services.sitemaps.classify import PageClass, Verdict, classify
from services.sitemaps.discover import ACCEPT, DEEPEST, MOST_CHILDREN
from services.sitemaps.reader import MOST_BYTES, Entry, NotASitemapError, SitemapReader
from services.sitemaps.urls import UnusableUrlError, normal_url, of_site

MOST_SHALLOW = 25
"""Shallow pages of no known kind that one sitemap may select; a shop may have thousands."""
MOST_SHOWN = 100
ROWS_A_STATEMENT = 5_000


class PageRow(NamedTuple):
    """One page as it is stored; fifty thousand of them are held at once, so they are small."""

    url: str
    category: str
    depth: int
    confidence: float
    lastmod: datetime | None
    sitemap_priority: float | None
    priority: int
    filter_rule: str | None
    selected: bool


@dataclass(slots=True)
class Imported:
    created_by: str = ""
    pages: dict[str, PageRow] = field(default_factory=dict)
    children: dict[str, None] = field(default_factory=dict)
    """The sitemaps of an index, in its order."""
    is_index: bool = False
    dropped: dict[str, int] = field(default_factory=dict)
    """Why an entry became no page -> how many."""
    shallow: int = 0
    stopped: str = ""
    flaw: str = ""

    @property
    def note(self) -> str | None:
        parts = [f"an index: {len(self.children)} sitemaps handed on"] if self.is_index else []
        parts += [f"{count} dropped: {why}" for why, count in sorted(self.dropped.items())[:5]]
        if self.shallow > MOST_SHALLOW:
            parts.append(f"{self.shallow - MOST_SHALLOW} shallow pages left unselected")
        if self.flaw:
            parts.append(f"broken XML, of which this much could be read: {self.flaw}")
        if self.stopped:
            parts.append(f"stopped: {self.stopped}")
        return "; ".join(parts)[:1000] or None


async def work(sitemap: SitemapFile, tools: Tools) -> Imported:
    found = Imported(created_by=author(tools))
    reader = SitemapReader()
    taker = Taker(found, reader, sitemap.url, sitemap.domain.domain)
    with verdicts():
        try:
            async with fetcher(tools).stream(
                sitemap.url, limit=MOST_BYTES, cut=True, accept=ACCEPT, ungzip=True, patience=PATIENCE
            ) as answer:
                async for chunk in answer.chunks():
                    taker.take(reader.feed(chunk))
                    if reader.stopped:
                        break
                taker.take(reader.finish())
                found.flaw = "" if answer.was_cut else reader.flaw  # cut in two is broken too
                found.stopped = reader.stopped or (f"longer than {MOST_BYTES:,} bytes" if answer.was_cut else "")
        except NotASitemapError as error:
            raise Reject(f"not a sitemap: {error}") from error
    if found.is_index and sitemap.depth >= DEEPEST:
        found.stopped = f"indexes nested deeper than {DEEPEST}"
        found.children.clear()
    return found


class Taker:
    """Turns entries into pages, or into the sitemaps of an index."""

    def __init__(
        self,
        found: Imported,
        reader: SitemapReader,
        url: str,
        site: str,
        refused: list[tuple[str, str]] | None = None,
    ) -> None:
        self._found, self._reader, self._url, self._site = found, reader, url, site
        self._refused = refused
        """The first of what is dropped, with the reason, where somebody wants to see it."""
        self._host = urlsplit(url).hostname

    def take(self, entries: list[Entry]) -> None:
        self._found.is_index = self._reader.is_index
        for entry in entries:
            try:
                if self._reader.is_index:
                    self._child(entry.loc)
                else:
                    self._page(entry)
            except UnusableUrlError as error:
                why = str(error).partition(" (")[0]
                self._found.dropped[why] = self._found.dropped.get(why, 0) + 1
                if self._refused is not None and len(self._refused) < MOST_SHOWN:
                    self._refused.append((entry.loc[:200], str(error)))

    def _child(self, loc: str) -> None:
        url = normal_url(loc, self._url)
        if urlsplit(url).hostname != self._host:
            of_site(url, self._url, self._site)  # not ours, and not where this index is
        if url != self._url and len(self._found.children) < MOST_CHILDREN:
            self._found.children[url] = None

    def _page(self, entry: Entry) -> None:
        url = of_site(entry.loc, self._url, self._site)
        if url not in self._found.pages:
            kind = classify(url)
            self._found.pages[url] = page_row(url, entry, kind, selected=self._is_selected(kind))

    def _is_selected(self, kind: PageClass) -> bool:
        if kind.verdict is not Verdict.READ or kind.category != "other":
            return kind.verdict is Verdict.READ
        self._found.shallow += 1
        return self._found.shallow <= MOST_SHALLOW


def page_row(url: str, entry: Entry, kind: PageClass, *, selected: bool) -> PageRow:
    return PageRow(
        url=url,
        category=kind.category,
        depth=min(kind.depth, 1000),
        confidence=kind.confidence,
        lastmod=entry.lastmod,
        sitemap_priority=entry.priority,
        # what the page is counts first, what its sitemap thinks of it second
        priority=kind.priority * 10 + round((0.5 if entry.priority is None else entry.priority) * 9),
        filter_rule=kind.rule if kind.verdict is Verdict.FILTERED else None,
        selected=selected,
    )


# A page that is known keeps its curation and its status; only what the sitemap says of it is renewed.
_PAGES = text("""
WITH written AS (
    INSERT INTO page AS p (domain_id, tenant_id, created_by, sitemap_file_id, url, category, depth, confidence, lastmod,
        sitemap_priority, priority, filter_rule, page_curation_status, page_processing_status)
    SELECT CAST(:domain_id AS uuid), CAST(:tenant_id AS uuid), :created_by, CAST(:sitemap_id AS uuid), n.url,
        n.category, n.depth, n.confidence, n.lastmod, n.sitemap_priority, n.priority, n.filter_rule,
        CAST(CASE WHEN n.selected THEN 'Selected' ELSE 'New' END AS page_curation_status),
        CAST(CASE WHEN n.selected THEN 'Queued' WHEN n.filter_rule IS NOT NULL THEN 'Filtered' END
            AS page_processing_status)
    FROM unnest(CAST(:urls AS text[]), CAST(:categories AS text[]), CAST(:depths AS smallint[]),
                CAST(:confidences AS double precision[]), CAST(:lastmods AS timestamptz[]),
                CAST(:sitemap_priorities AS double precision[]), CAST(:priorities AS smallint[]),
                CAST(:rules AS text[]), CAST(:selected AS boolean[]))
        AS n (url, category, depth, confidence, lastmod, sitemap_priority, priority, filter_rule, selected)
    ORDER BY n.url
    ON CONFLICT (domain_id, url) DO UPDATE SET
        lastmod = coalesce(excluded.lastmod, p.lastmod), category = excluded.category, depth = excluded.depth,
        confidence = excluded.confidence, priority = excluded.priority,
        sitemap_priority = coalesce(excluded.sitemap_priority, p.sitemap_priority)
    WHERE (p.lastmod, p.category, p.depth, p.confidence, p.priority, p.sitemap_priority) IS DISTINCT FROM
        (coalesce(excluded.lastmod, p.lastmod), excluded.category, excluded.depth, excluded.confidence,
         excluded.priority, coalesce(excluded.sitemap_priority, p.sitemap_priority))
    RETURNING p.xmax = 0 AS is_new
)
SELECT count(*) FROM written WHERE is_new""")

# A child that has not been imported is selected as its index was, and queued; one that was, or is under way, is left
# alone, so that indexes that name each other come to an end.
_CHILDREN = text("""
INSERT INTO sitemap_file AS f (domain_id, tenant_id, created_by, url, found_by, depth, parent_id,
    deep_scrape_curation_status, sitemap_import_status)
SELECT CAST(:domain_id AS uuid), CAST(:tenant_id AS uuid), :created_by, url, 'index', :depth, CAST(:sitemap_id AS uuid),
    'Selected', 'Queued'
FROM unnest(CAST(:urls AS text[])) AS n (url) ORDER BY url
ON CONFLICT (domain_id, url) DO UPDATE SET
    deep_scrape_curation_status = 'Selected', sitemap_import_status = 'Queued',
    parent_id = coalesce(f.parent_id, excluded.parent_id)
WHERE f.sitemap_import_status IS NULL AND f.deep_scrape_curation_status IN ('New', 'Selected', 'Maybe')""")

_COUNTS = text("""
UPDATE sitemap_file AS f SET pages_found = n.pages_found, pages_new = n.pages_new, pages_selected = n.pages_selected,
    pages_filtered = n.pages_filtered, import_note = n.import_note, imported_at = now()
FROM jsonb_to_recordset(CAST(:rows AS jsonb)) AS n (
    id uuid, pages_found integer, pages_new integer, pages_selected integer, pages_filtered integer, import_note text)
WHERE f.id = n.id""")


async def save(session: AsyncSession, results: list[Done[SitemapFile, Imported]]) -> None:
    counts = []
    # in the order of their keys: two listeners that write pages of one domain then wait for each other in one direction
    for done in sorted(results, key=lambda done: (str(done.item.domain_id), done.item.url)):
        owner = {
            "domain_id": done.item.domain_id,
            "tenant_id": done.item.tenant_id,
            "created_by": done.result.created_by,
            "sitemap_id": done.item.id,
        }
        pages = sorted(done.result.pages.values())
        new = 0
        for start in range(0, len(pages), ROWS_A_STATEMENT):
            answer = await session.execute(_PAGES, {**owner, **_arrays(pages[start : start + ROWS_A_STATEMENT])})
            new += answer.scalar_one()
        if done.result.children:
            urls = list(done.result.children)
            await session.execute(_CHILDREN, {**owner, "urls": urls, "depth": done.item.depth + 1})
        counts.append(
            {
                "id": str(done.item.id),
                "pages_found": len(pages),
                "pages_new": new,
                "pages_selected": sum(page.selected for page in pages),
                "pages_filtered": sum(page.filter_rule is not None for page in pages),
                "import_note": done.result.note,
            }
        )
    await session.execute(_COUNTS, {"rows": json.dumps(counts)})


_ARRAYS = "urls categories depths confidences lastmods sitemap_priorities priorities rules selected"


def _arrays(pages: list[PageRow]) -> dict[str, list[object]]:
    """One array a column, in the order of PageRow."""
    return dict(zip(_ARRAYS.split(), map(list, zip(*pages, strict=True)), strict=True))


sitemap_import = Workflow(
    "sitemap_import",
    SitemapFile,
    work,
    save,
    settings=CrawlSettings,
    # once one scheduler of all that has to do with sitemaps
    retired_env_prefixes=("SITEMAP_SCHEDULER_",),
)
