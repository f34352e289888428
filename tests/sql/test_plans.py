"""Cost follows the backlog, not the table: the plans of the real statements beside a million finished rows."""

import json
from collections.abc import Iterator
from typing import Any

import psycopg
import pytest

from tests.conftest import Connect
from tests.sql.queue import Queue, call, one

FINISHED = 1_000_000
PLANS = """
    SET auto_explain.log_min_duration = 0; SET auto_explain.log_nested_statements = on;
    SET auto_explain.log_format = 'json'; SET auto_explain.log_level = 'notice';
"""


class Plans:
    """What the server says it did, statement by statement, nested ones too."""

    def __init__(self, db: psycopg.Connection) -> None:
        self._db = db
        self._seen: list[dict[str, Any]] = []
        db.execute("LOAD 'auto_explain'")
        db.add_notice_handler(self._note)

    def _note(self, told: psycopg.errors.Diagnostic) -> None:
        head, _, plan = (told.message_primary or "").partition("plan:\n")
        if "duration:" in head:
            self._seen.append(json.loads(plan)["Plan"])

    def of(self, statement: str) -> list[tuple[str, str | None]]:
        """How the statement reached the table `item`: pairs of node type and index."""
        self._seen.clear()
        self._db.execute(PLANS)
        self._db.execute(statement.encode())
        self._db.execute("SET auto_explain.log_min_duration = -1")
        nodes = [node for plan in self._seen for node in _nodes(plan)]
        # a bitmap's index scan names no table
        return [
            (node["Node Type"], node.get("Index Name"))
            for node in nodes
            if node.get("Relation Name") == "item" and node["Node Type"] != "ModifyTable"
        ]


def _nodes(plan: dict[str, Any]) -> Iterator[dict[str, Any]]:
    yield plan
    for child in plan.get("Plans", []):
        yield from _nodes(child)


@pytest.mark.slow
def test_no_statement_reads_a_table_of_a_million_finished_rows(db: psycopg.Connection, connect: Connect) -> None:
    try:
        db.execute("LOAD 'auto_explain'")
    except psycopg.errors.UndefinedFile:
        pytest.skip("this server has no auto_explain")
    queue = Queue(db, 200)
    call(db, "drop_workflow", name="job")
    db.execute("ALTER TABLE item SET UNLOGGED")
    db.execute(
        "INSERT INTO item (id, status, created_at)"
        " SELECT 1000 + n, CASE WHEN n %% 3 = 0 THEN 'Queued' ELSE 'Completed' END,"
        " now() - (1 + random()) * interval '2 days'"
        " FROM generate_series(1, %s) AS n",
        [FINISHED],
    )
    queue.create(batch_size=50)
    db.execute("ANALYZE item")
    db.execute("UPDATE item SET status = 'Completed' WHERE status = 'Queued'")
    plans = Plans(connect())
    # A backlog has been worked off, and the statistics still believe in it.
    for statement in ("SELECT scheduler.claim('job')", "SELECT * FROM scheduler.status"):
        nodes = plans.of(statement)
        assert "scheduler_job_queued" in [index for _, index in nodes]
        assert "Seq Scan" not in dict(nodes)
    db.execute("ANALYZE item")
    # As listeners find it: the statistics were taken while nothing was queued.
    queue.want()
    queue.set("Queued", *range(1, 101))

    claims = plans.of("SELECT scheduler.claim('job')")
    assert ("Index Scan", "scheduler_job_queued") in claims
    assert "Seq Scan" not in dict(claims)
    run = one(db, "SELECT max(id) FROM scheduler.run")
    queue.set("Completed", *range(51, 101))
    dispatched = plans.of("SELECT scheduler.dispatch('job')")
    assert ("Index Scan", "scheduler_job_ready") in dispatched
    assert "Seq Scan" not in dict(dispatched)

    statements = [
        f"SELECT scheduler.fail({run}, '{{1,2}}', '{{a,b}}')",
        f"SELECT scheduler.release({run}, '{{3,4}}')",
        f"SELECT scheduler.defer({run}, '{{7,8}}', '{{a,b}}', NULL)",
        f"SELECT scheduler.succeed({run}, '{{5,6}}')",
        f"UPDATE scheduler.run SET lease_until = now() - interval '1 s' WHERE id = {run}",
        "SELECT scheduler.rescue()",
        "SELECT scheduler.maintain()",
        "SELECT scheduler.claim('job')",
        "SELECT scheduler.enqueue('job', ARRAY[1, 2])",
        "SELECT scheduler.cancel('job', ARRAY[1, 2])",
        "SELECT scheduler.requeue('job')",
        "SELECT scheduler.requeue('job', ARRAY[1, 2])",
        "SELECT scheduler.why('job', 150)",
        "SELECT scheduler.why('job', 1)",
        "SELECT * FROM scheduler.preview('job')",
        "SELECT * FROM scheduler.doctor()",
        "SELECT * FROM scheduler.status",
        "SELECT * FROM scheduler.queue_depth",
        "SELECT * FROM scheduler.stuck",
        "SELECT * FROM scheduler.schedules",
    ]
    scans = {statement: plans.of(statement) for statement in statements}
    assert [statement for statement, nodes in scans.items() if "Seq Scan" in dict(nodes)] == []
    assert scans["SELECT * FROM scheduler.status"]
