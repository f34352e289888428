"""Sitemaps of all kinds, in one piece or a byte at a time, honest and hostile."""

import tracemalloc

import pytest

from benchmarks.pages import sitemap as large
from services.sitemaps import Entry, NotASitemapError, SitemapReader
from services.sitemaps.classify import Verdict, classify
from services.sitemaps.reader import moment_of
from services.sitemaps.urls import UnusableUrlError, normal_url, of_site

XML = '<?xml version="1.0"?><urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9" xmlns:i="x" xmlns:n="y">'


def read(text: str | bytes, step: int = 65_536, **caps: int) -> tuple[SitemapReader, list[Entry]]:
    body = text.encode() if isinstance(text, str) else text
    reader = SitemapReader(**caps)
    entries: list[Entry] = []
    for start in range(0, len(body), step):
        entries += reader.feed(body[start : start + step])
    return reader, entries + reader.finish()


@pytest.mark.parametrize("step", [1, 7, 65_536])
@pytest.mark.parametrize(
    ("text", "kind", "form", "locs"),
    [
        (XML + "<url><loc> https://a.de/x </loc></url><url><loc><![CDATA[https://a.de/y?a&b]]></loc></url></urlset>",
         "standard", "xml", ["https://a.de/x", "https://a.de/y?a&b"]),
        ("\ufeff\n\n  <urlset><url><loc>/x</loc></url></urlset>", "standard", "xml", ["/x"]),
        (XML + "<url><loc>https://a.de/?a=1&amp;b=2&c=3&#38;d</loc></url></urlset>",
         "standard", "xml", ["https://a.de/?a=1&b=2&c=3&d"]),
        ("<sitemapindex><sitemap><loc>https://a.de/1.xml</loc></sitemap></sitemapindex>",
         "index", "xml", ["https://a.de/1.xml"]),
        (XML + "<url><loc>https://a.de/x</loc><i:image><i:loc>https://a.de/i.png</i:loc></i:image></url></urlset>",
         "image", "xml", ["https://a.de/x"]),
        (XML + "<url><loc>https://a.de/x</loc><n:news><n:title>t</n:title></n:news></url></urlset>",
         "news", "xml", ["https://a.de/x"]),
        ("https://a.de/1\r\n\nhttps://a.de/2\nnonsense\nHTTPS://a.de/3", "standard", "text",
         ["https://a.de/1", "https://a.de/2", "HTTPS://a.de/3"]),
        ("<rss><channel><link>https://a.de/</link><item><link>https://a.de/p</link></item></channel></rss>",
         "standard", "feed", ["https://a.de/p"]),
        ('<feed xmlns="http://www.w3.org/2005/Atom"><entry><link href="/p"/></entry></feed>',
         "standard", "feed", ["/p"]),
        (XML + "<url><loc>https://a.de/x</loc></url><url><loc>https://a.de/cut", "standard", "xml", ["https://a.de/x"]),
        (XML + "<url><loc>https://a.de/x</wrong></url><url><loc>https://a.de/y</loc></url></urlset>",
         "standard", "xml", ["https://a.de/x", "https://a.de/y"]),
        ("<urlset></urlset>", "standard", "xml", []),
        ("\n \ufeff\n\ufeff<urlset><url><loc>/x</loc></url></urlset>", "standard", "xml", ["/x"]),
        ("<br />\n<b>Warning</b>: Undefined <i>x</i> in a.php<br />\n" + XML + "<url><loc>/x</loc></url></urlset>",
         "standard", "xml", ["/x"]),
        ("Deprecated: y in b.php\n" + XML + "<url><loc>/x</loc></url></urlset>", "standard", "xml", ["/x"]),
        ("<rss><item><guid isPermaLink='false'>456</guid></item><item><guid> https://a.de/g</guid></item></rss>",
         "standard", "feed", ["https://a.de/g"]),
        ("<feed><entry><id>tag:a.de,2020:1</id></entry><entry><id>urn:x</id><link href='/p'/></entry></feed>",
         "standard", "feed", ["/p"]),
        ('<?xml version="1.0" encoding="UTF-16"?><urlset><url><loc>https://a.de/x</loc></url></urlset>',
         "standard", "xml", ["https://a.de/x"]),
    ],
)  # fmt: skip
def test_every_kind_of_sitemap_is_read(step: int, text: str, kind: str, form: str, locs: list[str]) -> None:
    reader, entries = read(text, step)
    assert (reader.kind.value, reader.format) == (kind, form)
    assert [entry.loc for entry in entries] == locs
    assert reader.count == len(locs)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "empty"),
        ("<!DOCTYPE html><html><body>not found", "HTML"),
        ("\n<!-- x --><HTML lang=en>", "HTML"),
        ("hello", "neither"),
        ("<html><p>Warning: this is how it looks: <?xml version='1.0'?>\n<html>", "HTML"),
        ("Notice: nothing here", "neither"),
        ('{"a": 1}', "neither"),
        ("<foo/>", "<foo>"),
        ("<urlset><url><loc>https://a.de/1<2</loc></url></urlset>", "broken XML"),
        ('<!DOCTYPE u [<!ENTITY a "aa"><!ENTITY b "&a;&a;">]><urlset><url><loc>&b;</loc></url></urlset>', "DOCTYPE"),
        ('<?xml version="1.0"?><!DOCTYPE u SYSTEM "file:///etc/passwd"><urlset/>', "DOCTYPE"),
        (b"\xff\xfe<\x00u\x00", "UTF-16"),
        (b"\x89PNG\r\n\x1a\n", "neither"),
    ],
)
def test_what_is_no_sitemap_is_said_to_be_what_it_is(text: str | bytes, reason: str) -> None:
    with pytest.raises(NotASitemapError, match=reason):
        read(text)


def test_lastmod_priority_and_changefreq() -> None:
    reader, entries = read(
        XML + "<url><loc>/a</loc><lastmod>2024-05</lastmod><priority>0.8</priority><changefreq>daily</changefreq></url>"
        "<url><loc>/b</loc><lastmod>soon</lastmod><priority>7</priority></url></urlset>"
    )
    assert (reader.has_lastmod, reader.has_priority, reader.has_changefreq) == (True, True, True)
    assert [(entry.lastmod, entry.priority) for entry in entries] == [(moment_of("2024-05-01"), 0.8), (None, None)]
    assert moment_of("Wed, 02 Oct 2002 13:00:00 GMT") == moment_of("2002-10-02T13:00:00Z")


def test_caps_stop_it_and_say_so() -> None:
    many = XML + "<url><loc>https://a.de/x</loc></url>" * 50
    reader, entries = read(many, most_urls=10)
    assert (len(entries), reader.stopped) == (10, "more than 10 entries")
    reader, entries = read(many, step=100, most_bytes=1000)
    assert 0 < len(entries) < 50
    assert reader.stopped == "longer than 1,000 bytes"


def test_junk_without_end_fills_no_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("services.sitemaps.reader.MOST_ELEMENTS", 100_000)
    reader = SitemapReader()
    reader.feed(XML.encode() + b" " * 5000)
    junk = b"<a><b/></a>" * 1000
    tracemalloc.start()
    for _ in range(100):
        reader.feed(junk)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert reader.stopped == "more than 100,000 elements"
    assert peak < 1_000_000


def test_memory_does_not_grow_with_the_file() -> None:
    reader, count = SitemapReader(), 0
    tracemalloc.start()
    for chunk in large(4_000, 4_000_000):
        count += len(reader.feed(chunk))
    count += len(reader.finish())
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert (count, reader.stopped) == (4_000, "")
    assert reader.size > 3_500_000
    assert peak < 1_500_000


@pytest.mark.parametrize(
    ("path", "category", "verdict"),
    [
        ("", "home", Verdict.READ),
        ("de/", "home", Verdict.READ),
        ("index.php", "home", Verdict.READ),
        ("contact-us/", "contact", Verdict.READ),
        ("de/kontakt.html", "contact", Verdict.READ),
        ("über-uns", "about", Verdict.READ),
        ("about-us/our-team/", "team", Verdict.READ),
        ("team/jane-smith", "team", Verdict.READ),
        ("impressum", "imprint", Verdict.READ),
        ("careers", "careers", Verdict.READ),
        ("privacy-policy", "legal", Verdict.READ),
        ("pricing", "other", Verdict.READ),
        ("services/drains/emergency", "other", Verdict.NEW),
        ("shop/shoes/red", "product", Verdict.NEW),
        ("?p=7", "other", Verdict.NEW),
        ("wp-content/uploads/a.JPG", "media", Verdict.FILTERED),
        ("brochure.pdf", "media", Verdict.FILTERED),
        ("feed/", "feed", Verdict.FILTERED),
        ("tag/pipes", "tag", Verdict.FILTERED),
        ("category/news/", "tag", Verdict.FILTERED),
        ("2024/05/", "archive", Verdict.FILTERED),
        ("blog/page/2/", "archive", Verdict.FILTERED),
        ("blog/how-to-contact-us", "blog", Verdict.FILTERED),
        ("2024/05/17/my-post", "blog", Verdict.FILTERED),
        ("cart", "system", Verdict.FILTERED),
    ],
)
def test_which_pages_are_worth_reading(path: str, category: str, verdict: Verdict) -> None:
    found = classify(f"https://joes.com/{path}")
    assert (found.category, found.verdict) == (category, verdict), found
    assert found.rule
    assert 0 < found.confidence <= 1


def test_contact_pages_are_read_before_the_rest() -> None:
    order = [
        classify(f"https://joes.com/{path}").priority for path in ("", "contact", "impressum", "team", "x", "a/b/c")
    ]
    assert order == sorted(order, reverse=True)


@pytest.mark.parametrize(
    ("written", "normal"),
    [
        ("/a b#top", "https://joes.com/a%20b"),
        ("HTTPS://User:Pw@WWW.Joes.com:443/x?utm_source=a&b=1", "https://www.joes.com/x?b=1"),
        ("//müller.de", "https://xn--mller-kva.de/"),
        ("http://joes.com:8080?x=%41", "http://joes.com:8080/?x=%41"),
    ],
)
def test_one_spelling_for_each_address(written: str, normal: str) -> None:
    assert normal_url(written, "https://joes.com/sitemap.xml") == normal


@pytest.mark.parametrize(
    "written",
    ["https://evil.com/", "https://joes.com.evil.com/", "javascript:x", "https://127.0.0.1/", "/" + "x" * 3000],
)
def test_a_neighbours_pages_are_not_taken(written: str) -> None:
    with pytest.raises(UnusableUrlError):
        of_site(written, "https://joes.com/", "joes.com")


def test_a_sitemap_that_breaks_off_says_so_and_what_was_read_counts() -> None:
    reader = SitemapReader()
    text = b"<urlset><url><loc>https://a.de/1</loc></url><url><loc>https://a.de/2"
    assert [entry.loc for entry in reader.feed(text) + reader.finish()] == ["https://a.de/1"]
    assert reader.flaw
    whole = SitemapReader()
    whole.feed(b"<urlset><url><loc>https://a.de/?a=1&b=2</loc></url></urlset>")
    whole.finish()
    assert whole.flaw == ""


PLAIN = (
    "https://www.a.test http://a.test/ https://a.test/x/%7Ey/ https://a.test/a//b/../c;p=1 https://a.test/&(1)!,'@:*+~"
    " https://a.test./x https://-a.test/ https://10.0.0.1/x https://localhost/x https://xn--a.test/"
)


@pytest.mark.parametrize("url", PLAIN.split())
def test_an_address_that_needs_no_work_is_spelt_as_one_that_does(url: str) -> None:
    def spelt(written: str) -> str:
        try:
            return normal_url(written)
        except UnusableUrlError as error:
            return str(error)

    assert spelt(url) == spelt(f"{url}#a-fragment-is-taken-off")
