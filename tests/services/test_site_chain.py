"""From a business to its contacts through a real listener: statuses, hand-overs and final words by the engine."""

import asyncio
from typing import Any

import psycopg
import pytest

from listener.discover import discover
from listener.process import Listener
from listener.settings import Settings
from services.crawl import CrawlSettings
from services.settings import PipelineSettings
from tests.services.site import page, site
from tests.waiting import wait_until

NAMES = ("domain_extraction", "domain_metadata", "sitemap_analysis", "sitemap_import", "page_curation")
PATIENCE = 60.0


@pytest.mark.slow
async def test_a_selected_business_becomes_contacts(database: str, db: psycopg.Connection) -> None:
    found = discover()
    routes = {
        "/": page("<title>Joe's</title><p>hello"),
        "/sitemap.xml": page(
            "<urlset>"
            + "".join(f"<url><loc>https://joes.test/{path}</loc></url>" for path in ("contact", "gone", "old", "a/b/c"))
            + "</urlset>"
        ),
        "/contact": page('<a href="mailto:ann@joes.test">x</a>'),
        "/old": page("<h1>404 not found</h1>"),
    }
    async with site(routes) as web:
        crawl = CrawlSettings.model_validate({"replay": f"*.test=127.0.0.1:{web.port}", "host_seconds": 0.0})
        own: dict[str, Any] = dict.fromkeys(NAMES[1:], crawl) | {NAMES[0]: PipelineSettings()}
        listener = Listener(database, {name: found[name] for name in NAMES}, Settings(database_url=database), own)
        running = asyncio.create_task(listener.run())
        try:
            db.execute("INSERT INTO place (place_id) VALUES ('p')")
            db.execute(
                "INSERT INTO local_business (place_id, website, domain_extraction_status) VALUES ('p', %s, 'Queued')",
                ["joes.test"],
            )
            await _reaches(db, "SELECT sitemap_analysis_status::text FROM domain", ["submitted"])
            assert db.execute("SELECT status::text, sitemap_count, sitemap_url_count FROM domain").fetchall() == [
                ("completed", 1, 4)
            ]
            # the gate before the import is a person's
            db.execute("UPDATE sitemap_file SET deep_scrape_curation_status = 'Selected'")
            db.execute("SELECT scheduler.dispatch('sitemap_import')")
            words = "SELECT coalesce(page_processing_status::text, '-') FROM page ORDER BY url"
            await _reaches(db, words, ["-", "Complete", "Error", "Filtered"])
        finally:
            listener.stop()
            await running
    assert db.execute("SELECT sitemap_import_status::text FROM sitemap_file").fetchall() == [("Complete",)]
    assert db.execute("SELECT domain_extraction_status::text FROM local_business").fetchall() == [("Completed",)]
    assert db.execute("SELECT email, source_url FROM contact").fetchall() == [
        ("ann@joes.test", "https://joes.test/contact")
    ]
    errors = "SELECT page_processing_error FROM page WHERE page_processing_error IS NOT NULL"
    assert db.execute(errors).fetchall() == [("HTTP 404 (Not Found)",)]


async def _reaches(db: psycopg.Connection, query: str, words: list[str]) -> None:
    def reached() -> bool:
        return [row[0] for row in db.execute(query.encode()).fetchall()] == words

    await asyncio.to_thread(wait_until, reached, PATIENCE, f"{query} to be {words}")
