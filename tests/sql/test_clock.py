"""Two drivers, one clock: whoever ticks, each slot is dispatched once."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from threading import Barrier

import psycopg
import pytest

from listener.postgres.throwaway import throwaway
from listener.schema import migrate
from tests.conftest import Connect
from tests.servers import Postgres
from tests.sql.queue import Queue, call, one

SEEN = "UPDATE scheduler.control SET pg_cron_seen_at = now() - %s::interval"


def overdue(db: psycopg.Connection, age: str = "10 minutes") -> None:
    db.execute("UPDATE scheduler.state SET next_slot = now() - %s::interval", [age])


def tick(db: psycopg.Connection, clock: str = "listener") -> list[tuple[str, int]]:
    rows = db.execute("SELECT workflow, queued FROM scheduler.tick(%s)", [clock]).fetchall()
    return [(workflow, queued) for workflow, queued in rows]


@pytest.fixture
def queue(db: psycopg.Connection) -> Queue:
    made = Queue(db, 2, schedule="*/5 * * * *")
    made.want()
    return made


def test_a_listener_is_the_clock_while_pg_cron_is_not_heard(db: psycopg.Connection, queue: Queue) -> None:
    overdue(db)
    assert tick(db) == [("job", 2)]
    assert tick(db) == []
    assert db.execute("SELECT last_clock FROM scheduler.state").fetchone() == ("listener",)
    assert db.execute("SELECT maintained_by FROM scheduler.control").fetchone() == ("listener",)


def test_a_listener_leaves_the_slots_to_a_pg_cron_that_is_heard(db: psycopg.Connection, queue: Queue) -> None:
    overdue(db)
    db.execute(SEEN, ["1 minute"])
    assert tick(db) == []
    db.execute(SEEN, ["10 minutes"])
    assert tick(db) == [("job", 2)]


def test_one_dispatch_a_slot_however_many_clocks_tick(db: psycopg.Connection, queue: Queue, connect: Connect) -> None:
    overdue(db)
    clocks = 20
    sessions, start = [connect() for _ in range(clocks)], Barrier(clocks)

    def fire(session: psycopg.Connection) -> str | None:
        start.wait()
        return one(session, "SELECT note FROM scheduler.dispatch('job', 'listener')")  # type: ignore[no-any-return]

    with ThreadPoolExecutor(clocks) as threads:
        notes = list(threads.map(fire, sessions))
    served = [note for note in notes if note not in ("not due", "another dispatch of it is running")]
    assert len(served) == 1
    assert queue.counts() == {"Queued": 2}


def test_maintain_makes_up_the_slots_that_pg_cron_slept_through(db: psycopg.Connection, queue: Queue) -> None:
    overdue(db, "10 seconds")
    assert one(db, "SELECT caught_up FROM scheduler.maintain('pg_cron')") == 0
    overdue(db)
    assert one(db, "SELECT caught_up FROM scheduler.maintain('pg_cron')") == 1
    assert queue.counts() == {"Queued": 2}


def test_a_broken_table_does_not_keep_the_other_slots_waiting(db: psycopg.Connection, queue: Queue) -> None:
    db.execute("CREATE TABLE broken (id integer PRIMARY KEY, status text)")
    call(db, "create_workflow", name="abc", relation="broken", status_column="status", schedule="* * * * *")
    db.execute("DROP TABLE broken")
    overdue(db)
    assert tick(db) == [("job", 2)]
    assert "has been dropped" in one(db, "SELECT problem FROM scheduler.state WHERE workflow = 'abc'")


def test_only_one_maintenance_runs_at_a_time(db: psycopg.Connection, queue: Queue, connect: Connect) -> None:
    overdue(db)
    with connect(autocommit=False) as busy:
        busy.execute("SELECT scheduler.maintain()")
        assert db.execute("SELECT * FROM scheduler.maintain()").fetchone() == (0, 0, 0, 0, 0)
    assert queue.counts() == {"Queued": 2}


def test_the_schedule_says_who_fires_it(db: psycopg.Connection, queue: Queue) -> None:
    clock = "SELECT clock FROM scheduler.schedules WHERE workflow = 'job'"
    home = one(db, "SELECT scheduler.cron_home()")
    assert one(db, clock) == f"nobody: pg_cron is {home} and no listener runs"
    db.execute("SELECT scheduler.heartbeat(gen_random_uuid())")
    assert one(db, clock).startswith("the listener")
    db.execute(SEEN, ["0"])
    assert one(db, clock) == "pg_cron in another database"


@pytest.fixture
def without_cron(postgres: Postgres) -> Iterator[psycopg.Connection]:
    """A session on a server that has never heard of pg_cron."""
    if postgres.server.programs is None:
        pytest.skip("there are no PostgreSQL programs on this machine to start another cluster with")
    with throwaway(replace(postgres.server.programs, cron=None)) as cluster:
        migrate(cluster.url(), pipeline=False)
        with psycopg.connect(cluster.url(), autocommit=True) as session:
            yield session


@pytest.mark.slow
def test_without_pg_cron_everything_works_and_the_listener_is_the_clock(without_cron: psycopg.Connection) -> None:
    db = without_cron
    queue = Queue(db, 2, schedule="30 seconds")
    queue.want()
    assert one(db, "SELECT scheduler.cron_home()") == "missing"
    assert one(db, "SELECT clock FROM scheduler.schedules WHERE workflow = 'job'").startswith("nobody")
    assert ("info", "pg_cron is not loaded") in db.execute(
        "SELECT severity, finding FROM scheduler.doctor()"
    ).fetchall()
    overdue(db)
    assert tick(db) == [("job", 2)]
    db.execute("SELECT scheduler.heartbeat(gen_random_uuid())")
    assert one(db, "SELECT clock FROM scheduler.schedules WHERE workflow = 'job'") == (
        "the listener (pg_cron is missing)"
    )
    call(db, "drop_workflow", name="job")
