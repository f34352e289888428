"""WF2. The details of a place, by its id, become one row of `local_business`."""

from dataclasses import asdict, dataclass
from typing import Any

from sqlalchemy import func, update
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.ext.asyncio import AsyncSession

from listener import Done, Tools, Workflow
from services.models import LocalBusiness, Place
from services.places import Details, PlacesSettings, places, verdicts

_ROWS_A_STATEMENT = 1000


@dataclass(frozen=True)
class Scanned:
    details: Details
    made_by: str


async def work(place: Place, tools: Tools) -> Scanned:
    with verdicts(tools.clock.now()):
        details = await places(tools).details(place.place_id)
    return Scanned(details, str(tools.settings.scheduler_system_user_id))


async def save(session: AsyncSession, results: list[Done[Place, Scanned]]) -> None:
    # always in the same order: twins wait, and do not deadlock
    ordered = sorted(results, key=lambda done: done.item.place_id)
    for start in range(0, len(ordered), _ROWS_A_STATEMENT):
        await _upsert(session, ordered[start : start + _ROWS_A_STATEMENT])
    await session.execute(
        update(Place).where(Place.id.in_([done.item.id for done in results])).values(deep_scanned_at=func.now()),
        execution_options={"synchronize_session": False},
    )


async def _upsert(session: AsyncSession, results: list[Done[Place, Scanned]]) -> None:
    data = [_data(done.result.details) for done in results]
    rows = [
        {"tenant_id": done.item.tenant_id, "created_by": done.result.made_by, "place_id": done.item.place_id, **columns}
        for done, columns in zip(results, data, strict=True)
    ]
    statement = insert(LocalBusiness).values(rows)
    # data columns only: a rescan never resets what people and workflows made of it, nor its domain
    changes = {name: statement.excluded[name] for name in data[0]}
    await session.execute(statement.on_conflict_do_update(index_elements=[LocalBusiness.place_id], set_=changes))


def _data(details: Details) -> dict[str, Any]:
    columns = asdict(details)
    return {**columns.pop("parts"), **columns, "scanned_at": func.now()}


deep_scan = Workflow("deep_scan", Place, work, save, settings=PlacesSettings)
