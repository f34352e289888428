"""Lanes are apart: whatever breaks one workflow, the others keep their pace, and the broken one recovers by itself."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any
from uuid import UUID

import psycopg
import pytest

from listener import Tools, Workflow
from listener.database import Transaction
from listener.items import RowLoader
from tests.listener import workflows
from tests.listener.started import Bench
from tests.sql.queue import one
from tests.waiting import wait_until


def _drop_column(bench: Bench) -> None:
    bench.db.execute("ALTER TABLE item RENAME COLUMN task TO chore")


def _restore_column(bench: Bench) -> None:
    bench.db.execute("ALTER TABLE item RENAME COLUMN chore TO task")


def _revoke(bench: Bench) -> None:
    bench.db.execute("REVOKE SELECT, UPDATE ON item FROM scheduler_owner")


def _grant(bench: Bench) -> None:
    bench.db.execute("GRANT SELECT, UPDATE ON item TO scheduler_owner")


def _unregister(bench: Bench) -> None:
    bench.db.execute("SELECT scheduler.drop_workflow('job')")


def _register(bench: Bench) -> None:
    bench.adopt()


def _drop(bench: Bench) -> None:
    bench.db.execute("DROP TABLE item")


def _make_anew(bench: Bench) -> None:
    bench.db.execute("SELECT scheduler.drop_workflow('job')")
    bench.adopt()
    bench.queue("ok")


BREAKS = {
    "a dropped column": (_drop_column, _restore_column, "task"),
    "a revoked right": (_revoke, _grant, "permission denied"),
    "a dropped table": (_drop, _make_anew, " "),
    "a workflow that is not registered": (_unregister, _register, "not registered"),
}


@pytest.mark.parametrize("fault", BREAKS)
@pytest.mark.slow
def test_a_lane_that_cannot_claim_says_why_and_recovers_while_the_other_goes_on(bench: Bench, fault: str) -> None:
    breaks, repairs, words = BREAKS[fault]
    bench.adopt()
    bench.adopt("other", "thing")
    listener = bench.inside("job", "other")
    breaks(bench)
    if fault != "a dropped table":
        bench.db.execute("INSERT INTO item (id, status) VALUES (1, 'Queued')")
    bench.db.execute("SELECT pg_notify('scrapersky', 'job')")
    wait_until(lambda: words in (listener.counts().problem or ""), what="the lane to say why")
    bench.queue("ok", "ok", table="thing")
    bench.wait_for("Completed", table="thing")
    assert listener.counts("other").problem is None
    repairs(bench)
    bench.wait_for("Completed")
    assert listener.counts().problem is None


@pytest.mark.slow
def test_a_table_locked_by_an_alter_holds_up_its_own_lane_only(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("listener.database.LOCK_SECONDS", 1)
    bench.adopt()
    bench.adopt("other", "thing")
    listener = bench.inside("job", "other")
    bench.queue("ok")
    bench.wait_for("Completed")
    with psycopg.connect(bench.url) as alter:
        alter.execute("ALTER TABLE item ADD COLUMN new integer")
        bench.db.execute("SELECT pg_notify('scrapersky', 'job')")
        for number in range(1, 4):
            bench.queue("ok", first=number, table="thing")
            bench.wait_for("Completed", table="thing")
        wait_until(lambda: "LockNotAvailable" in (listener.counts().problem or ""), what="the lane to say why")
        assert listener.counts("other").problem is None
    bench.queue("ok", first=2)
    bench.wait_for("Completed")


@pytest.mark.slow
def test_workflows_that_came_along_and_are_not_wanted_here_are_no_trouble(
    bench: Bench, caplog: pytest.LogCaptureFixture
) -> None:
    """Whoever installs only the engine must not be greeted by an error for each workflow of the package."""
    caplog.set_level("INFO")
    bench.adopt()
    listener = bench.inside("job", "other")
    bench.queue("ok")
    bench.wait_for("Completed")
    wait_until(lambda: listener.counts("other").asked >= 2, what="two tries")
    told = [record for record in caplog.records if "not registered" in f"{record.getMessage()}{vars(record)}"]
    assert [(record.levelname, vars(record)["workflows"]) for record in told] == [("INFO", ["other"])]
    before = listener.listener.metrics.heartbeats
    listener.listener._heartbeat.soon()
    wait_until(lambda: listener.listener.metrics.heartbeats > before, what="a heartbeat")
    assert one(bench.db, "SELECT count(*) FROM scheduler.doctor() WHERE code = 'listener_problem'") == 0
    bench.adopt("other", "thing")
    bench.queue("ok", table="thing")
    bench.wait_for("Completed", table="thing")


def test_a_lane_in_trouble_tells_it_once_and_asks_less_and_less(bench: Bench, caplog: pytest.LogCaptureFixture) -> None:
    bench.adopt()
    listener = bench.inside()
    _revoke(bench)
    bench.queue("ok")
    wait_until(lambda: listener.counts().asked >= 3, what="three tries")
    told = [record for record in caplog.records if "cannot run here" in record.getMessage()]
    assert len(told) == 1
    listener.listener._heartbeat.soon()
    query = "SELECT detail #>> '{problems,job}' FROM scheduler.listener"
    wait_until(lambda: "permission denied" in (one(bench.db, query) or ""), what="the problem in the database")


def test_a_bug_in_one_handler_fails_its_own_items_only(bench: Bench) -> None:
    bench.adopt(max_attempts=1)
    bench.adopt("other", "thing")
    bench.inside("job", "other")
    bench.queue("break", "ok", "break")
    bench.queue("ok", "ok", table="thing")
    bench.wait_for("Failed", "Completed", "Failed")
    bench.wait_for("Completed", table="thing")
    error = one(bench.db, "SELECT error FROM item WHERE id = 1")
    assert error.startswith("ZeroDivisionError")
    assert "hunter22" not in error


def test_work_that_hogs_its_lane_does_not_keep_the_other_from_its_items(bench: Bench) -> None:
    bench.adopt(concurrency=2)
    bench.adopt("other", "thing")
    bench.inside("job", "other")
    bench.queue("wait", "wait", "wait")
    bench.wait_begun(1, 2)
    bench.queue("ok", "ok", first=11, table="thing")
    bench.wait_for("Completed", table="thing")
    assert bench.begun(3) == 0
    bench.open_gate(1, 2, 3)
    bench.wait_for("Completed")


def test_more_listeners_than_instances_keep_to_the_limit(bench: Bench) -> None:
    bench.adopt(max_instances=1, batch_size=1)
    bench.inside()
    bench.inside()
    bench.queue("wait", "wait")
    bench.wait_begun(1)
    assert len(bench.runs()) == 1
    assert bench.begun(2) == 0
    bench.open_gate(1, 2)
    bench.wait_for("Completed", "Completed")


def test_a_batch_in_memory_is_bounded_whatever_the_backlog(bench: Bench) -> None:
    bench.adopt(batch_size=10, concurrency=2)
    bench.adopt("other", "thing")
    bench.queue(*["wait"] * 200)
    listener = bench.inside("job", "other")
    bench.wait_begun(1, 2)
    for number in range(1001, 1006):  # meanwhile the other lane has claimed five times
        bench.queue("ok", first=number, table="thing")
        bench.wait_for("Completed", table="thing")
    assert listener.metrics.snapshot()["lanes"]["job"]["working"] == 2
    # two runs at most: the one being worked on and the next
    assert one(bench.db, "SELECT count(*) FROM item WHERE status = 'Processing'") <= 20


@pytest.mark.parametrize("change", ["concurrency", "batch_size"])
def test_altered_settings_count_from_the_next_claim(bench: Bench, change: str) -> None:
    bench.adopt(concurrency=1, batch_size=1)
    bench.inside()
    bench.queue("ok")
    bench.wait_for("Completed")
    bench.db.execute(f"SELECT scheduler.alter_workflow('job', {change} => 3)")
    bench.queue("wait", "wait", "wait", first=2)
    bench.wait_begun(*((2, 3, 4) if change == "concurrency" else (2,)))
    bench.open_gate(2, 3, 4)
    bench.wait_for("Completed")
    assert one(bench.db, "SELECT max(claimed) FROM scheduler.run") == (1 if change == "concurrency" else 3)


def test_a_workflow_without_a_function_here_stays_queued_and_is_named_at_start(
    bench: Bench, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO", "scrapersky")
    bench.adopt()
    bench.adopt("stranger", "thing")
    bench.queue("ok", table="thing")
    bench.queue("ok")
    bench.inside()
    bench.wait_for("Completed")
    assert bench.statuses("thing") == {1: "Queued"}
    lines = [record for record in caplog.records if "without a function here" in record.getMessage()]
    assert [record.__dict__["workflows"] for record in lines] == [["stranger"]]


@dataclass
class Wrong:
    id: int
    nowhere: str


def test_an_item_type_that_asks_for_a_missing_column_breaks_its_lane_only(bench: Bench) -> None:
    async def work(item: Wrong, tools: Tools) -> None: ...

    bench.adopt()
    bench.adopt("wrong", "thing")
    bench.queue("ok", table="thing")
    listener = bench.inside(Workflow("wrong", Wrong, work), workflows.job)
    wait_until(lambda: "nowhere" in (listener.counts("wrong").problem or ""), what="the lane to say why")
    bench.queue("ok")
    bench.wait_for("Completed")
    assert bench.statuses("thing") == {1: "Queued"}


def test_a_part_that_breaks_is_started_again(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    from listener.lane import Lane

    reason: Callable[[Lane], tuple[str | None, float | None]] = Lane._reason
    failures = iter([True])

    def breaks_once(lane: Lane) -> tuple[str | None, float | None]:
        if next(failures, False):
            raise RuntimeError("a bug of ours")
        return reason(lane)

    monkeypatch.setattr(Lane, "_reason", breaks_once)
    bench.adopt()
    bench.queue("ok")
    bench.inside()
    bench.wait_for("Completed")


def test_a_claim_whose_answer_is_lost_gives_its_items_back_at_once(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    claim = RowLoader.claim
    lost: list[int] = []

    async def answer(loader: RowLoader, transaction: Transaction, name: str, listener: UUID) -> tuple[Any, Any]:
        claimed, loaded = await claim(loader, transaction, name, listener)
        if transaction.at_once and claimed is not None and claimed.run is not None and not lost:
            lost.append(claimed.run)  # committed by now
            raise psycopg.OperationalError("the connection is lost")
        return claimed, loaded

    monkeypatch.setattr(RowLoader, "claim", answer)
    bench.adopt(lease="1 day")
    bench.inside()
    bench.queue("ok")
    bench.wait_for("Completed")  # from now on it knows the table, and asks for rows and claim together
    bench.queue("ok", first=2)
    bench.wait_for("Completed")
    assert bench.db.execute("SELECT released FROM scheduler.run WHERE id = %s", lost).fetchone() == (1,)
