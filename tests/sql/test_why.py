"""why(): each reason an item may wait, caused and then asked for."""

import uuid
from typing import Any

import psycopg
import pytest

from tests.conftest import Connect
from tests.sql.queue import Queue, call, one


def why(db: psycopg.Connection, key: object = 1) -> str:
    return str(one(db, "SELECT scheduler.why('job', %s::text)", str(key)))


def listen(db: psycopg.Connection, *workflows: str, detail: str | None = None) -> str:
    """A listener that is alive and knows these workflows."""
    listener = str(uuid.uuid4())
    db.execute(
        "SELECT scheduler.heartbeat(%s, host => 'crawler-1', pid => 4711, version => '1', workflows => %s,"
        " detail => %s)",
        [listener, list(workflows), detail],
    )
    return listener


def queued(db: psycopg.Connection, rows: int = 1, **settings: Any) -> Queue:
    """A queue with a listener, its rows Queued."""
    queue = Queue(db, rows, **settings)
    listen(db, "job")
    queue.set("Queued")
    return queue


def test_a_clause_that_does_not_hold_is_named_and_the_others_are_not(db: psycopg.Connection) -> None:
    Queue(db, 1, ready="wanted AND priority > 3 AND status IS NULL")
    db.execute("UPDATE item SET wanted = true, priority = 2")
    said = why(db)
    assert "not ready" in said
    assert "priority > 3" in said
    assert "wanted" not in said
    assert "IS NULL" not in said


def test_a_gate_is_told_with_the_update_that_opens_it(db: psycopg.Connection) -> None:
    db.execute("CREATE TYPE choice AS ENUM ('New', 'Selected')")
    db.execute("CREATE TABLE item (id integer PRIMARY KEY, choice choice DEFAULT 'New', wanted boolean, status text)")
    db.execute("INSERT INTO item VALUES (1)")
    ready = "choice = 'Selected' AND wanted AND status IS NULL"
    call(db, "create_workflow", name="job", relation="item", status_column="status", ready=ready)
    said = why(db)
    assert "gated" in said
    updates = said.split("To let it through: ")[1].rstrip(".")
    for update in updates.split("; "):
        db.execute(update.encode())
    assert "It is ready." in why(db)


@pytest.mark.parametrize(
    ("predicate", "clauses"),
    [
        ("wanted", ["wanted"]),
        ("wanted AND (priority = 1 OR priority = 2 AND wanted)", 2),
        ("wanted AND error = 'it''s AND \"so) on' AND status IS NULL", 3),
        ("priority BETWEEN 1 AND 5 AND wanted", 3),
        ("EXISTS (SELECT FROM item AS o WHERE o.wanted AND o.id > t.id) AND wanted", 2),
        ("CASE WHEN wanted AND id > 1 THEN true ELSE false END AND NOT (wanted AND id = 2)", 2),
    ],
)
def test_a_predicate_is_taken_apart_where_and_joins_it_and_nowhere_else(
    db: psycopg.Connection, predicate: str, clauses: Any
) -> None:
    Queue(db, 1, ready=predicate)
    found = [row[0] for row in db.execute("SELECT scheduler._clauses(ready) FROM scheduler.workflow")]
    assert found == clauses if isinstance(clauses, list) else len(found) == clauses
    for clause in found:  # each stands alone
        db.execute(f"SELECT ({clause}) FROM item AS t".encode())


def test_without_a_ready_predicate_it_says_how_to_ask_for_an_item(db: psycopg.Connection) -> None:
    Queue(db, 1, ready=None)
    assert "no ready predicate" in why(db)
    assert "scheduler.enqueue('job', ARRAY['1'])" in why(db)


def test_a_pause_is_told_with_who_and_why(db: psycopg.Connection) -> None:
    queued(db)
    call(db, "pause", name="job", reason="API key expired")
    assert "paused by" in why(db)
    assert "(API key expired): SELECT scheduler.resume('job')" in why(db)
    call(db, "resume", name="job")
    call(db, "pause_all")
    assert "everything is paused" in why(db)
    assert "resume_all()" in why(db)


def test_a_limit_is_told_by_its_name(db: psycopg.Connection) -> None:
    queue = queued(db, 3, max_instances=1)
    queue.claim(1)
    assert "which is max_instances" in why(db, 3)
    call(db, "alter_workflow", name="job", clear=["max_instances"], rate_limit=1)
    assert "rate limit of 1 in 00:01:00 is used up" in why(db, 3)


def test_a_hold_is_told_with_its_end_and_reason(db: psycopg.Connection) -> None:
    queue = queued(db)
    run = queue.claim().run
    db.execute("SELECT scheduler.release(%s, NULL, 'quota used up', '1 hour')", [run])
    assert "held until" in why(db)
    assert "quota used up" in why(db)


def test_a_full_queue_is_told_to_those_that_are_ready(db: psycopg.Connection) -> None:
    queue = Queue(db, 3, batch_size=2)
    queue.set("Queued", 1, 2)
    queue.want(3)
    assert "2 items are Queued, which is batch_size" in why(db, 3)


def test_backing_off_is_told_with_the_time_and_the_error(db: psycopg.Connection) -> None:
    queue = queued(db, backoff="1 hour")
    queue.fail(queue.claim().run, "1", error="connection refused")
    retry_at = one(db, "SELECT date_trunc('second', retry_at)::text FROM scheduler.attempt")
    assert f"backs off until {retry_at}" in why(db)
    assert "connection refused" in why(db)


def test_whoever_has_locked_the_row_is_named_by_pid(db: psycopg.Connection, connect: Connect) -> None:
    queued(db)
    assert "locked" not in why(db)
    other = connect(autocommit=False, application_name="editor")
    other.execute("SELECT FROM item WHERE id = 1 FOR UPDATE")
    assert f"locked by session {other.info.backend_pid}" in why(db)
    assert "editor, idle in transaction" in why(db)
    # two at once are one number of another kind
    other.rollback()
    first, second = (connect(autocommit=False) for _ in range(2))
    for session in (first, second):
        session.execute("SELECT FROM item WHERE id = 1 FOR SHARE")
    holders = (first.info.backend_pid, second.info.backend_pid)
    assert any(f"locked by session {pid}" in why(db) for pid in holders)
    first.rollback()
    second.rollback()
    assert "locked" not in why(db)


@pytest.mark.slow
def test_a_locked_table_is_an_answer_and_not_a_wait(db: psycopg.Connection, connect: Connect) -> None:
    queued(db)
    other = connect(autocommit=False)
    other.execute("LOCK TABLE item")
    assert f"table public.item is locked by session {other.info.backend_pid}" in why(db)
    other.rollback()


def test_a_lease_is_told_with_its_listener(db: psycopg.Connection) -> None:
    queue = queued(db)
    listener = listen(db, "job")
    run = queue.claim(listener=listener).run
    assert f"in run {run}, leased by listener {listener} on crawler-1 (process 4711) until" in why(db)
    assert "scheduler.rescue()" not in why(db)
    queue.expire(run)
    assert "its listener is lost" in why(db)
    assert "scheduler.rescue()" in why(db)


def test_no_listener_for_this_workflow_is_told_though_others_run(db: psycopg.Connection) -> None:
    queue = Queue(db, 1)
    queue.set("Queued")
    listen(db, "another")
    assert "no listener that knows this workflow is alive" in why(db)
    listen(db, "job")
    assert why(db) == "It is queued and the next to be claimed."


def test_what_a_listener_cannot_do_is_told_in_its_own_words(db: psycopg.Connection) -> None:
    queued(db)
    listen(db, "job", detail='{"problems": {"job": "column task is missing"}}')
    assert "crawler-1 (process 4711) reports: column task is missing" in why(db)


def test_an_open_breaker_is_told_with_its_end(db: psycopg.Connection) -> None:
    queued(db)
    db.execute("UPDATE scheduler.state SET breaker_state = 'open', breaker_until = now() + interval '1 minute'")
    assert "the breaker is open until" in why(db)
    db.execute("UPDATE scheduler.state SET breaker_state = 'probing', breaker_until = now()")
    assert "one item be tried before the others" in why(db)


def test_a_late_dispatch_is_told_with_the_clock_that_should_have_fired(db: psycopg.Connection) -> None:
    queue = Queue(db, 1, schedule="*/5 * * * *")
    queue.want()
    assert "The next dispatch is at" in why(db)
    db.execute("UPDATE scheduler.state SET next_slot = now() - interval '7 minutes'")
    assert "Its dispatch is late" in why(db)
    assert "the clock is nobody" in why(db)


def test_a_full_downstream_is_named(db: psycopg.Connection) -> None:
    queue = Queue(db, 2)
    db.execute("CREATE TABLE page (id integer PRIMARY KEY, status text)")
    db.execute("INSERT INTO page VALUES (1, 'Queued')")
    call(db, "create_workflow", name="pages", relation="page", status_column="status")
    call(db, "alter_workflow", name="job", downstream="pages", downstream_limit=1)
    queue.want()
    assert "Downstream is full: pages has 1 or more items Queued" in why(db)
    db.execute("UPDATE page SET status = 'Completed'")
    assert "Downstream" not in why(db)


def test_a_dead_item_comes_with_the_call_that_requeues_it(db: psycopg.Connection) -> None:
    queue = queued(db)
    queue.fail(queue.claim().run, "1", error="no such place", permanent=True)
    said = why(db)
    assert "dead letter" in said
    assert "no such place" in said
    db.execute(said.split("A new start: ")[1].encode())
    assert queue.status(1) == "Queued"


def test_cancelled_done_stranded_and_missing_items_have_answers_too(db: psycopg.Connection) -> None:
    queue = queued(db, 3)
    db.execute("SELECT scheduler.cancel('job', ARRAY[1])")
    queue.set("Completed", 2)
    queue.set("Processing", 3)
    assert "was cancelled" in why(db, 1)
    assert "It is done" in why(db, 2)
    assert "stranded => true" in why(db, 3)
    assert "There is no row" in why(db, 99)


def test_a_monitor_may_ask_and_nobody_else(db: psycopg.Connection, connect: Connect) -> None:
    queued(db)
    assert "It is queued" in why(connect("scheduler_monitor"))
    db.execute("DO $$ BEGIN CREATE ROLE stranger; EXCEPTION WHEN duplicate_object THEN NULL; END $$")
    with pytest.raises(psycopg.errors.InsufficientPrivilege):
        why(connect("stranger"))
