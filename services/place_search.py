"""WF1. A text search on Google Places: "<business_type> in <location>" becomes rows of `place`."""

from dataclasses import dataclass
from typing import Any
from uuid import UUID

from sqlalchemy import Boolean, bindparam, func, literal_column, tuple_, update
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.ext.asyncio import AsyncSession

from listener import Done, Reject, Tools, Workflow
from services.models import Place, PlaceSearch
from services.places import Found, FoundPlace, PlacesSettings, Query, places, verdicts

_DATA = (
    "name",
    "address",
    "business_type",
    "types",
    "latitude",
    "longitude",
    "rating",
    "review_count",
    "price_level",
    "query",
    "raw",
)
"""What another search may overwrite. Who found it first, and what people and workflows made of it, stays."""
_ROWS_A_STATEMENT = 1000
USUAL_RADIUS = 10_000
"""Metres around a point that comes without a radius."""
_TOLD = (
    update(PlaceSearch)
    .where(PlaceSearch.id == bindparam("key"))
    .values(
        places_found=bindparam("found"),
        places_new=bindparam("new"),
        pages_fetched=bindparam("pages"),
        searched_at=func.now(),
    )
)


@dataclass(frozen=True)
class Searched:
    query: str
    found: Found
    made_by: str


async def work(search: PlaceSearch, tools: Tools) -> Searched:
    around = search.latitude is not None and search.longitude is not None
    if not around and (search.latitude, search.longitude, search.radius) != (None, None, None):
        # Google would be asked without it, and nobody would know
        raise Reject("a radius needs a point to be around: give latitude and longitude, or none of the three")
    query = Query(
        text=f"{search.business_type.strip()} in {search.location.strip()}",
        latitude=search.latitude,
        longitude=search.longitude,
        radius=search.radius or (USUAL_RADIUS if around else None),
        max_results=search.max_results,
        language=search.language,
        region=search.region,
    )
    with verdicts(tools.clock.now()):
        found = await places(tools).search(query)
    return Searched(query.text, found, str(tools.settings.scheduler_system_user_id))


async def save(session: AsyncSession, results: list[Done[PlaceSearch, Searched]]) -> None:
    # one row a place, however many searches found it, and always in the same order: twins wait, and do not deadlock
    rows: dict[str, dict[str, Any]] = {}
    for done in results:
        for place in done.result.found.places:
            rows.setdefault(place.place_id, _row(done.item, done.result, place))
    ordered = [rows[place_id] for place_id in sorted(rows)]
    new: dict[UUID, int] = {}
    for start in range(0, len(ordered), _ROWS_A_STATEMENT):
        for search_id in await _upsert(session, ordered[start : start + _ROWS_A_STATEMENT]):
            new[search_id] = new.get(search_id, 0) + 1
    connection = await session.connection()
    await connection.execute(
        _TOLD,
        [
            {
                "key": done.item.id,
                "found": len(done.result.found.places),
                "new": new.get(done.item.id, 0),
                "pages": done.result.found.pages,
            }
            for done in results
        ],
    )


def _row(search: PlaceSearch, result: Searched, place: FoundPlace) -> dict[str, Any]:
    return {
        "tenant_id": search.tenant_id,
        "created_by": result.made_by,
        "place_search_id": search.id,
        "place_id": place.place_id,
        "query": result.query,
        **{name: getattr(place, name) for name in _DATA if name != "query"},
    }


async def _upsert(session: AsyncSession, rows: list[dict[str, Any]]) -> list[UUID]:
    """Write the places; for each that is new, the search that found it."""
    statement = insert(Place).values(rows)
    before = [getattr(Place, name) for name in _DATA]
    after = [statement.excluded[name] for name in _DATA]
    upsert = statement.on_conflict_do_update(
        index_elements=[Place.place_id],
        set_=dict(zip(_DATA, after, strict=True)),
        # what is the same is not written again
        where=tuple_(*before).is_distinct_from(tuple_(*after)),
    )
    # a row that was there before carries the lock of this very update
    answer = await session.execute(upsert.returning(Place.place_search_id, literal_column("place.xmax = 0", Boolean)))
    return [row[0] for row in answer if row[1] and row[0]]


place_search = Workflow("place_search", PlaceSearch, work, save, settings=PlacesSettings)
