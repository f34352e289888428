"""Sitemaps as sites have them: of every kind, whole, broken and hostile."""

import gzip
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import cache, partial
from html import escape

from services.simulation.server import Manner
from services.simulation.site import HTML, TEXT, XML, Answer

_XMLNS = "http://www.sitemaps.org/schemas/sitemap/0.9"
_DATE = "2026-01-02"


@dataclass(frozen=True)
class Sitemaps:
    """Their answers by path; and, where they lead to pages, the path that robots.txt names."""

    answers: dict[str, Answer]
    named: str
    usual: bool = True
    """Whether it is found without being named."""
    dead: dict[str, str] = field(default_factory=dict)
    """Path → why its import ends in the dead letter."""


SitemapWay = Callable[[str, list[str]], Sitemaps]
"""(root of the site, addresses of its pages) → its sitemaps."""


def urlset(urls: Iterable[str], *, more: str = "") -> bytes:
    rows = "".join(f"<url><loc>{escape(url)}</loc><lastmod>{_DATE}</lastmod>{more}</url>" for url in urls)
    return f'<?xml version="1.0" encoding="UTF-8"?>\n<urlset xmlns="{_XMLNS}">{rows}</urlset>'.encode()


def index(urls: Iterable[str]) -> bytes:
    rows = "".join(
        f"<sitemap><loc>{escape(url)}</loc><lastmod>{_DATE}T10:00:00+00:00</lastmod></sitemap>" for url in urls
    )
    return f'<?xml version="1.0" encoding="UTF-8"?>\n<sitemapindex xmlns="{_XMLNS}">{rows}</sitemapindex>'.encode()


def _xml(body: bytes) -> Answer:
    return Answer(body, kind=XML)


def plain(_: str, urls: list[str]) -> Sitemaps:
    return Sitemaps(
        {"/sitemap.xml": _xml(urlset(urls, more="<changefreq>weekly</changefreq><priority>0.5</priority>"))},
        "/sitemap.xml",
    )


def wordpress_index(root: str, urls: list[str]) -> Sitemaps:
    """Pages and posts apart, as Yoast makes them."""
    pages, posts = [url for url in urls if "/blog/" not in url], [url for url in urls if "/blog/" in url]
    return Sitemaps(
        {
            "/sitemap_index.xml": _xml(index([f"{root}/page-sitemap.xml", f"{root}/post-sitemap.xml"])),
            "/page-sitemap.xml": _xml(urlset(pages)),
            "/post-sitemap.xml": _xml(urlset(posts or [f"{root}/blog/2024/05/hello/"])),
        },
        "/sitemap_index.xml",
    )


def nested(root: str, urls: list[str]) -> Sitemaps:
    """An index of an index, and both name themselves."""
    return Sitemaps(
        {
            "/sitemap.xml": _xml(index([f"{root}/sitemap-a.xml", f"{root}/sitemap.xml"])),
            "/sitemap-a.xml": _xml(index([f"{root}/sitemap-b.xml", f"{root}/sitemap.xml"])),
            "/sitemap-b.xml": _xml(urlset(urls)),
        },
        "/sitemap.xml",
    )


def gzipped(root: str, urls: list[str]) -> Sitemaps:
    return Sitemaps(
        {
            "/sitemap.xml": _xml(index([f"{root}/sitemap-1.xml.gz"])),
            "/sitemap-1.xml.gz": Answer(gzip.compress(urlset(urls), mtime=0), kind="application/gzip"),
        },
        "/sitemap.xml",
    )


def gzipped_unnamed(_: str, urls: list[str]) -> Sitemaps:
    """Neither its name nor its header says so."""
    return Sitemaps({"/sitemap.xml": _xml(gzip.compress(urlset(urls), mtime=0))}, "/sitemap.xml")


def gzipped_twice(_: str, urls: list[str]) -> Sitemaps:
    body = gzip.compress(gzip.compress(urlset(urls), mtime=0), mtime=0)
    return Sitemaps(
        {"/sitemap.xml.gz": Answer(body, headers=(("Content-Encoding", "gzip"),), kind=XML)}, "/sitemap.xml.gz"
    )


def named_gz_but_not(_: str, urls: list[str]) -> Sitemaps:
    return Sitemaps({"/sitemap.xml.gz": _xml(urlset(urls))}, "/sitemap.xml.gz")


def text(_: str, urls: list[str]) -> Sitemaps:
    return Sitemaps({"/sitemap.txt": Answer("\r\n".join(urls).encode(), kind=TEXT)}, "/sitemap.txt")


def rss(_: str, urls: list[str]) -> Sitemaps:
    items = "".join(
        f"<item><title>x</title><link>{escape(url)}</link><pubDate>Fri, 02 Jan 2026 10:00:00 GMT</pubDate></item>"
        for url in urls
    )
    body = f'<?xml version="1.0"?><rss version="2.0"><channel><title>x</title>{items}</channel></rss>'
    return Sitemaps({"/pages.rss": Answer(body.encode(), kind="application/rss+xml")}, "/pages.rss", usual=False)


def atom(_: str, urls: list[str]) -> Sitemaps:
    entries = "".join(
        f'<entry><id>urn:x:{n}</id><link rel="alternate" href="{escape(url)}"/><updated>{_DATE}T10:00:00Z</updated>'
        "</entry>"
        for n, url in enumerate(urls)
    )
    body = f'<?xml version="1.0"?><feed xmlns="http://www.w3.org/2005/Atom">{entries}</feed>'
    return Sitemaps({"/atom.xml": Answer(body.encode(), kind="application/atom+xml")}, "/atom.xml", usual=False)


def broken_xml(_: str, urls: list[str]) -> Sitemaps:
    """Bare ampersands, a byte that is no UTF-8, and an end that is missing."""
    body = (
        urlset([*urls, "https://elsewhere.net/?a=1"]).replace(b"&amp;", b"&").replace(b"</urlset>", b"<url><loc>\xff")
    )
    return Sitemaps({"/sitemap.xml": _xml(body)}, "/sitemap.xml")


def with_mark_and_blanks(_: str, urls: list[str]) -> Sitemaps:
    body = b"\xef\xbb\xbf\n\n  " + urlset(urls).replace(b"<loc>", b"<loc>\n    ").replace(b"</loc>", b"\n  </loc>")
    return Sitemaps({"/sitemap.xml": _xml(body)}, "/sitemap.xml")


def relative(root: str, urls: list[str]) -> Sitemaps:
    return Sitemaps({"/sitemap.xml": _xml(urlset([url.removeprefix(root) for url in urls]))}, "/sitemap.xml")


def with_strangers(_: str, urls: list[str]) -> Sitemaps:
    """Pages of other sites, other schemes, and one page spelt in three ways."""
    first = urls[0]
    strangers = [
        "https://www.somebody-else.net/contact/",
        "ftp://x.y/z",
        "javascript:alert(1)",
        f"{first}#top",
        f"{first}?utm_source=x",
    ]
    return Sitemaps({"/sitemap.xml": _xml(urlset([*strangers, *urls]))}, "/sitemap.xml")


def large(root: str, urls: list[str]) -> Sitemaps:
    """Thousands of products around the pages; made when it is asked for."""
    return Sitemaps({"/sitemap.xml": Answer(partial(_large, root, tuple(urls)), kind=XML)}, "/sitemap.xml")


def _large(root: str, urls: tuple[str, ...]) -> bytes:
    products = [f"{root}/products/item-{n}/" for n in range(4_000)]
    return urlset([*products[:2000], *urls, *products[2000:]])


def with_images(_: str, urls: list[str]) -> Sitemaps:
    more = "<image:image><image:loc>https://cdn.example.net/a.jpg</image:loc></image:image>"
    body = urlset(urls, more=more).replace(
        b"<urlset ", b'<urlset xmlns:image="http://www.google.com/schemas/sitemap-image/1.1" '
    )
    return Sitemaps({"/sitemap.xml": _xml(body)}, "/sitemap.xml")


def beside_a_bomb(root: str, urls: list[str]) -> Sitemaps:
    """One that robots.txt names and is good, and an index whose children are hostile."""
    children = ("bomb.xml.gz", "entities.xml", "endless.xml", "good-sitemap.xml")
    return Sitemaps(
        {
            "/good-sitemap.xml": _xml(urlset(urls)),
            "/sitemap.xml": _xml(index(f"{root}/{name}" for name in children)),
            "/bomb.xml.gz": Answer(_bomb, kind="application/gzip"),
            "/entities.xml": _xml(_ENTITIES),
            "/endless.xml": Answer(_RUBBISH, kind=XML, manner=Manner.ENDLESS),
        },
        "/good-sitemap.xml",
        dead={
            "/bomb.xml.gz": "a decompression bomb: more than 200 times its size when unpacked",
            "/entities.xml": "not a sitemap: XML with a DOCTYPE, which no sitemap has",
            "/endless.xml": "not a sitemap: XML of another kind (<rubbish>)",
        },
    )


@cache
def _bomb() -> bytes:
    return gzip.compress(b" " * 40_000_000, 9, mtime=0)


_RUBBISH = b'<?xml version="1.0"?><rubbish>' + b"<x/>" * 10_000
_ENTITIES = (
    b'<?xml version="1.0"?><!DOCTYPE lolz [<!ENTITY a "aaaaaaaaaa"><!ENTITY b "&a;&a;&a;&a;&a;&a;&a;&a;&a;&a;">'
    b'<!ENTITY c "&b;&b;&b;&b;&b;&b;&b;&b;&b;&b;">]><urlset><url><loc>&c;</loc></url></urlset>'
)

SITEMAP_WAYS: tuple[SitemapWay, ...] = (
    plain, wordpress_index, gzipped, text, nested, rss, broken_xml, gzipped_unnamed, large, atom, with_strangers,
    relative, with_mark_and_blanks, gzipped_twice, with_images, beside_a_bomb, named_gz_but_not,
)  # fmt: skip


# -- those that lead to nothing ---------------------------------------------------------------------------------------


def html_for_everything() -> Answer:
    """A site that answers 200 with its home page, whatever was asked."""
    return Answer(b"<!DOCTYPE html><html><title>Welcome</title><body><h1>Welcome</h1></body></html>", kind=HTML)


def looping(root: str) -> dict[str, Answer]:
    """Two indexes that name each other, and nothing else."""
    return {
        "/sitemap.xml": _xml(index([f"{root}/sitemap-b.xml"])),
        "/sitemap-b.xml": _xml(index([f"{root}/sitemap.xml", f"{root}/sitemap-b.xml"])),
    }


def bottomless(root: str, depth: int = 9) -> dict[str, Answer]:
    """Each index names the next, further down than anybody goes."""
    return {f"/sitemap{n or ''}.xml": _xml(index([f"{root}/sitemap{n + 1}.xml"])) for n in range(depth)}
