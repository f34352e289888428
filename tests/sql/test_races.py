"""Two sessions, one statement after the other: every race of the protocol, in the order that would hurt."""

import uuid
from collections.abc import Callable

import psycopg
import pytest

from tests.conftest import Connect
from tests.sql.blocked import blocked
from tests.sql.queue import Queue, call, one


@pytest.fixture(autouse=True)
def never_waiting(db: psycopg.Connection) -> None:
    """What the test's own session does must not wait for anyone; if it would, the test fails and does not hang."""
    db.execute("SET lock_timeout = '10s'")


@pytest.fixture
def other(connect: Connect) -> psycopg.Connection:
    """A second session, whose transaction stays open until it commits."""
    return connect(autocommit=False)


# --- claim and claim ---------------------------------------------------------------------------------------------


def test_two_claims_at_once_share_the_items_and_none_waits(db: psycopg.Connection, other: psycopg.Connection) -> None:
    mine = Queue(db, 4, batch_size=2)
    mine.set("Queued")
    theirs = mine.through(other)
    first = theirs.claim()
    second = mine.claim()
    assert (first.keys, second.keys) == (["1", "2"], ["3", "4"])
    assert mine.claim().reason == "empty"
    other.commit()
    assert mine.counts() == {"Processing": 4}


def test_a_claim_that_is_undone_leaves_its_items_to_the_next(db: psycopg.Connection, other: psycopg.Connection) -> None:
    mine = Queue(db, 1)
    mine.set("Queued")
    mine.through(other).claim()
    assert mine.claim().reason == "empty"
    other.rollback()
    assert mine.claim().keys == ["1"]


def test_the_last_slot_goes_to_one_claim_and_comes_back_if_that_is_undone(
    db: psycopg.Connection, other: psycopg.Connection
) -> None:
    mine = Queue(db, 4, batch_size=1, max_instances=1)
    mine.set("Queued")
    mine.through(other).claim()
    refused = mine.claim()
    assert (refused.reason, refused.again_at is not None) == ("max_instances", True)
    other.rollback()
    assert mine.claim().run is not None


@pytest.mark.parametrize("setting", [{"rate_limit": 3}, {"processing": None}], ids=str)
def test_claims_that_must_see_each_other_take_turns(
    db: psycopg.Connection, connect: Connect, other: psycopg.Connection, setting: dict[str, object]
) -> None:
    mine = Queue(db, 6, batch_size=2, **setting)
    mine.set("Queued")
    first = mine.through(other).claim()
    third = connect()
    with blocked(db, third, mine.through(third).claim) as waiting:
        other.commit()
    assert first.keys == ["1", "2"]
    assert waiting.result().keys == (["3"] if "rate_limit" in setting else ["3", "4"])


def test_a_row_that_someone_edits_is_passed_over_by_a_claim(db: psycopg.Connection, other: psycopg.Connection) -> None:
    mine = Queue(db, 2)
    mine.set("Queued")
    other.execute("UPDATE item SET wanted = true WHERE id = 1")
    assert mine.claim().keys == ["2"]
    other.commit()
    assert mine.claim().keys == ["1"]


# --- claim and cancel --------------------------------------------------------------------------------------------


def cancel(session: psycopg.Connection, *ids: int) -> tuple[int, int, int]:
    row = session.execute("SELECT * FROM scheduler.cancel('job', %s)", [list(ids)]).fetchone()
    assert row is not None
    return row[0], row[1], row[2]


def test_cancel_reaches_items_that_are_being_claimed_at_that_moment(
    db: psycopg.Connection, connect: Connect, other: psycopg.Connection
) -> None:
    mine = Queue(db, 2)
    mine.set("Queued")
    claim = mine.through(other).claim()
    canceller = connect()
    with blocked(db, canceller, lambda: cancel(canceller, 1)) as waiting:
        other.commit()
    assert waiting.result() == (0, 1, 0)
    assert mine.succeed(claim.run) == (1, [])
    assert [mine.status(1), mine.status(2)] == [None, "Completed"]


def test_an_item_that_is_being_cancelled_is_not_claimed(db: psycopg.Connection, other: psycopg.Connection) -> None:
    mine = Queue(db, 2)
    mine.set("Queued")
    assert cancel(other, 1) == (1, 0, 0)
    assert mine.claim().keys == ["2"]
    other.commit()
    assert mine.claim().reason == "empty"


@pytest.mark.parametrize("processing", ["Processing", None])
def test_cancel_and_a_result_take_turns_and_the_first_one_wins(
    db: psycopg.Connection, connect: Connect, other: psycopg.Connection, processing: str | None
) -> None:
    mine = Queue(db, 2, processing=processing)
    mine.set("Queued")
    claim = mine.claim()
    third = connect()
    cancel(other, 1)
    with blocked(db, third, lambda: mine.through(third).succeed(claim.run, "1")) as late:
        other.commit()
    assert (late.result(), mine.status(1)) == ((0, ["1"]), None)
    mine.through(other).succeed(claim.run, "2")
    with blocked(db, third, lambda: cancel(third, 2)) as too_late:
        other.commit()
    assert (too_late.result(), mine.status(2)) == ((0, 0, 1), "Completed")


# --- succeed and rescue ------------------------------------------------------------------------------------------


def test_a_run_that_is_being_finished_is_not_rescued(db: psycopg.Connection, other: psycopg.Connection) -> None:
    mine = Queue(db, 1)
    mine.set("Queued")
    claim = mine.claim()
    mine.expire(claim.run)
    assert mine.through(other).succeed(claim.run) == (1, [])
    assert call(db, "rescue", workflow="job") == 0
    other.commit()
    assert call(db, "rescue", workflow="job") == 0
    assert mine.status(1) == "Completed"


def test_a_listener_that_lost_its_lease_can_commit_nothing(
    db: psycopg.Connection, connect: Connect, other: psycopg.Connection
) -> None:
    """Effects exactly once: neither the status nor what was saved beside it."""
    mine = Queue(db, 1)
    mine.set("Queued")
    db.execute("CREATE TABLE effect (run bigint)")
    zombie, rescuer = connect(), other
    claim = mine.claim()
    mine.expire(claim.run)
    assert call(rescuer, "rescue", workflow="job") == 1

    def finish() -> tuple[int, list[str]]:
        with zombie.transaction():
            outcome = mine.through(zombie).succeed(claim.run, "1")
            zombie.execute("INSERT INTO effect SELECT %s FROM generate_series(1, %s)", [claim.run, outcome[0]])
        return outcome

    with blocked(db, zombie, finish) as late:
        rescuer.commit()
    assert late.result() == (0, ["1"])
    second = mine.claim()
    assert (second.keys, second.attempts) == (["1"], [2])
    assert finish() == (0, ["1"])
    assert mine.succeed(second.run) == (1, [])
    assert one(db, "SELECT count(*) FROM effect") == 0


def test_what_was_saved_is_gone_if_the_status_is_not_committed(
    db: psycopg.Connection, other: psycopg.Connection
) -> None:
    mine = Queue(db, 1)
    mine.set("Queued")
    db.execute("CREATE TABLE effect (run bigint)")
    claim = mine.claim()
    mine.through(other).succeed(claim.run)
    other.execute("INSERT INTO effect VALUES (1)")
    other.rollback()
    assert (mine.status(1), one(db, "SELECT count(*) FROM effect")) == ("Processing", 0)
    assert mine.succeed(claim.run) == (1, [])


def test_a_heartbeat_does_not_wait_for_a_run_that_is_being_finished(
    db: psycopg.Connection, other: psycopg.Connection
) -> None:
    mine = Queue(db, 1)
    mine.set("Queued")
    listener = str(uuid.uuid4())
    claim = mine.claim(listener=listener)
    assert claim.run is not None
    mine.through(other).succeed(claim.run)
    assert mine.heartbeat(listener, claim.run) == {claim.run: (False, [])}


def test_two_rescues_at_once_put_an_item_back_once(db: psycopg.Connection, other: psycopg.Connection) -> None:
    mine = Queue(db, 1)
    mine.set("Queued")
    mine.expire(mine.claim().run)
    assert call(other, "rescue", workflow="job") == 1
    assert call(db, "rescue", workflow="job") == 0
    other.commit()
    assert call(db, "rescue", workflow="job") == 0
    assert mine.ledger(1) == ("active", 1, 1)


def test_a_rescue_leaves_a_row_that_someone_edits_for_the_next_time(
    db: psycopg.Connection, other: psycopg.Connection
) -> None:
    mine = Queue(db, 2)
    mine.set("Queued")
    claim = mine.claim()
    mine.expire(claim.run)
    other.execute("UPDATE item SET wanted = true WHERE id = 1")
    assert call(db, "rescue", workflow="job") == 1
    assert mine.run(claim.run)["keys"] == ["1"]
    other.commit()
    assert call(db, "rescue", workflow="job") == 1
    assert mine.counts() == {"Queued": 2}


# --- succeed and a person's write --------------------------------------------------------------------------------


@pytest.mark.parametrize("word", ["Filtered", "Queued", None])
@pytest.mark.parametrize("finish", ["succeed", "succeed with a word", "fail"])
def test_a_result_waits_for_a_persons_write_and_gives_way_to_it(
    db: psycopg.Connection, connect: Connect, other: psycopg.Connection, word: str | None, finish: str
) -> None:
    mine = Queue(db, 1)
    mine.set("Queued")
    claim = mine.claim()
    mine.through(other).set(word, 1)
    third = connect()
    late_queue = mine.through(third)
    finished: dict[str, Callable[[], tuple[object, ...]]] = {
        "succeed": lambda: late_queue.succeed(claim.run, "1"),
        "succeed with a word": lambda: late_queue.succeed(claim.run, "1", words=["Mine"]),
        "fail": lambda: late_queue.fail(claim.run, "1"),
    }
    with blocked(db, third, finished[finish]) as late:
        other.commit()
    assert late.result()[:2] == (0, ["1"])
    assert (mine.status(1), mine.error(1)) == (word, None)


def test_a_person_may_overwrite_what_was_just_finished(
    db: psycopg.Connection, connect: Connect, other: psycopg.Connection
) -> None:
    mine = Queue(db, 1)
    mine.set("Queued")
    claim = mine.claim()
    mine.through(other).succeed(claim.run)
    person = connect()
    with blocked(db, person, lambda: mine.through(person).set("Filtered", 1)):
        other.commit()
    assert mine.status(1) == "Filtered"


@pytest.mark.parametrize("finish", ["release", "rescue"])
def test_an_item_requeued_and_claimed_anew_while_it_is_put_back_is_the_new_runs(
    db: psycopg.Connection, connect: Connect, other: psycopg.Connection, finish: str
) -> None:
    mine = Queue(db, 2)
    mine.set("Queued")
    first = mine.claim()
    mine.expire(first.run)
    other.execute("LOCK TABLE item IN ACCESS EXCLUSIVE MODE")
    third = connect()
    argument = first.run if finish == "release" else "job"
    with blocked(db, third, lambda: one(third, f"SELECT scheduler.{finish}(%s)", argument)) as late:
        mine.through(other).set("Queued", 1)
        other.execute("SELECT nextval('scheduler.run_id_seq')")
        other.execute("UPDATE item SET status = 'Processing' WHERE id = 1")
        other.commit()
    assert late.result() == 1
    assert (mine.status(1), mine.status(2)) == ("Processing", "Queued")
    assert mine.ledger(1) is None


@pytest.mark.parametrize("finish", ["succeed", "fail"])
def test_an_item_requeued_and_claimed_anew_in_the_middle_of_a_result_is_the_new_runs(
    db: psycopg.Connection, connect: Connect, other: psycopg.Connection, finish: str
) -> None:
    """The lock on the table stands for any pause between looking at the run and writing the row."""
    mine = Queue(db, 2)
    mine.set("Queued")
    first = mine.claim()
    other.execute("LOCK TABLE item IN ACCESS EXCLUSIVE MODE")
    third = connect()
    late_queue = mine.through(third)
    with blocked(db, third, lambda: getattr(late_queue, finish)(first.run, "1", "2")) as late:
        mine.through(other).set("Queued", 1)
        second = mine.through(other).claim()
        other.commit()
    assert second.keys == ["1"]
    assert late.result()[:2] == (1, ["1"])
    assert mine.status(1) == "Processing"
    assert mine.ledger(1) is None
    assert mine.succeed(second.run) == (1, [])


# --- dispatch and dispatch ---------------------------------------------------------------------------------------


def test_a_second_clock_leaves_the_slot_to_the_first(db: psycopg.Connection, other: psycopg.Connection) -> None:
    mine = Queue(db, 3, schedule="*/5 * * * *", batch_size=2)
    mine.want()
    db.execute("UPDATE scheduler.state SET next_slot = now() - interval '10 minutes'")
    fire = "SELECT queued, note FROM scheduler.dispatch('job', 'pg_cron')"
    assert one(other, fire) == 2
    assert db.execute(fire).fetchone() == (0, "another dispatch of it is running")
    other.commit()
    assert db.execute(fire).fetchone() == (0, "not due")
    assert mine.counts() == {"Queued": 2, None: 1}


def test_a_slot_whose_dispatch_was_undone_is_served_by_the_next_clock(
    db: psycopg.Connection, other: psycopg.Connection
) -> None:
    mine = Queue(db, 1, schedule="*/5 * * * *")
    mine.want()
    db.execute("UPDATE scheduler.state SET next_slot = now() - interval '10 minutes'")
    assert one(other, "SELECT queued FROM scheduler.dispatch('job', 'pg_cron')") == 1
    other.rollback()
    assert one(db, "SELECT queued FROM scheduler.dispatch('job', 'listener')") == 1


def test_two_people_dispatch_one_after_the_other_and_queue_no_more_than_the_batch(
    db: psycopg.Connection, connect: Connect, other: psycopg.Connection
) -> None:
    mine = Queue(db, 6, batch_size=2)
    mine.want()
    dispatch = "SELECT queued FROM scheduler.dispatch('job')"
    assert one(other, dispatch) == 2
    third = connect()
    with blocked(db, third, lambda: one(third, dispatch)) as second:
        other.commit()
    assert second.result() == 0
    assert mine.counts() == {"Queued": 2, None: 4}


# --- settings and runs -------------------------------------------------------------------------------------------


def test_a_workflow_is_not_dropped_under_a_claim(
    db: psycopg.Connection, connect: Connect, other: psycopg.Connection
) -> None:
    mine = Queue(db, 1)
    mine.set("Queued")
    mine.through(other).claim()
    third = connect()
    with blocked(db, third, lambda: call(third, "drop_workflow", name="job")) as dropped:
        other.commit()
    with pytest.raises(psycopg.errors.ObjectInUse, match="1 items of workflow job are running"):
        dropped.result()


@pytest.mark.parametrize("processing", ["Processing", None])
def test_nothing_is_claimed_for_a_workflow_that_is_being_dropped(
    db: psycopg.Connection, connect: Connect, other: psycopg.Connection, processing: str | None
) -> None:
    mine = Queue(db, 1)
    call(db, "drop_workflow", name="job")
    # rights it had before stay when the workflow goes, so they are not what stops the claim
    db.execute("GRANT ALL ON item TO scheduler_owner")
    mine.create(processing=processing)
    mine.set("Queued")
    call(other, "drop_workflow", name="job")
    third = connect()
    with blocked(db, third, mine.through(third).claim) as claimed:
        other.commit()
    with pytest.raises(psycopg.errors.UndefinedObject, match="there is no workflow 'job'"):
        claimed.result()
    assert mine.status(1) == "Queued"
    assert one(db, "SELECT count(*) FROM scheduler.run") == 0


def test_only_one_listener_probes_behind_a_tripped_breaker(
    db: psycopg.Connection, connect: Connect, other: psycopg.Connection
) -> None:
    mine = Queue(db, 3)
    mine.set("Queued")
    db.execute("UPDATE scheduler.state SET breaker_state = 'open', breaker_until = now() - interval '1 second'")
    probe = mine.through(other).claim()
    third = connect()
    with blocked(db, third, mine.through(third).claim) as second:
        other.commit()
    assert probe.keys == ["1"]
    assert second.result().reason == "breaker"
