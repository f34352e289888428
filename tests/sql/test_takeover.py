"""A person's write wins: what becomes of the run that had the item."""

import uuid

import psycopg
import pytest

from tests.conftest import Connect
from tests.sql.blocked import blocked
from tests.sql.queue import Queue, call, one
from tests.waiting import PATIENCE


def test_the_listener_is_told_which_items_were_taken_from_it(db: psycopg.Connection) -> None:
    queue = Queue(db, 3)
    queue.set("Queued")
    listener = str(uuid.uuid4())
    claim = queue.claim(listener=listener)
    assert claim.run is not None
    db.execute("LISTEN scrapersky")
    queue.set("Filtered", 2)
    assert [note.payload for note in db.notifies(timeout=PATIENCE, stop_after=1)] == ["job!"]
    assert queue.heartbeat(listener, claim.run) == {claim.run: (False, ["2"])}
    assert one(db, "SELECT count(*) FROM scheduler.takeover") == 0
    assert queue.succeed(claim.run, "1", "2", "3") == (2, ["2"])


def test_a_write_that_leaves_the_status_alone_takes_nothing(db: psycopg.Connection) -> None:
    """Such as an ORM that writes every column."""
    queue = Queue(db, 1)
    queue.set("Queued")
    claim = queue.claim()
    db.execute("UPDATE item SET status = 'Processing', wanted = true, error = 'edited'")
    assert queue.succeed(claim.run) == (1, [])


def test_a_run_that_lost_all_its_items_frees_its_slot(db: psycopg.Connection) -> None:
    queue = Queue(db, 3, batch_size=2, max_instances=1)
    queue.set("Queued")
    claim = queue.claim()
    queue.set("Filtered", 1, 2)
    following = queue.claim()
    assert following.keys == ["3"]
    assert queue.run(claim.run)["finished_at"] is not None
    assert queue.run(claim.run)["discarded"] == 2


@pytest.mark.parametrize("word", ["Filtered", None, "Queued"])
def test_a_rescue_does_not_undo_a_persons_write(db: psycopg.Connection, word: str | None) -> None:
    queue = Queue(db, 2)
    queue.set("Queued")
    claim = queue.claim()
    queue.set(word, 1)
    queue.expire(claim.run)
    assert call(db, "rescue") == 1
    assert (queue.status(1), queue.status(2)) == (word, "Queued")
    assert queue.ledger(1) is None


def test_a_rescue_leaves_an_item_to_the_run_that_claimed_it_after_a_persons_write(
    db: psycopg.Connection, connect: Connect
) -> None:
    """The claim began before the write and saw its item only after it, so the first run was not told yet."""
    queue = Queue(db, 2, rate_limit=100)
    queue.set("Queued")
    first = queue.claim()
    before, second = connect(autocommit=False), connect()
    before.execute("SELECT FROM scheduler.state FOR UPDATE")
    with blocked(db, second, lambda: queue.through(second).claim()) as claim:
        queue.set("Queued", 1)
        before.commit()
    assert claim.result().keys == ["1"]
    queue.expire(first.run)
    assert call(db, "rescue") == 1
    assert (queue.status(1), queue.status(2)) == ("Processing", "Queued")
    assert queue.ledger(1) is None
    assert queue.run(first.run)["finished_at"] is not None
    assert queue.succeed(claim.result().run) == (1, [])


@pytest.mark.parametrize("processing", ["Processing", None])
def test_rows_deleted_while_they_run_are_not_missed(db: psycopg.Connection, processing: str | None) -> None:
    queue = Queue(db, 4, batch_size=1, processing=processing)
    queue.set("Queued")
    succeeds, fails, released, lost = (queue.claim() for _ in range(4))
    db.execute("DELETE FROM item")
    assert queue.succeed(succeeds.run) == (0, ["1"])
    assert queue.fail(fails.run, "2") == (0, ["2"], [])
    assert one(db, "SELECT scheduler.release(%s)", released.run) == 0
    queue.expire(lost.run)
    call(db, "maintain")
    assert one(db, "SELECT count(*) FROM scheduler.run WHERE finished_at IS NULL") == 0
    assert one(db, "SELECT sum(discarded) FROM scheduler.run") == 4
    assert one(db, "SELECT count(*) FROM scheduler.attempt") == 0


@pytest.mark.parametrize("claimed_again", [False, True])
def test_a_row_that_was_deleted_and_came_back_is_another_item(db: psycopg.Connection, claimed_again: bool) -> None:
    queue = Queue(db, 1)
    queue.set("Queued")
    stale = queue.claim()
    db.execute("DELETE FROM item; INSERT INTO item (id, status) VALUES (1, 'Queued')")
    fresh = queue.claim() if claimed_again else None
    assert queue.succeed(stale.run, "1") == (0, ["1"])
    assert queue.status(1) == ("Processing" if claimed_again else "Queued")
    fresh = fresh or queue.claim()
    assert queue.run(stale.run)["keys"] == []
    assert queue.succeed(fresh.run) == (1, [])


def test_rows_of_a_table_that_was_emptied_and_filled_again_are_other_items(db: psycopg.Connection) -> None:
    queue = Queue(db, 3)
    queue.set("Queued")
    first = queue.claim()
    db.execute("TRUNCATE item")
    db.execute("INSERT INTO item (id, status) VALUES (1, 'Queued')")
    second = queue.claim()
    assert second.keys == ["1"]
    assert queue.succeed(first.run) == (0, [])
    assert queue.succeed(second.run) == (1, [])
    assert queue.run(first.run)["discarded"] == 3


def test_what_a_trigger_of_the_application_writes_while_the_engine_works_is_a_persons_write(
    db: psycopg.Connection,
) -> None:
    """Such as: when an order is packed, its invoice is to be printed anew."""
    queue = Queue(db, 1)
    db.execute("CREATE TABLE packing (id int PRIMARY KEY, status text); INSERT INTO packing VALUES (1, 'Queued')")
    call(db, "create_workflow", name="pack", relation="packing", status_column="status")
    db.execute(
        """
        CREATE FUNCTION again() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER AS $$
        BEGIN UPDATE public.item SET status = 'Queued' WHERE id = NEW.id; RETURN NULL; END $$;
        CREATE TRIGGER again AFTER UPDATE ON packing FOR EACH ROW WHEN (NEW.status = 'Completed')
        EXECUTE FUNCTION again();
        """
    )
    queue.set("Queued")
    first = queue.claim()
    queue.succeed(queue.claim(name="pack").run)
    second = queue.claim()
    assert queue.succeed(first.run) == (0, [])
    assert queue.succeed(second.run) == (1, [])


def test_an_item_is_cancelled_however_its_number_is_spelt(db: psycopg.Connection) -> None:
    db.execute("CREATE TABLE item (id numeric PRIMARY KEY, status text)")
    call(db, "create_workflow", name="job", relation="item", status_column="status")
    db.execute("INSERT INTO item VALUES (1.00, 'Queued')")
    queue = Queue.of(db)
    assert queue.claim().keys == ["1.00"]
    assert "It runs since" in one(db, "SELECT scheduler.why('job', 1)")
    assert db.execute("SELECT * FROM scheduler.cancel('job', ARRAY[1])").fetchone() == (0, 1, 0)


def test_the_engines_own_writes_are_not_taken_for_a_persons(db: psycopg.Connection) -> None:
    queue = Queue(db, 6)
    queue.set("Queued")
    run = queue.claim().run
    queue.succeed(run, "1")
    queue.fail(run, "2")
    db.execute("SELECT scheduler.release(%s, '{3}')", [run])
    db.execute("SELECT scheduler.cancel('job', ARRAY[4])")
    queue.expire(run)
    call(db, "rescue")
    call(db, "requeue", name="job")
    assert one(db, "SELECT count(*) FROM scheduler.takeover") == 0


def test_maintenance_cleans_up_what_no_claim_or_heartbeat_did(db: psycopg.Connection) -> None:
    queue = Queue(db, 1)
    queue.set("Queued")
    claim = queue.claim()
    queue.set("Filtered")
    assert one(db, "SELECT count(*) FROM scheduler.takeover") == 1
    call(db, "maintain")
    assert one(db, "SELECT count(*) FROM scheduler.takeover") == 0
    assert queue.run(claim.run)["finished_at"] is not None


def test_a_persons_write_wins_where_no_word_says_that_it_runs(db: psycopg.Connection) -> None:
    queue = Queue(db, 2, processing=None)
    queue.set("Queued")
    claim = queue.claim()
    queue.set("Filtered", 1)
    assert queue.succeed(claim.run, "1", "2") == (1, ["1"])
    assert (queue.status(1), queue.status(2)) == ("Filtered", "Completed")


def test_a_retry_does_not_undo_what_a_person_wrote_meanwhile(db: psycopg.Connection) -> None:
    queue = Queue(db, 2)
    queue.set("Queued")
    queue.fail(queue.claim().run, "1", "2")
    queue.set("Completed", 1)
    queue.due()
    assert queue.claim().keys == ["2"]
    assert queue.status(1) == "Completed"


def test_a_claim_takes_no_row_of_the_same_place_in_another_partition(db: psycopg.Connection) -> None:
    db.execute(
        "CREATE TABLE item (id integer PRIMARY KEY, status text) PARTITION BY RANGE (id);"
        "CREATE TABLE low PARTITION OF item FOR VALUES FROM (0) TO (10);"
        "CREATE TABLE high PARTITION OF item FOR VALUES FROM (10) TO (20);"
        "INSERT INTO item VALUES (1, 'Queued'), (11, 'Completed')"
    )
    call(db, "create_workflow", name="job", relation="item", status_column="status")
    queue = Queue.of(db)
    assert queue.claim().keys == ["1"]
    assert queue.counts() == {"Processing": 1, "Completed": 1}
