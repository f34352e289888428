"""One question for many workflows: which of them are worth a claim. A wrong no would leave items lying."""

import psycopg
import pytest

from tests.conftest import Connect
from tests.sql.queue import Queue, call, one


def _claimable(db: psycopg.Connection, *names: str) -> list[str]:
    rows = db.execute("SELECT scheduler.claimable(%s::text[])", [list(names or ("job",))]).fetchall()
    return [name for (name,) in rows]


def test_only_what_is_queued_is_worth_a_claim(db: psycopg.Connection) -> None:
    queue = Queue(db, 2)
    assert _claimable(db) == []
    queue.set("Queued", 1)
    assert _claimable(db) == ["job"]
    claim = queue.claim()
    assert _claimable(db) == []
    queue.succeed(claim.run)
    assert _claimable(db) == []


def test_a_lost_run_is_worth_a_claim(db: psycopg.Connection) -> None:
    queue = Queue(db, 1)
    queue.set("Queued")
    claim = queue.claim()
    assert _claimable(db) == []
    queue.expire(claim.run)
    assert _claimable(db) == ["job"]


def test_a_waiting_retry_is_worth_a_claim_that_tells_when_it_is_due(db: psycopg.Connection) -> None:
    queue = Queue(db, 1, backoff="1 hour")
    queue.set("Queued")
    queue.fail(queue.claim().run, "1")
    assert _claimable(db) == ["job"]
    assert queue.claim().again_at is not None


def test_a_running_item_that_someone_took_is_worth_a_claim(db: psycopg.Connection) -> None:
    queue = Queue(db, 1)
    queue.set("Queued")
    queue.claim()
    queue.set("Completed")
    assert one(db, "SELECT count(*) FROM scheduler.takeover") == 1
    assert _claimable(db) == ["job"]


@pytest.mark.parametrize("function", ["pause", "pause_all"])
def test_what_is_paused_is_not_worth_a_claim(db: psycopg.Connection, function: str) -> None:
    queue = Queue(db, 1)
    queue.set("Queued")
    call(db, function, **({"name": "job"} if function == "pause" else {}), reason="test")
    assert _claimable(db) == []


@pytest.mark.parametrize("harm", ["ALTER TABLE item RENAME status TO state", "DROP TABLE item"])
def test_what_is_broken_is_left_to_its_claim_which_says_so(db: psycopg.Connection, harm: str) -> None:
    Queue(db, 1)
    db.execute(harm.encode())
    assert _claimable(db, "job", "never registered") == ["job", "never registered"]


def test_a_locked_table_keeps_nobody_waiting(db: psycopg.Connection, connect: Connect) -> None:
    Queue(db, 1)
    blocker = connect(autocommit=False)
    blocker.execute("LOCK TABLE item IN ACCESS EXCLUSIVE MODE")
    db.execute("SET statement_timeout = '5s'")
    assert _claimable(db) == ["job"]


def test_an_empty_claim_tells_when_the_next_lease_ends(db: psycopg.Connection) -> None:
    queue = Queue(db, 1)
    queue.set("Queued")
    claim = queue.claim()
    end = one(db, "SELECT lease_until FROM scheduler.run WHERE id = %s", claim.run)
    empty = queue.claim()
    assert (empty.reason, empty.again_at) == ("empty", end)
    queue.succeed(claim.run)
    assert queue.claim().again_at is None
