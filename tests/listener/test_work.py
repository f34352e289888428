"""The run cycle: claim, work, save, and every way in which an item can come out of it."""

import asyncio
import re
import threading
from typing import Any

import psycopg
import pytest
from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncSession

from listener import Done, Tools, Workflow
from tests.listener.started import Bench
from tests.listener.workflows import Item
from tests.sql.queue import one
from tests.waiting import PATIENCE, wait_until


def _ledger(bench: Bench, key: int) -> tuple[Any, ...] | None:
    query = "SELECT state, attempts, error, reason FROM scheduler.attempt WHERE key = %s"
    return bench.db.execute(query, [str(key)]).fetchone()


def test_each_way_out_of_work_leaves_its_own_word_and_ledger(bench: Bench) -> None:
    bench.adopt(max_attempts=2, backoff="1 hour")
    listener = bench.inside()
    bench.queue("ok", "retry 5000", "reject", "break", "final Filtered", "later 5000")
    bench.wait_for("Completed", "Failed", "Failed", "Failed", "Filtered", "Failed")
    assert bench.effects() == [1, 5]
    assert _ledger(bench, 1) is None
    assert _ledger(bench, 2) == ("waiting", 1, "come back later", None)
    assert _ledger(bench, 3) == ("dead", 1, "no good", "permanent")
    assert _ledger(bench, 4) == ("waiting", 1, "ZeroDivisionError: token=*** in it", None)
    assert _ledger(bench, 6) == ("waiting", 0, "not its turn", "put off")
    for key in ("2", "6"):
        wait = one(bench.db, "SELECT extract(epoch FROM retry_at - last_at) FROM scheduler.attempt WHERE key = %s", key)
        assert 4990 < wait < 5600
    counts = listener.counts()
    wait_until(
        lambda: (counts.succeeded, counts.failed, counts.rejected, counts.released) == (2, 2, 1, 1), what="the counts"
    )


def test_an_item_that_fails_once_is_tried_again_and_its_error_cleared(bench: Bench) -> None:
    bench.adopt()
    bench.inside()
    bench.queue("recover")
    bench.wait_for("Completed")
    assert bench.begun(1) == 2
    assert one(bench.db, "SELECT error FROM item") is None
    assert _ledger(bench, 1) is None


def test_a_large_run_does_not_wait_for_the_commit_of_another(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    """While one waits for the disk, or for a slow `save`, the server has time for the other."""
    # on a slow machine a run would be committed in two parts, one after the other
    monkeypatch.setattr("listener.completion.LINGER_SECONDS", 1000)
    bench.adopt(batch_size=100)
    both = asyncio.Barrier(2)

    async def nothing(_item: Item, _tools: Tools) -> None: ...

    async def save(_session: AsyncSession, _results: list[Done[Item, None]]) -> None:
        async with asyncio.timeout(PATIENCE / 2):
            await both.wait()

    bench.queue(*["ok"] * 200)
    listener = bench.inside(Workflow("job", Item, nothing, save))
    bench.wait_for("Completed")
    listener.wait(lambda: listener.counts().commits == 2)


def test_attempts_end_in_the_dead_letter(bench: Bench) -> None:
    bench.adopt(max_attempts=3)
    bench.inside()
    bench.queue("break")
    wait_until(lambda: (_ledger(bench, 1) or [None])[0] == "dead", what="the dead letter")
    assert bench.begun(1) == 3


def test_a_hold_gives_everything_back_and_keeps_the_whole_workflow_waiting(bench: Bench) -> None:
    bench.adopt(concurrency=1)
    bench.inside()
    bench.queue("hold 3600", "ok", "ok")
    bench.wait_begun(1)
    bench.wait_for("Queued", "Queued", "Queued")
    wait_until(lambda: not bench.runs(), what="the end of the run")
    assert one(bench.db, "SELECT hold_reason FROM scheduler.state") == "quota used up"
    assert one(bench.db, "SELECT count(*) FROM scheduler.attempt") == 0
    assert bench.begun(2) == 0
    bench.db.execute("UPDATE item SET task = 'ok'")
    bench.db.execute("SELECT scheduler.resume('job')")
    bench.wait_for("Completed")


def test_a_hold_that_is_lifted_unheard_is_noticed_by_the_next_poll(bench: Bench) -> None:
    bench.adopt(doorbell="off")
    bench.inside(listener_poll_seconds=0.2)
    bench.queue("hold 3600")
    bench.wait_begun(1)
    bench.wait_for("Queued")
    wait_until(lambda: not bench.runs(), what="the end of the run")
    bench.db.execute("UPDATE item SET task = 'ok'")
    bench.db.execute("UPDATE scheduler.state SET hold_until = NULL")
    bench.wait_for("Completed")


def test_one_result_that_cannot_be_saved_does_not_fail_its_neighbours(
    bench: Bench, caplog: pytest.LogCaptureFixture
) -> None:
    bench.adopt(max_attempts=1)
    bench.queue("ok", "unsavable", "ok", "nul", "ok")
    bench.inside()
    bench.wait_for("Completed", "Failed", "Completed", "Failed", "Completed")
    assert bench.effects() == [1, 3, 5]
    ledger = _ledger(bench, 2)
    assert ledger is not None
    assert ledger[2] == "ValueError: this one cannot be saved"
    # a text PostgreSQL cannot hold is not tried again
    ledger = _ledger(bench, 4)
    assert ledger is not None
    assert ledger[3] == "permanent"
    told = {vars(record)["item"]: vars(record)["at"] for record in caplog.records if record.msg == "save failed"}
    assert set(told) == {"2", "4"}
    for item, function in (("2", "_effects"), ("4", "save")):
        assert re.search(rf"listener/workflows\.py:\d+ in {function}$", told[item]), "where an author has to look"


def test_a_whole_batch_is_saved_with_one_call_in_the_transaction_of_its_status(bench: Bench) -> None:
    bench.adopt()
    calls: list[tuple[int, Any]] = []

    async def work(item: Item, tools: Tools) -> int:
        return item.id

    async def save(session: AsyncSession, results: list[Done[Item, int]]) -> None:
        inside = await session.execute(text("SELECT count(*) FROM item WHERE status = 'Completed'"))
        calls.append((len(results), inside.scalar()))

    bench.queue(*["ok"] * 50)
    bench.inside(Workflow("job", Item, work, save))
    bench.wait_for("Completed")
    assert calls == [(50, 50)]


def test_what_save_writes_vanishes_with_a_status_that_is_refused(bench: Bench) -> None:
    """A person's write wins: neither the status nor the effect of the run is recorded."""
    bench.adopt()
    listener = bench.inside()
    bench.queue("wait", "wait")
    bench.wait_begun(1, 2)
    # with the doorbell off nobody tells the listener, so its result arrives and must be refused
    listener.in_loop(lambda: setattr(listener.lane(), "urge", lambda: None))
    bench.db.execute("UPDATE item SET status = 'Skipped' WHERE id = 1")
    bench.open_gate(1, 2)
    bench.wait_for("Skipped", "Completed")
    wait_until(lambda: not bench.runs(), what="the end of the run")
    assert bench.effects() == [2]
    wait_until(lambda: listener.counts().refused == 1, what="the refusal")


def test_save_is_not_called_when_nothing_was_accepted(bench: Bench) -> None:
    calls: list[int] = []

    async def work(item: Item, tools: Tools) -> None:
        bench_free.execute("UPDATE item SET status = 'Skipped' WHERE id = %s", [item.id])

    async def save(session: AsyncSession, results: list[Done[Item, None]]) -> None:
        calls.append(len(results))

    bench.adopt(doorbell="off")
    bench.queue("ok")
    with psycopg.connect(bench.url, autocommit=True) as bench_free:
        listener = bench.inside(Workflow("job", Item, work, save))
        wait_until(lambda: listener.counts().refused == 1, what="the refusal")
    assert calls == []


def test_a_row_deleted_while_it_runs_takes_nobody_with_it(bench: Bench) -> None:
    bench.adopt()
    bench.inside()
    bench.queue("wait", "wait")
    bench.wait_begun(1, 2)
    bench.db.execute("DELETE FROM item WHERE id = 1")
    bench.open_gate(1, 2)
    bench.wait_for("Completed")
    wait_until(lambda: not bench.runs(), what="the end of the run")
    assert bench.effects() == [2]


def test_a_final_word_the_column_does_not_allow_fails_that_item_alone(bench: Bench) -> None:
    bench.db.execute("CREATE TYPE word AS ENUM ('Queued', 'Processing', 'Completed', 'Failed', 'Filtered')")
    bench.db.execute(
        "CREATE TABLE item (id integer PRIMARY KEY, task text NOT NULL DEFAULT 'ok', status word, error text)"
    )
    bench.adopt(max_attempts=1)
    bench.db.execute(
        "INSERT INTO item VALUES (1, 'ok', 'Queued'), (2, 'final Nonsense', 'Queued'), (3, 'final Filtered', 'Queued')"
    )
    bench.inside()
    bench.wait_for("Completed", "Failed", "Filtered")
    assert bench.effects() == [1, 3]
    assert "Nonsense" in one(bench.db, "SELECT error FROM item WHERE id = 2")


def test_no_transaction_is_open_while_work_runs(bench: Bench) -> None:
    """For sync and async work, with and without a session, one item and a whole batch."""
    for name in ("job", "threaded", "mapped"):
        bench.adopt(name, "item" if name == "mapped" else name)
    bench.inside("job", "threaded", "mapped")
    for first, table in ((1, "job"), (11, "threaded"), (21, "item")):
        bench.queue("wait", "wait", first=first, table=table)
    bench.wait_begun(1, 2, 11, 12, 21, 22)
    query = (
        "SELECT application_name, state, query FROM pg_stat_activity WHERE datname = current_database()"
        " AND application_name LIKE 'scrapersky %' AND (xact_start IS NOT NULL OR backend_xmin IS NOT NULL)"
    )
    # a claim may still be on its way or look for more, nothing may stay
    wait_until(lambda: not bench.db.execute(query).fetchall(), what="connections without a transaction")
    locks = "SELECT count(*) FROM pg_locks WHERE locktype = 'relation' AND relation = 'item'::regclass"
    wait_until(lambda: one(bench.db, locks) == 0, what="no lock on the table")
    bench.open_gate(1, 2, 11, 12, 21, 22)
    for table in ("job", "threaded", "item"):
        bench.wait_for("Completed", table=table)


def test_save_may_neither_commit_nor_roll_back(bench: Bench) -> None:
    async def work(item: Item, tools: Tools) -> None: ...

    async def save(session: AsyncSession, results: list[Done[Item, None]]) -> None:
        connection = await session.connection()
        raw = (await connection.get_raw_connection()).driver_connection
        assert isinstance(raw, psycopg.AsyncConnection)
        await raw.commit()

    bench.adopt(max_attempts=1)
    listener = bench.inside(Workflow("job", Item, work, save), ready=False)
    bench.queue("ok")
    # the status was committed with it, so the item is done; the log says what is wrong with the function
    bench.wait_for("Completed")
    wait_until(lambda: not listener.lane()._completion.unsaved, what="the outbox")


@pytest.mark.parametrize("problem", [SystemExit("bye"), StopIteration("odd")], ids=["SystemExit", "StopIteration"])
def test_work_cannot_end_the_listener(bench: Bench, problem: BaseException) -> None:
    def work(item: Item, tools: Tools) -> str:
        if item.id == 1:
            raise problem
        return "fine"

    bench.adopt(max_attempts=1)
    bench.queue("ok", "ok")
    bench.inside(Workflow("job", Item, work))
    bench.wait_for("Failed", "Completed")
    assert type(problem).__name__ in one(bench.db, "SELECT error FROM item WHERE id = 1")


def test_plain_functions_run_side_by_side_in_threads(bench: Bench) -> None:
    together = threading.Barrier(3, timeout=60)

    def work(item: Item, tools: Tools) -> str:
        together.wait()
        return threading.current_thread().name

    bench.adopt(concurrency=3)
    bench.queue("ok", "ok", "ok")
    listener = bench.inside(Workflow("job", Item, work))
    bench.wait_for("Completed")
    wait_until(lambda: listener.counts().succeeded == 3, what="the count")


@pytest.mark.slow
def test_work_past_its_timeout_fails_in_a_coroutine_and_in_a_thread(bench: Bench) -> None:
    bench.adopt(timeout="1 second", max_attempts=1)
    bench.adopt("threaded", "thing", timeout="1 second", max_attempts=1)
    listener = bench.inside("job", "threaded")
    bench.queue("wait")
    bench.queue("wait", first=2, table="thing")
    bench.wait_for("Failed")
    bench.wait_for("Failed", table="thing")
    assert one(bench.db, "SELECT error FROM item") == "TimeoutError: not done after 1 s"
    assert one(bench.db, "SELECT error FROM thing") == "TimeoutError: not done after 1 s"
    assert bench.was_cancelled(1)
    assert listener.counts().timeouts == listener.counts("threaded").timeouts == 1
    # the lane is free again, though the thread still hangs
    bench.queue("ok", first=3, table="thing")
    bench.wait_for("Failed", "Completed", table="thing")
    bench.open_gate(2)


def test_results_of_an_idle_lane_are_committed_at_once_and_those_of_a_busy_one_together(bench: Bench) -> None:
    bench.adopt(batch_size=100, concurrency=10)
    listener = bench.inside()
    bench.queue("ok", "wait", *["ok"] * 98)
    # 99 are done while one still runs: they do not wait for it
    wait_until(lambda: listener.counts().succeeded == 99, what="the results of a run that is not over")
    assert listener.counts().commits < 20
    bench.open_gate(2)
    bench.wait_for("Completed")
