"""Understand and watch: what the views, why() and doctor() say is so."""

from typing import Any

import psycopg
import pytest

from tests.sql.queue import Queue, call, one


def status(db: psycopg.Connection, *columns: str) -> tuple[Any, ...]:
    row = db.execute(f"SELECT {', '.join(columns)} FROM scheduler.status WHERE workflow = 'job'".encode()).fetchone()
    assert row is not None
    return row


def listener_lives(db: psycopg.Connection) -> None:
    db.execute("SELECT scheduler.heartbeat(gen_random_uuid(), workflows => '{job}')")


def test_status_tells_the_state_of_a_workflow(db: psycopg.Connection) -> None:
    queue = Queue(db, 4)
    assert status(db, "state", "queued", "processing", "eta::text") == ("idle", 0, 0, "00:00:00")
    queue.set("Queued")
    assert status(db, "state", "queued", "queued_exact") == ("waiting", 4, True)
    assert status(db, "note LIKE 'no listener%'") == (True,)
    listener_lives(db)
    assert status(db, "note") == (None,)
    assert status(db, "oldest_queued_age > interval '23 hours'") == (True,)
    claim = queue.claim(items=2)
    assert status(db, "state", "queued", "processing") == ("running", 2, 2)
    queue.fail(claim.run, "1")
    queue.fail(claim.run, "2", permanent=True)
    assert status(db, "state", "waiting", "dead", "success_rate_1h") == ("waiting", 1, 1, 0)
    db.execute("UPDATE scheduler.state SET hold_until = now() + interval '1 h', hold_reason = 'no API'")
    assert status(db, "state", "note LIKE '%no API'") == ("held", True)
    db.execute("UPDATE scheduler.state SET breaker_state = 'open', breaker_until = now() + interval '1 h'")
    assert status(db, "state") == ("breaker open",)
    call(db, "pause", name="job", reason="holidays")
    assert status(db, "state", "paused", "note LIKE '%holidays'") == ("paused", True, True)
    db.execute("ALTER TABLE item DROP COLUMN status CASCADE")
    assert status(db, "state", "note LIKE '%status%'") == ("broken", True)


def test_durations_and_rates_survive_the_roll_up(db: psycopg.Connection) -> None:
    queue = Queue(db, 100)
    queue.set("Queued")
    run = queue.claim().run
    histogram = [0] * 48
    histogram[one(db, "SELECT scheduler.duration_bucket(100)") - 1] = 60
    histogram[one(db, "SELECT scheduler.duration_bucket(3000)") - 1] = 30
    db.execute(
        "SELECT scheduler.succeed(%s, ARRAY(SELECT n::text FROM generate_series(1, 90) AS n), histogram => %s)",
        [run, histogram],
    )
    queue.fail(run, *map(str, range(91, 101)))
    told = "success_rate_1h", "per_minute", "p50 BETWEEN '80 ms' AND '160 ms'", "p95 BETWEEN '2 s' AND '5 s'"
    expected = (one(db, "SELECT 0.9"), 20, True, True)
    assert status(db, *told) == expected
    assert one(db, "SELECT rolled_up FROM scheduler.maintain()") == 1
    assert one(db, "SELECT rolled_up FROM scheduler.maintain()") == 0
    assert status(db, *told) == expected
    rows = db.execute("SELECT grain, runs, succeeded, failed FROM scheduler.throughput ORDER BY grain").fetchall()
    assert rows == [("day", 1, 90, 10), ("hour", 1, 90, 10), ("minute", 1, 90, 10)]
    assert db.execute("SELECT outcome, succeeded, failed FROM scheduler.runs").fetchall() == [("with failures", 90, 10)]


def test_history_is_kept_as_long_as_promised_and_no_longer(db: psycopg.Connection) -> None:
    queue = Queue(db, 3, batch_size=1)
    queue.set("Queued")
    for _ in range(2):
        queue.succeed(queue.claim().run)
    open_run = queue.claim().run
    db.execute("SELECT scheduler.maintain()")
    db.execute("UPDATE scheduler.run SET started_at = now() - interval '8 days', lease_until = now() + interval '1 h'")
    db.execute("UPDATE scheduler.run SET finished_at = now() - interval '8 days' WHERE id < %s - 1", [open_run])
    db.execute("UPDATE scheduler.audit SET at = now() - interval '91 days'")
    db.execute("UPDATE scheduler.stat SET at = at - interval '3 days'")
    db.execute("SELECT scheduler.heartbeat(gen_random_uuid())")
    db.execute("UPDATE scheduler.listener SET seen_at = now() - interval '2 days'")
    # a run, the registration in the audit, the minute, the listener
    assert one(db, "SELECT forgotten FROM scheduler.maintain()") == 4
    assert one(db, "SELECT count(*) FROM scheduler.run") == 2
    assert db.execute("SELECT grain FROM scheduler.stat ORDER BY 1").fetchall() == [("day",), ("hour",)]


def test_errors_that_differ_in_numbers_only_are_one_line(db: psycopg.Connection) -> None:
    queue = Queue(db, 3)
    queue.set("Queued")
    run = queue.claim().run
    queue.fail(run, "1", error="timeout after 31 s at https://a.example/x")
    queue.fail(run, "2", error="timeout after 7 s at https://b.example/y", permanent=True)
    queue.fail(run, "3", error="no such 'thing'")
    assert db.execute("SELECT error, items, dead, waiting FROM scheduler.errors").fetchall() == [
        ("timeout after # s at <url>", 2, 1, 1),
        ("no such <text>", 1, 0, 1),
    ]


def test_in_flight_and_listeners_show_who_holds_what(db: psycopg.Connection) -> None:
    queue = Queue(db, 3)
    queue.set("Queued")
    who = one(db, "SELECT gen_random_uuid()")
    db.execute("SELECT scheduler.heartbeat(%s, host => 'a', pid => 7, version => '1', workflows => '{job}')", [who])
    queue.succeed(queue.claim(listener=str(who)).run, "1")
    held = db.execute("SELECT workflow, host, pid, claimed, remaining FROM scheduler.in_flight").fetchall()
    assert held == [("job", "a", 7, 3, 2)]
    seen = "SELECT state, open_runs, items FROM scheduler.listeners"
    assert db.execute(seen).fetchall() == [("alive", 1, 2)]
    db.execute("UPDATE scheduler.listener SET seen_at = now() - interval '2 minutes'")
    assert one(db, seen) == "silent"
    db.execute("SELECT scheduler.heartbeat(%s, stopped => true)", [who])
    assert one(db, seen) == "stopped"


def test_stuck_is_empty_until_something_does_not_move(db: psycopg.Connection) -> None:
    queue = Queue(db, 3, schedule="0 0 1 1 *", batch_size=1)
    queue.set("Queued")
    listener_lives(db)
    what = "SELECT what FROM scheduler.stuck ORDER BY 1"
    assert db.execute(what).fetchall() == []
    lost, waiting = queue.claim(), queue.claim()
    queue.fail(waiting.run, *waiting.keys)
    db.execute("UPDATE scheduler.run SET lease_until = now() - interval '3 minutes' WHERE id = %s", [lost.run])
    db.execute("UPDATE scheduler.attempt SET retry_at = now() - interval '6 minutes'")
    db.execute("UPDATE scheduler.state SET next_slot = now() - interval '6 minutes'")
    db.execute("UPDATE scheduler.listener SET seen_at = now() - interval '6 minutes'")
    assert [row[0] for row in db.execute(what)] == [
        "items are queued and no listener that knows this workflow is alive",
        "its schedule is late",
        "retries are due but not queued",
        f"run {lost.run} has lost its listener and was not rescued",
    ]
    listener_lives(db)
    db.execute("SELECT scheduler.maintain()")
    assert db.execute(what).fetchall() == []


@pytest.mark.parametrize(
    "harm",
    [
        "DROP INDEX scheduler_job_queued",
        "DROP TRIGGER scheduler_job_update ON item",
        "ALTER TABLE item DISABLE TRIGGER scheduler_job_takeover",
        "REVOKE ALL ON item FROM scheduler_owner",
        "REVOKE ALL ON item FROM scheduler_listener",
    ],
)
def test_the_doctor_finds_the_harm_and_names_the_sql_that_heals_it(db: psycopg.Connection, harm: str) -> None:
    queue = Queue(db, 1)
    finding = "SELECT finding, fix FROM scheduler.doctor() WHERE workflow = 'job' AND severity <> 'info'"
    assert db.execute(finding).fetchall() == []
    db.execute(harm.encode())
    found = db.execute(finding).fetchall()
    assert len(found) == 1
    db.execute(found[0][1])
    assert db.execute(finding).fetchall() == []
    queue.set("Queued")
    assert queue.claim().keys == ["1"]


def test_the_doctor_has_nothing_to_say_when_all_is_well(db: psycopg.Connection) -> None:
    Queue(db, 1, schedule="0 0 1 1 *")
    db.execute("UPDATE scheduler.control SET pg_cron_seen_at = now()")
    listener_lives(db)
    findings = "SELECT * FROM scheduler.doctor() WHERE code NOT IN ('cron_missing', 'cron_elsewhere')"
    assert db.execute(findings).fetchall() == []


def test_why_tells_the_life_of_an_item(db: psycopg.Connection) -> None:
    queue = Queue(db, 3, max_attempts=2, schedule="0 0 1 1 *")

    def why(key: int = 2) -> str:
        return str(one(db, "SELECT scheduler.why('job', %s)", key))

    assert why(99) == "There is no row with id = '99' in public.item."
    assert why().startswith("Its status is NULL and nothing asks for it: it is gated until someone decides: wanted.")
    queue.want()
    assert why().startswith("It is ready. The next dispatch is at")
    call(db, "dispatch", name="job")
    assert why().startswith("It is queued behind one other. It waits because no listener that knows this workflow")
    listener_lives(db)
    assert why(1) == "It is queued and the next to be claimed."
    call(db, "pause", name="job", reason="lunch")
    assert "the workflow is paused by" in why()
    assert "(lunch)" in why()
    call(db, "resume", name="job")
    claim = queue.claim()
    assert "as attempt 1 of 2, in run" in why()
    queue.fail(claim.run, "2", error="no answer")
    assert "Attempt 1 of 2 failed at" in why()
    assert "no answer. It backs off until" in why()
    queue.due()
    queue.fail(queue.claim().run, "2", error="no answer")
    assert "It is in the dead letter since" in why()
    # what it advises can be run as it stands
    db.execute(why().rpartition("A new start: ")[2].encode())
    assert why() == "It is queued and the next to be claimed."
    db.execute("SELECT scheduler.cancel('job', ARRAY[2])")
    assert why().startswith("It was cancelled (cancelled by")
    db.execute(why().rpartition("After all: ")[2].encode())
    queue.succeed(queue.claim().run)
    assert why().startswith("It is done ('Completed').")
    queue.set("Filtered", 2)
    assert why().startswith("Its status is 'Filtered' and nothing asks for it")


@pytest.mark.parametrize(
    ("setting", "reason"),
    [
        ({"max_instances": 1}, "1 run(s) are open, which is max_instances"),
        ({"rate_limit": 1}, "the rate limit of 1 in 00:01:00 is used up"),
    ],
)
def test_why_names_the_limit_that_holds_an_item_back(
    db: psycopg.Connection, setting: dict[str, object], reason: str
) -> None:
    queue = Queue(db, 2, batch_size=1, **setting)
    queue.set("Queued")
    listener_lives(db)
    queue.claim()
    assert reason in one(db, "SELECT scheduler.why('job', 2)")


def test_a_deep_queue_is_estimated_and_said_to_be(db: psycopg.Connection) -> None:
    queue = Queue(db, 25_000)
    queue.set("Queued")
    db.execute("ANALYZE item")
    queued, exact = status(db, "queued", "queued_exact")
    assert (exact, 20_000 <= queued <= 30_000) == (False, True)
