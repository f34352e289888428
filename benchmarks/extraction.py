"""How fast pages are read, on one core and without the network; and what a sitemap as large as allowed costs.

`python -m benchmarks.extraction` runs this alone.
"""

import gc
import json
import statistics
import sys
import time
import tracemalloc
from collections.abc import Callable

from benchmarks.pages import page, sitemap
from services.contacts import contacts, emails, phones
from services.html import read_page
from services.html.metadata import metadata
from services.html.structured import structured
from services.sitemap_import import Imported, Taker
from services.sitemaps import SitemapReader
from services.websites import normal_host, registrable_domain

PAGES = 600
ROUNDS = 3
SITEMAP_URLS = 50_000
SITEMAP_BYTES = 50_000_000

Figures = dict[str, float | int]


def pages(count: int = PAGES, say: Callable[[str], None] = lambda _: None) -> Figures:
    """Contacts of every page, as page_curation reads them; and a home page with its metadata.

    Processor time of this process, the quickest of three rounds for each page: what else the machine does only adds.
    Nothing is remembered from one round to the next.
    """
    say(f"Reading {count} generated pages ...")
    sources = [(page(seed), f"https://plumber{seed}.com/contact") for seed in range(count)]
    _read(*sources[0])
    gc.collect()
    laps = _quickest(_read, sources)
    both = _quickest(_read_home, sources[: count // 3])
    return {
        "extraction_pages": count,
        "extraction_mean_bytes": sum(len(source) for source, _ in sources) / count,
        "extraction_median_bytes": statistics.median(len(source) for source, _ in sources),
        "extraction_largest_bytes": max(len(source) for source, _ in sources),
        "extraction_pages_per_second": count / sum(laps),
        "extraction_slowest_ms": 1000 * max(laps),
        "extraction_home_pages_per_second": len(both) / sum(both),
    }


def large_sitemap(
    urls: int = SITEMAP_URLS, size: int = SITEMAP_BYTES, say: Callable[[str], None] = lambda _: None
) -> Figures:
    """Read, classified, and kept as the rows that would be written: the most that is held at once."""
    say(f"Reading a sitemap of {urls:,} addresses and {size // 1_000_000} MB ...")
    started = time.process_time()
    _import(urls, size)
    seconds = time.process_time() - started
    tracemalloc.start()
    found, reader, taken = _import(urls, size)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return {
        "sitemap_urls": reader.count,
        "sitemap_bytes": taken,
        "sitemap_pages": len(found.pages),
        "sitemap_seconds": seconds,
        "sitemap_peak_mb": peak / 2**20,
    }


def _import(urls: int, size: int) -> tuple[Imported, SitemapReader, int]:
    found, reader = Imported(), SitemapReader(most_bytes=2 * size)
    taker = Taker(found, reader, "https://example.test/sitemap.xml", "example.test")
    taken = 0
    for chunk in sitemap(urls, size):
        taken += len(chunk)
        taker.take(reader.feed(chunk))
    taker.take(reader.finish())
    return found, reader, taken


def _read(source: bytes, url: str) -> None:
    contacts(read_page(source, url), country="US")


def _read_home(source: bytes, url: str) -> None:
    read = read_page(source, url)
    data = structured(read)
    metadata(read, data)
    contacts(read, country="US", data=data)


def _quickest(work: Callable[[bytes, str], None], sources: list[tuple[bytes, str]]) -> list[float]:
    rounds = []
    for _ in range(ROUNDS):
        for remembered in (emails.judge, phones.judge, normal_host, registrable_domain):
            remembered.cache_clear()
        rounds.append([_timed(work, source, url) for source, url in sources])
    return [min(laps) for laps in zip(*rounds, strict=True)]


def _timed(work: Callable[[bytes, str], None], source: bytes, url: str) -> float:
    started = time.process_time()  # of this process alone: it is about one core, not about its neighbours
    work(source, url)
    return time.process_time() - started


if __name__ == "__main__":
    json.dump({name: round(value, 2) for name, value in (pages() | large_sitemap()).items()}, sys.stdout, indent=2)
    sys.stdout.write("\n")
