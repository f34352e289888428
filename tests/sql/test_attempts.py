"""After a failure: when an item comes back, in what company, and when the whole workflow waits."""

import psycopg
import pytest

from tests.sql.queue import Queue, call, one


def test_the_hold_of_a_release_is_not_shortened_by_the_next(db: psycopg.Connection) -> None:
    queue = Queue(db, 2, batch_size=1)
    queue.set("Queued")
    first, second = queue.claim(), queue.claim()
    db.execute("SELECT scheduler.release(%s, hold => '1 hour', reason => 'key=SECRET1')", [first.run])
    db.execute("SELECT scheduler.release(%s, hold => '1 minute')", [second.run])
    assert one(db, "SELECT hold_until > now() + interval '50 minutes' FROM scheduler.state")
    assert queue.claim().reason == "held"
    db.execute("UPDATE scheduler.state SET hold_until = now()")
    assert queue.claim().run is not None


def test_retry_after_has_a_little_jitter_and_a_day_at_most(db: psycopg.Connection) -> None:
    queue = Queue(db, 40, batch_size=40, breaker=False)
    queue.set("Queued")
    claim = queue.claim()
    queue.fail(claim.run, *claim.keys[:20], after="100 seconds")
    queue.fail(claim.run, *claim.keys[20:], after="30 days")
    waits = "SELECT extract(epoch FROM retry_at - last_at)::float FROM scheduler.attempt ORDER BY 1"
    asked = [wait for (wait,) in db.execute(waits).fetchall()]
    assert all(100 <= wait <= 110 for wait in asked[:20])
    assert len(set(asked[:20])) > 1
    assert all(86400 <= wait <= 1.1 * 86400 for wait in asked[20:])


@pytest.mark.parametrize(("backoff", "longest"), [("3 days", "30 days"), ("1 ms", "10 years")])
def test_the_last_of_a_thousand_attempts_can_still_be_recorded(
    db: psycopg.Connection, backoff: str, longest: str
) -> None:
    """A delay doubled a thousand times is no interval any more, and the failure would be refused for ever."""
    queue = Queue(db, 1, backoff=backoff, backoff_max=longest, max_attempts=1000)
    queue.set("Queued")
    db.execute("INSERT INTO scheduler.attempt (workflow, key, state, attempts) VALUES ('job', '1', 'active', 998)")
    assert queue.fail(queue.claim().run, "1") == (1, [], [])
    waits = "SELECT extract(epoch FROM retry_at - now()) / extract(epoch FROM %s::interval) FROM scheduler.attempt"
    assert 0.49 < one(db, waits, longest) < 1.51


def test_items_that_wait_for_their_turn_spend_no_attempt_and_trip_no_breaker(db: psycopg.Connection) -> None:
    queue = Queue(db, 40, batch_size=40, max_attempts=2)
    queue.set("Queued")
    for _ in range(3):
        claim = queue.claim()
        assert set(claim.attempts) == {1}
        assert queue.defer(claim.run, *claim.keys, reason="full, key=SECRET1") == (40, [])
        assert queue.claim().reason == "empty"
        queue.due()
        db.execute("SELECT scheduler.maintain()")
    assert one(db, "SELECT breaker_state FROM scheduler.state") == "closed"
    assert db.execute("SELECT DISTINCT failed, released FROM scheduler.run").fetchall() == [(0, 40)]
    claim = queue.claim()
    queue.succeed(claim.run)
    assert (queue.status(1), queue.error(1), queue.ledger(1)) == ("Completed", None, None)


def test_an_item_that_was_put_off_says_so_and_keeps_the_attempts_it_has_spent(db: psycopg.Connection) -> None:
    queue = Queue(db, 1, max_attempts=3)
    queue.set("Queued")
    queue.fail(queue.claim().run, "1")
    queue.due()
    claim = queue.claim()
    assert queue.defer(claim.run, "1", reason="full, key=SECRET1") == (1, [])
    assert (queue.status(1), queue.ledger(1)) == ("Failed", ("waiting", 1, 0))
    assert "SECRET" not in str(queue.error(1))
    why = call(db, "why", name="job", id="1")
    assert "It was put off at" in why
    assert "full" in why
    assert one(db, "SELECT retry_at BETWEEN now() + interval '50 s' AND now() + interval '70 s' FROM scheduler.attempt")
    queue.due()
    assert queue.claim().attempts == [2]


def test_what_is_not_this_runs_any_more_cannot_be_put_off(db: psycopg.Connection) -> None:
    queue = Queue(db, 2)
    queue.set("Queued")
    claim = queue.claim()
    queue.set("Completed", 1)
    assert queue.defer(claim.run, "1", "2") == (1, ["1"])
    assert queue.counts() == {"Completed": 1, "Failed": 1}
    with pytest.raises(psycopg.errors.InvalidParameterValue, match="needs the keys"):
        db.execute("SELECT scheduler.defer(%s, NULL, NULL, NULL)", [claim.run])


def test_items_that_lost_their_listener_run_in_ever_smaller_groups(db: psycopg.Connection) -> None:
    queue = Queue(db, 100, batch_size=100, max_attempts=4)
    queue.set("Queued")
    sizes = []
    for _ in range(4):
        claim = queue.claim()
        sizes.append(len(claim.keys))
        queue.expire(claim.run)
    assert sizes == [100, 10, 1, 1]


def test_unsuspected_items_do_not_share_a_run_with_suspects(db: psycopg.Connection) -> None:
    queue = Queue(db, 20, batch_size=20)
    queue.set("Queued", *range(1, 11))
    queue.expire(queue.claim().run)
    queue.set("Queued", *range(11, 21))
    groups = []
    while (claim := queue.claim()).run is not None:
        groups.append({int(key) > 10 for key in claim.keys})
        queue.succeed(claim.run)
    assert {True, False} not in groups
    assert queue.counts() == {"Completed": 20}


def test_resume_closes_a_tripped_breaker(db: psycopg.Connection) -> None:
    queue = Queue(db, 40, batch_size=20, backoff="1 h", backoff_max="1 h")
    queue.set("Queued")
    claim = queue.claim()
    queue.fail(claim.run, *claim.keys)
    assert queue.claim().reason == "breaker"
    assert "its breaker is closed" in call(db, "resume", name="job")
    assert len(queue.claim().keys) == 20


def test_a_probe_that_gave_no_verdict_is_followed_by_another(db: psycopg.Connection) -> None:
    queue = Queue(db, 3)
    queue.set("Queued")
    db.execute("UPDATE scheduler.state SET breaker_state = 'open', breaker_until = now() - interval '1 second'")
    probe = queue.claim()
    db.execute("SELECT scheduler.release(%s)", [probe.run])
    again = queue.claim()
    assert len(again.keys) == 1
    queue.expire(again.run)
    third = queue.claim()
    assert len(third.keys) == 1
    queue.succeed(third.run)
    assert one(db, "SELECT breaker_state FROM scheduler.state") == "closed"


@pytest.mark.parametrize(("word", "stays"), [(None, False), ("Completed", False), ("Failed", True), ("Queued", True)])
def test_the_dead_letter_forgets_what_a_person_has_settled(
    db: psycopg.Connection, word: str | None, stays: bool
) -> None:
    """Deleted, or done by hand: else it would be counted for ever, and no requeue would help."""
    queue = Queue(db, 3)
    queue.set("Queued", 1, 2)
    claim = queue.claim()
    queue.fail(claim.run, "1", permanent=True)
    queue.fail(claim.run, "2", permanent=True)
    queue.set("Queued", 3)
    db.execute("SELECT scheduler.cancel('job', ARRAY[3])")
    if word is None:
        db.execute("DELETE FROM item WHERE id = 1")
    else:
        queue.set(word, 1)
    assert one(db, "SELECT forgotten FROM scheduler.maintain()") == 0
    db.execute("UPDATE scheduler.attempt SET last_at = now() - interval '1 hour'")
    assert _forgotten_within_the_hour(db) == int(not stays)
    assert (queue.ledger(1) is not None) is stays
    assert queue.ledger(2) == ("dead", 1, 0)
    assert queue.ledger(3) == ("cancelled", 0, 0)


def _forgotten_within_the_hour(db: psycopg.Connection) -> int:
    """Each entry is looked at in its minute of the hour; here every minute is everybody's."""
    source = one(db, "SELECT pg_get_functiondef('scheduler._forget_settled(scheduler.workflow)'::regprocedure)")
    assert source.count("= extract(minute FROM now())") == 1
    db.execute(source.replace("= extract(minute FROM now())", ">= 0").encode())
    return int(one(db, "SELECT forgotten FROM scheduler.maintain()"))
