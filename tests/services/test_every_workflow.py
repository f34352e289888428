"""What holds for each of the seven workflows alike, through a real listener: failures, rows that vanish, reruns."""

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass
from typing import Any

import httpx
import psycopg
import pytest
from sqlalchemy.ext.asyncio import AsyncSession

from listener import Done, Tools, Workflow
from listener.testing import Drained, drain
from services.crawl import CrawlSettings
from services.deep_scan import deep_scan
from services.domain_extraction import domain_extraction
from services.domain_metadata import domain_metadata
from services.page_curation import page_curation
from services.place_search import place_search
from services.settings import PipelineSettings
from services.simulation.google import Google
from services.simulation.server import serving
from services.sitemap_analysis import sitemap_analysis
from services.sitemap_import import sitemap_import
from tests.services.site import Site, page, site
from tests.services.world import NoWait, place, settings

EVERY: tuple[Workflow[Any, Any], ...] = (
    place_search,
    deep_scan,
    domain_extraction,
    domain_metadata,
    sitemap_analysis,
    sitemap_import,
    page_curation,
)
TABLES = {
    "place_search": ("place_search", "status", "error"),
    "deep_scan": ("place", "deep_scan_status", "deep_scan_error"),
    "domain_extraction": ("local_business", "domain_extraction_status", "domain_extraction_error"),
    "domain_metadata": ("domain", "status", "last_error"),
    "sitemap_analysis": ("domain", "sitemap_analysis_status", "sitemap_analysis_error"),
    "sitemap_import": ("sitemap_file", "sitemap_import_status", "sitemap_import_error"),
    "page_curation": ("page", "page_processing_status", "page_processing_error"),
}
LIST = "<urlset><url><loc>https://{}/contact</loc></url><url><loc>https://{}/a/b/c</loc></url></urlset>"


@dataclass
class World:
    """One database, one Google, one website of many names."""

    url: str
    db: psycopg.Connection
    web: Site
    google: Google
    google_url: str

    async def drain(self, *workflows: Workflow[Any, Any]) -> dict[str, Drained]:
        crawl = CrawlSettings.model_validate({"replay": f"*.test=127.0.0.1:{self.web.port}", "host_seconds": 0.0})
        places = settings(self.google_url)
        own: dict[str, Any] = dict.fromkeys((one.name for one in EVERY[3:]), crawl)
        own |= {"place_search": places, "deep_scan": places, "domain_extraction": PipelineSettings()}
        # a client of its own: the listener closes it in the end
        return await drain(self.url, *workflows, settings=own, http=httpx.AsyncClient(), clock=NoWait())

    def seed(self) -> None:
        """One item for each workflow, none of which leads to another."""
        self.db.execute("INSERT INTO place_search (business_type, location) VALUES ('plumber', 'Austin, TX')")
        self.db.execute("INSERT INTO place (place_id, deep_scan_status) VALUES ('ChIJplumber0001', 'Queued')")
        self.db.execute("INSERT INTO place (place_id) VALUES ('known')")
        self.db.execute(
            "INSERT INTO local_business (place_id, website, domain_extraction_status)"
            " VALUES ('known', 'https://www.link.test/', 'Queued')"
        )
        self.db.execute("INSERT INTO domain (domain) VALUES ('home.test')")
        self.db.execute(
            "INSERT INTO domain (domain, status, sitemap_analysis_status)"
            " VALUES ('maps.test', 'completed', 'queued'), ('import.test', 'completed', 'submitted'),"
            " ('read.test', 'completed', 'submitted')"
        )
        self.db.execute(
            "INSERT INTO sitemap_file (domain_id, url, sitemap_import_status)"
            " SELECT id, 'https://import.test/sitemap.xml', 'Queued' FROM domain WHERE domain = 'import.test'"
        )
        self.db.execute(
            "INSERT INTO page (domain_id, url, page_processing_status)"
            " SELECT id, 'https://read.test/contact', 'Queued' FROM domain WHERE domain = 'read.test'"
        )

    def outputs(self) -> dict[str, Any]:
        """How much each workflow has written."""
        queries = {
            "place_search": "SELECT count(*) FROM place WHERE place_search_id IS NOT NULL OR query IS NOT NULL",
            "deep_scan": "SELECT count(*) FROM local_business WHERE place_id = 'ChIJplumber0001'",
            "domain_extraction": "SELECT count(*) FROM domain WHERE domain = 'link.test'",
            "domain_metadata": "SELECT count(*) FROM domain WHERE domain = 'home.test' AND metadata_at IS NOT NULL",
            "sitemap_analysis": "SELECT count(*) FROM sitemap_file JOIN domain AS d ON d.id = domain_id"
            " WHERE d.domain = 'maps.test'",
            "sitemap_import": "SELECT count(*) FROM page JOIN domain AS d ON d.id = domain_id"
            " WHERE d.domain = 'import.test'",
            "page_curation": "SELECT count(*) FROM contact",
        }
        return {name: self.one(query) for name, query in queries.items()}

    def words(self) -> dict[str, tuple[str | None, str | None]]:
        """Status and error of the item each workflow was given."""
        wheres = {
            "deep_scan": "place_id <> 'known'",
            "domain_metadata": "domain = 'home.test'",
            "sitemap_analysis": "domain = 'maps.test'",
        }
        found: dict[str, tuple[str | None, str | None]] = {}
        for name, (table, status, error) in TABLES.items():
            query = f"SELECT {status}::text, {error} FROM {table} WHERE {wheres.get(name, 'true')}"
            row = self.db.execute(f"{query} ORDER BY created_at LIMIT 1".encode()).fetchone()
            found[name] = (row[0], row[1]) if row else (None, None)
        return found

    def one(self, query: str) -> Any:
        row = self.db.execute(query.encode()).fetchone()
        return row[0] if row else None


@pytest.fixture
async def world(database: str, db: psycopg.Connection) -> AsyncIterator[World]:
    async with AsyncExitStack() as stack:
        web = await stack.enter_async_context(site())
        google = Google([place(number) for number in (1, 2)])
        made = World(database, db, web, google, stack.enter_context(serving(google)))
        web.routes |= {
            "/": page("<title>Joe</title>"),
            "/sitemap.xml": page(LIST.format("import.test", "import.test"), content_type="application/xml"),
            "/contact": page('<a href="mailto:ann@read.test">Ann</a>'),
        }
        yield made


def _after(workflow: Workflow[Any, Any], then: Callable[[str, Any], None]) -> Workflow[Any, Any]:
    """The same workflow, but something happens between its work and its commit."""

    async def work(item: Any, tools: Tools) -> Any:
        result = await workflow.work(item, tools)
        then(workflow.name, item)
        return result

    return Workflow(workflow.name, workflow.item, work, workflow.save, settings=workflow.settings)


def _failing_save(workflow: Workflow[Any, Any]) -> Workflow[Any, Any]:
    async def save(session: AsyncSession, results: list[Done[Any, Any]]) -> None:
        assert workflow.save is not None
        await workflow.save(session, results)
        raise RuntimeError("the last statement failed")

    return Workflow(workflow.name, workflow.item, workflow.work, save, settings=workflow.settings)


async def test_nothing_to_do_is_done_at_once(world: World) -> None:
    done = await world.drain(*EVERY)
    assert {name: (d.succeeded, d.failed, d.rejected) for name, d in done.items()} == dict.fromkeys(TABLES, (0, 0, 0))


async def test_each_workflow_does_its_item_and_counts_what_came_of_it(world: World) -> None:
    world.seed()
    done = await world.drain(*EVERY)
    assert {name: (d.failed, d.rejected, d.released) for name, d in done.items()} == dict.fromkeys(TABLES, (0, 0, 0))
    assert [word for word, _ in world.words().values()] == [
        *("complete", "Completed", "Completed", "completed", "submitted", "Complete", "Complete")
    ]
    assert world.outputs() == {
        "place_search": 2,
        "deep_scan": 1,
        "domain_extraction": 1,
        "domain_metadata": 1,
        "sitemap_analysis": 1,
        "sitemap_import": 2,
        "page_curation": 1,
    }
    counts = "SELECT places_found || ' ' || pages_fetched FROM place_search"
    assert world.one(counts) == "2 1"
    assert world.one("SELECT sitemap_count FROM domain WHERE domain = 'maps.test'") == 1
    imported = "SELECT concat_ws(' ', pages_found, pages_new, pages_selected, pages_filtered) FROM sitemap_file"
    assert world.one(f"{imported} WHERE imported_at IS NOT NULL") == "2 2 1 0"
    assert world.one("SELECT contacts_found FROM page WHERE url = 'https://read.test/contact'") == 1

    # again, and nothing is there twice
    before = world.outputs()
    for name, (table, status, _) in TABLES.items():
        words = "SELECT queued, completed FROM scheduler.workflow WHERE name = %s"
        queued, completed = world.db.execute(words, [name]).fetchone() or ("", "")
        world.db.execute(f"UPDATE {table} SET {status} = '{queued}' WHERE {status}::text = '{completed}'".encode())
    await world.drain(*EVERY)
    assert world.outputs() == before


async def test_an_item_that_is_deleted_while_it_is_worked_on_leaves_nothing_and_fails_nothing(world: World) -> None:
    world.seed()

    def delete(name: str, item: Any) -> None:
        world.db.execute(f"DELETE FROM {TABLES[name][0]} WHERE id = %s".encode(), [item.id])

    done = await world.drain(*(_after(workflow, delete) for workflow in EVERY))
    assert {name: (d.failed, d.rejected) for name, d in done.items()} == dict.fromkeys(TABLES, (0, 0))
    assert world.outputs() == dict.fromkeys(TABLES, 0)
    assert world.one("SELECT count(*) FROM scheduler.attempt") == 0


async def test_results_hand_over_and_final_word_are_one_commit(world: World) -> None:
    world.seed()
    await world.drain(*map(_failing_save, EVERY))
    assert world.outputs() == dict.fromkeys(TABLES, 0)
    assert world.one("SELECT sitemap_analysis_status::text FROM domain WHERE domain = 'home.test'") == "pending"
    for name, (word, error) in world.words().items():
        assert word in ("failed", "Error", "error"), name
        assert error is not None, name
        assert "the last statement failed" in error, name


async def test_each_workflow_says_in_its_own_words_why_it_failed(world: World) -> None:
    world.seed()
    world.google.trouble.append("503")
    await world.drain(place_search)
    world.db.execute("UPDATE place SET place_id = 'ChIJgone0000001' WHERE deep_scan_status = 'Queued'")
    world.db.execute("UPDATE local_business SET website = 'http://localhost/'")
    world.web.routes |= {
        "/": page("no", 500),
        "/sitemap.xml": page("<html>"),
        "/contact": page("no", 410),
        "/robots.txt": page("no", 404),
    }
    await world.drain(*EVERY[1:])
    expected = {
        "place_search": "UNAVAILABLE: The service is unavailable",
        "deep_scan": "NOT_FOUND: The Place ID is no longer valid",
        "domain_extraction": "has no dot",
        "domain_metadata": "HTTP 500 (Internal Server Error)",
        "sitemap_import": "not a sitemap: an HTML page",
        "page_curation": "HTTP 410 (Gone)",
    }
    found = world.words()
    for name, part in expected.items():
        word, error = found[name]
        assert word in ("failed", "Error", "error"), name
        assert part in (error or ""), (name, error)
    # a site without a sitemap is no failure, and says so
    assert found["sitemap_analysis"] == ("submitted", None)
    assert "there is no sitemap" in world.one("SELECT sitemap_note FROM domain WHERE domain = 'maps.test'")


async def test_two_listeners_at_once_do_each_item_once(world: World) -> None:
    world.seed()
    first, second = await _together(world, EVERY)
    total = {name: first[name].succeeded + second[name].succeeded for name in TABLES}
    # the domain that one workflow makes goes on to the next two, and so does a page
    assert total == dict.fromkeys(TABLES, 1) | {"domain_metadata": 2, "sitemap_analysis": 3, "page_curation": 2}
    assert world.outputs()["page_curation"] == 1
    assert len(world.google.calls) == 2


async def _together(
    world: World, workflows: Sequence[Workflow[Any, Any]]
) -> tuple[dict[str, Drained], dict[str, Drained]]:
    first, second = await asyncio.gather(world.drain(*workflows), world.drain(*workflows))
    return first, second


async def test_a_used_up_budget_stops_paid_calls_exactly_and_says_when_they_go_on(world: World) -> None:
    world.db.execute("SELECT scheduler.set_budget('google_places', 3)")
    world.db.execute(
        "INSERT INTO place (place_id, deep_scan_status) SELECT 'ChIJplumber000' || n, 'Queued'"
        " FROM generate_series(1, 2) AS n"
    )
    world.db.execute(
        "INSERT INTO place_search (business_type, location) SELECT 'plumber', 'Austin ' || n"
        " FROM generate_series(1, 4) AS n"
    )
    await _together(world, (place_search, deep_scan))
    assert len(world.google.calls) == 3
    assert world.one("SELECT used_today FROM scheduler.budgets WHERE budget = 'google_places'") == 3
    assert world.one("SELECT count(*) FROM scheduler.attempt") == 0
    done = "SELECT (SELECT count(*) FROM place_search WHERE status = 'complete')"
    assert world.one(f"{done} + (SELECT count(*) FROM place WHERE deep_scan_status = 'Completed')") == 3
    held = "SELECT hold_reason FROM scheduler.state WHERE hold_until > now() LIMIT 1"
    assert "the budget google_places of 3 calls a day is used up until" in world.one(held)

    world.db.execute("SELECT scheduler.set_budget('google_places', 100)")
    world.db.execute("SELECT scheduler.resume('place_search'), scheduler.resume('deep_scan')")
    await world.drain(place_search, deep_scan)
    assert len(world.google.calls) == 6
