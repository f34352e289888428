"""doctor(): each finding caused, and gone once its own fix was run."""

import json
import uuid
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import psycopg
import pytest
from psycopg import sql

from tests.conftest import Connect
from tests.servers import Postgres
from tests.sql.queue import Queue, call, one
from tests.waiting import wait_until


@dataclass(frozen=True)
class Finding:
    severity: str
    workflow: str | None
    finding: str
    meaning: str
    fix: str
    code: str


def findings(db: psycopg.Connection, environment: object = None) -> list[Finding]:
    given = None if environment is None else json.dumps(environment)
    return [Finding(*row) for row in db.execute("SELECT * FROM scheduler.doctor(%s)", [given]).fetchall()]


def sought(db: psycopg.Connection, code: str) -> Finding:
    """Found, as soon as the server has noticed."""
    wait_until(lambda: found(db, code), what=code)
    finding = found(db, code)
    assert finding is not None
    return finding


def found(db: psycopg.Connection, code: str, environment: object = None) -> Finding | None:
    return next((finding for finding in findings(db, environment) if finding.code == code), None)


def cured(db: psycopg.Connection, code: str, severity: str, environment: object = None) -> Finding:
    """It is found, with everything a finding has; its fix runs as it stands, and then it is found no more."""
    finding = found(db, code, environment)
    assert finding is not None, f"{code} was not found"
    assert finding.severity == severity
    assert finding.finding
    assert finding.meaning
    db.execute(finding.fix.encode())
    assert found(db, code, environment) is None, f"{code} is still found after {finding.fix}"
    return finding


def heartbeat(db: psycopg.Connection, *workflows: str, version: str = "1", **detail: object) -> str:
    listener = str(uuid.uuid4())
    db.execute(
        "SELECT scheduler.heartbeat(%s, host => 'crawler-1', pid => 4711, version => %s, workflows => %s,"
        " detail => %s)",
        [listener, version, list(workflows), json.dumps(detail)],
    )
    return listener


def test_all_is_well_says_nothing_but_who_the_clock_is(db: psycopg.Connection) -> None:
    Queue(db, 10)
    heartbeat(db, "job")
    assert {finding.code for finding in findings(db)} <= {"cron_elsewhere", "cron_missing"}


def test_a_column_or_word_that_is_no_longer_what_it_was_is_found(db: psycopg.Connection) -> None:
    db.execute(
        "CREATE TYPE word AS ENUM ('Queued', 'Processing', 'Completed', 'Failed');"
        "CREATE TABLE item (id integer PRIMARY KEY, status word)"
    )

    def register() -> None:
        call(db, "create_workflow", name="job", relation="item", status_column="status")
        assert found(db, "type_changed") is None
        assert found(db, "word_gone") is None

    register()
    db.execute("ALTER TABLE item ALTER COLUMN id TYPE bigint")
    assert "bigint now and was integer" in cured(db, "type_changed", "error").finding
    register()
    db.execute("ALTER TYPE word RENAME VALUE 'Processing' TO 'Running'")
    assert "'Processing'" in cured(db, "word_gone", "error").finding
    call(db, "create_workflow", name="job", relation="item", status_column="status", processing="Running")
    db.execute("ALTER TABLE item RENAME COLUMN status TO state")
    with pytest.raises(psycopg.errors.UndefinedColumn) as caught:
        call(db, "repair_workflow", name="job")
    assert caught.value.diag.message_hint == "Its columns: id, state."
    cured(db, "column_gone", "error")


Cause = Callable[[psycopg.Connection, Queue], object]


def _drop_queue_index(db: psycopg.Connection, _: Queue) -> None:
    db.execute("DROP INDEX scheduler_job_queued")


def _break_queue_index(db: psycopg.Connection, _: Queue) -> None:
    # what a CREATE INDEX CONCURRENTLY that was cut off leaves behind
    db.execute("UPDATE pg_index SET indisvalid = false WHERE indexrelid = 'scheduler_job_queued'::regclass")


def _run(db: psycopg.Connection, queue: Queue, change: str) -> None:
    queue.set("Queued")
    run = queue.claim().run
    db.execute(f"UPDATE scheduler.run SET {change} WHERE id = %s".encode(), [run])


def _fail_some(_: psycopg.Connection, queue: Queue) -> None:
    queue.set("Queued", 1)
    queue.fail(queue.claim().run, "1", permanent=True)


def _retry_late(db: psycopg.Connection, queue: Queue) -> None:
    queue.set("Queued", 1)
    queue.fail(queue.claim().run, "1")
    db.execute("UPDATE scheduler.attempt SET retry_at = now() - interval '10 minutes'")


CAUSES: dict[str, tuple[str, str, Cause]] = {
    "a dropped index": ("index_missing", "error", _drop_queue_index),
    "an invalid index": ("index_missing", "error", _break_queue_index),
    "no index for ready rows": (
        "ready_unindexed",
        "info",
        lambda db, _: db.execute("DROP INDEX scheduler_job_ready"),
    ),
    "a dropped doorbell": (
        "trigger_missing",
        "warning",
        lambda db, _: db.execute("DROP TRIGGER scheduler_job_insert ON item"),
    ),
    "a disabled doorbell": (
        "trigger_missing",
        "warning",
        lambda db, _: db.execute("ALTER TABLE item DISABLE TRIGGER scheduler_job_update"),
    ),
    "a dropped takeover trigger": (
        "trigger_missing",
        "warning",
        lambda db, _: db.execute("DROP TRIGGER scheduler_job_takeover ON item"),
    ),
    "a revoked right": (
        "grant_missing",
        "error",
        lambda db, _: db.execute("REVOKE UPDATE (status) ON item FROM scheduler_owner"),
    ),
    "row security": (
        "rows_hidden",
        "error",
        lambda db, _: db.execute("ALTER TABLE item ENABLE ROW LEVEL SECURITY"),
    ),
    "a dropped table": ("table_dropped", "error", lambda db, _: db.execute("DROP TABLE item")),
    "a renamed column": ("column_gone", "error", lambda db, _: db.execute("ALTER TABLE item RENAME status TO state")),
    "a table swapped for a new one": (
        "table_renamed",
        "warning",
        lambda db, _: db.execute("ALTER TABLE item RENAME TO item_old; CREATE TABLE item (LIKE item_old)"),
    ),
    "autovacuum off": (
        "autovacuum_off",
        "warning",
        lambda db, _: db.execute("ALTER TABLE item SET (autovacuum_enabled = false)"),
    ),
    "a large table with the default autovacuum": (
        "autovacuum_late",
        "info",
        lambda db, _: db.execute("UPDATE pg_class SET reltuples = 5e6 WHERE oid = 'item'::regclass"),
    ),
    "a late schedule": (
        "schedule_late",
        "error",
        lambda db, _: db.execute("UPDATE scheduler.state SET next_slot = now() - interval '1 hour'"),
    ),
    "a lost run": (
        "run_lost",
        "error",
        lambda db, queue: _run(db, queue, "lease_until = now() - interval '1 hour'"),
    ),
    "a hanging run": (
        "run_overdue",
        "error",
        lambda db, queue: _run(db, queue, "deadline = now() - interval '1 second'"),
    ),
    "late retries": ("retries_late", "error", _retry_late),
    "failing maintenance": (
        "maintenance_fails",
        "error",
        lambda db, _: db.execute("UPDATE scheduler.state SET problem = 'it broke', problem_at = now()"),
    ),
    "an open breaker": (
        "breaker",
        "warning",
        lambda db, _: db.execute("UPDATE scheduler.state SET breaker_state = 'open', breaker_until = now()"),
    ),
    "dead letters": ("dead_letters", "info", _fail_some),
    "a workflow without a function": ("no_function", "warning", lambda db, _: heartbeat(db, "another")),
}


@pytest.mark.parametrize("cause", CAUSES)
@pytest.mark.slow
def test_it_is_found_and_its_fix_cures_it(db: psycopg.Connection, cause: str) -> None:
    code, severity, do = CAUSES[cause]
    queue = Queue(db, 3, schedule="*/5 * * * *")
    heartbeat(db, "job")
    assert found(db, code) is None
    if code == "no_function":
        db.execute("DELETE FROM scheduler.listener")
    do(db, queue)
    assert cured(db, code, severity).workflow == "job"


def test_a_renamed_table_stays_the_same_queue(db: psycopg.Connection) -> None:
    queue = Queue(db, 1)
    db.execute("ALTER TABLE item RENAME TO location")
    db.execute("UPDATE location SET status = 'Queued'")
    assert queue.claim().keys == ["1"]
    assert found(db, "table_renamed") is None


@pytest.mark.slow
def test_dead_rows_are_counted_and_vacuumed_away(db: psycopg.Connection) -> None:
    Queue(db)
    db.execute("ALTER TABLE item SET (autovacuum_enabled = false)")
    db.execute("INSERT INTO item (id) SELECT generate_series(1, 12000)")
    db.execute("UPDATE item SET priority = 1")
    finding = sought(db, "dead_tuples")
    assert "12000 dead rows" in finding.finding
    db.execute(finding.fix.encode())
    wait_until(lambda: found(db, "dead_tuples") is None, what="the statistics")


def test_a_server_without_autovacuum_is_found(db: psycopg.Connection, postgres: Postgres) -> None:
    if postgres.throwaway is None:
        pytest.skip("this changes a setting of the whole server, which is only done on a throw-away cluster")
    db.execute("ALTER SYSTEM SET autovacuum = off")
    db.execute("SELECT pg_reload_conf()")
    finding = sought(db, "autovacuum_off")
    for statement in finding.fix.splitlines():
        db.execute(statement.encode())
    wait_until(lambda: found(db, "autovacuum_off") is None)


def test_the_oldest_transaction_is_named_by_pid_and_ended(db: psycopg.Connection, connect: Connect) -> None:
    db.execute("SET scheduler.long_transaction = '1 hour'")
    first = connect(autocommit=False, application_name="report")
    first.execute("SELECT pg_current_xact_id()")
    second = connect(autocommit=False)
    second.execute("SELECT pg_current_xact_id()")
    assert found(db, "old_transaction") is None
    db.execute("SET scheduler.long_transaction = '0'")
    finding = found(db, "old_transaction")
    assert finding is not None
    assert finding.fix == f"SELECT pg_terminate_backend({first.info.backend_pid});"
    assert "report" in finding.finding
    db.execute(finding.fix.encode())
    wait_until(lambda: (after := found(db, "old_transaction")) is None or after.fix != finding.fix)
    second.rollback()
    with pytest.raises(psycopg.OperationalError):
        first.execute("SELECT 1")


def test_a_prepared_transaction_is_named_and_rolled_back(db: psycopg.Connection, connect: Connect) -> None:
    if one(db, "SHOW max_prepared_transactions") == "0":
        pytest.skip("this server has no prepared transactions")
    db.execute("CREATE TABLE held (id integer)")
    gid = f"of {one(db, 'SELECT current_database()')}"
    first = connect(autocommit=False)
    first.execute("INSERT INTO held VALUES (1)")
    first.execute(sql.SQL("PREPARE TRANSACTION {}").format(gid))
    db.execute("SET scheduler.long_transaction = '1 hour'")
    assert found(db, "prepared_transaction") is None
    db.execute("SET scheduler.long_transaction = '0'")
    [finding] = [finding for finding in findings(db) if gid in finding.finding]
    assert (finding.code, finding.severity) == ("prepared_transaction", "warning")
    db.execute(finding.fix.encode())
    assert gid not in str(findings(db))


def test_a_listening_session_that_does_not_read_is_found_and_ended(db: psycopg.Connection, connect: Connect) -> None:
    sleeper = connect()
    sleeper.execute("LISTEN scrapersky")
    sleeper.autocommit = False
    sleeper.execute("SELECT 1")
    assert found(db, "notify_queue") is None
    db.execute("SELECT pg_notify('scrapersky', repeat('x', 7900) || n) FROM generate_series(1, 200) AS n")
    db.execute("SET scheduler.notify_queue = '0.00001'")
    finding = found(db, "notify_queue")
    assert finding is not None
    assert finding.fix == f"SELECT pg_terminate_backend({sleeper.info.backend_pid});"
    db.execute(finding.fix.encode())
    # the next one who rings takes what nobody needs any more off the queue
    wait_until(lambda: db.execute("NOTIFY scrapersky") and found(db, "notify_queue") is None)
    with pytest.raises(psycopg.OperationalError):
        sleeper.execute("SELECT 1")


def test_queued_items_nobody_listens_for_are_an_error_until_someone_does(db: psycopg.Connection) -> None:
    queue = Queue(db, 1)
    queue.set("Queued")
    finding = found(db, "no_listener")
    assert finding is not None
    assert finding.severity == "error"
    assert finding.fix.startswith("-- ")
    heartbeat(db, "job")
    assert found(db, "no_listener") is None


def test_a_vanished_listener_is_found_and_forgotten(db: psycopg.Connection) -> None:
    heartbeat(db, "job")
    db.execute("UPDATE scheduler.listener SET seen_at = now() - interval '5 minutes'")
    cured(db, "listener_gone", "warning")


def test_a_listener_of_another_version_is_found_until_it_stops(db: psycopg.Connection) -> None:
    old = heartbeat(db, "job", version="1.0")
    db.execute("UPDATE scheduler.listener SET started_at = now() - interval '1 hour'")
    heartbeat(db, "job", version="1.1")
    finding = found(db, "listener_version")
    assert finding is not None
    assert old in finding.finding
    assert "version 1.0, others run 1.1" in finding.finding
    db.execute("SELECT scheduler.heartbeat(%s, stopped => true)", [old])
    assert found(db, "listener_version") is None


def test_what_a_listener_reports_is_passed_on_until_it_reports_it_no_more(db: psycopg.Connection) -> None:
    Queue(db)
    listener = heartbeat(db, "job", problems={"job": "column task is missing"})
    finding = found(db, "listener_problem")
    assert finding is not None
    assert (finding.workflow, finding.meaning) == ("job", "column task is missing")
    db.execute("SELECT scheduler.heartbeat(%s, detail => '{}')", [listener])
    assert found(db, "listener_problem") is None


@pytest.mark.parametrize(
    ("said", "expected"),
    [({"batch_size": 7}, "batch_size = 7, the database 100"), ({"schedule": "0 * * * *"}, "*/5 * * * *")],
)
def test_a_setting_the_environment_still_carries_is_found_and_can_be_taken_over(
    db: psycopg.Connection, said: dict[str, object], expected: str
) -> None:
    Queue(db, schedule="*/5 * * * *")
    environment = {"job": {**said, "max_instances": None}, "unknown": {"batch_size": 1}}
    assert found(db, "stale_setting", {"job": {"schedule": "*/5 * * * *", "batch_size": 100}}) is None
    assert expected in cured(db, "stale_setting", "warning", environment).finding


def test_pg_cron_in_another_database_counts_once_it_calls(db: psycopg.Connection, postgres: Postgres) -> None:
    if postgres.server.cron_database is None:
        finding = found(db, "cron_missing")
        assert finding is not None
        assert "CREATE EXTENSION pg_cron" in finding.fix
        return
    finding = found(db, "cron_elsewhere")
    assert finding is not None
    assert "SELECT scheduler.tick(''pg_cron'')" in finding.fix
    db.execute("SELECT scheduler.tick('pg_cron')")
    assert found(db, "cron_elsewhere") is None


def test_one_broken_workflow_does_not_hide_the_findings_of_another(db: psycopg.Connection) -> None:
    Queue(db)
    db.execute("CREATE TABLE page (id integer PRIMARY KEY, status text)")
    call(db, "create_workflow", name="pages", relation="page", status_column="status")
    db.execute("DROP TABLE page; DROP INDEX scheduler_job_queued")
    assert {finding.code for finding in findings(db)} >= {"table_dropped", "index_missing"}


def test_a_monitor_sees_what_the_superuser_sees(db: psycopg.Connection, connect: Connect) -> None:
    Queue(db, 1, schedule="*/5 * * * *")
    db.execute("DROP INDEX scheduler_job_queued")
    assert findings(connect("scheduler_monitor")) == findings(db)


@pytest.mark.cron
class TestWithCron:
    """In the one database where pg_cron lives."""

    @pytest.fixture
    def cron(self, connect: Connect, cron_database: str) -> psycopg.Connection:
        return connect(url=cron_database)

    def test_missing_changed_and_idle_jobs_are_put_right(self, cron: psycopg.Connection, connect: Connect) -> None:
        Queue(cron, schedule="*/5 * * * *")
        assert found(cron, "job_missing") is None
        cron.execute("SELECT cron.unschedule(jobid) FROM cron.job WHERE jobname = 'scrapersky:job'")
        assert cured(cron, "job_missing", "error").workflow == "job"
        cron.execute("UPDATE cron.job SET schedule = '0 0 1 1 *' WHERE jobname = 'scrapersky:job'")
        assert "0 0 1 1 *" in cured(cron, "job_changed", "error").finding
        cron.execute("UPDATE cron.job SET active = false WHERE jobname = 'scrapersky:job'")
        assert cured(cron, "job_off", "warning").workflow == "job"
        # whoever may not look into pg_cron learns of our own jobs all the same
        cron.execute("SELECT cron.unschedule(jobid) FROM cron.job WHERE jobname = 'scrapersky:job'")
        monitor = connect("scheduler_monitor", url=cron.info.dsn + f" password={cron.info.password}")
        assert found(monitor, "job_missing") is not None

    def test_a_failed_firing_is_told_with_its_message(self, cron: psycopg.Connection) -> None:
        Queue(cron, schedule="0 0 1 1 *")
        job = one(cron, "SELECT jobid FROM cron.job WHERE jobname = 'scrapersky:job'")
        cron.execute(
            "INSERT INTO cron.job_run_details (jobid, runid, database, username, status, return_message, start_time)"
            " VALUES (%s, nextval('cron.runid_seq'), current_database(), 'scheduler_cron', 'failed',"
            " 'lock timeout', now())",
            [job],
        )
        finding = found(cron, "job_failed")
        assert finding is not None
        assert "lock timeout" in finding.finding
        cron.execute(finding.fix.encode())
        cron.execute("UPDATE cron.job_run_details SET status = 'succeeded' WHERE jobid = %s", [job])
        assert found(cron, "job_failed") is None

    def test_silence_is_noticed(self, cron: psycopg.Connection) -> None:
        assert found(cron, "cron_silent") is None
        cron.execute("UPDATE scheduler.control SET maintained_at = now() - interval '1 hour', pg_cron_seen_at = NULL")
        cured(cron, "cron_silent", "warning")

    def test_a_job_of_a_dropped_role_is_found_and_deleted(self, cron: psycopg.Connection) -> None:
        cron.execute("CREATE ROLE passerby LOGIN")
        cron.execute("SELECT cron.schedule('theirs', '0 0 1 1 *', 'SELECT 1')")
        cron.execute("UPDATE cron.job SET username = 'passerby' WHERE jobname = 'theirs'")
        assert found(cron, "job_orphaned") is None
        cron.execute("DROP ROLE passerby")
        assert "passerby" in cured(cron, "job_orphaned", "error").finding

    @pytest.mark.slow
    def test_a_missing_launcher_is_found_until_the_server_restarts(
        self, cron: psycopg.Connection, connect: Connect, cron_database: str, postgres: Postgres
    ) -> None:
        def launcher() -> Any:
            return one(cron, "SELECT pid FROM pg_stat_activity WHERE backend_type = 'pg_cron launcher'")

        wait_until(launcher)
        assert found(cron, "launcher_missing") is None
        cron.execute("SELECT pg_terminate_backend(%s)", [launcher()])
        finding = sought(cron, "launcher_missing")
        assert (finding.severity, finding.fix) == ("error", "-- no SQL can: restart the server")
        assert postgres.throwaway is not None
        postgres.throwaway.restart()
        again = connect(url=cron_database)
        wait_until(lambda: found(again, "launcher_missing") is None)
