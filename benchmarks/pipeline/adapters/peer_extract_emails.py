"""extract-emails: its DefaultWorker with its httpx browser, asynchronous, one worker a site, sixteen at a time.

`parse` and `pages` use its EmailExtractor; links are followed by its filter for contact pages, one step deep.
"""

import asyncio
from typing import Any

import lap
from extract_emails import DefaultWorker
from extract_emails.browsers import HttpxBrowser
from extract_emails.data_extractors import EmailExtractor
from loguru import logger

logger.remove()
AT_ONCE = 16
_sources: dict[str, bytes] = {}


def _prepare(task: str, town: dict[str, Any]) -> None:
    if task == "parse":
        _sources.update(lap.sources(town))


def parse(_: dict[str, Any]) -> lap.Found:
    extractor = EmailExtractor()
    return lap.by_domain(
        (url, email.lower()) for url, body in _sources.items() for email in extractor.get_data(body.decode())
    )


async def _in_turns(works: list[Any]) -> list[Any]:
    slots = asyncio.Semaphore(AT_ONCE)

    async def one(work: Any) -> Any:
        async with slots:
            return await work

    return await asyncio.gather(*map(one, works))


def pages(town: dict[str, Any]) -> lap.Found:
    async def read() -> list[tuple[str, str]]:
        extractor = EmailExtractor()
        async with HttpxBrowser() as browser:

            async def page(url: str) -> list[tuple[str, str]]:
                return [(url, email.lower()) for email in extractor.get_data(await browser.aget_page_source(url))]

            urls = [url for site in town["sites"] for url in site["pages"]]
            return [pair for pairs in await _in_turns([page(url) for url in urls]) for pair in pairs]

    return lap.by_domain(asyncio.run(read()))


def domains(town: dict[str, Any]) -> lap.Found:
    async def read() -> list[tuple[str, str]]:
        async with HttpxBrowser() as browser:

            async def site(root: str) -> list[tuple[str, str]]:
                data = await DefaultWorker(f"{root}/", browser, depth=1).aget_data()
                return [(root, email.lower()) for page in data for email in page.data.get("email", [])]

            roots = [one["root"] for one in town["sites"]]
            return [pair for pairs in await _in_turns([site(root) for root in roots]) for pair in pairs]

    return lap.by_domain(asyncio.run(read()))


lap.run({"pages": pages, "domains": domains, "parse": parse}, _prepare)
