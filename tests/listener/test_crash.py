"""Faults in the middle of a run: every item ends in its final word, and each effect exists once.

The control takes the fence away and shows that the same fault then leaves effects twice, so these tests can see them.
"""

import signal
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from tests.listener.started import Bench, Process, bench_on
from tests.listener.unfenced import NO_FENCE
from tests.servers import Postgres
from tests.sql.queue import one
from tests.waiting import wait_until

pytestmark = pytest.mark.slow

ITEMS = range(1, 11)


def _pair(bench: Bench) -> tuple[Process, Process]:
    """One listener with every item in its hands, and one that will find them."""
    bench.adopt(lease="1 second", concurrency=10, batch_size=10)
    bench.queue(*["wait"] * len(ITEMS))
    first = bench.start(LISTENER_POLL_SECONDS="0.2")
    bench.wait_begun(*ITEMS)
    second = bench.start(LISTENER_POLL_SECONDS="0.2")
    return first, second


def test_kill_9_in_the_middle_of_a_run_loses_nothing_and_doubles_nothing(bench: Bench) -> None:
    first, _ = _pair(bench)
    first.kill()
    # an item whose listener vanished is claimed in a smaller run, and its attempt has counted
    wait_until(lambda: sum(bench.begun(key) for key in ITEMS) > len(ITEMS), what="the other listener to begin")
    bench.open_gate(*ITEMS)
    bench.wait_for("Completed")
    assert bench.effects() == list(ITEMS)


@pytest.mark.parametrize("fenced", [True, False], ids=["fenced", "control without the fence"])
def test_a_listener_stopped_past_its_lease_cannot_record_what_another_has_done(bench: Bench, fenced: bool) -> None:
    first, _ = _pair(bench)
    if not fenced:
        bench.db.execute(NO_FENCE)
    first.signal(signal.SIGSTOP)
    bench.open_gate(*ITEMS)
    bench.wait_for("Completed")
    assert bench.effects() == list(ITEMS)
    with psycopg.connect(bench.url) as blocker:
        # its heartbeat must wait, or it would learn in time that its lease is gone
        blocker.execute("LOCK TABLE scheduler.listener IN ACCESS EXCLUSIVE MODE")
        first.signal(signal.SIGCONT)
        if fenced:
            first.wait_line("results refused")
        else:
            first.wait_line("run finished")
    assert set(bench.statuses().values()) == {"Completed"}
    twice = sorted([*ITEMS, *ITEMS])
    assert bench.effects() == (list(ITEMS) if fenced else twice)


def test_connections_cut_again_and_again_lose_nothing_and_double_nothing(bench: Bench) -> None:
    bench.adopt(lease="1 second", batch_size=20, max_attempts=50)
    listener = bench.inside(listener_poll_seconds=0.2)
    tasks = 600
    bench.queue(*["ok"] * tasks)
    count = "SELECT count(*) FROM item WHERE status = 'Completed'"
    cuts = 0
    for part in range(1, 11):
        wait_until(lambda part=part: one(bench.db, count) >= part * 30, what="progress")  # type: ignore[misc]
        cuts += sum(bench.terminate_backends(role) for role in ("listener", "doorbell", "heartbeat"))
    assert cuts >= 10
    bench.wait_for("Completed")
    assert bench.effects() == list(range(1, tasks + 1))
    wait_until(lambda: listener.counts().problem is None, what="the trouble to be over")


@pytest.fixture
def durable(postgres: Postgres, database: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Bench]:
    """A bench whose commits survive a crash of the server; throw-away clusters do without that."""
    if postgres.throwaway is None:
        pytest.skip("only a throw-away cluster may be crashed")
    monkeypatch.setenv("GATES", str(tmp_path / "gates"))
    with psycopg.connect(database, autocommit=True) as connection:
        connection.execute(f'ALTER DATABASE "{connection.info.dbname}" SET synchronous_commit = on')
    with bench_on(database, tmp_path) as bench:
        yield bench


def test_a_server_crash_in_the_middle_of_a_run_loses_nothing_and_doubles_nothing(
    durable: Bench, postgres: Postgres
) -> None:
    bench = durable
    bench.adopt(lease="1 second", batch_size=20, max_attempts=50)
    bench.queue(*["ok"] * 1000, "wait")
    listener = bench.inside(listener_poll_seconds=0.2)
    wait_until(lambda: listener.counts().succeeded >= 100, what="progress")
    assert postgres.throwaway is not None
    postgres.throwaway.restart("immediate")
    bench.reconnect()
    bench.wait_begun(1001)
    bench.open_gate(1001)
    bench.wait_for("Completed")
    assert bench.effects() == list(range(1, 1002))


def test_an_item_that_kills_its_listener_ends_in_the_dead_letter_and_the_others_complete(bench: Bench) -> None:
    bench.adopt(lease="1 second", max_attempts=2)
    bench.queue("ok", "die", "ok")
    for _ in range(3):
        process = bench.start(ready=False, LISTENER_POLL_SECONDS="0.2")
        wait_until(lambda process=process: not process.running or _done(bench), what="its end")  # type: ignore[misc]
        if _done(bench):
            break
    assert _done(bench)
    assert bench.effects() == [1, 3]
    assert bench.begun(2) == 2
    assert "its listener was lost" in one(bench.db, "SELECT error FROM item WHERE id = 2")


def _done(bench: Bench) -> bool:
    return list(bench.statuses().values()) == ["Completed", "Failed", "Completed"]
