"""Dispatch: which rows become Queued at a slot of the schedule, and which do not."""

from datetime import timedelta
from typing import Any

import psycopg
import pytest

from tests.sql.queue import Queue, call, one


def dispatch(db: psycopg.Connection, clock: str | None = None, name: str = "job") -> tuple[int, int, str | None]:
    row = db.execute("SELECT queued, retried, note FROM scheduler.dispatch(%s, %s)", [name, clock]).fetchone()
    assert row is not None
    return row[0], row[1], row[2]


def half_an_hour_ago(db: psycopg.Connection) -> str:
    """A schedule that fires once an hour, last half an hour ago, whatever the time is now."""
    return f"{one(db, 'SELECT extract(minute FROM now() - %s)::integer', timedelta(minutes=30))} * * * *"


def miss(db: psycopg.Connection, age: str) -> None:
    """As if no clock had ticked for that long."""
    db.execute("UPDATE scheduler.state SET next_slot = next_slot - %s::interval", [age])


def state(db: psycopg.Connection, column: str) -> Any:
    return one(db, f"SELECT {column} FROM scheduler.state WHERE workflow = 'job'")


def test_queued_is_topped_up_to_the_batch_size(db: psycopg.Connection) -> None:
    queue = Queue(db, 7, batch_size=3)
    queue.want()
    assert dispatch(db) == (3, 0, None)
    assert dispatch(db)[2] == "3 items are Queued already, which is the batch size"
    queue.claim(items=2)
    assert dispatch(db) == (2, 0, None)
    assert queue.counts() == {"Processing": 2, "Queued": 3, None: 2}


def test_the_most_urgent_then_the_oldest_are_queued_first(db: psycopg.Connection) -> None:
    queue = Queue(db, 6, batch_size=3, priority_column="priority")
    db.execute("UPDATE item SET priority = CASE id WHEN 6 THEN 9 WHEN 5 THEN 9 WHEN 3 THEN 1 END")
    queue.want()
    dispatch(db)
    assert db.execute("SELECT id FROM item WHERE status = 'Queued' ORDER BY id").fetchall() == [(3,), (5,), (6,)]
    assert queue.claim().keys == ["5", "6", "3"]


def test_missed_slots_are_made_up_once(db: psycopg.Connection) -> None:
    queue = Queue(db, 2, schedule=half_an_hour_ago(db))
    queue.want(1)
    assert dispatch(db, "pg_cron") == (0, 0, "not due")
    miss(db, "5 hours")
    assert dispatch(db, "pg_cron") == (1, 0, "slots were missed and are made up by this one")
    queue.want(2)
    assert dispatch(db, "pg_cron") == (0, 0, "not due")
    assert state(db, "missed_slots") == 1
    assert state(db, "next_slot > now()")
    assert state(db, "now() - last_slot BETWEEN '29 minutes' AND '32 minutes'")


@pytest.mark.parametrize(("grace", "queued"), [("10 minutes", 0), ("2 hours", 1), (None, 1)])
def test_a_slot_missed_by_more_than_the_grace_is_skipped(
    db: psycopg.Connection, grace: str | None, queued: int
) -> None:
    queue = Queue(db, 1, schedule=half_an_hour_ago(db), grace=grace)
    queue.want()
    miss(db, "1 hour")
    done = dispatch(db, "pg_cron")
    assert done[0] == queued
    assert ("skipped" in (done[2] or "")) == (queued == 0)
    assert state(db, "next_slot > now()")
    assert dispatch(db, "pg_cron")[2] == "not due"


def test_a_person_dispatches_between_the_slots(db: psycopg.Connection) -> None:
    queue = Queue(db, 1, schedule="0 0 1 1 *")
    queue.want()
    slot = state(db, "next_slot")
    assert dispatch(db) == (1, 0, None)
    assert state(db, "next_slot") == slot
    assert db.execute("SELECT action, affected FROM scheduler.audit ORDER BY id DESC LIMIT 1").fetchall() == [
        ("dispatch", 1)
    ]


def test_due_retries_go_before_new_rows_and_share_the_room(db: psycopg.Connection) -> None:
    queue = Queue(db, 5, batch_size=3)
    queue.set("Queued", 1, 2)
    queue.fail(queue.claim().run, "1", "2")
    queue.due()
    queue.want(3, 4, 5)
    assert dispatch(db) == (1, 2, None)
    assert queue.counts() == {"Queued": 3, None: 2}


def test_waiting_and_dead_items_are_not_ready_until_a_person_says_so(db: psycopg.Connection) -> None:
    queue = Queue(
        db, 3, ready="wanted AND (status IS NULL OR status IN ('Failed', 'New'))", backoff="1 h", backoff_max="1 h"
    )
    queue.set("Queued")
    run = queue.claim().run
    queue.fail(run, "1")
    queue.fail(run, "2", permanent=True)
    queue.succeed(run)
    queue.want()
    assert dispatch(db) == (0, 0, None)
    queue.set("New", 2)
    assert dispatch(db) == (1, 0, None)
    assert queue.status(2) == "Queued"


def test_a_retry_whose_row_someone_changed_or_deleted_is_forgotten(db: psycopg.Connection) -> None:
    queue = Queue(db, 3)
    queue.set("Queued")
    queue.fail(queue.claim().run, "1", "2", "3")
    queue.set("Filtered", 1)
    db.execute("DELETE FROM item WHERE id = 2")
    queue.due()
    assert dispatch(db) == (0, 1, None)
    assert [queue.ledger(key) for key in (1, 2, 3)] == [None, None, ("active", 1, 0)]


def test_a_predicate_without_the_status_does_not_repeat_finished_rows(db: psycopg.Connection) -> None:
    queue = Queue(db, 2, ready="wanted")
    queue.want()
    dispatch(db)
    run = queue.claim().run
    queue.succeed(run, "1")
    queue.fail(run, "2", permanent=True)
    assert dispatch(db) == (0, 0, None)


def test_backpressure_holds_back_while_the_next_workflow_is_full(db: psycopg.Connection) -> None:
    queue = Queue(db, 4)
    db.execute("ALTER TABLE item ADD COLUMN next text")
    queue.create("second", status_column="next", error_column=None, ready=None)
    call(db, "alter_workflow", name="job", downstream="second", downstream_limit=2)
    queue.want()
    db.execute("UPDATE item SET next = 'Queued' WHERE id <= 2")
    assert dispatch(db) == (0, 0, "held back: second has 2 or more items Queued")
    queue.claim(items=1, name="second")
    assert dispatch(db) == (4, 0, None)
    call(db, "drop_workflow", name="second", force=True)
    assert one(db, "SELECT downstream FROM scheduler.workflow WHERE name = 'job'") is None


def test_pause_one_or_all_and_nothing_is_dispatched(db: psycopg.Connection) -> None:
    queue = Queue(db, 1)
    queue.want()
    call(db, "pause", name="job", reason="the API is down")
    assert dispatch(db) == (0, 0, "paused: the API is down")
    call(db, "pause_all")
    call(db, "resume", name="job")
    assert dispatch(db) == (0, 0, "everything is paused")
    call(db, "resume_all")
    assert dispatch(db) == (1, 0, None)


def test_preview_shows_what_the_next_dispatch_queues_and_changes_nothing(db: psycopg.Connection) -> None:
    queue = Queue(db, 6, batch_size=4, priority_column="priority")
    queue.set("Queued", 1)
    queue.fail(queue.claim().run, "1")
    queue.due()
    db.execute("UPDATE item SET priority = 5 WHERE id = 6")
    queue.want()
    before = queue.counts()
    shown = db.execute("SELECT key, cause FROM scheduler.preview('job') ORDER BY n").fetchall()
    assert [key for key, _ in shown] == ["1", "6", "2", "3"]
    assert [cause[:5] for _, cause in shown] == ["retry", "ready", "ready", "ready"]
    assert queue.counts() == before
    dispatch(db)
    queued = db.execute("SELECT id::text FROM item WHERE status = 'Queued' ORDER BY 1").fetchall()
    assert queued == sorted((key,) for key, _ in shown)


def test_a_row_that_someone_is_editing_is_passed_over_not_waited_for(db: psycopg.Connection) -> None:
    queue = Queue(db, 2)
    queue.want()
    with psycopg.connect(db.info.dsn, password=db.info.password) as editor:
        editor.execute("SELECT FROM item WHERE id = 1 FOR UPDATE")
        assert dispatch(db) == (1, 0, None)
    assert dispatch(db) == (1, 0, None)
