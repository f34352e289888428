"""A listener of many workflows asks for all of them at once: whatever is queued is found, and nothing else is asked."""

from typing import Any

import pytest

from listener import Workflow
from tests.listener.inside import Inside
from tests.listener.started import Bench
from tests.waiting import wait_until

NAMES = ("busy", "quiet")


@pytest.fixture(autouse=True)
def many(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two are many."""
    monkeypatch.setattr("listener.process.FEW", 1)


@pytest.fixture
def listener(bench: Bench) -> Inside:
    for name in NAMES:
        bench.adopt(name, table=name)
    bench.queue("ok", table="busy")
    return bench.inside(*map(_plain, NAMES), listener_poll_only=True, listener_poll_seconds=0.2)


def _plain(name: str) -> Workflow[Any, Any]:
    async def work(_item: dict[str, Any], _tools: Any) -> None:
        return None

    return Workflow(name, dict, work)


def test_what_is_queued_is_found_at_the_start_and_by_polling_and_an_empty_queue_costs_no_claim(
    bench: Bench, listener: Inside
) -> None:
    bench.wait_for("Completed", table="busy")
    bench.queue("ok", first=2, table="busy")
    bench.wait_for("Completed", table="busy")
    assert listener.counts("quiet").asked == 0
    bench.queue("ok", table="quiet")
    bench.wait_for("Completed", table="quiet")


def test_lanes_ask_for_themselves_where_that_question_fails(bench: Bench) -> None:
    for name in NAMES:
        bench.adopt(name, table=name)
        bench.queue("ok", table=name)
    bench.db.execute("DROP FUNCTION scheduler.claimable(text[])")
    listener = bench.inside(*map(_plain, NAMES), listener_poll_only=True, listener_poll_seconds=0.2)
    for name in NAMES:
        bench.wait_for("Completed", table=name)
    bench.queue("ok", first=2, table="quiet")
    bench.wait_for("Completed", table="quiet")
    assert listener.counts("busy").asked > 1


def test_a_reload_also_changes_how_often_it_is_asked(bench: Bench, listener: Inside) -> None:
    settings = listener.listener._settings.model_copy(update={"listener_poll_seconds": 60.0})
    listener.submit(listener.listener.reload(bench.url, settings)).result(10)
    sweep = listener.listener._sweep_all
    assert sweep is not None
    assert sweep.seconds == 60
    bench.queue("ok", table="quiet")
    listener.in_loop(sweep.ask)
    bench.wait_for("Completed", table="quiet")
    wait_until(lambda: listener.lane("busy").idle, what="everything to rest")
