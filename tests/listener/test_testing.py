"""The kit that users test their workflows with, on the workflows of these tests."""

from dataclasses import dataclass

import httpx
import pytest
from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncSession

from listener import Clock, Done, Final, Reject, Retry, Tools, Workflow
from listener.errors import UserError
from listener.testing import Drained, assert_queued, drain, queued, run_item
from tests.listener.started import Bench
from tests.listener.workflows import Item, OwnSettings, job, other, plain, threaded, tuned
from tests.sql.queue import one


@pytest.fixture(autouse=True)
def _gates(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GATES", str(tmp_path_factory.mktemp("gates")))


async def test_one_item_goes_through_work_as_in_a_listener_sync_or_async() -> None:
    for workflow in (job, threaded):
        done = await run_item(workflow, Item(7, "final Filtered"), key="7", attempt=2)
        assert (done.result, done.word, done.key, done.attempt) == ("final Filtered", "Filtered", "7", 2)
    assert (await run_item(plain, {"task": "x"})).result == "x"
    with pytest.raises(Reject, match="no good"):
        await run_item(job, Item(1, "reject"))
    with pytest.raises(Retry) as retry:
        await run_item(job, Item(1, "retry 60"))
    assert retry.value.after == 60


async def test_settings_the_clock_and_http_can_be_replaced() -> None:
    assert (await run_item(tuned, Item(3, "ok"), settings=OwnSettings(factor=5))).result == 15
    assert (await run_item(tuned, Item(3, "ok"))).result == 3
    waited: list[float] = []

    class Still(Clock):
        async def sleep(self, seconds: float) -> None:
            waited.append(seconds)

    async def fetch(item: Item, tools: Tools) -> str:
        await tools.clock.sleep(3600)
        return (await tools.http.get("https://example.com/")).text

    transport = httpx.MockTransport(lambda request: httpx.Response(200, text=f"seen {request.url.host}"))
    async with httpx.AsyncClient(transport=transport) as http:
        done = await run_item(Workflow("fetch", Item, fetch), Item(1, "ok"), http=http, clock=Still())
        assert not http.is_closed
    assert done.result == "seen example.com"
    assert waited == [3600]


async def test_a_queue_is_drained_and_says_what_became_of_its_items(bench: Bench) -> None:
    bench.adopt(max_attempts=2)
    bench.adopt("other", "thing", backoff="1 hour", backoff_max="1 hour")
    bench.queue("ok", "reject", "recover", "break", "ok")
    bench.queue("break", "ok", table="thing")
    assert await drain(bench.url, job, other) == {
        "job": Drained(succeeded=3, failed=3, rejected=1),
        "other": Drained(succeeded=1, failed=1),
    }
    assert list(bench.statuses().values()) == ["Completed", "Failed", "Completed", "Failed", "Completed"]
    assert bench.statuses("thing") == {1: "Failed", 2: "Completed"}
    assert await drain(bench.url, job) == {"job": Drained()}


@dataclass
class Thing:
    id: int


async def test_what_one_workflow_queues_for_another_is_worked_on_too(bench: Bench) -> None:
    async def pass_on(item: Item, tools: Tools) -> int:
        return item.id

    async def save(session: AsyncSession, results: list[Done[Item, int]]) -> None:
        query = text("INSERT INTO thing (id, status) VALUES (:id, 'Queued')")
        await session.execute(query, [{"id": done.result} for done in results])

    async def finish(item: Thing, tools: Tools) -> Final[None]:
        return Final("Seen")

    bench.adopt(batch_size=2)
    bench.adopt("next", "thing")
    bench.queue("ok", "ok", "ok")
    drained = await drain(bench.url, Workflow("next", Thing, finish), Workflow("job", Item, pass_on, save))
    assert drained["next"] == Drained(succeeded=3)
    assert bench.statuses("thing") == {1: "Seen", 2: "Seen", 3: "Seen"}


async def test_what_is_held_or_paused_does_not_keep_a_test_waiting(bench: Bench) -> None:
    bench.adopt(concurrency=1)
    bench.queue("hold 3600", "ok")
    held = (await drain(bench.url, job))["job"]
    assert held.succeeded == 0
    assert held.released >= 2  # a claim may slip in before the hold is known
    bench.db.execute("SELECT scheduler.pause('job')")
    assert await drain(bench.url, job) == {"job": Drained()}


async def test_a_drain_that_cannot_work_says_why(bench: Bench, empty_database: str) -> None:
    with pytest.raises(AssertionError, match="not registered"):
        await drain(bench.url, job)
    with pytest.raises(UserError, match="not installed"):
        await drain(empty_database, job)


async def test_work_that_forgot_to_await_fails_in_a_test_as_it_does_in_production(bench: Bench) -> None:
    async def later() -> str:
        return "done"

    async def forgetful(item: Item, tools: Tools) -> object:
        return later()

    def plain_function(item: Item, tools: Tools) -> object:
        return later()

    bench.adopt(max_attempts=1)
    for number, (work, fix) in enumerate([(forgetful, "return await"), (plain_function, "async def")], start=1):
        workflow = Workflow("job", Item, work)
        with pytest.raises(TypeError, match=fix):
            await run_item(workflow, Item(number, "ok"))
        bench.queue("ok", first=number)
        await drain(bench.url, workflow)
        assert fix in one(bench.db, f"SELECT error FROM item WHERE id = {number}")


async def test_a_drain_ends_after_its_time(bench: Bench) -> None:
    bench.adopt()
    bench.queue("wait")
    with pytest.raises(AssertionError, match=r"not drained after 0\.5 s"):
        await drain(bench.url, job, seconds=0.5)
    assert bench.statuses() == {1: "Queued"}


def test_what_is_queued_is_asserted_with_the_reason_for_what_is_not(bench: Bench) -> None:
    bench.adopt()
    assert_queued(bench.db, "job")
    bench.queue("ok", "ok")
    bench.db.execute("INSERT INTO item (id, status) VALUES (3, 'Completed')")
    assert queued(bench.db, "job") == ["1", "2"]
    assert_queued(bench.db, "job", 1, "2")
    with pytest.raises(AssertionError) as refused:
        assert_queued(bench.db, "job", 1, 3)
    assert "3 is not Queued: " in str(refused.value)
    assert "Completed" in str(refused.value)
    assert "2 is Queued and should not be" in str(refused.value)
    with pytest.raises(UserError, match="no workflow nobody"):
        assert_queued(bench.db, "nobody")
