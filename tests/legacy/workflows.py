"""The six old workflows as a listener gets them, split as docs/migrate.md says; each leaves a trace of what it did."""

from functools import partial
from typing import Any

from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncSession

from listener import Done, Tools, Workflow
from services.legacy import OLD, PREFIX

Row = dict[str, Any]


async def work(row: Row, tools: Tools) -> str:
    return str(row["id"])


async def save(session: AsyncSession, results: list[Done[Row, str]], *, workflow: str) -> None:
    await session.execute(
        text("INSERT INTO did (workflow, key) VALUES (:workflow, :key)"),
        [{"workflow": workflow, "key": done.result} for done in results],
    )


workflows = {
    PREFIX + old.name: Workflow(PREFIX + old.name, dict, work, partial(save, workflow=PREFIX + old.name)) for old in OLD
}
globals().update(workflows)
