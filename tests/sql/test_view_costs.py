"""The views: what they cost, and that psql explains them."""

import psycopg

from tests.sql.queue import Queue, call, one

VIEWS = (
    "status",
    "queue_depth",
    "in_flight",
    "stuck",
    "dead_letter",
    "errors",
    "throughput",
    "runs",
    "listeners",
    "schedules",
)


def test_nothing_that_looks_at_a_queue_reads_its_table(db: psycopg.Connection) -> None:
    queue = Queue(db, 20000, schedule="*/5 * * * *", max_instances=2)
    queue.set("Completed")
    queue.set("Queued", 1, 2, 3)
    queue.claim(1)
    db.execute("VACUUM ANALYZE item")
    asked = [f"SELECT * FROM scheduler.{view}" for view in VIEWS]
    asked += [
        "SELECT * FROM scheduler.doctor()",
        "SELECT scheduler.why('job', 2), scheduler.why('job', 9)",
        "SELECT * FROM scheduler.preview('job')",
    ]
    db.execute("BEGIN")  # within a transaction nothing is reported, so the difference is exact
    for query in asked:
        before = _read(db)
        db.execute(query.encode())
        assert _read(db) - before < 100, query
    db.execute("ROLLBACK")


def _read(db: psycopg.Connection) -> int:
    """Rows of the table this session has read and not yet reported."""
    query = "SELECT sum(seq_tup_read) + sum(idx_tup_fetch) FROM pg_stat_xact_user_tables WHERE relname = 'item'"
    return int(one(db, query) or 0)


def unexplained(db: psycopg.Connection) -> list[str]:
    """What \\d+ and \\df+ show without a word about it."""
    rows = db.execute(
        """
        SELECT c.relname || coalesce('.' || a.attname, '')
        FROM pg_class AS c
        LEFT JOIN pg_attribute AS a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
        WHERE c.relnamespace = 'scheduler'::regnamespace AND c.relkind IN ('r', 'v') AND c.relname NOT LIKE '\\_%'
          AND (obj_description(c.oid, 'pg_class') IS NULL OR col_description(c.oid, a.attnum) IS NULL)
        UNION ALL
        SELECT p.oid::regprocedure::text FROM pg_proc AS p
        WHERE p.pronamespace = 'scheduler'::regnamespace AND obj_description(p.oid, 'pg_proc') IS NULL
        """
    ).fetchall()
    return [name for (name,) in rows]


def test_psql_explains_every_table_view_column_and_function(db: psycopg.Connection) -> None:
    assert unexplained(db) == []


def test_one_broken_workflow_leaves_the_status_of_the_others(db: psycopg.Connection) -> None:
    queue = Queue(db, 2)
    db.execute("CREATE TABLE page (id integer PRIMARY KEY, status text)")
    call(db, "create_workflow", name="pages", relation="page", status_column="status")
    queue.set("Queued")
    db.execute("DROP TABLE page")
    rows = db.execute("SELECT workflow, state, queued, note FROM scheduler.status").fetchall()
    assert rows[0][:3] == ("job", "waiting", 2)
    assert rows[1][:3] == ("pages", "broken", None)
    assert "dropped" in rows[1][3]


def test_runs_without_durations_are_counted_one_after_the_other(db: psycopg.Connection) -> None:
    queue = Queue(db, 2)
    for key in (1, 2):
        queue.set("Queued", key)
        queue.succeed(queue.claim().run)
        db.execute("SELECT scheduler.maintain()")
    assert one(db, "SELECT problem FROM scheduler.state") is None
    assert one(db, "SELECT sum(succeeded) FROM scheduler.throughput WHERE grain = 'day'") == 2


def test_who_asks_for_one_workflow_pays_for_no_other(db: psycopg.Connection) -> None:
    Queue(db, 1)
    db.execute("CREATE TABLE page (id integer PRIMARY KEY, status text)")
    call(db, "create_workflow", name="pages", relation="page", status_column="status")
    db.execute("SET track_functions = 'all'")
    db.execute("BEGIN")
    db.execute("SELECT * FROM scheduler.status WHERE workflow = 'job'")
    assert one(db, "SELECT calls FROM pg_stat_xact_user_functions WHERE funcname = '_count_queued'") == 1
    db.execute("ROLLBACK")
