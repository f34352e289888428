"""One workflow by hand: its row loaded, its `work` called, its `save` committed, as the listener would."""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any
from uuid import UUID

from sqlalchemy import select
from sqlalchemy.ext.asyncio import AsyncSession, create_async_engine

from listener import Done, Final, Tools, Workflow


class Pipeline:
    """The test's database, through SQLAlchemy."""

    def __init__(self, url: str) -> None:
        self._engine = create_async_engine(url.replace("postgresql://", "postgresql+psycopg://", 1))

    @asynccontextmanager
    async def session(self) -> AsyncIterator[AsyncSession]:
        """One transaction, committed at the end."""
        async with AsyncSession(self._engine, expire_on_commit=False) as session, session.begin():
            yield session

    async def item(self, kind: type[Any], key: UUID) -> Any:
        """As `work` gets it: detached."""
        async with self.session() as session:
            found = (await session.execute(select(kind).where(kind.id == key))).unique().scalar_one()
            session.expunge_all()
        return found

    async def work(self, workflow: Workflow[Any, Any], key: UUID, tools: Tools) -> Done[Any, Any]:
        item = await self.item(workflow.item, key)
        result = await workflow.work(item, tools)
        word = result.word if isinstance(result, Final) else None
        return Done(item, result.result if isinstance(result, Final) else result, str(key), 1, word)

    async def save(self, workflow: Workflow[Any, Any], results: Sequence[Done[Any, Any]]) -> None:
        assert workflow.save is not None
        async with self.session() as session:
            await workflow.save(session, list(results))

    async def run(self, workflow: Workflow[Any, Any], tools: Tools, *keys: UUID) -> None:
        """Work on all of these, then save them in one batch."""
        await self.save(workflow, [await self.work(workflow, key, tools) for key in keys])

    async def close(self) -> None:
        await self._engine.dispose()
