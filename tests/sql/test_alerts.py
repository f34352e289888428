"""What a webhook is told: each change once, whatever listeners ask, and nothing while nobody has a webhook."""

import psycopg
import pytest

from tests.conftest import Connect
from tests.sql.queue import Queue, one


def taken(db: psycopg.Connection) -> list[tuple[str, str]]:
    return db.execute("SELECT code, event FROM scheduler.take_alerts()").fetchall()


def open_breaker(db: psycopg.Connection) -> None:
    db.execute("UPDATE scheduler.state SET breaker_state = 'open', breaker_until = now() + interval '1 hour'")


def bury(db: psycopg.Connection) -> None:
    queue = Queue.of(db)
    queue.set("Queued", 1)
    queue.fail(queue.claim().run, "1", permanent=True)


def be_late(db: psycopg.Connection) -> None:
    db.execute("UPDATE scheduler.state SET next_slot = now() - interval '10 minutes'")


CAUSES = {
    "breaker_open": (open_breaker, "UPDATE scheduler.state SET breaker_state = 'closed', breaker_until = NULL"),
    "dead_letters_rising": (bury, "UPDATE scheduler.attempt SET last_at = now() - interval '1 hour'"),
    "schedule_late": (be_late, "SELECT scheduler.maintain()"),
}


@pytest.mark.parametrize("code", CAUSES)
def test_each_change_is_told_once_when_it_begins_and_once_when_it_ends(db: psycopg.Connection, code: str) -> None:
    Queue(db, 1, schedule="*/5 * * * *")
    cause, end = CAUSES[code]
    assert taken(db) == []
    cause(db)
    assert taken(db) == [(code, "raised")]
    assert taken(db) == []
    db.execute(end.encode())
    assert taken(db) == [(code, "cleared")]
    assert taken(db) == []


def test_of_two_listeners_that_look_at_once_one_tells(db: psycopg.Connection, connect: Connect) -> None:
    Queue(db, 1)
    open_breaker(db)
    other = connect()
    with db.transaction():
        assert taken(db) == [("breaker_open", "raised")]
        assert taken(other) == []  # at once: it does not wait for the first
    assert taken(other) == []


def test_what_did_not_arrive_is_tried_a_few_times_and_what_arrived_is_not(db: psycopg.Connection) -> None:
    Queue(db, 1)
    open_breaker(db)
    for _ in range(5):
        assert taken(db) == [("breaker_open", "raised")]
        db.execute("UPDATE scheduler.alert SET again_at = now() WHERE again_at IS NOT NULL")
    assert taken(db) == []
    db.execute("UPDATE scheduler.alert SET again_at = now()")
    db.execute("SELECT scheduler.alert_sent(id) FROM scheduler.alert")
    assert taken(db) == []
    assert one(db, "SELECT sent_at IS NOT NULL FROM scheduler.alert")


def test_an_alert_says_nothing_that_came_from_an_item(db: psycopg.Connection) -> None:
    queue = Queue(db, 1)
    queue.set("Queued", 1)
    queue.fail(queue.claim().run, "1", error="<script>marked</script>", permanent=True)
    assert "marked" not in str(db.execute("SELECT * FROM scheduler.take_alerts()").fetchall())


def test_a_workflow_that_is_dropped_takes_its_alerts_with_it(db: psycopg.Connection) -> None:
    Queue(db, 1)
    open_breaker(db)
    taken(db)
    db.execute("SELECT scheduler.drop_workflow('job', force => true)")
    assert one(db, "SELECT count(*) FROM scheduler.alert") == 0
