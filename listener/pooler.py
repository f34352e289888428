"""Recognising a connection pooler. In transaction mode LISTEN, prepared statements and session settings are lost."""

from typing import Any

import psycopg

AsyncConnection = psycopg.AsyncConnection[Any]


async def is_pooled(connection: AsyncConnection) -> bool:
    """Whether something between us and the server speaks for it.

    A pooler hands out cancel keys of its own, so the process id in them is not the backend's.
    """
    return await _backend(connection) != connection.info.backend_pid


async def shares_backends(connection: AsyncConnection, other: AsyncConnection) -> bool:
    """Whether the pooler gives `connection` another backend from one transaction to the next (transaction mode).

    `other` occupies the backend that `connection` has just given back, so that it must be given a different one.
    """
    before = await _backend(connection)
    async with other.transaction():
        await _backend(other)
        return await _backend(connection) != before


async def _backend(connection: AsyncConnection) -> int:
    cursor = await connection.execute("SELECT pg_backend_pid()")
    row = await cursor.fetchone()
    assert row is not None
    return int(row[0])
