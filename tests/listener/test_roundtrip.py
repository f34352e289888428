"""Several statements in one round trip: they commit together, and a plan that went stale is made anew."""

from collections.abc import AsyncIterator

import psycopg
import pytest
from psycopg import errors

from listener import roundtrip
from listener.roundtrip import Asked, Plans, ask


@pytest.fixture
async def connection(empty_database: str) -> AsyncIterator[psycopg.AsyncConnection]:
    async with await psycopg.AsyncConnection.connect(empty_database) as opened:
        await opened.execute("CREATE TABLE thing (id integer PRIMARY KEY, size integer)")
        await opened.commit()
        yield opened


async def things(connection: psycopg.AsyncConnection) -> list[int]:
    cursor = await connection.execute("SELECT id FROM thing ORDER BY id")
    found = [row[0] for row in await cursor.fetchall()]
    await connection.rollback()
    return found


INSERT = "INSERT INTO thing (id) VALUES ($1::integer) RETURNING id"


async def test_answers_come_in_the_order_of_the_questions_and_are_committed(
    connection: psycopg.AsyncConnection,
) -> None:
    plans = Plans()
    for first in (1, 3):
        answers = await ask(
            connection, plans, (INSERT, [str(first)]), (INSERT, [str(first + 1)]), ("SELECT $1", [None])
        )
        assert answers == [[(first,)], [(first + 1,)], [(None,)]]
    await connection.rollback()
    assert await things(connection) == [1, 2, 3, 4]


async def test_an_error_undoes_all_of_it_and_the_connection_goes_on(connection: psycopg.AsyncConnection) -> None:
    plans = Plans()
    for _ in range(2):  # with plans to make, and with plans made
        with pytest.raises(errors.UniqueViolation, match="thing_pkey"):
            await ask(connection, plans, (INSERT, ["1"]), (INSERT, ["1"]), ("SELECT 1", []))
        assert await things(connection) == []
    assert await ask(connection, plans, (INSERT, ["1"])) == [[(1,)]]


async def test_a_statement_that_cannot_be_prepared_undoes_all_of_it(connection: psycopg.AsyncConnection) -> None:
    plans = Plans()
    with pytest.raises(errors.UndefinedTable, match="nowhere"):
        await ask(connection, plans, (INSERT, ["1"]), ("SELECT * FROM nowhere", []))
    assert await things(connection) == []
    assert await ask(connection, plans, (INSERT, ["1"])) == [[(1,)]]


@pytest.mark.parametrize("change", ["ALTER TABLE thing ALTER size TYPE text", "DEALLOCATE ALL"])
async def test_a_plan_that_went_stale_fails_once_and_is_then_made_anew(
    connection: psycopg.AsyncConnection, change: str
) -> None:
    plans = Plans()
    question: Asked = ("SELECT size FROM thing", [])
    await ask(connection, plans, question)
    await connection.execute(change.encode())
    await connection.commit()
    with pytest.raises((errors.FeatureNotSupported, errors.InvalidSqlStatementName)):
        await ask(connection, plans, question)
    assert await ask(connection, plans, question) == [[]]


async def test_only_so_many_plans_are_kept_and_those_in_use_never_go(
    connection: psycopg.AsyncConnection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(roundtrip, "_MOST_PREPARED", 3)
    plans = Plans()
    for n in range(10):
        assert await ask(connection, plans, ("SELECT 0", []), (f"SELECT {n}", [])) == [[(0,)], [(n,)]]
    cursor = await connection.execute("SELECT count(*) FROM pg_prepared_statements WHERE name LIKE 'scrapersky%'")
    assert await cursor.fetchone() == (3,)
    assert len(plans.names) == 3
