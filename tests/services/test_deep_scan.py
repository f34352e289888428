"""A place's details become one business, and a rescan never undoes what people and workflows did."""

import asyncio
from pathlib import Path
from typing import Any
from uuid import UUID

import httpx
import psycopg
import pytest

from listener import Reject
from services.deep_scan import deep_scan
from services.simulation.google import Google
from services.simulation.server import serving
from tests.listener.started import bench_on
from tests.services.pipeline import Pipeline
from tests.services.test_place_search import asking, rows
from tests.services.world import place, plumbers
from tests.sql.queue import one
from tests.waiting import PATIENCE, wait_until


def new_place(db: psycopg.Connection, number: int) -> UUID:
    query = "INSERT INTO place (place_id, deep_scan_status) VALUES (%s, 'Queued') RETURNING id"
    return one(db, query, f"ChIJplumber{number:04}")  # type: ignore[no-any-return]


async def test_a_business_has_all_that_google_tells_of_its_place(
    db: psycopg.Connection, pipeline: Pipeline, http: httpx.AsyncClient
) -> None:
    key = new_place(db, 1)
    with serving(plumbers(1)) as url:
        await pipeline.run(deep_scan, asking(http, url), key)
    (business,) = rows(db, "SELECT * FROM local_business")
    expected = {
        "place_id": "ChIJplumber0001",
        "name": "Plumber 1",
        "address": "1 Main St, Austin, TX 78701, USA",
        "street": "1 Main Street",
        "city": "Austin",
        "state": "TX",
        "postal_code": "78701",
        "country": "United States",
        "country_code": "US",
        "phone": "+1 512-555-0100",
        "website": "https://plumber1.example.test/",
        "business_type": "plumber",
        "categories": ["plumber", "point_of_interest"],
        "latitude": 30.25,
        "longitude": -97.75,
        "review_count": 87,
        "price_level": 2,
        "business_status": "OPERATIONAL",
        "utc_offset_minutes": -360,
        "status": "New",
        "domain_extraction_status": None,
    }
    assert {name: business[name] for name in expected} == expected
    assert business["opening_hours"]["weekdays"] == ["Monday: 9:00 AM - 5:30 PM"]
    assert business["scanned_at"] is not None
    assert one(db, "SELECT deep_scanned_at IS NOT NULL FROM place")


async def test_a_rescan_refreshes_the_data_and_keeps_curation_progress_and_domain(
    db: psycopg.Connection, pipeline: Pipeline, http: httpx.AsyncClient
) -> None:
    key = new_place(db, 1)
    with serving(plumbers(1)) as url:
        await pipeline.run(deep_scan, asking(http, url), key)
    domain = one(db, "INSERT INTO domain (domain) VALUES ('plumber1.example.test') RETURNING id")
    db.execute(
        "UPDATE local_business SET status = 'Selected', domain_extraction_status = 'Completed', domain_id = %s",
        [domain],
    )
    closed = place(1, businessStatus="CLOSED_PERMANENTLY", websiteUri=None)
    with serving(Google([closed])) as url:
        await pipeline.run(deep_scan, asking(http, url), key)
    (business,) = rows(db, "SELECT * FROM local_business")
    assert (business["business_status"], business["website"]) == ("CLOSED_PERMANENTLY", None)
    kept = (business["status"], business["domain_extraction_status"], business["domain_id"])
    assert kept == ("Selected", "Completed", domain)


async def test_two_listeners_that_save_the_same_places_at_once_leave_one_business_each(
    db: psycopg.Connection, pipeline: Pipeline, http: httpx.AsyncClient
) -> None:
    keys = [new_place(db, number) for number in range(1, 31)]
    with serving(plumbers(30)) as url:
        done = [await pipeline.work(deep_scan, key, asking(http, url)) for key in keys]
    await asyncio.gather(*(pipeline.save(deep_scan, batch) for batch in (done, done[::-1]) * 4))
    assert one(db, "SELECT count(*) FROM local_business") == 30
    assert rows(db, "SELECT place_id FROM local_business GROUP BY place_id HAVING count(*) > 1") == []


async def test_a_place_that_is_gone_is_given_up_in_googles_words(
    db: psycopg.Connection, pipeline: Pipeline, http: httpx.AsyncClient
) -> None:
    with serving(plumbers(0)) as url, pytest.raises(Reject, match="NOT_FOUND: The Place ID is no longer valid"):
        await pipeline.work(deep_scan, new_place(db, 1), asking(http, url))


@pytest.mark.slow
def test_a_search_goes_through_a_real_listener_to_businesses_and_a_refused_key_spends_nothing(
    database: str, tmp_path: Path
) -> None:
    entries = ("place_search = services.place_search:place_search", "deep_scan = services.deep_scan:deep_scan")
    google = plumbers(3)
    with bench_on(database, tmp_path) as bench, serving(google) as url:
        bench.db.execute("INSERT INTO place (place_id, deep_scan_status) VALUES ('ChIJgone000001', 'Queued')")
        bench.db.execute("INSERT INTO place_search (business_type, location) VALUES ('plumber', 'Austin, TX')")
        google.blocked["test-key"] = "API_KEY_SERVICE_BLOCKED"
        environment: dict[str, Any] = {"GOOGLE_PLACES_BASE_URL": url, "GOOGLE_PLACES_API_KEY": "test-key"}
        refused = bench.start(entries=entries, **environment)
        held = "SELECT count(*) FROM scheduler.state WHERE hold_until > now() AND hold_reason ~ 'SERVICE_BLOCKED'"
        wait_until(lambda: one(bench.db, held) == 2, PATIENCE, "both workflows to be held")
        assert one(bench.db, "SELECT string_agg(deep_scan_status::text, '') FROM place") == "Queued"
        assert one(bench.db, "SELECT status FROM place_search") == "pending"
        assert one(bench.db, "SELECT count(*) FROM scheduler.attempt") == 0

        assert refused.stop() == 0
        google.blocked.clear()
        bench.db.execute("SELECT scheduler.resume('place_search'), scheduler.resume('deep_scan')")
        bench.start(entries=entries, **environment)
        wait_until(lambda: one(bench.db, "SELECT status FROM place_search") == "complete", PATIENCE)
        assert one(bench.db, "SELECT places_found FROM place_search") == 3
        bench.db.execute("UPDATE place SET deep_scan_status = 'Queued' WHERE deep_scan_status IS NULL")
        finished = "SELECT count(*) FROM place WHERE deep_scan_status IN ('Completed', 'Error')"
        wait_until(lambda: one(bench.db, finished) == 4, PATIENCE)
        errors = rows(bench.db, "SELECT place_id, deep_scan_error FROM place WHERE deep_scan_status = 'Error'")
        assert [row["place_id"] for row in errors] == ["ChIJgone000001"]
        assert "NOT_FOUND: The Place ID is no longer valid" in errors[0]["deep_scan_error"]
        assert one(bench.db, "SELECT count(*) FROM local_business") == 3
