"""From a website to contacts, each workflow alone: a real database, a website on loopback."""

import asyncio
import gzip
from collections.abc import AsyncIterator
from typing import Any
from uuid import UUID

import psycopg
import pytest
from psycopg import sql

from listener import Clock, Reject, Retry, Tools
from listener.tools import Toolbox
from services.crawl import CrawlSettings
from services.domain_extraction import domain_extraction
from services.domain_metadata import domain_metadata
from services.page_curation import page_curation
from services.sitemap_analysis import sitemap_analysis
from services.sitemap_import import sitemap_import
from tests.services.pipeline import Pipeline
from tests.services.site import FakeClock, Site, endless, page, raw, redirect, silence, site

HOME = """<html lang="en-US"><head><title>Joe's</title><meta name="generator" content="WordPress 6.4">
<link rel="sitemap" href="/extra.xml"></head><body><a href="mailto:joe@joes.test">x</a> (512) 472-1234
<a href="https://facebook.com/joes">f</a></body></html>"""
LIST = '<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">{}</urlset>'
INDEX = "<sitemapindex>{}</sitemapindex>"


def urls(*paths: str, tag: str = "url") -> str:
    entries = "".join(f"<{tag}><loc>https://joes.test{path}</loc></{tag}>" for path in paths)
    return (INDEX if tag == "sitemap" else LIST).format(entries)


def xml(text: str) -> Any:
    return page(text, content_type="application/xml")


class World:
    """One test's rows, website and tools."""

    def __init__(self, db: psycopg.Connection, pipeline: Pipeline, web: Site) -> None:
        self.db, self.pipeline, self.web = db, pipeline, web
        self._box = Toolbox()
        self.settings: dict[str, Any] = {
            "host_seconds": 0.0,
            "read_seconds": 0.5,
            "total_seconds": 5.0,
            "ports": "80,443",
        }

    def tools(self, name: str = "test", clock: Clock | None = None) -> Tools:
        replay = f"*.test=127.0.0.1:{self.web.port}"
        settings = CrawlSettings.model_validate({"replay": replay, **self.settings})
        if clock is not None:
            self._box = Toolbox(clock=clock)
        return Tools(self._box, name, settings, "key", 1)

    async def run(self, workflow: Any, *keys: UUID, clock: Clock | None = None) -> None:
        await self.pipeline.run(workflow, self.tools(workflow.name, clock), *keys)

    def insert(self, table: str, **values: Any) -> UUID:
        query = sql.SQL("INSERT INTO {} ({}) VALUES ({}) RETURNING id").format(
            sql.Identifier(table),
            sql.SQL(", ").join(map(sql.Identifier, values)),
            sql.SQL(", ").join(sql.Placeholder() * len(values)),
        )
        row = self.db.execute(query, list(values.values())).fetchone()
        assert row is not None
        return UUID(str(row[0]))

    def business(self, website: str | None, place: str = "p1") -> UUID:
        self.insert("place", place_id=place)
        return self.insert("local_business", place_id=place, website=website, country_code="US")

    def domain(self, name: str = "joes.test", **values: Any) -> UUID:
        return self.insert("domain", domain=name, country_code="US", **values)

    def sitemap(self, domain: UUID, url: str = "https://joes.test/sitemap.xml", **values: Any) -> UUID:
        return self.insert("sitemap_file", domain_id=domain, url=url, **values)

    def page(self, domain: UUID, path: str = "/contact") -> UUID:
        return self.insert("page", domain_id=domain, url=f"https://joes.test{path}")

    def all(self, query: str, *values: Any) -> list[tuple[Any, ...]]:
        return self.db.execute(query.encode(), values).fetchall()

    def row(self, query: str, *values: Any) -> tuple[Any, ...]:
        (found,) = self.all(query, *values)
        return found

    async def close(self) -> None:
        await self._box.close()


@pytest.fixture
async def world(db: psycopg.Connection, pipeline: Pipeline) -> AsyncIterator[World]:
    async with site() as web:
        made = World(db, pipeline, web)
        yield made
        await made.close()


# -- domain extraction ------------------------------------------------------------------------------------------------


async def test_a_website_becomes_a_domain_that_waits_for_its_metadata(world: World) -> None:
    key = world.business("HTTPS://www.Joes.co.uk/x")
    await world.run(domain_extraction, key)
    query = """SELECT d.domain, d.status::text, d.country_code, d.created_by
               FROM local_business AS b JOIN domain AS d ON d.id = b.domain_id"""
    assert world.row(query) == ("joes.co.uk", "pending", "US", "00000000-0000-0000-0000-000000000002")


async def test_a_known_domain_is_linked_and_left_as_it_is(world: World) -> None:
    world.db.execute("INSERT INTO domain (domain, status, title) VALUES ('joes.com', 'completed', 'Joe')")
    first, second = world.business("joes.com"), world.business("https://shop.joes.com", "p2")
    await world.run(domain_extraction, first, second)
    await world.run(domain_extraction, first, second)
    assert world.row("SELECT domain, status::text, title, country_code FROM domain") == (
        "joes.com",
        "completed",
        "Joe",
        "US",
    )
    assert world.row("SELECT count(*) FROM local_business WHERE domain_id IS NOT NULL") == (2,)


async def test_two_businesses_with_one_domain_at_the_same_moment(world: World) -> None:
    keys = [world.business("joes.com", f"p{n}") for n in range(6)]
    await asyncio.gather(*(world.run(domain_extraction, key) for key in keys))
    assert world.row("SELECT count(DISTINCT domain_id), count(domain_id) FROM local_business") == (1, 6)


@pytest.mark.parametrize(
    ("website", "note"), [(None, "there is no website"), ("https://facebook.com/joes", "social network")]
)
async def test_no_domain_of_its_own_is_no_error(world: World, website: str | None, note: str) -> None:
    await world.run(domain_extraction, world.business(website))
    (said,) = world.row("SELECT domain_extraction_note FROM local_business")
    assert note in said
    assert world.all("SELECT FROM domain") == []


async def test_garbage_is_an_error_that_says_so(world: World) -> None:
    with pytest.raises(Reject, match=r"'call us' has no domain: .* is no host name"):
        await world.run(domain_extraction, world.business("call us"))


# -- domain metadata --------------------------------------------------------------------------------------------------


async def test_a_home_page_fills_the_domain_and_asks_for_its_sitemaps(world: World) -> None:
    world.web.routes["/"] = page(HOME)
    await world.run(domain_metadata, world.domain())
    query = """SELECT title, language, cms, cms_version, technologies, emails, phones, socials, home_url, http_status,
                      sitemap_analysis_status::text, metadata_at IS NOT NULL FROM domain"""
    assert world.row(query) == (
        "Joe's", "en-US", "WordPress", "6.4", ["WordPress"], ["joe@joes.test"], ["+15124721234"],
        {"facebook": "https://facebook.com/joes"}, "https://joes.test/", 200, "queued", True,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("name", "at"), [("joes.test", "https://www.joes.test/en/"), ("shop.joes.test", "https://www.joes.test/")]
)
async def test_a_home_page_elsewhere_under_the_same_name_is_the_website(world: World, name: str, at: str) -> None:
    host, path = at.removeprefix("https://").split("/", 1)
    world.web.routes |= {f"{name}/": redirect(at), f"{host}/{path}": page(HOME)}
    await world.run(domain_metadata, world.domain(name))
    assert world.row("SELECT title, home_url FROM domain") == ("Joe's", at)


@pytest.mark.parametrize("answer", [page(b"", 404), page(b"", 403), page(b"", 526)])
async def test_a_site_that_is_only_set_up_at_its_www_is_found_there(world: World, answer: Any) -> None:
    world.web.routes |= {"joes.test/": answer, "www.joes.test/": page(HOME)}
    await world.run(domain_metadata, world.domain())
    assert world.row("SELECT home_url, http_status FROM domain") == ("https://www.joes.test/", 200)
    assert [r.host for r in world.web.requests if r.path == "/"].count("joes.test") == 1


@pytest.mark.parametrize(("status", "kind"), [(410, Reject), (503, Retry)])
async def test_a_site_that_is_gone_or_busy_is_not_looked_for_at_its_www(
    world: World, status: int, kind: type[Exception]
) -> None:
    world.web.routes |= {"joes.test/": page(b"", status), "www.joes.test/": page(HOME)}
    with pytest.raises(kind, match=f"HTTP {status}"):
        await world.run(domain_metadata, world.domain())
    assert "www.joes.test" not in {request.host for request in world.web.requests}


async def test_sitemaps_in_progress_are_not_asked_for_twice_and_curation_stays(world: World) -> None:
    world.web.routes["/"] = page(HOME)
    key = world.domain(sitemap_analysis_status="processing", sitemap_curation_status="Maybe")
    await world.run(domain_metadata, key)
    query = "SELECT sitemap_analysis_status::text, sitemap_curation_status::text FROM domain"
    assert world.row(query) == ("processing", "Maybe")


@pytest.mark.parametrize(
    ("answer", "kind", "words"),
    [
        (page(b"", 404), Reject, "HTTP 404"),
        (page(b"", 503), Retry, "HTTP 503"),
        (page(b"%PDF", content_type="application/pdf"), Reject, "application/pdf"),
        (silence, Retry, "joes.test"),
        (raw(b"nonsense"), Retry, "joes.test"),
        (redirect("/"), Reject, "redirect"),
        (page("Checking your browser", 202), Retry, r"HTTP 202 \(Accepted\)"),
        (redirect("https://elsewhere.test/"), Reject, r"joes\.test leads to another website, elsewhere\.test"),
        (page("<meta http-equiv=refresh content='0;url=//elsewhere.test/'>"), Reject, "another website"),
    ],
)
@pytest.mark.slow
async def test_each_failure_of_a_home_page_in_its_own_words(
    world: World, answer: Any, kind: type[Exception], words: str
) -> None:
    world.web.routes |= {"/": answer, "elsewhere.test/": page(HOME)}
    with pytest.raises(kind, match=words):
        await world.run(domain_metadata, world.domain())
    assert world.row("SELECT sitemap_analysis_status::text, metadata_at FROM domain") == ("pending", None)


async def test_a_dead_host_and_a_disallowed_home_page(world: World) -> None:
    with pytest.raises(Reject, match=r"nosuch\.invalid"):
        await world.run(domain_metadata, world.domain("nosuch.invalid"))
    world.web.routes |= {"/": page(HOME), "/robots.txt": page("User-agent: *\nDisallow: /", content_type="text/plain")}
    with pytest.raises(Reject, match=r"robots\.txt of joes\.test disallows"):
        await world.run(domain_metadata, world.domain())


async def test_hostile_text_is_stored_all_the_same(world: World) -> None:
    world.web.routes["/"] = page(
        b"<title>a\x00b\xff</title><script type='application/ld+json'>"
        b'{"@type":"Plumber","name":"x\\u0000\\ud800","telephone":"1"}</script>'
    )
    await world.run(domain_metadata, world.domain())
    assert world.row("SELECT structured_data->0->>'name' FROM domain") == ("x?",)


# -- sitemap analysis -------------------------------------------------------------------------------------------------


async def test_sitemaps_are_found_in_all_four_ways(world: World) -> None:
    world.web.routes |= {
        "/": page(HOME),
        "/robots.txt": page("Sitemap: https://joes.test/named.xml.gz", content_type="text/plain"),
        "/named.xml.gz": page(gzip.compress(urls("/a", "/b").encode()), content_type="application/gzip"),
        "/sitemap.xml": xml(urls("/child.xml", "/sitemap.xml", "/gone.xml", tag="sitemap")),
        "/child.xml": xml(urls("/c").replace("</loc>", "</loc><lastmod>2024-01-01</lastmod>")),
        "/extra.xml": xml(urls("/d")),
        "/wp-sitemap.xml": page("<!doctype html><html>everything is a page"),
    }
    key = world.domain()
    for _ in range(2):
        await world.run(sitemap_analysis, key)
        query = """SELECT f.url, f.sitemap_type::text, f.found_by, f.depth, f.url_count, f.gzip, f.has_lastmod, p.url
                   FROM sitemap_file AS f LEFT JOIN sitemap_file AS p ON p.id = f.parent_id ORDER BY f.url"""
        at = "https://joes.test"
        assert world.all(query) == [
            (f"{at}/child.xml", "standard", "index", 1, 1, False, True, f"{at}/sitemap.xml"),
            (f"{at}/extra.xml", "standard", "home page", 0, 1, False, False, None),
            (f"{at}/named.xml.gz", "standard", "robots.txt", 0, 2, True, False, None),
            (f"{at}/sitemap.xml", "index", "usual path", 0, 3, False, False, None),
        ]
        count, total, note = world.row("SELECT sitemap_count, sitemap_url_count, sitemap_note FROM domain")
        assert (count, total) == (4, 4)
        assert "1 named but not readable (https://joes.test/gone.xml: HTTP 404" in note
        world.db.execute("UPDATE sitemap_file SET deep_scrape_curation_status = 'Selected', notes = 'mine'")
    assert world.row("SELECT count(*) FROM sitemap_file WHERE notes = 'mine'") == (4,)


async def test_no_sitemap_is_an_answer(world: World) -> None:
    world.web.routes["/"] = page("<p>hello")
    await world.run(sitemap_analysis, world.domain())
    count, note = world.row("SELECT sitemap_count, sitemap_note FROM domain")
    assert count == 0
    assert note.startswith("there is no sitemap")


async def test_a_site_that_does_not_answer_is_not_said_to_have_none(world: World) -> None:
    world.web.routes |= {"/robots.txt": page("", content_type="text/plain"), "/sitemap.xml": page(b"", 503)}
    with pytest.raises(Retry, match="HTTP 503"):
        await world.run(sitemap_analysis, world.domain())
    world.web.routes["/robots.txt"] = page(b"", 500)
    with pytest.raises(Retry, match=r"robots\.txt answers HTTP 500"):
        await world.run(sitemap_analysis, world.domain("other.test"))


async def test_indexes_that_name_each_other_and_never_end_stop(world: World) -> None:
    world.web.routes |= {f"/{n}.xml": xml(urls(f"/{n + 1}.xml", "/sitemap.xml", tag="sitemap")) for n in range(30)}
    world.web.routes["/sitemap.xml"] = xml(urls("/0.xml", "/sitemap.xml", tag="sitemap"))
    await world.run(sitemap_analysis, world.domain())
    count, note = world.row("SELECT sitemap_count, sitemap_note FROM domain")
    assert count == 6
    assert "nested deeper than 5" in note


async def test_the_sitemaps_of_others_are_left_alone_except_where_robots_txt_says_they_are_ours(world: World) -> None:
    at = "https://cdn.test"
    world.web.routes |= {
        "joes.test/": page("<link rel=sitemap href='https://other.test/theirs.xml'>"),
        "joes.test/robots.txt": page(f"Sitemap: {at}/ours.xml", content_type="text/plain"),
        "joes.test/sitemap.xml": xml(urls("/a.xml", tag="sitemap").replace("joes.test/a", "other.test/a")),
        "joes.test/wp-sitemap.xml": redirect("https://other.test/theirs.xml"),
        "cdn.test/ours.xml": xml(urls("/child.xml", tag="sitemap").replace("joes", "cdn")),
        "cdn.test/child.xml": xml(urls("/page")),
        "other.test/a.xml": xml(urls("/b")),
        "other.test/theirs.xml": xml(urls("/c")),
    }
    await world.run(sitemap_analysis, world.domain())
    assert world.all("SELECT url FROM sitemap_file ORDER BY url") == [
        (f"{at}/child.xml",), (f"{at}/ours.xml",), ("https://joes.test/sitemap.xml",),
    ]  # fmt: skip
    assert "/a.xml" not in world.web.paths
    (note,) = world.row("SELECT sitemap_note FROM domain")
    assert "https://other.test/a.xml: on another site" in note


async def test_a_site_that_asks_for_a_slow_pace_is_left_in_time_with_what_was_found(world: World) -> None:
    """Else it would run into the workflow's timeout each time, and end in the dead letter."""
    children = [f"/{n}.xml" for n in range(100)]
    world.web.routes |= {child: xml(urls("/a")) for child in children}
    world.web.routes |= {
        "/robots.txt": page("User-agent: *\nCrawl-delay: 20", content_type="text/plain"),
        "/sitemap.xml": xml(urls(*children, tag="sitemap")),
    }
    clock = FakeClock()
    began = clock.monotonic()
    await world.run(sitemap_analysis, world.domain(), clock=clock)
    assert 300 < clock.monotonic() - began < 500
    count, note = world.row("SELECT sitemap_count, sitemap_note FROM domain")
    assert 15 < count < 30
    assert "not done after 420 s, at the pace the site asks for" in note


# -- sitemap import ---------------------------------------------------------------------------------------------------


async def test_each_address_becomes_a_page_and_a_rerun_changes_nothing(world: World) -> None:
    world.web.routes["/sitemap.xml"] = xml(
        urls("/", "/contact", "/contact", "/a/b/c", "/x.pdf", "/blog/post").replace(
            "</urlset>", "<url><loc>https://evil.test/</loc></url></urlset>"
        )
    )
    domain = world.domain()
    key = world.sitemap(domain)
    await world.run(sitemap_import, key)
    query = """SELECT url, category, page_curation_status::text, page_processing_status::text, filter_rule
               FROM page ORDER BY priority DESC, url"""
    rows = world.all(query)
    assert rows == [
        ("https://joes.test/", "home", "Selected", "Queued", None),
        ("https://joes.test/contact", "contact", "Selected", "Queued", None),
        ("https://joes.test/a/b/c", "other", "New", None, None),
        ("https://joes.test/blog/post", "blog", "New", "Filtered", "blog: a single post"),
        ("https://joes.test/x.pdf", "media", "New", "Filtered", "media: .pdf"),
    ]
    counts = "SELECT pages_found, pages_new, pages_selected, pages_filtered, import_note FROM sitemap_file"
    assert world.row(counts) == (5, 5, 2, 2, "1 dropped: on another site")
    world.db.execute("UPDATE page SET page_processing_status = 'Complete', page_curation_status = 'Skipped'")
    await world.run(sitemap_import, key)
    assert world.row(counts)[:2] == (5, 0)
    assert world.all("SELECT DISTINCT page_processing_status::text, page_curation_status::text FROM page") == [
        ("Complete", "Skipped")
    ]


async def test_two_sitemaps_with_the_same_pages_at_the_same_moment(world: World) -> None:
    paths = [f"/p{n}" for n in range(300)]
    world.web.routes |= {"/1.xml": xml(urls(*paths)), "/2.xml": xml(urls(*reversed(paths)))}
    domain = world.domain()
    keys = [world.sitemap(domain, f"https://joes.test/{n}.xml") for n in (1, 2)]
    await asyncio.gather(*(world.run(sitemap_import, key) for key in keys))
    assert world.row("SELECT count(*), count(*) FILTER (WHERE page_processing_status = 'Queued') FROM page") in [
        (300, 25), (300, 50),
    ]  # fmt: skip
    assert world.row("SELECT sum(pages_new) FROM sitemap_file") == (300,)


async def test_an_index_hands_its_sitemaps_on_and_a_loop_ends(world: World) -> None:
    world.web.routes["/sitemap.xml"] = xml(urls("/sitemap.xml", "/a.xml", "/done.xml", tag="sitemap"))
    domain = world.domain()
    key = world.sitemap(domain, sitemap_import_status="Processing")
    world.sitemap(domain, "https://joes.test/done.xml", sitemap_import_status="Complete")
    await world.run(sitemap_import, key)
    await world.run(sitemap_import, key)
    query = "SELECT url, sitemap_import_status::text, depth FROM sitemap_file ORDER BY url"
    assert world.all(query) == [
        ("https://joes.test/a.xml", "Queued", 1),
        ("https://joes.test/done.xml", "Complete", 0),
        ("https://joes.test/sitemap.xml", "Processing", 0),
    ]
    await world.run(sitemap_import, world.sitemap(world.domain("x.test"), "https://joes.test/sitemap.xml", depth=5))
    assert world.row("SELECT count(*) FROM sitemap_file") == (4,)


@pytest.mark.parametrize(
    ("answer", "kind", "words"),
    [
        (page("<html>not found"), Reject, "not a sitemap: an HTML page"),
        (page(b""), Reject, "not a sitemap: an empty document"),
        (page(b"", 410), Reject, "HTTP 410"),
        (page(b"", 429, retry_after="7"), Retry, "HTTP 429"),
        (page(gzip.compress(b"<urlset>" + b" " * 40_000_000)), Reject, "bomb"),
        (page('<!DOCTYPE l [<!ENTITY a "ha">]><urlset/>'), Reject, "DOCTYPE"),
    ],
)
async def test_each_failure_of_an_import_in_its_own_words(
    world: World, answer: Any, kind: type[Exception], words: str
) -> None:
    world.web.routes["/sitemap.xml"] = answer
    with pytest.raises(kind, match=words):
        await world.run(sitemap_import, world.sitemap(world.domain()))
    assert world.all("SELECT FROM page") == []


async def test_a_sitemap_without_end_stops_at_the_cap(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("services.sitemap_import.MOST_BYTES", 300_000)
    entry = b"<url><loc>https://joes.test/a/b/c</loc></url>" * 100
    world.web.routes["/sitemap.xml"] = endless(entry, b"HTTP/1.1 200 X\r\n\r\n<urlset>")
    await world.run(sitemap_import, world.sitemap(world.domain()))
    assert world.row("SELECT pages_found, import_note FROM sitemap_file") == (1, "stopped: longer than 300,000 bytes")


# -- page curation ----------------------------------------------------------------------------------------------------

CONTACT = """<title>Contact</title><div class=team-member><h3>Jane Smith</h3><p class=role>Manager</p>
<a href="mailto:jane@joes.test">x</a></div><p>info [at] joes [dot] test, call (512) 472-1234</p>"""


async def test_every_contact_of_a_page_is_stored_with_its_source(world: World) -> None:
    world.web.routes["/contact"] = page(CONTACT)
    key = world.page(world.domain())
    for _ in range(2):
        await world.run(page_curation, key)
        query = """SELECT email, email_type::text, phone, name, role, found_in, source_url, page_id = %s
                   FROM contact ORDER BY email"""
        at = "https://joes.test/contact"
        assert world.all(query, key) == [
            ("info@joes.test", "service", None, None, None, "bracketed", at, True),
            ("jane@joes.test", "corporate", None, "Jane Smith", "Manager", "mailto", at, True),
            (None, None, "+15124721234", None, None, "text", at, True),
        ]
    assert world.row("SELECT contacts_found, title, http_status, filter_rule FROM page") == (3, "Contact", 200, None)


async def test_what_a_person_wrote_about_a_contact_stays(world: World) -> None:
    world.web.routes["/contact"] = page(CONTACT)
    key = world.page(world.domain())
    await world.run(page_curation, key)
    world.db.execute(
        "UPDATE contact SET name = 'Mrs Smith', contact_curation_status = 'Selected' WHERE name IS NOT NULL"
    )
    await world.run(page_curation, key)
    query = "SELECT name, contact_curation_status::text FROM contact WHERE email = 'jane@joes.test'"
    assert world.row(query) == ("Mrs Smith", "Selected")


async def test_pages_that_share_contacts_in_one_batch_and_at_the_same_moment(world: World) -> None:
    domain = world.domain()
    paths = [f"/team/{n}" for n in range(4)]
    world.web.routes |= {path: page(CONTACT) for path in paths}
    keys = [world.page(domain, path) for path in paths]
    await asyncio.gather(world.run(page_curation, *keys[:2]), world.run(page_curation, *keys[2:]))
    assert world.row("SELECT count(*) FROM contact") == (3,)
    assert world.row("SELECT sum(contacts_found) FROM page") == (12,)


@pytest.mark.parametrize("order", [1, -1])
async def test_a_number_that_belongs_to_somebody_is_no_contact_of_its_own(world: World, order: int) -> None:
    links = '<a href="mailto:jane@joes.test">x</a> <a href="tel:5124721234">c</a>'
    card = f"<div class=vcard><b class=fn>Jane Smith</b>{links}</div>"
    world.web.routes |= {"/a": page(card), "/b": page("<p>Call (512) 472-1234")}
    domain = world.domain()
    for path in ["/a", "/b"][::order]:
        await world.run(page_curation, world.page(domain, path))
    assert world.all("SELECT email, phone FROM contact") == [("jane@joes.test", "+15124721234")]


async def test_nothing_found_is_complete_with_zero(world: World) -> None:
    world.web.routes["/contact"] = page("")
    done = await world.pipeline.work(page_curation, world.page(world.domain()), world.tools())
    assert done.word is None
    await world.pipeline.save(page_curation, [done])
    assert world.row("SELECT contacts_found, fetched_at IS NOT NULL FROM page") == (0, True)


@pytest.mark.parametrize(
    ("answer", "rule"),
    [
        (redirect("https://elsewhere.test/contact"), "redirected off-site to elsewhere.test"),
        (redirect("https://joes.test/"), "soft 404: redirected to the home page"),
        (page("<title>Page not found</title>x@joes.test"), "soft 404: its title says 'not found'"),
        (page("<h1>404</h1>x@joes.test"), "soft 404: its heading says '404'"),
        (page(b"%PDF", content_type="application/pdf"), "not HTML: application/pdf"),
    ],
)
async def test_a_page_not_worth_reading_is_filtered_with_the_reason(world: World, answer: Any, rule: str) -> None:
    found = page("x@joes.test")
    world.web.routes |= {"joes.test/contact": answer, "elsewhere.test/contact": found, "joes.test/": found}
    done = await world.pipeline.work(page_curation, world.page(world.domain()), world.tools())
    assert done.word == "Filtered"
    await world.pipeline.save(page_curation, [done])
    assert world.row("SELECT filter_rule, contacts_found FROM page") == (rule, 0)
    assert world.all("SELECT FROM contact") == []


@pytest.mark.parametrize(
    ("answer", "kind", "words"),
    [
        (page(b"", 404), Reject, "HTTP 404"),
        (page(b"", 500), Retry, "HTTP 500"),
        (endless(b"x" * 65_536, b"HTTP/1.1 200 X\r\nContent-Type: text/html\r\n\r\n"), Reject, "larger than"),
        (silence, Retry, "joes.test"),
    ],
)
async def test_each_failure_of_a_page_in_its_own_words(
    world: World, answer: Any, kind: type[Exception], words: str
) -> None:
    world.settings["body_bytes"] = 200_000
    world.web.routes["/contact"] = answer
    with pytest.raises(kind, match=words):
        await world.run(page_curation, world.page(world.domain()))


@pytest.mark.parametrize("workflow", [page_curation, sitemap_import])
async def test_what_would_wait_long_for_a_slow_host_is_put_off_and_spends_no_attempt(
    world: World, workflow: Any
) -> None:
    """Else a run waits for one host, and the items of all others wait for the run."""
    rules = page("User-agent: *\nCrawl-delay: 15", content_type="text/plain")
    world.web.routes |= {"/robots.txt": rules, "/1": page("<p>hello"), "/2": page("<p>hello")}
    world.web.routes |= {"/1.xml": xml(urls("/a")), "/2.xml": xml(urls("/b"))}
    domain, clock = world.domain(), FakeClock()
    first, second = (
        world.page(domain, f"/{n}")
        if workflow is page_curation
        else world.sitemap(domain, f"https://joes.test/{n}.xml")
        for n in (1, 2)
    )
    tools = world.tools(clock=clock)
    await world.pipeline.run(workflow, tools, first)
    with pytest.raises(Retry, match="has its share") as later:
        await world.pipeline.run(workflow, tools, second)
    assert (later.value.spend, later.value.after, clock.slept) == (False, 15.0, [])
    clock.moment += 15
    await world.pipeline.run(workflow, tools, second)


async def test_a_save_that_fails_leaves_nothing(world: World) -> None:
    world.web.routes["/"] = page(HOME)
    done = await world.pipeline.work(domain_metadata, world.domain(), world.tools())
    assert domain_metadata.save is not None
    async with world.pipeline.session() as session:
        await domain_metadata.save(session, [done])
        await session.rollback()
    assert world.row("SELECT title, sitemap_analysis_status::text FROM domain") == (None, "pending")


async def test_rows_that_are_gone_by_now_are_no_trouble(world: World) -> None:
    world.web.routes |= {"/": page(HOME), "/contact": page("<p>hello"), "/sitemap.xml": xml(urls("/a"))}
    domain = world.domain()
    home = await world.pipeline.work(domain_metadata, domain, world.tools())
    read = await world.pipeline.work(page_curation, world.page(domain), world.tools())
    world.db.execute("DELETE FROM domain")
    await world.pipeline.save(domain_metadata, [home])
    await world.pipeline.save(page_curation, [read])
    assert world.all("SELECT FROM page") == []
