"""Short transactions on a small pool: a connection that dies costs one transaction, never a place in the pool."""

import asyncio
import logging
from collections.abc import AsyncIterator

import psycopg
import pytest
from psycopg import conninfo
from sqlalchemy import text
from sqlalchemy.exc import DBAPIError

from listener.database import LOCK_SECONDS, MOST_CONNECTIONS, Database
from listener.engine import one
from tests.faults.proxy import Proxy


@pytest.fixture
async def small(database: str) -> AsyncIterator[Database]:
    opened = Database(database, lanes=1, statement_seconds=20)
    await opened.open()
    yield opened
    await opened.close()


@pytest.mark.parametrize("session", [False, True], ids=["psycopg", "SQLAlchemy"])
@pytest.mark.slow
async def test_more_connections_are_cut_than_the_pool_has_places_and_it_still_works(
    small: Database, database: str, session: bool
) -> None:
    async with await psycopg.AsyncConnection.connect(database, autocommit=True) as killer:
        for _ in range(6):  # the pool has four places
            with pytest.raises((psycopg.OperationalError, DBAPIError)):
                await _die(small, killer, session)
        async with asyncio.timeout(5), small.transaction(session=session) as transaction:
            assert await one(await transaction.connection.execute("SELECT 1")) == (1,)


async def _die(database: Database, killer: psycopg.AsyncConnection, session: bool) -> None:
    async with database.transaction(session=session) as transaction:
        await killer.execute("SELECT pg_terminate_backend(%s, 5000)", [transaction.connection.info.backend_pid])
        if session:
            await transaction.session.execute(text("SELECT 1"))
        else:
            await transaction.connection.execute("SELECT 1")


async def test_an_error_rolls_back_and_the_session_writes_on_the_same_transaction(small: Database) -> None:
    async with small.transaction() as transaction:
        await transaction.connection.execute("CREATE TABLE note (what text)")
    with pytest.raises(ZeroDivisionError):
        await _write_and_break(small)
    async with small.transaction(session=True) as transaction:
        await transaction.connection.execute("INSERT INTO note VALUES ('kept')")
        await transaction.session.execute(text("INSERT INTO note VALUES ('kept too')"))
    async with small.transaction() as transaction:
        rows = await (await transaction.connection.execute("SELECT what FROM note")).fetchall()
    assert rows == [("kept",), ("kept too",)]


async def _write_and_break(database: Database) -> None:
    async with database.transaction(session=True) as transaction:
        await transaction.connection.execute("INSERT INTO note VALUES ('by psycopg')")
        await transaction.session.execute(text("INSERT INTO note VALUES ('by SQLAlchemy')"))
        raise ZeroDivisionError


async def test_a_transaction_is_read_committed_and_has_its_limits(small: Database) -> None:
    query = (
        "SELECT current_setting('transaction_isolation'), current_setting('statement_timeout'),"
        " current_setting('lock_timeout'), current_setting('idle_in_transaction_session_timeout')"
    )
    async with small.transaction() as transaction:
        found = await one(await transaction.connection.execute(query))
    assert found == ("read committed", "20s", f"{LOCK_SECONDS}s", "20s")


async def test_the_connection_that_was_used_last_is_used_next(small: Database) -> None:
    """It is warm; and those that are seldom needed can be closed."""
    async with small.transaction() as one_of_two, small.transaction() as other:
        first, last = one_of_two.connection, other.connection
        assert first is not last
    # the outer one is given back last
    for _ in range(3):
        async with small.transaction() as transaction:
            assert transaction.connection is first


async def test_without_asking_for_a_session_there_is_none(small: Database) -> None:
    async with small.transaction() as transaction:
        with pytest.raises(RuntimeError, match="without a session"):
            _ = transaction.session


async def test_a_thousand_lanes_do_not_use_up_the_connections_of_the_server(database: str) -> None:
    opened = Database(database, lanes=1000, statement_seconds=20)
    await opened.open()

    async def ask() -> int:
        async with opened.transaction() as transaction:
            cursor = await transaction.connection.execute("SELECT pg_backend_pid(), pg_sleep(0.01)")
            return int((await one(cursor))[0])

    backends = set(await asyncio.gather(*(ask() for _ in range(120))))
    await opened.close()
    assert 1 < len(backends) <= MOST_CONNECTIONS


async def test_a_server_that_is_back_is_found_by_whoever_waits_already(
    database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("listener.database._RECONNECT_SECONDS", 0.1)
    gave_up = asyncio.Event()

    class Ear(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            if "reconnection attempt" in record.getMessage():
                gave_up.set()

    ear = Ear()
    logging.getLogger("psycopg.pool").addHandler(ear)
    network = await asyncio.to_thread(Proxy, 1)  # nobody is there
    url = conninfo.make_conninfo(database, host="127.0.0.1", port=network.port)
    absent = Database(url, lanes=1, statement_seconds=20)
    try:
        await absent.open()
        waiting = asyncio.create_task(_select_one(absent))
        await asyncio.wait_for(gave_up.wait(), 10)
        network.target = int(conninfo.conninfo_to_dict(database)["port"] or 0)
        assert await waiting == (1,)
    finally:
        await absent.close()
        await asyncio.to_thread(network.close)
        logging.getLogger("psycopg.pool").removeHandler(ear)


async def _select_one(database: Database) -> tuple[object, ...]:
    async with database.transaction() as transaction:
        return await one(await transaction.connection.execute("SELECT 1"))


@pytest.mark.slow
async def test_more_lanes_than_connections_wait_for_each_other_and_do_not_take_the_server_for_gone(
    small: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    await asyncio.gather(*(_occupy(small, 0.1) for _ in range(small._most)))  # now it has all its connections
    monkeypatch.setattr(small._pool, "timeout", 0.2)
    await asyncio.gather(*(_occupy(small, 0.3) for _ in range(3 * small._most)))


async def _occupy(database: Database, seconds: float) -> None:
    async with database.transaction() as transaction:
        await transaction.connection.execute("SELECT pg_sleep(%s)", (seconds,))
