"""How the page reaches the database: reads as scheduler_monitor, actions as scheduler_admin, both briefly."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, LiteralString

import psycopg
from psycopg import sql
from psycopg.rows import dict_row

from listener.database import Database
from listener.faults import describe
from listener.web.access import Person

Row = dict[str, Any]
Query = LiteralString | sql.Composed

PAGE_SECONDS = 5
"""A page that takes longer is of no use to anybody, and must not burden a database in trouble."""
EXPORT_SECONDS = 60
_CONNECT_SECONDS = 2
"""A database that is away is said to be away, rather than waited for."""


class Store:
    """A few connections of its own, so that a thousand open pages never take one from a lane."""

    def __init__(self, url: str) -> None:
        self._database = Database(url, lanes=1, statement_seconds=EXPORT_SECONDS, role="web")

    async def open(self) -> None:
        await self._database.open()

    async def close(self) -> None:
        await self._database.close()

    async def replace(self, url: str) -> None:
        await self._database.replace(url)

    @asynccontextmanager
    async def reading(self, seconds: int = PAGE_SECONDS) -> "AsyncIterator[Reader]":
        """One read-only transaction for a whole page, with no rights but a monitor's."""
        loop = asyncio.get_running_loop()
        async with asyncio.timeout(_CONNECT_SECONDS) as limit, self._database.transaction() as transaction:
            limit.reschedule(loop.time() + seconds)
            await transaction.connection.execute(
                "SELECT set_config('transaction_read_only', 'on', true), set_config('role', 'scheduler_monitor', true),"
                " set_config('statement_timeout', %s, true)",
                (f"{seconds}s",),
            )
            yield Reader(transaction.connection)

    async def act(self, person: Person, call: sql.Composed) -> Row:
        """One call of an operating function; the audit names the person."""
        async with self._database.transaction() as transaction:
            await transaction.connection.execute(
                "SELECT set_config('role', 'scheduler_admin', true), set_config('scheduler.actor', %s, true)",
                (person.name,),
            )
            return await Reader(transaction.connection).row(call) or {}


def said(error: psycopg.Error) -> str:
    """The server's own words; it knows no others for what it refuses."""
    return error.diag.message_primary or describe(error)


class Reader:
    """Rows as dictionaries."""

    def __init__(self, connection: psycopg.AsyncConnection[Any]) -> None:
        self.connection = connection

    async def rows(self, query: Query, *values: object) -> list[Row]:
        async with self.connection.cursor(row_factory=dict_row) as cursor:
            await cursor.execute(query, values or None)
            return await cursor.fetchall()

    async def named(self, query: Query, **values: object) -> list[Row]:
        async with self.connection.cursor(row_factory=dict_row) as cursor:
            await cursor.execute(query, values)
            return await cursor.fetchall()

    async def row(self, query: Query, *values: object) -> Row | None:
        async with self.connection.cursor(row_factory=dict_row) as cursor:
            await cursor.execute(query, values or None)
            return await cursor.fetchone()

    async def value(self, query: Query, *values: object) -> Any:
        """The first column of the first row."""
        row = await self.row(query, *values)
        return next(iter(row.values())) if row else None

    async def stream(self, query: Query, *values: object) -> AsyncIterator[Row]:
        """Row after row through a cursor of the server: an export of any size in little memory."""
        async with self.connection.cursor("scrapersky_export", row_factory=dict_row) as cursor:
            cursor.itersize = 500
            await cursor.execute(query, values or None)
            async for row in cursor:
                yield row
