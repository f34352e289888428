"""Whatever the web sends: nothing raises but what is declared, everything stored can be stored, twice is the same.

A bounded, repeatable number of cases. `FUZZ_EXAMPLES=20000 pytest tests/services/test_fuzz.py` looks for new ones; each
that was ever found stays below as an @example.
"""

import io
import json
import math
import os
import random
import re
from collections.abc import Callable, Iterator, Sequence
from ipaddress import IPv4Address, ip_address
from typing import Any
from urllib.parse import quote

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from listener.errors import UserError
from listener.spreadsheet import harmless
from services import imports, spreadsheet
from services.contacts import contacts
from services.contacts.extract import MOST_CONTACTS
from services.domain_metadata import columns, read_home
from services.fetch import Fetched, FetchError, Inflater, Robots
from services.fetch.address import Address
from services.fetch.charset import charset_of, decode
from services.html import read_page
from services.sitemap_import import Imported, Taker
from services.sitemaps import NotASitemapError, SitemapReader
from services.sitemaps.classify import classify
from services.sitemaps.urls import UnusableUrlError, normal_url
from services.websites import Kind, website
from tests.services.site import FakeResolver, fetching, page, redirect, site

EXAMPLES = int(os.environ.get("FUZZ_EXAMPLES", "50"))
fuzzed = settings(
    max_examples=EXAMPLES,
    derandomize="FUZZ_EXAMPLES" not in os.environ,
    deadline=None,
    database=None,
    suppress_health_check=list(HealthCheck),
)

MARKUP = """<p>| </p>|<div class=card>|<div hidden>|<a href="|<a href='mailto:|'>|">|</a>|<script>|</script>|<style>|
</style>|<!--|-->|<script type="application/ld+json">|{"@type":"Person","name":"|","email":"|","telephone":|}|[|]|<b>|
</b>|<title>|</title>|<meta name="description" content="|<base href="|<link rel=canonical href="|<select><option>|
<address>|</address>|<span data-cfemail="|<img src="|<svg>|<table>|<tr><td>|<noscript>|<template>|<a data-user="|
" data-domain="|document.write('|'+'|atob("|linkTo_UnCryptMailto('|znvygb:|<div itemscope itemtype=Person>|
<i itemprop=email>|style="direction:rtl;unicode-bidi:bidi-override"|<html lang="|"""
WORDS = """ann@joes.com|info@|@|.com|joes|[at]|(dot)| at | dot |+1 (512) 472-1234|512-472-1234/35|030 901820 / 030|
Tel:|https://facebook.com/|%00|%0a|\\u0000|\\ud800|&#0;|&#xd800;|&#64;|&commat;|\x00|\ufeff|\u200b|\u202e|\uff20|é|\U0001f600|
http://[|//|?q=|#|;|,|"|'|\\|\n|\t|2024-01-02|1.2.3|logo@2x.png|Dr. Ann Lee|Ing |5118151e1d1c1102051403|
moc.seoj@nna|bmFAam9lcy5jb20=|<|>|&|=|/"""


def pieces(text: str) -> list[str]:
    return text.replace("|\n", "|").split("|")


html = st.lists(st.sampled_from(pieces(MARKUP) + pieces(WORDS)) | st.text(max_size=8), max_size=60).map("".join)


def storable(value: Any) -> None:
    """What PostgreSQL takes as text and as jsonb: no NUL, no half of a character."""
    if isinstance(value, str):
        assert "\x00" not in value
        value.encode()
    elif isinstance(value, dict):
        for name, inner in value.items():
            storable(name)
            storable(inner)
    elif isinstance(value, list | tuple):
        for inner in value:
            storable(inner)
    elif isinstance(value, float):
        assert math.isfinite(value)


@fuzzed
@given(html | st.binary(max_size=300).map(lambda body: decode(body, charset_of("", body))))
@example('<a href="https://facebook.com/joe%00x">')
@example('<script type=\'application/ld+json\'>{"name":"\\u0000\\ud800","email":"a@b.com","a\\u0000":1}</script>')
@example("<meta name=description content='&#xd800;'><title>&#0;</title>")
@pytest.mark.slow
def test_any_page_gives_what_can_be_stored_and_always_the_same(source: str) -> None:
    body = source.encode("utf-8", "replace")
    fetched = Fetched("https://joes.com/", "https://joes.com/", 200, _headers(), body, 1.0)
    home = read_home(fetched, "US")
    stored = columns(home)
    storable(stored)
    assert stored == columns(read_home(fetched, "US"))
    assert len(home.reach.contacts) <= MOST_CONTACTS
    for contact in home.reach.contacts:
        storable([contact.email, contact.phone, contact.name, contact.role, contact.context])
        assert contact.email is None or re.fullmatch(r"[^@\s]{1,64}@[^@\s]{1,253}", contact.email)
        assert contact.email is None or contact.email == contact.email.lower()
        assert contact.phone is None or re.fullmatch(r"\+[1-9][0-9]{5,14}", contact.phone)
    explained = contacts(read_page(body, "https://joes.com/", explain=True), country="US")
    assert [(c.email, c.phone) for c in explained.contacts] == [(c.email, c.phone) for c in home.reach.contacts]


def _headers() -> Any:
    import httpx

    return httpx.Headers({"content-type": "text/html; charset=utf-8"})


SITEMAP = """<?xml version="1.0"?>|<urlset>|<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">|</urlset>|
<sitemapindex>|</sitemapindex>|<sitemap>|</sitemap>|<url>|</url>|<loc>|</loc>|https://joes.com/|/contact|&|&amp;|
&#x41;|&lt;|<![CDATA[|]]>|<lastmod>|2024-01-02T03:04:05Z|Mon, 01 Jan 2024 00:00:00 GMT|9999-99-99|</lastmod>|<priority>|
0.5|nan|1e999|</priority>|<changefreq>daily</changefreq>|<image:image>|</image:image>|<xhtml:link href="x"/>|<rss>|
<channel>|<item>|</item>|<link>|</link>|<feed>|<entry>|<link href="https://joes.com/a"/>|</entry>|
<!DOCTYPE x [<!ENTITY a "b">]>|&a;|<!--|-->|\ufeff|\x00|\n|http://other.com/x|//|é|<html>|javascript:x|mailto:a@b.com|https://joes.com/%00|?utm_source=x"""
sitemap = st.lists(st.sampled_from(pieces(SITEMAP)) | st.text(max_size=6), max_size=50).map(
    lambda parts: "".join(parts).encode("utf-8", "replace")
)


def _import(body: bytes, cuts: Sequence[int]) -> tuple[str, list[Any], dict[str, int], int]:
    found, reader = Imported(), SitemapReader()
    taker = Taker(found, reader, "https://joes.com/sitemap.xml", "joes.com")
    try:
        at = 0
        for cut in [*sorted(cuts), len(body)]:
            if cut > at:
                taker.take(reader.feed(body[at:cut]))
                at = cut
        taker.take(reader.finish())
    except NotASitemapError as error:
        return str(error), [], {}, 0
    return "", [*found.pages.values(), *found.children], found.dropped, reader.count


@fuzzed
@given(sitemap | st.binary(max_size=200), st.lists(st.integers(0, 400), max_size=5))
def test_any_sitemap_gives_the_same_however_it_is_cut(body: bytes, cuts: list[int]) -> None:
    whole = _import(body, [])
    storable(whole)
    assert _import(body, cuts) == whole
    for one in whole[1]:
        url = one if isinstance(one, str) else one.url
        assert re.match("https?://", url)
        assert len(url) <= 2048
        assert url.isascii()


RULES = """User-agent: *|User-agent: ScraperSky|Disallow: /|Disallow:|Allow: /|Crawl-delay: |Request-rate: 1/|
0s|nan|inf|-1|1e309|Sitemap: |https://joes.com/s.xml|/a*b$|*|$|%|é|\x00|\n|\r|#|:|\ufeff|<html>| |Host: x|
Visit-time: 0600-0845|99999999999999999999"""


@fuzzed
@given(st.lists(st.sampled_from(pieces(RULES) + ["\n"] * 10) | st.text(max_size=6), max_size=50).map("".join))
@example("User-agent: *\nCrawl-delay: nan\n")
@example("User-agent: *\nCrawl-delay: inf\n")
@example("Sitemap: \x00")
@example("User-agent: *\nDisallow: /" + "*a" * 200 + "b\n")
def test_any_robots_txt_is_read(text: str) -> None:
    rules = Robots.read(text, "ScraperSky")
    assert rules.crawl_delay >= 0
    assert math.isfinite(rules.crawl_delay)
    for url in ("https://joes.com/", "https://joes.com/" + "a" * 500, "https://joes.com/%00?é"):
        assert rules.allows(url) in (True, False)
    storable(list(rules.sitemaps))


ADDRESS = """https://|http:|//|www.|joes.com|müller.de|xn--|co.uk|facebook.com/|google.com/url?q=|%2e|%00|@|
user:pw@|:8080|:99999|/|?|#|[::1]|127.0.0.1|.|..|-|_|\\|\u200b|\x00| |。|\uff0e|①|0x7f|é|ß|\u0130|\u212a|
github.io|javascript:|mailto:a@b.com|&|="""
address = st.lists(st.sampled_from(pieces(ADDRESS)) | st.text(max_size=6), max_size=14).map("".join)


@fuzzed
@given(address)
def test_any_website_has_a_domain_or_a_reason(text: str) -> None:
    found = website(text)
    storable([found.domain, found.host, found.reason, found.rule, found.shown])
    if found.kind is Kind.DOMAIN:
        assert found.domain is not None
        assert re.fullmatch(r"[^\s/]{1,253}", found.domain)
        assert found.domain == found.domain.lower()
        assert website(found.domain).domain == found.domain
    else:
        assert found.domain is None
        assert found.reason


@fuzzed
@given(address, st.sampled_from(["", "https://joes.com/a/b?c=d", "http://[::1/"]))
@example("https://a.com/?a=%ff", "")
@example("https://a.com/\ud800", "")
def test_any_url_has_one_spelling_or_none(text: str, base: str) -> None:
    try:
        url = normal_url(text, base)
    except UnusableUrlError as error:
        storable(str(error).encode("utf-8", "replace").decode())
        return
    assert normal_url(url) == url
    assert url.isascii()
    assert url.isprintable()
    assert len(url) <= 2048
    assert " " not in url
    classify(url)


cell = st.sampled_from(
    pieces("""domain|url|place_id|joes.com|https://joes.com/a|,|;|\t|"|""|\n|\r\n|\r|\x00|=1+1|@SUM(A1)|+1|-1|\ufeff|é|'|US|
    https://u:p@x.com/|ChIJ1|1e999|nan|latitude|name|rating|5""")
)
table = st.lists(cell | st.text(max_size=6), max_size=40).map(lambda parts: "".join(parts).encode("utf-8", "replace"))


@fuzzed
@given(table | st.binary(max_size=200), st.sampled_from(sorted(imports.SOURCES)))
@example(b"\xff\xfe\x00", "domains")
@example(b'url\n"https://joes.com/\n' * 30, "pages")
def test_any_file_is_read_row_by_row(body: bytes, kind: str) -> None:
    records = list(spreadsheet.read(io.BytesIO(body)))
    numbers = [record.line for record in records]
    assert numbers == sorted(set(numbers))
    try:
        lines = list(imports._lines(imports.SOURCES[kind], io.BytesIO(body)))
    except UserError:
        return  # the header names no column we know
    for line in lines:
        storable(line.value)
        assert len(line.value) <= 200
        if isinstance(line.row, imports.InvalidError):
            assert str(line.row)
        else:
            storable(json.loads(json.dumps(line.row)))


@fuzzed
@given(st.text(alphabet=st.sampled_from("=+-@\t\r\n'\" ＝＋－＠0aé"), max_size=8))  # noqa: RUF001
def test_no_text_becomes_a_formula(text: str) -> None:
    shown = harmless(text).lstrip(" \"'\t\r\n") if not harmless(text).startswith("'") else ""
    assert shown[:1] not in tuple("=+-@＝＋－＠") or re.fullmatch(r"\+[1-9][0-9]{5,14}", text)  # noqa: RUF001


@fuzzed
@given(st.binary(max_size=300), st.sampled_from(["gzip", "deflate"]), st.integers(1, 50))
def test_any_body_unpacks_or_says_why(body: bytes, encoding: str, step: int) -> None:
    unpacked = 0
    inflater = Inflater(encoding)
    try:
        for start in range(0, len(body), step):
            unpacked += sum(map(len, inflater.feed(body[start : start + step])))
        unpacked += sum(map(len, inflater.finish()))
    except FetchError:
        pass  # it is damaged, or a bomb
    assert unpacked <= 2 * 1024 * 1024


class EverythingInside(FakeResolver):
    """Whatever the name, it is inside."""

    async def resolve(self, host: str) -> list[Address]:
        self.asked.append(host)
        return [ip_address(random.Random(host).choice(["127.0.0.1", "::1", "10.0.0.1", "169.254.169.254"]))]


def disguises(dice: random.Random) -> Iterator[str]:
    """Ways to write an address inside, and names that lead there."""
    while True:
        inside = IPv4Address(
            dice.choice(["127.0.0.1", "0.0.0.0", "10.1.2.3", "169.254.169.254", "192.168.0.1", "100.64.0.1"])
        )
        octets = [int(part) for part in str(inside).split(".")]
        number = int(inside)
        parts = [dice.choice([str(o), hex(o), f"0{o:o}", f"{o:04}", f"0x{o:08X}"]) for o in octets]
        form = dice.choice(
            [
                str(inside),
                ".".join(parts),
                str(number),
                hex(number),
                f"0{number:o}",
                f"{octets[0]}.{number & 0xFFFFFF}",
                f"{octets[0]}.{octets[1]}.{number & 0xFFFF}",
                f"[::ffff:{inside}]",
                f"[::ffff:{number >> 16:x}:{number & 0xFFFF:x}]",
                f"[64:ff9b::{number >> 16:x}:{number & 0xFFFF:x}]",
                f"[2002:{number >> 16:x}:{number & 0xFFFF:x}::]",
                f"[::{inside}]",
                "[fe80::1%25eth0]",
                "[::1]",
                "[fd00::1]",
                "localhost",
                "localhost.localdomain",
                "inside.example",
                "metadata.google.internal",
                f"{inside}.nip.io",
            ]
        )
        changes: list[Callable[[str], str]] = [
            lambda text: text,
            lambda text: text + ".",
            lambda text: text.upper(),
            lambda text: "".join(chr(ord(c) + 0xFEE0) if c.isdigit() else c for c in text),
            lambda text: text.replace(".", dice.choice("。．｡")),  # noqa: RUF001
            lambda text: "".join(f"%{ord(c):02x}" if c not in "[]:" and dice.random() < 0.5 else c for c in text),
            lambda text: "user:pw@" + text,
            lambda text: "public.com@" + text,
            lambda text: "public.com#@" + text,
            lambda text: text + "\\@public.com",
            lambda text: "\t" + text,
            lambda text: quote(text, safe="[]:."),
            lambda text: text[:1] + "\u200b" + text[1:],
        ]
        for _ in range(dice.randint(1, 2)):
            form = dice.choice(changes)(form)
        yield form


async def test_no_way_to_write_an_address_leads_inside() -> None:
    dice = random.Random(26)
    forms = disguises(dice)
    async with site({"/": page()}) as inside:
        names = EverythingInside()
        async with fetching(resolver=names, ports=(80, 443, inside.port)) as fetcher:
            for _ in range(4 * EXAMPLES):
                scheme = dice.choice(["http://", "https://", "HTTP://", "http:\\\\", "http:/", "http:////"])
                port = dice.choice([f":{inside.port}", "", f":0{inside.port}"])
                with pytest.raises(FetchError) as refused:
                    await fetcher.get(f"{scheme}{next(forms)}{port}/x?token=abc")
                assert refused.value.retryable is False, refused.value
                assert "abc" not in str(refused.value)
        assert inside.connections == 0


async def test_no_redirect_leads_inside() -> None:
    dice = random.Random(27)
    forms = disguises(dice)
    async with site({"/": page()}) as inside, site() as outside:
        async with fetching(outside, resolver=EverythingInside(), ports=(80, 443, inside.port)) as fetcher:
            for number in range(2 * EXAMPLES):
                to = dice.choice(["http://", "//", "https://", "HTTP:", "\\\\"]) + f"{next(forms)}:{inside.port}/"
                location = quote(to, safe="".join(map(chr, range(33, 127))))
                outside.routes = {
                    f"/{number}": redirect(location, dice.choice([301, 302, 303, 307, 308])),
                    "/": redirect("/x"),
                }
                with pytest.raises(FetchError) as refused:
                    await fetcher.get(f"http://public.test/{number}")
                assert refused.value.retryable is False, (to, refused.value)
        assert inside.connections == 0
