"""Ours: the `work` of the workflows, with their fetcher and its manners, sixteen items at a time, one process.

The queue is left out on both sides: nobody here writes a row.
"""

import asyncio
import gc
from collections.abc import Awaitable, Callable
from types import SimpleNamespace
from typing import Any

from benchmarks.pipeline.adapters import lap
from listener import Final
from listener.tools import Toolbox, Tools
from services.contacts import contacts
from services.crawl import CrawlSettings
from services.domain_metadata import work as read_domain
from services.html import read_page
from services.models.words import SitemapType
from services.page_curation import work as read_page_contacts
from services.sitemap_analysis import work as analyse
from services.sitemap_import import work as import_sitemap

AT_ONCE = 16
_sources: dict[str, bytes] = {}


def _prepare(task: str, town: dict[str, Any]) -> None:
    if task == "parse":
        _sources.update(lap.sources(town))
    gc.freeze()


def parse(_: dict[str, Any]) -> lap.Found:
    return lap.by_domain(
        (url, email) for url, body in _sources.items() for email in contacts(read_page(body, url), country="US").emails
    )


class Reader:
    """Items of this benchmark instead of rows."""

    def __init__(self, town: dict[str, Any]) -> None:
        settings = CrawlSettings.model_validate(
            {"replay": f"*.com=127.0.0.1:{town['port']}", "host_seconds": 0.0, "host_concurrency": 8}
        )
        self._box = Toolbox()
        self._tools = Tools(self._box, "benchmark", settings, "key", 1)

    async def page(self, url: str) -> list[tuple[str, str]]:
        item: Any = SimpleNamespace(url=url, domain=_domain(url))
        read = await read_page_contacts(item, self._tools)
        reach = read.result.reach if isinstance(read, Final) else read.reach
        return [(url, email) for email in (reach.emails if reach else ())]

    async def listed(self, root: str) -> list[tuple[str, str, bool]]:
        """(root, page, worth reading) of every page of its sitemaps."""
        domain = _domain(root)
        found: dict[str, bool] = {}
        for sitemap in (await analyse(domain, self._tools)).discovery.sitemaps:
            if sitemap.kind is not SitemapType.INDEX:
                item: Any = SimpleNamespace(url=sitemap.url, depth=sitemap.depth, domain=domain)
                pages = (await import_sitemap(item, self._tools)).pages
                found |= {url: row.selected or found.get(url, False) for url, row in pages.items()}
        return [(root, url, selected) for url, selected in found.items()]

    async def domain(self, root: str) -> list[tuple[str, str]]:
        domain = _domain(root)
        domain.home_url = (await read_domain(domain, self._tools)).url
        pages = [url for _, url, selected in await self.listed(root) if selected]
        return [pair for pairs in await asyncio.gather(*map(self.page, pages)) for pair in pairs]

    async def close(self) -> None:
        await self._box.close()


def _domain(url: str) -> Any:
    name = lap.host_of(url)
    return SimpleNamespace(domain=name, home_url=f"{url.rstrip('/')}/", country_code="US")


def _run(town: dict[str, Any], method: Callable[[Reader, str], Awaitable[list[Any]]], items: list[str]) -> list[Any]:
    async def read() -> list[Any]:
        reader, slots = Reader(town), asyncio.Semaphore(AT_ONCE)

        async def one(item: str) -> list[Any]:
            async with slots:
                return await method(reader, item)

        try:
            return [pair for pairs in await asyncio.gather(*map(one, items)) for pair in pairs]
        finally:
            await reader.close()

    return asyncio.run(read())


def pages(town: dict[str, Any]) -> lap.Found:
    return lap.by_domain(_run(town, Reader.page, [url for site in town["sites"] for url in site["pages"]]))


def sitemaps(town: dict[str, Any]) -> lap.Found:
    listed = _run(town, Reader.listed, [site["root"] for site in town["sites"]])
    return lap.by_domain((root, url) for root, url, _ in listed)


def domains(town: dict[str, Any]) -> lap.Found:
    return lap.by_domain(_run(town, Reader.domain, [site["root"] for site in town["sites"]]))


if __name__ == "__main__":
    lap.run({"pages": pages, "sitemaps": sitemaps, "domains": domains, "parse": parse}, _prepare)
