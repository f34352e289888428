"""The engine's guarantees as a whole, on random lives of a queue; each mechanism has its own file beside this one."""

import random

import psycopg
import pytest

from tests.conftest import Connect
from tests.sql.queue import Queue, call, one

ITEMS = 40


class Life:
    """Listeners that claim, finish, fail, fall asleep past their lease and die, in an order drawn from a seed."""

    def __init__(self, db: psycopg.Connection, connect: Connect, seed: int, processing: str | None) -> None:
        self.random = random.Random(seed)
        self.queue = Queue(
            db, ITEMS, batch_size=5, max_instances=4, max_attempts=8, processing=processing, breaker=False
        )
        db.execute("CREATE TABLE effect (item integer, run bigint)")
        self.db = db
        self.listener = connect(autocommit=False)
        self.open: list[tuple[int, list[str]]] = []

    def claim(self) -> None:
        claim = self.queue.through(self.listener).claim(items=self.random.randint(1, 5))
        if self.random.random() < 0.1:
            self.listener.rollback()  # killed before the commit
            return
        self.listener.commit()
        if claim.run is not None:
            self.open.append((claim.run, claim.keys))

    def finish(self) -> None:
        """Saves what was accepted beside the status; sometimes killed in the middle, sometimes long after its lease."""
        if not self.open:
            return
        run, keys = self.random.choice(self.open)
        owned = one(self.listener, "SELECT keys FROM scheduler.run WHERE id = %s AND finished_at IS NULL", run) or []
        accepted, refused = self.queue.through(self.listener).succeed(run, *keys)
        done = [int(key) for key in keys if key not in refused]
        assert len(done) == accepted
        assert set(done) <= set(map(int, owned)), "a run finished what it had lost"
        self.listener.execute("INSERT INTO effect SELECT item, %s FROM unnest(%s::integer[]) AS item", [run, done])
        if self.random.random() < 0.2:
            self.listener.rollback()
        else:
            # not forgotten: a zombie tries again and again
            self.listener.commit()

    def fail(self) -> None:
        if self.open:
            run, keys = self.random.choice(self.open)
            self.queue.fail(run, *keys[:1])
            self.queue.due()

    def release(self) -> None:
        if self.open:
            one(self.db, "SELECT scheduler.release(%s)", self.random.choice(self.open)[0])

    def fall_asleep(self) -> None:
        if self.open:
            self.queue.expire(self.random.choice(self.open)[0])

    def someone_queues_again(self) -> None:
        """Only what is running: a finished item asked for again would rightly have a second effect."""
        self.db.execute(
            "UPDATE item SET status = 'Queued' WHERE status = 'Processing' AND id = %s",
            [self.random.randint(1, ITEMS)],
        )

    def step(self) -> None:
        acts = [self.claim, self.finish, self.fail, self.release, self.fall_asleep, self.someone_queues_again]
        self.random.choices(acts, weights=[5, 3, 1, 1, 2, 1])[0]()


@pytest.mark.parametrize("processing", ["Processing", None])
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_effects_are_recorded_exactly_once_and_nothing_is_lost_or_stuck(
    db: psycopg.Connection, connect: Connect, seed: int, processing: str | None
) -> None:
    life = Life(db, connect, seed, processing)
    life.queue.want()
    call(db, "alter_workflow", name="job", batch_size=ITEMS)
    call(db, "dispatch", name="job")
    for _ in range(150):
        life.step()
        # the row is the job: its status is the whole truth about the queue
        queued, exact = db.execute("SELECT queued, exact FROM scheduler.queue_depth").fetchall()[0]
        assert exact
        assert queued == one(db, "SELECT count(*) FROM item WHERE status = 'Queued'")
        assert one(db, "SELECT count(*) FROM scheduler.run WHERE finished_at IS NULL") <= 4
    # every listener is dead; a new one finds what is left
    db.execute("UPDATE scheduler.run SET lease_until = now() - interval '1 second' WHERE finished_at IS NULL")
    while (claim := life.queue.claim()).reason != "empty":
        assert claim.run is not None
        with db.transaction():
            _, refused = life.queue.succeed(claim.run, *claim.keys)
            done = [int(key) for key in claim.keys if key not in refused]
            db.execute("INSERT INTO effect SELECT item, %s FROM unnest(%s::integer[]) AS item", [claim.run, done])
        life.queue.due()
    assert life.queue.counts().keys() <= {"Completed", "Failed"}
    assert one(db, "SELECT count(*) FROM scheduler.run WHERE finished_at IS NULL") == 0
    assert one(db, "SELECT count(*) FROM scheduler.slot WHERE run IS NOT NULL") == 0
    dead = db.execute("SELECT key::integer FROM scheduler.dead_letter ORDER BY 1").fetchall()
    assert dead == db.execute("SELECT id FROM item WHERE status = 'Failed' ORDER BY 1").fetchall()
    twice = "SELECT item FROM effect GROUP BY item HAVING count(*) > 1"
    assert db.execute(twice).fetchall() == []
    assert db.execute("SELECT DISTINCT item FROM effect ORDER BY 1").fetchall() == (
        db.execute("SELECT id FROM item WHERE status = 'Completed' ORDER BY 1").fetchall()
    )


@pytest.mark.parametrize(("processing", "writes"), [("Processing", 2), (None, 1)])
def test_a_business_row_is_written_no_more_often_than_promised(
    db: psycopg.Connection, processing: str | None, writes: int
) -> None:
    """One write to Processing, one to the final status; leases and heartbeats never touch it."""
    queue = Queue(db, 10, processing=processing)
    queue.set("Queued")
    db.execute("CREATE TABLE written (id integer)")
    db.execute(
        "CREATE FUNCTION note() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER AS"
        " $$ BEGIN INSERT INTO public.written VALUES (NEW.id); RETURN NULL; END $$;"
        "CREATE TRIGGER note AFTER UPDATE ON item FOR EACH ROW EXECUTE FUNCTION note()"
    )
    listener = str(one(db, "SELECT gen_random_uuid()"))
    claim = queue.claim(listener=listener)
    assert claim.run is not None
    for _ in range(3):
        queue.heartbeat(listener, claim.run)
        call(db, "maintain")
    queue.succeed(claim.run)
    assert db.execute("SELECT id, count(*) FROM written GROUP BY 1 ORDER BY 1").fetchall() == [
        (n, writes) for n in range(1, 11)
    ]


def test_a_workflow_that_is_broken_in_every_way_leaves_the_others_alone(
    db: psycopg.Connection, connect: Connect
) -> None:
    queue = Queue(db, 2, schedule="*/5 * * * *")
    queue.want()
    for name, harm in (
        ("a_dropped", "DROP TABLE a_dropped"),
        ("b_column", "ALTER TABLE b_column DROP COLUMN status CASCADE"),
        ("c_rights", "REVOKE ALL ON c_rights FROM scheduler_owner"),
    ):
        db.execute(f"CREATE TABLE {name} (id integer PRIMARY KEY, status text)".encode())
        db.execute(f"INSERT INTO {name} VALUES (1, 'Queued')".encode())
        call(db, "create_workflow", name=name, relation=name, status_column="status", schedule="*/5 * * * *")
        lost = queue.claim(name=name)
        db.execute(harm.encode())
        queue.expire(lost.run)
    db.execute("UPDATE scheduler.state SET next_slot = now() - interval '10 minutes'")
    assert db.execute("SELECT workflow FROM scheduler.tick()").fetchall() == [("job",)]
    assert queue.claim().keys == ["1", "2"]
    states: dict[str, str] = dict(db.execute("SELECT workflow, state FROM scheduler.status").fetchall())
    assert states == {"a_dropped": "broken", "b_column": "broken", "c_rights": "broken", "job": "running"}
    assert db.execute(
        "SELECT count(DISTINCT workflow) FROM scheduler.doctor() WHERE severity = 'error'"
    ).fetchone() == (3,)
    assert one(db, "SELECT count(*) FROM scheduler.state WHERE problem IS NOT NULL") == 3
