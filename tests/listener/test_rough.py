"""Code that misbehaves: whatever `work` and `save` do, the items end in a word and the lane goes on."""

import asyncio
import threading
from collections.abc import AsyncIterator, Iterator
from typing import Any

import psycopg
import pytest
from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncSession
from sqlalchemy.orm import DeclarativeBase, Mapped, mapped_column, relationship

from listener import Done, Final, Tools, Workflow
from tests.listener import workflows
from tests.listener.started import Bench
from tests.listener.workflows import Item
from tests.sql.queue import one
from tests.waiting import wait_until


async def _fine(item: Item, tools: Tools) -> str:
    return "fine"


class MuteError(Exception):
    """An error that cannot even be printed."""

    def __str__(self) -> str:
        raise RuntimeError("no words")


def _error(bench: Bench, key: int) -> str:
    return str(one(bench.db, "SELECT error FROM item WHERE id = %s", key))


@pytest.mark.parametrize(
    "problem",
    [asyncio.CancelledError(), SystemExit("bye"), KeyboardInterrupt(), MuteError(), FileNotFoundError("template")],
    ids=["cancelled", "SystemExit", "KeyboardInterrupt", "mute", "OSError"],
)
@pytest.mark.parametrize("kind", ["async", "plain"])
@pytest.mark.slow
def test_save_cannot_end_its_lane_nor_the_listener(bench: Bench, problem: BaseException, kind: str) -> None:
    def check(results: list[Done[Item, str]]) -> None:
        if any(done.item.id == 1 for done in results):
            raise problem

    async def save(session: AsyncSession, results: list[Done[Item, str]]) -> None:
        check(results)

    def save_plain(session: Any, results: list[Done[Item, str]]) -> None:
        check(results)

    bench.adopt(max_attempts=1)
    bench.queue("ok", "ok")
    bench.inside(Workflow("job", Item, _fine, save if kind == "async" else save_plain))
    bench.wait_for("Failed", "Completed")
    assert type(problem).__name__ in _error(bench, 1)


def test_an_error_without_words_fails_its_item_alone(bench: Bench) -> None:
    async def work(item: Item, tools: Tools) -> None:
        if item.id == 1:
            raise MuteError

    bench.adopt(max_attempts=1, concurrency=1)
    bench.queue("ok", "ok")
    bench.inside(Workflow("job", Item, work))
    bench.wait_for("Failed", "Completed")
    assert "Mute" in _error(bench, 1)


@pytest.mark.slow
def test_work_that_will_not_be_stopped_takes_no_more_from_its_lane_than_its_item(bench: Bench) -> None:
    stop = threading.Event()

    async def work(item: Item, tools: Tools) -> str:
        while item.id == 1 and not stop.is_set():
            try:
                await asyncio.sleep(0.01)
            except asyncio.CancelledError:
                continue
        return "fine"

    bench.adopt(concurrency=1, timeout="1 second", max_attempts=1)
    bench.queue("ok", "ok")
    listener = bench.inside(Workflow("job", Item, work, workflows.save))
    bench.wait_for("Failed", "Completed")
    assert "does not let itself be stopped" in _error(bench, 1)
    assert bench.effects() == [2]
    stop.set()
    wait_until(lambda: not listener.lane()._left_behind, what="the work that was left behind to end")
    bench.queue("ok", first=3)
    bench.wait_for("Failed", "Completed", "Completed")
    assert bench.effects() == [2, 3]


def test_work_that_answers_a_drain_with_an_error_spends_no_attempt(bench: Bench) -> None:
    begun = threading.Event()

    async def work(item: Item, tools: Tools) -> None:
        begun.set()
        try:
            await asyncio.sleep(3600)
        except asyncio.CancelledError:
            raise RuntimeError("aborted") from None

    bench.adopt()
    bench.queue("ok")
    listener = bench.inside(Workflow("job", Item, work))
    wait_until(begun.is_set, what="work")
    assert listener.stop(twice=True) == 0
    assert bench.statuses() == {1: "Queued"}
    assert one(bench.db, "SELECT count(*) FROM scheduler.attempt") == 0


def test_finished_work_does_not_pile_up_behind_a_slow_save(bench: Bench) -> None:
    gate = threading.Event()

    async def save(session: AsyncSession, results: list[Done[Item, str]]) -> None:
        while not gate.is_set():  # noqa: ASYNC110 - another thread sets it
            await asyncio.sleep(0.01)

    bench.adopt(batch_size=10, concurrency=2)
    bench.adopt("other", "thing")
    bench.queue(*["ok"] * 2000)
    listener = bench.inside(Workflow("job", Item, _fine, save), workflows.other)
    for number in range(3001, 3006):  # meanwhile the other lane has claimed five times
        bench.queue("ok", first=number, table="thing")
        bench.wait_for("Completed", table="thing")
    # one batch is being saved, one waits for that, and one may have been claimed already
    assert 10 <= listener.counts().claimed <= 50
    gate.set()
    bench.wait_for("Completed")


@pytest.mark.slow
def test_a_save_slower_than_the_lease_keeps_its_items(bench: Bench) -> None:
    gate = threading.Event()

    async def save(session: AsyncSession, results: list[Done[Item, str]]) -> None:
        while not gate.is_set():  # noqa: ASYNC110 - another thread sets it
            await asyncio.sleep(0.01)
        await workflows.save(session, results)

    bench.adopt(lease="1 second", batch_size=10)
    bench.queue("ok", "ok", "ok")
    bench.inside(Workflow("job", Item, workflows.work, save))
    bench.wait_begun(1, 2, 3)
    lease = one(bench.db, "SELECT lease_until FROM scheduler.run")
    other = bench.inside(listener_poll_seconds=0.2)
    wait_until(lambda: one(bench.db, "SELECT now() > %s + interval '1 second'", lease), what="the lease to run out")
    asked = other.counts().asked
    wait_until(lambda: other.counts().asked > asked + 2, what="another listener to look for work")
    gate.set()
    bench.wait_for("Completed")
    assert bench.effects() == [1, 2, 3]
    assert [bench.begun(key) for key in (1, 2, 3)] == [1, 1, 1]


@pytest.mark.slow
def test_a_save_that_ends_in_a_deadlock_is_tried_again(bench: Bench) -> None:
    bench.db.execute(
        "CREATE TABLE shelf (id integer PRIMARY KEY, hits integer NOT NULL); INSERT INTO shelf VALUES (1, 0), (2, 0)"
    )
    half, gate = threading.Event(), threading.Event()
    tries: list[int] = []

    async def save(session: AsyncSession, results: list[Done[Item, str]]) -> None:
        tries.append(len(results))
        await session.execute(text("UPDATE shelf SET hits = hits + 1 WHERE id = 1"))
        half.set()
        while not gate.is_set():  # noqa: ASYNC110 - another thread sets it
            await asyncio.sleep(0.01)
        await session.execute(text("UPDATE shelf SET hits = hits + 1 WHERE id = 2"))

    bench.adopt()
    bench.queue("ok", "ok")
    bench.inside(Workflow("job", Item, _fine, save))
    wait_until(half.is_set, what="save to be half done")
    with psycopg.connect(bench.url) as other:
        other.execute("SET deadlock_timeout = '1h'")  # so that save is the one that gives way
        other.execute("UPDATE shelf SET hits = hits + 1 WHERE id = 2")
        gate.set()
        other.execute("UPDATE shelf SET hits = hits + 1 WHERE id = 1")
    bench.wait_for("Completed")
    assert bench.db.execute("SELECT hits FROM shelf ORDER BY id").fetchall() == [(2,), (2,)]
    assert len(tries) > 1
    assert one(bench.db, "SELECT count(*) FROM scheduler.attempt") == 0


def test_a_type_that_cannot_be_built_breaks_its_lane_only(bench: Bench) -> None:
    class Odd:
        pass

    async def work(item: Any, tools: Tools) -> None: ...

    bench.adopt()
    bench.adopt("odd", "thing")
    bench.queue("ok", table="thing")
    listener = bench.inside(Workflow("odd", Odd, work), workflows.job)
    wait_until(lambda: "cannot be built" in (listener.counts("odd").problem or ""), what="the lane to say why")
    bench.queue("ok")
    bench.wait_for("Completed")
    assert bench.statuses("thing") == {1: "Queued"}


def test_a_mapping_with_a_mistake_puts_no_row_into_the_dead_letter(bench: Bench) -> None:
    class Base(DeclarativeBase):
        pass

    class Lonely(Base):
        __tablename__ = "item"
        id: Mapped[int] = mapped_column(primary_key=True)
        friends: Mapped[list["Nobody"]] = relationship()  # type: ignore[name-defined]  # noqa: F821

    async def work(item: Any, tools: Tools) -> None: ...

    bench.adopt()
    bench.queue("ok")
    listener = bench.inside(Workflow("job", Lonely, work))
    wait_until(lambda: "Nobody" in (listener.counts().problem or ""), what="the lane to say why")
    assert bench.statuses() == {1: "Queued"}
    Base.registry.dispose()


def test_a_coroutine_nobody_awaits_is_no_result(bench: Bench) -> None:
    async def save(session: AsyncSession, results: list[Done[Item, str]]) -> None: ...

    bench.adopt(max_attempts=1)
    bench.adopt("other", "thing", max_attempts=1)
    bench.queue("ok")
    bench.queue("ok", table="thing")
    bench.inside(
        Workflow("job", Item, lambda item, tools: _fine(item, tools)),
        Workflow("other", Item, _fine, lambda session, results: save(session, results)),
    )
    bench.wait_for("Failed")
    bench.wait_for("Failed", table="thing")
    for what, table in (("work", "item"), ("save", "thing")):
        error = one(bench.db, f"SELECT error FROM {table}")
        assert error.startswith(f"TypeError: {what} is a plain function")
        assert "async def" in error


@pytest.mark.parametrize("word", [5, "nul\x00"], ids=["a number", "NUL"])
def test_a_final_word_that_is_no_text_fails_its_item_alone(bench: Bench, word: Any) -> None:
    async def work(item: Item, tools: Tools) -> Any:
        return Final(word) if item.id == 1 else "fine"

    bench.adopt(max_attempts=1)
    bench.queue("ok", "ok")
    bench.inside(Workflow("job", Item, work))
    wait_until(lambda: bench.statuses()[2] == "Completed", what="its neighbour")
    wait_until(lambda: bench.statuses()[1] in ("Failed", "5"), what="the item")


def test_a_column_that_changes_its_type_while_the_listener_runs_does_not_stop_its_lane(bench: Bench) -> None:
    bench.adopt()
    bench.inside()
    for number in range(1, 8):  # so often that the statements are prepared
        bench.queue("ok", first=number)
        bench.wait_for("Completed")
    bench.db.execute("ALTER TABLE item ALTER COLUMN task TYPE varchar(200)")
    bench.queue("ok", first=8)
    bench.wait_for("Completed")


async def _yields(item: Item, tools: Tools) -> "AsyncIterator[int]":
    yield 1


def _yields_plainly(item: Item, tools: Tools) -> "Iterator[int]":
    yield 1


@pytest.mark.parametrize(
    ("work", "save", "said"),
    [
        (_yields, None, "work of workflow job must return its result, not yield it"),
        (_yields_plainly, None, "work of workflow job must return its result, not yield it"),
        (lambda item: item, None, r"work of workflow job is called with \(item, tools\), but takes \(item\)"),
        (_fine, lambda results: None, r"save of workflow job is called with \(session, results\)"),
        (_fine, "save", "save of workflow job must be a function"),
        (None, None, "work of workflow job must be a function"),
    ],
)
def test_a_function_that_could_never_work_is_refused_where_it_is_given(work: Any, save: Any, said: str) -> None:
    with pytest.raises(TypeError, match=said):
        Workflow("job", Item, work, save)
