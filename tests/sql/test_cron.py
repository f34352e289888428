"""pg_cron: one job a workflow, changed with it, and a real firing from end to end."""

import re
from typing import LiteralString

import psycopg
import pytest
from psycopg import sql

from tests.conftest import Connect
from tests.servers import Postgres
from tests.sql.queue import Queue, call, one
from tests.waiting import PATIENCE, wait_until

pytestmark = pytest.mark.cron

FIRING_SECONDS = 150
"""pg_cron fires at the start of a minute; the second one of patience is for a busy machine."""
_EVIDENCE: tuple[LiteralString, ...] = (
    "SELECT * FROM cron.job",
    "SELECT * FROM cron.job_run_details",
    "SELECT pid, datname, backend_type, state, wait_event, query_start, query FROM pg_stat_activity",
)


@pytest.fixture
def here(cron_database: str, connect: Connect) -> psycopg.Connection:
    """A session in the database in which pg_cron lives."""
    return connect(url=cron_database)


def jobs(here: psycopg.Connection) -> dict[str, tuple[str, str, str]]:
    rows = here.execute("SELECT jobname, schedule, command, username FROM cron.job").fetchall()
    return {name.removeprefix("scrapersky:"): (schedule, command, user) for name, schedule, command, user in rows}


MAINTAIN = {"maintain": ("* * * * *", "SELECT scheduler.maintain(clock => 'pg_cron')", "scheduler_cron")}


def test_the_job_is_created_changed_and_removed_with_its_workflow(here: psycopg.Connection) -> None:
    command = "SELECT scheduler.dispatch('job', clock => 'pg_cron')"
    assert jobs(here) == MAINTAIN
    queue = Queue(here, 1, schedule="*/5 * * * *")
    assert jobs(here) == MAINTAIN | {"job": ("*/5 * * * *", command, "scheduler_cron")}
    call(here, "alter_workflow", name="job", schedule="0 * * * *")
    assert jobs(here)["job"][0] == "0 * * * *"
    with here.transaction(force_rollback=True):
        call(here, "alter_workflow", name="job", schedule="7 * * * *")
        queue.create("undone", schedule="* * * * *", queued="Undone", processing="Undoing")
    assert jobs(here) == MAINTAIN | {"job": ("0 * * * *", command, "scheduler_cron")}
    call(here, "alter_workflow", name="job", clear=["schedule"])
    assert jobs(here) == MAINTAIN
    call(here, "alter_workflow", name="job", schedule="@daily")
    call(here, "drop_workflow", name="job")
    assert jobs(here) == MAINTAIN


def test_a_lost_or_changed_job_is_found_and_put_back(here: psycopg.Connection) -> None:
    Queue(here, 1, schedule="*/5 * * * *")
    rightly = jobs(here)
    here.execute("DELETE FROM cron.job WHERE jobname = 'scrapersky:maintain'")
    here.execute("UPDATE cron.job SET schedule = '* * * * *' WHERE jobname = 'scrapersky:job'")
    clock = "SELECT clock FROM scheduler.schedules WHERE workflow = 'maintain'"
    assert "its job is missing" in one(here, clock)
    sick = "SELECT workflow, fix FROM scheduler.doctor() WHERE finding LIKE 'its pg_cron job%' ORDER BY 1"
    assert here.execute(sick).fetchall() == [
        ("job", "SELECT scheduler.sync_cron();"),
        ("maintain", "SELECT scheduler.sync_cron();"),
    ]
    assert one(here, "SELECT scheduler.sync_cron()") == 2
    assert jobs(here) == rightly
    assert here.execute(sick).fetchall() == []
    assert one(here, "SELECT scheduler.sync_cron()") == 0


def test_a_job_that_a_dba_switched_off_stays_off(here: psycopg.Connection) -> None:
    queue = Queue(here, 1, schedule="*/5 * * * *")
    queue.want()
    here.execute("UPDATE cron.job SET active = false")
    here.execute("UPDATE scheduler.state SET next_slot = now() - interval '10 minutes'")
    assert here.execute("SELECT * FROM scheduler.tick()").fetchall() == []
    assert queue.counts() == {None: 1}
    assert "switched off" in one(here, "SELECT clock FROM scheduler.schedules WHERE workflow = 'job'")


def test_only_our_own_history_of_pg_cron_is_forgotten(here: psycopg.Connection) -> None:
    job = one(here, "SELECT jobid FROM cron.job")
    here.execute(
        "INSERT INTO cron.job_run_details (jobid, runid, database, username, command, status, start_time, end_time)"
        " SELECT %s, 1000 + n, 'd', CASE WHEN n < 3 THEN 'scheduler_cron' ELSE 'alice' END, 'c', 'succeeded', at, at"
        " FROM unnest(ARRAY[now() - interval '3 days', now() - interval '1 day', now() - interval '3 days'])"
        " WITH ORDINALITY AS t (at, n)",
        [job],
    )
    assert one(here, "SELECT forgotten FROM scheduler.maintain()") == 1
    assert here.execute("SELECT runid FROM cron.job_run_details WHERE runid > 1000 ORDER BY 1").fetchall() == [
        (1002,),
        (1003,),
    ]


def test_seconds_are_refused_by_a_pg_cron_that_cannot_run_them(here: psycopg.Connection) -> None:
    version = one(here, "SELECT extversion FROM pg_extension WHERE extname = 'pg_cron'")
    if not re.match(r"1\.[0-4]\b", version):
        pytest.skip(f"pg_cron {version} knows seconds")
    with pytest.raises(psycopg.errors.FeatureNotSupported, match=r"needs pg_cron 1\.5"):
        Queue(here, 1, schedule="30 seconds")


@pytest.mark.slow
def test_pg_cron_queues_ready_rows_here_and_in_another_database(
    here: psycopg.Connection, db: psycopg.Connection, postgres: Postgres
) -> None:
    """A real firing; the wait for the minute is shared by all that is to be seen then."""
    near = Queue(here, 3, schedule="* * * * *", batch_size=2)
    near.want()
    away = Queue(db, 2, schedule="* * * * *")
    away.want()
    # the engine's functions refuse what this database gives to whoever does not ask for something else
    serializable = sql.SQL("ALTER DATABASE {} SET default_transaction_isolation = 'serializable'")
    db.execute(serializable.format(sql.Identifier(db.info.dbname)))
    here.execute("CREATE TABLE gone (id integer PRIMARY KEY, status text)")
    call(here, "create_workflow", name="broken", relation="gone", status_column="status", schedule="* * * * *")
    here.execute("DROP TABLE gone")
    here.execute("LISTEN scrapersky")
    # pg_cron serves another database with the one job that doctor() asks for
    fix = one(db, "SELECT fix FROM scheduler.doctor() WHERE finding LIKE 'pg_cron lives in another database%'")
    here.execute(fix.partition("as a superuser: ")[2].encode())

    heard = "SELECT scheduler.cron_alive()"

    def seen() -> tuple[object, ...]:
        return near.counts(), away.counts(), one(here, heard), one(db, heard)

    def fired() -> bool:
        # The launcher of pg_cron 1.4 misses a change that comes while it reads its jobs, as after the tests before this
        # one, and reads them again at the next change of any kind.
        here.execute("GRANT SELECT ON cron.job TO scheduler_cron")
        return seen() == ({"Queued": 2, None: 1}, {"Queued": 2}, True, True)

    try:
        wait_until(fired, deadline=FIRING_SECONDS, what="a firing of pg_cron in both databases")
    except AssertionError:
        log = postgres.throwaway and postgres.throwaway.cluster.home.log.read_text(errors="replace")[-8000:]
        print(seen(), *(here.execute(table).fetchall() for table in _EVIDENCE), log, sep="\n")
        raise
    assert "job" in [note.payload for note in here.notifies(timeout=PATIENCE, stop_after=1)]
    last = "SELECT last_clock, last_queued FROM scheduler.schedules WHERE workflow = 'job'"
    assert one(here, last) == one(db, last) == "pg_cron"
    clock = "SELECT clock FROM scheduler.schedules WHERE workflow = 'job'"
    assert (one(here, clock), one(db, clock)) == ("pg_cron", "pg_cron in another database")
    results = "SELECT workflow, cron_status FROM scheduler.schedules ORDER BY 1"
    wait_until(
        lambda: (
            dict(here.execute(results).fetchall()) == {"broken": "failed", "job": "succeeded", "maintain": "succeeded"}
        ),
        what="pg_cron's own account of its jobs",
    )
    # pg_cron is heard, so a listener's clock leaves everything to it
    assert here.execute("SELECT * FROM scheduler.tick('listener')").fetchall() == []
    assert "has been dropped" in one(
        here, "SELECT string_agg(finding, '') FROM scheduler.doctor() WHERE workflow = 'broken'"
    )
    assert near.claim().keys == ["1", "2"]
