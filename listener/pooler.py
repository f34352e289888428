"""Recognising a connection pooler. In transaction mode LISTEN, prepared statements and session settings are lost."""

from listener.engine import AsyncConnection, one


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
    (pid,) = await one(await connection.execute("SELECT pg_backend_pid()"))
    return int(pid)
