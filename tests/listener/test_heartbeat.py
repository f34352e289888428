"""The heartbeat keeps leases from a thread of its own, ends with the deadline, and carries back what was taken away."""

import time

import pytest

from listener import Tools, Workflow
from tests.listener.started import Bench
from tests.listener.workflows import Item, save
from tests.sql.queue import one
from tests.waiting import wait_until


@pytest.mark.slow
def test_an_event_loop_that_is_blocked_past_the_lease_loses_nothing(
    bench: Bench, caplog: pytest.LogCaptureFixture
) -> None:
    bench.adopt(lease="1 second")
    listener = bench.inside()
    bench.queue("block 3")
    bench.wait_begun(1)
    began = one(bench.db, "SELECT lease_until FROM scheduler.run")
    wait_until(lambda: one(bench.db, "SELECT now() > %s + interval '1 second'", began), what="twice the lease")
    assert one(bench.db, "SELECT scheduler.rescue()") == 0
    bench.wait_for("Completed")
    assert bench.begun(1) == 1
    assert listener.counts().lost_runs == 0
    blocked = [record for record in caplog.records if "event loop is blocked" in record.getMessage()]
    assert "workflows.py" in blocked[0].__dict__["at"]


@pytest.mark.slow
def test_a_hung_run_ends_at_its_deadline_though_its_listener_still_beats(bench: Bench) -> None:
    """A loop that is blocked for good: no timeout of the lane can fire, but the database takes the item back."""

    async def work(item: Item, tools: Tools) -> str:
        bench.gates.joinpath("1.begun").touch()
        while tools.attempt == 1 and not (bench.gates / "1.go").exists():
            time.sleep(0.01)  # noqa: ASYNC251 - the fault under test
        return f"attempt {tools.attempt}"

    bench.adopt(lease="1 second", timeout="1 second")
    hung = bench.inside(Workflow("job", Item, work, save))
    bench.queue("ok")
    wait_until((bench.gates / "1.begun").exists, what="work")
    bench.inside(Workflow("job", Item, work, save), listener_poll_seconds=0.2)
    bench.wait_for("Completed")
    bench.open_gate(1)
    wait_until(lambda: hung.counts().lost_runs or hung.counts().refused, what="the hung listener to learn of it")
    assert bench.db.execute("SELECT result FROM effect").fetchall() == [("attempt 2",)]


def test_an_item_taken_away_while_it_runs_is_stopped_at_once(bench: Bench) -> None:
    bench.adopt()
    bench.inside()
    bench.queue("wait", "wait", "wait")
    bench.wait_begun(1, 2, 3)
    bench.db.execute("SELECT scheduler.cancel('job', ARRAY['1'])")
    bench.db.execute("UPDATE item SET status = 'Skipped' WHERE id = 2")
    wait_until(lambda: bench.was_cancelled(1) and bench.was_cancelled(2), what="both to be stopped")
    assert not bench.was_cancelled(3)
    bench.open_gate(3)
    wait_until(lambda: bench.statuses()[3] == "Completed", what="the third")
    assert bench.statuses()[2] == "Skipped"
    assert bench.effects() == [3]
    wait_until(lambda: not bench.runs(), what="the end of the run")


def test_what_a_claim_has_taken_from_a_run_is_not_first_heard_of_with_the_next_beat(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The beat that the bell asks for may come while the claim holds the note of it; so there is another after it."""
    bench.adopt()
    listener = bench.inside()
    bench.queue("wait")
    bench.wait_begun(1)
    asked: list[str | None] = []
    lane, heartbeat = listener.lane(), listener.listener._heartbeat
    monkeypatch.setattr(heartbeat, "soon", lambda: asked.append(lane._rung))
    bench.db.execute("NOTIFY scrapersky, 'job!'")
    wait_until(lambda: len(asked) == 2, what="a beat for the bell, and one after the claim")
    bench.open_gate(1)
    bench.wait_for("Completed")


def test_a_run_that_was_lost_is_stopped_and_its_result_never_recorded(bench: Bench) -> None:
    bench.adopt()
    listener = bench.inside()
    bench.queue("wait")
    bench.wait_begun(1)
    bench.db.execute("SELECT scheduler.pause('job')")
    bench.db.execute("UPDATE scheduler.run SET lease_until = now() - interval '1 second'")
    assert one(bench.db, "SELECT scheduler.rescue()") == 1
    listener.listener._heartbeat.soon()
    wait_until(lambda: bench.was_cancelled(1), what="its work to be stopped")
    assert listener.counts().lost_runs == 1
    assert listener.lane().idle
    assert bench.effects() == []
    bench.open_gate(1)
    bench.db.execute("SELECT scheduler.resume('job')")
    bench.wait_for("Completed")
    assert bench.effects() == [1]


def test_a_fault_in_the_heartbeat_itself_does_not_end_it(bench: Bench) -> None:
    bench.adopt()
    listener = bench.inside()
    faults = [RuntimeError("a bug of ours")]

    def breaks_once() -> None:
        if faults:
            raise faults.pop()

    beats = listener.metrics.heartbeats
    listener.metrics.gauges.append(breaks_once)
    listener.listener._heartbeat.soon()
    wait_until(lambda: not faults and listener.metrics.heartbeats > beats, what="another beat")


def test_a_listener_that_stops_says_goodbye(bench: Bench) -> None:
    bench.adopt()
    listener = bench.inside()
    assert listener.stop() == 0
    row = bench.db.execute("SELECT stopped_at IS NOT NULL, workflows FROM scheduler.listener").fetchone()
    assert row == (True, ["job"])
