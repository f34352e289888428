"""Through a pooler in transaction mode everything works but LISTEN, and the log says which setting puts that right."""

import asyncio
from collections.abc import Iterator
from typing import Any, cast

import pytest
from psycopg import conninfo

from listener.database import connection_string
from listener.doorbell import Doorbell
from listener.engine import AsyncConnection
from listener.metrics import Metrics
from listener.pooler import is_pooled, shares_backends
from tests.listener.pgbouncer import pgbouncer
from tests.listener.started import Bench
from tests.waiting import wait_until


@pytest.fixture
def pooled(database: str) -> Iterator[str]:
    with pgbouncer(database) as url:
        yield url


@pytest.mark.doorbell
def test_without_a_direct_url_work_is_found_by_polling_and_the_log_names_the_setting(
    bench: Bench, pooled: str, caplog: pytest.LogCaptureFixture
) -> None:
    bench.adopt()
    listener = bench.inside(url=pooled, listener_poll_seconds=0.2, ready=False)
    for number in range(1, 6):
        bench.queue("ok", first=number)
        bench.wait_for(*["Completed"] * number)
    wait_until(lambda: "DATABASE_LISTEN_URL" in caplog.text, what="the advice")
    assert bench.effects() == [1, 2, 3, 4, 5]
    assert not listener.metrics.listening
    assert "bell" not in listener.counts().claims


@pytest.mark.doorbell
def test_with_a_direct_url_for_listening_the_bell_rings(bench: Bench, pooled: str) -> None:
    bench.adopt()
    listener = bench.inside(url=pooled, database_listen_url=bench.url)
    bench.queue("ok", "reject")
    bench.wait_for("Completed", "Failed")
    assert listener.counts().claims == {"bell": 1}


@pytest.mark.doorbell
def test_a_pooler_in_session_mode_may_listen(bench: Bench, database: str) -> None:
    bench.adopt()
    with pgbouncer(database, mode="session") as url:
        listener = bench.inside(url=url)
        bench.queue("ok")
        bench.wait_for("Completed")
        assert listener.counts().claims == {"bell": 1}
        listener.stop()


class Scripted:
    """A connection whose statements meet these backends, one after the other."""

    def __init__(self, claimed: int, *backends: int) -> None:
        self.info = self
        self.backend_pid = claimed
        self._backends = iter(backends)

    async def execute(self, query: str) -> "Scripted":
        return self

    async def fetchone(self) -> tuple[int]:
        return (next(self._backends),)

    def transaction(self) -> "Scripted":
        return self

    async def __aenter__(self) -> None: ...

    async def __aexit__(self, *error: object) -> None: ...


@pytest.mark.parametrize(
    ("backends", "pooled", "shared"),
    [((7, 7, 7), False, False), ((5, 5, 5), True, False), ((5, 5, 6), True, True)],
    ids=["direct", "session mode", "transaction mode"],
)
async def test_a_pooler_is_told_by_its_own_cancel_key_and_its_mode_by_the_backends(
    backends: tuple[int, ...], pooled: bool, shared: bool
) -> None:
    connection = cast(AsyncConnection, Scripted(7, *backends))
    other = cast(AsyncConnection, Scripted(8, 5))
    assert await is_pooled(connection) is pooled
    assert await shares_backends(connection, other) is shared


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("postgresql://a,b/x", {"target_session_attrs": "read-write"}),
        ("postgresql://a,b/x?target_session_attrs=any", {"target_session_attrs": "any"}),
        ("postgresql://a/x", {"target_session_attrs": None, "keepalives_idle": "5", "tcp_user_timeout": "15000"}),
        (
            "postgresql://a/x?application_name=mine&connect_timeout=3",
            {"application_name": "mine", "connect_timeout": "3"},
        ),
    ],
)
def test_a_connection_notices_a_dead_peer_and_a_standby_unless_the_url_says_otherwise(
    url: str, expected: dict[str, Any]
) -> None:
    given = conninfo.conninfo_to_dict(connection_string(url, "listener"))
    assert {name: given.get(name) for name in expected} == expected


async def test_the_second_host_is_used_when_the_first_is_gone(database: str) -> None:
    parts = conninfo.conninfo_to_dict(database)
    both = conninfo.make_conninfo(database, host=f"127.0.0.1,{parts['host']}", port=f"1,{parts['port']}")
    opened = asyncio.Event()
    doorbell = Doorbell(both, Metrics(), rung=lambda payload: None, opened=opened.set)
    task = asyncio.create_task(doorbell.run())
    async with asyncio.timeout(10):
        await opened.wait()
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
