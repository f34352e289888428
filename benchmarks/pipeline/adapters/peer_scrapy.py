"""Scrapy: its spider for pages, its SitemapSpider for sites; robots.txt obeyed; its default concurrency, no delay.

Scrapy fetches and follows; what is taken from a page is its user's. Here it is what tutorials take: mailto links, and
the usual expression over the page's text. The sitemap spider follows the kinds of pages that ours follow.
"""

import re
from typing import Any

import lap
import scrapy
from scrapy.crawler import CrawlerProcess
from scrapy.http import TextResponse
from scrapy.spiders import SitemapSpider

EMAIL = re.compile(r"[a-zA-Z0-9._%+-]+@[a-zA-Z0-9.-]+\.[a-zA-Z]{2,}")
WORTH = r"^https?://[^/]+/(?:$|about|contact|our-team|team|privacy|reviews|imprint|impressum)"
SETTINGS = {
    "USER_AGENT": "ScraperSky/1.0",
    "ROBOTSTXT_OBEY": True,
    "LOG_LEVEL": "CRITICAL",
    "TELNETCONSOLE_ENABLED": False,
    "RETRY_ENABLED": False,
    "DOWNLOAD_DELAY": 0,
    "CONCURRENT_REQUESTS": 16,
    "CONCURRENT_REQUESTS_PER_DOMAIN": 8,
    "AUTOTHROTTLE_ENABLED": False,
}
_found: list[tuple[str, str]] = []


def emails(response: Any) -> None:
    if not isinstance(response, TextResponse):
        return
    linked = response.css('a[href^="mailto:"]::attr(href)').getall()
    taken = [href[7:].partition("?")[0] for href in linked]
    taken += EMAIL.findall(" ".join(response.xpath("//body//text()").getall()))
    _found.extend((response.url, one.strip().lower()) for one in taken if "@" in one)


class Pages(scrapy.Spider):
    name = "pages"

    def parse(self, response: Any) -> None:
        emails(response)


class Sites(SitemapSpider):
    name = "sites"
    sitemap_rules = ((WORTH, "parse"),)

    def parse(self, response: Any) -> None:
        emails(response)


class Sitemaps(SitemapSpider):
    """Only what is listed; nothing is fetched but sitemaps."""

    name = "sitemaps"

    def sitemap_filter(self, entries: Any) -> Any:
        for entry in entries:
            if entries.type == "urlset":
                _found.append((entry["loc"], entry["loc"]))
            else:
                yield entry


def _crawl(spider: Any, **given: Any) -> lap.Found:
    process = CrawlerProcess(SETTINGS)
    process.crawl(spider, **given)
    process.start()
    return lap.by_domain(_found)


def pages(town: dict[str, Any]) -> lap.Found:
    return _crawl(Pages, start_urls=[url for site in town["sites"] for url in site["pages"]])


def _starts(town: dict[str, Any]) -> list[str]:
    return [f"{site['root']}{path}" for site in town["sites"] for path in ("/robots.txt", "/sitemap.xml")]


def sitemaps(town: dict[str, Any]) -> lap.Found:
    return _crawl(Sitemaps, sitemap_urls=_starts(town))


def domains(town: dict[str, Any]) -> lap.Found:
    return _crawl(Sites, sitemap_urls=_starts(town))


lap.run({"pages": pages, "sitemaps": sitemaps, "domains": domains})
