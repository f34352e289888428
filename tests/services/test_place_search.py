"""A search becomes places: each once, whatever runs twice or at the same time."""

import asyncio
import json
from collections.abc import Mapping
from typing import Any, LiteralString
from uuid import UUID

import httpx
import psycopg
import pytest
from psycopg.rows import dict_row

from listener import Hold, Reject, Tools
from services.place_search import place_search
from services.settings import DEFAULT_SYSTEM_USER
from services.simulation.google import Google
from services.simulation.server import Reply, serving
from tests.services.pipeline import Pipeline
from tests.services.world import place, plumbers, settings, tools_with
from tests.sql.queue import one


def new_search(db: psycopg.Connection, kind: str = "plumber", location: str = "Austin, TX") -> UUID:
    query = "INSERT INTO place_search (business_type, location) VALUES (%s, %s) RETURNING id"
    return one(db, query, kind, location)  # type: ignore[no-any-return]


def rows(db: psycopg.Connection, query: str) -> list[dict[str, Any]]:
    return db.cursor(row_factory=dict_row).execute(query).fetchall()


def asking(http: httpx.AsyncClient, url: str) -> Tools:
    return tools_with(http, settings(url))


async def test_every_place_a_search_finds_is_stored_with_all_that_is_known(
    db: psycopg.Connection, pipeline: Pipeline, http: httpx.AsyncClient
) -> None:
    search = new_search(db)
    with serving(plumbers(25)) as url:
        await pipeline.run(place_search, asking(http, url), search)
    stored = rows(db, "SELECT * FROM place ORDER BY place_id")
    assert len(stored) == 25
    first = stored[0]
    assert first["raw"]["id"] == first["place_id"] == "ChIJplumber0001"
    expected = {
        "name": "Plumber 1",
        "address": "1 Main St, Austin, TX 78701, USA",
        "business_type": "plumber",
        "types": ["plumber", "point_of_interest"],
        "latitude": 30.25,
        "longitude": -97.75,
        "review_count": 87,
        "price_level": 2,
        "query": "plumber in Austin, TX",
        "place_search_id": search,
        "status": "New",
        "deep_scan_status": None,
        "created_by": str(DEFAULT_SYSTEM_USER),
    }
    assert {name: first[name] for name in expected} == expected
    assert float(first["rating"]) == 4.5
    (told,) = rows(db, "SELECT places_found, places_new, pages_fetched, searched_at FROM place_search")
    assert (told["places_found"], told["places_new"], told["pages_fetched"]) == (25, 25, 2)
    assert told["searched_at"] is not None


class Overheard:
    """A Google, and the bodies it is asked with."""

    def __init__(self, google: Google) -> None:
        self._google = google
        self.bodies: list[dict[str, Any]] = []

    def answer(self, method: str, target: str, headers: Mapping[str, str], body: bytes = b"") -> Reply:
        self.bodies.append(json.loads(body))
        return self._google.answer(method, target, headers, body)


@pytest.mark.parametrize(("given", "asked"), [(None, 10_000), (2500, 2500)])
async def test_a_point_is_looked_around_also_without_a_radius(
    db: psycopg.Connection, pipeline: Pipeline, http: httpx.AsyncClient, given: int | None, asked: int
) -> None:
    search = new_search(db)
    db.execute("UPDATE place_search SET latitude = 30.25, longitude = -97.75, radius = %s", [given])
    with serving(overheard := Overheard(plumbers(1))) as url:
        await pipeline.run(place_search, asking(http, url), search)
    center = {"latitude": 30.25, "longitude": -97.75}
    assert [body["locationBias"] for body in overheard.bodies] == [{"circle": {"center": center, "radius": asked}}]


@pytest.mark.parametrize("half", ["radius = 5000", "latitude = 30.25", "longitude = 0, radius = 5"])
async def test_half_a_point_is_refused_and_not_left_out(
    db: psycopg.Connection, pipeline: Pipeline, http: httpx.AsyncClient, half: LiteralString
) -> None:
    search = new_search(db)
    db.execute("UPDATE place_search SET " + half)
    google = plumbers(1)
    with serving(google) as url, pytest.raises(Reject, match="needs a point"):
        await pipeline.run(place_search, asking(http, url), search)
    assert google.calls == []


async def test_a_search_that_finds_nothing_succeeds_and_says_zero(
    db: psycopg.Connection, pipeline: Pipeline, http: httpx.AsyncClient
) -> None:
    with serving(plumbers(3)) as url:
        await pipeline.run(place_search, asking(http, url), new_search(db, "florist"))
    assert rows(db, "SELECT places_found, places_new FROM place_search") == [{"places_found": 0, "places_new": 0}]
    assert one(db, "SELECT count(*) FROM place") == 0


async def test_searching_again_refreshes_the_data_and_keeps_what_people_and_workflows_did(
    db: psycopg.Connection, pipeline: Pipeline, http: httpx.AsyncClient
) -> None:
    first, second = new_search(db), new_search(db)
    with serving(plumbers(2)) as url:
        await pipeline.run(place_search, asking(http, url), first)
    db.execute("UPDATE place SET status = 'Selected', deep_scan_status = 'Completed', notes = 'called them'")
    before = rows(db, "SELECT id, place_id, updated_at FROM place ORDER BY place_id")
    with serving(Google([place(1), place(2, rating=3.0)])) as url:
        await pipeline.run(place_search, asking(http, url), second)
    after = rows(db, "SELECT * FROM place ORDER BY place_id")
    assert [row["id"] for row in after] == [row["id"] for row in before]
    assert {row["status"] for row in after} == {"Selected"}
    assert {row["deep_scan_status"] for row in after} == {"Completed"}
    assert {row["notes"] for row in after} == {"called them"}
    assert {row["place_search_id"] for row in after} == {first}
    assert [float(row["rating"]) for row in after] == [4.5, 3.0]
    # what has not changed is not written
    assert [new["updated_at"] > old["updated_at"] for new, old in zip(after, before, strict=True)] == [False, True]
    assert one(db, "SELECT places_found || ' ' || places_new FROM place_search WHERE id = %s", second) == "2 0"


async def test_two_searches_in_one_batch_that_find_the_same_places_store_them_once(
    db: psycopg.Connection, pipeline: Pipeline, http: httpx.AsyncClient
) -> None:
    searches = [new_search(db), new_search(db, location="Austin")]
    with serving(plumbers(5)) as url:
        await pipeline.run(place_search, asking(http, url), *searches)
    assert one(db, "SELECT count(*) FROM place") == 5
    told = rows(db, "SELECT places_found, places_new FROM place_search ORDER BY location DESC")
    assert told == [{"places_found": 5, "places_new": 5}, {"places_found": 5, "places_new": 0}]


async def test_two_listeners_that_save_the_same_places_at_once_both_succeed(
    db: psycopg.Connection, pipeline: Pipeline, http: httpx.AsyncClient
) -> None:
    searches = [new_search(db), new_search(db)]
    google = plumbers(40)
    with serving(google) as url:
        one_way = await pipeline.work(place_search, searches[0], asking(http, url))
        google.places.reverse()
        other_way = await pipeline.work(place_search, searches[1], asking(http, url))
    assert one_way.result.found.places[0].place_id != other_way.result.found.places[0].place_id
    # unsorted, the two take each other's rows and one of them is the deadlock's victim
    await asyncio.gather(*(pipeline.save(place_search, [done]) for done in (one_way, other_way) * 4))
    assert one(db, "SELECT count(*) FROM place") == 40


async def test_a_used_up_quota_costs_no_attempt(
    db: psycopg.Connection, pipeline: Pipeline, http: httpx.AsyncClient
) -> None:
    google = plumbers(1)
    google.per_day = 0
    with serving(google) as url, pytest.raises(Hold, match="per day") as hold:
        await pipeline.work(place_search, new_search(db), asking(http, url))
    assert 60 < hold.value.after <= 86_460
