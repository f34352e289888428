"""The doorbell: who is woken by what. Work never depends on it."""

import psycopg
import pytest

from tests.sql.queue import Queue
from tests.waiting import PATIENCE


@pytest.mark.parametrize("doorbell", ["commit", "dispatch", "off"])
def test_the_doorbell_rings_as_chosen(db: psycopg.Connection, doorbell: str) -> None:
    queue = Queue(db, 2, doorbell=doorbell)
    db.execute("LISTEN scrapersky")
    queue.want(2)
    queue.set("Queued", 1)
    db.execute("NOTIFY scrapersky, 'person done'")
    db.execute("SELECT scheduler.dispatch('job')")
    db.execute("NOTIFY scrapersky, 'dispatch done'")
    heard = []
    for note in db.notifies(timeout=PATIENCE):
        heard.append(note.payload)
        if note.payload == "dispatch done":
            break
    person, dispatch = heard[: heard.index("person done")], heard[heard.index("person done") + 1 : -1]
    assert (person, dispatch) == {
        "commit": (["job"], ["job"]),
        "dispatch": ([], ["job"]),
        "off": ([], []),
    }[doorbell]


def test_a_transaction_rings_once_however_many_rows_it_queues(db: psycopg.Connection) -> None:
    queue = Queue(db, 500)
    db.execute("LISTEN scrapersky")
    queue.set("Queued")
    db.execute("INSERT INTO item (id, status) VALUES (501, 'Queued')")
    db.execute("NOTIFY scrapersky, 'done'")
    assert [note.payload for note in db.notifies(timeout=PATIENCE, stop_after=3)] == ["job", "job", "done"]


def test_losing_every_ring_loses_no_work(db: psycopg.Connection) -> None:
    queue = Queue(db, 3, doorbell="off")
    queue.set("Queued", 1)
    queue.want(2, 3)
    db.execute("SELECT scheduler.dispatch('job')")
    assert queue.claim().keys == ["1", "2", "3"]


def test_the_doorbell_can_be_changed_while_the_workflow_runs(db: psycopg.Connection) -> None:
    queue = Queue(db, 1, doorbell="off")
    db.execute("SELECT scheduler.alter_workflow('job', doorbell => 'commit')")
    db.execute("LISTEN scrapersky")
    queue.set("Queued")
    assert [note.payload for note in db.notifies(timeout=PATIENCE, stop_after=1)] == ["job"]
