"""What the pages show, as queries on the engine's views. Each is bounded, however long a table or its history."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from psycopg import sql

from listener.web.store import Reader, Row

LIST = 25
"""Rows of a list on a page."""
COUNTED = 10_000
"""Items are counted so far before something is done to all of them."""
GROUPED = 250
"""Failures of a kind that are looked at to group their errors."""


@dataclass(frozen=True)
class Window:
    """A stretch of time a chart covers, in bars of one grain."""

    name: str
    grain: str
    step: timedelta
    bars: int

    @property
    def title(self) -> str:
        return f"last {self.bars} {self.grain}s"


WINDOWS = {
    window.name: window
    for window in (
        Window("hour", "minute", timedelta(minutes=1), 60),
        Window("day", "hour", timedelta(hours=1), 24),
        Window("month", "day", timedelta(days=1), 30),
    )
}

# Rolled up by maintain(), plus what it has not got to yet.
_SERIES = """
SELECT x.workflow, x.at, sum(x.succeeded)::bigint AS succeeded, sum(x.failed + x.rejected)::bigint AS failed,
       CASE WHEN %(durations)s THEN
           extract(epoch FROM scheduler.histogram_percentile(scheduler.histogram_sum(x.histogram), 0.5))::float8
       END AS p50,
       CASE WHEN %(durations)s THEN
           extract(epoch FROM scheduler.histogram_percentile(scheduler.histogram_sum(x.histogram), 0.95))::float8
       END AS p95
FROM (
    SELECT s.workflow, s.at, s.succeeded, s.failed, s.rejected, s.histogram FROM scheduler.stat AS s
    WHERE s.grain = %(grain)s AND s.at > date_trunc(%(grain)s, now()) - %(length)s
      AND (%(workflow)s::text IS NULL OR s.workflow = %(workflow)s)
    UNION ALL
    SELECT r.workflow, date_trunc(%(grain)s, r.finished_at), r.succeeded, r.failed, r.rejected, r.histogram::bigint[]
    FROM scheduler.run AS r
    WHERE r.finished_at > date_trunc(%(grain)s, now()) - %(length)s AND NOT r.rolled_up
      AND (%(workflow)s::text IS NULL OR r.workflow = %(workflow)s)
) AS x
GROUP BY 1, 2 ORDER BY 1, 2
"""


@dataclass(frozen=True)
class Point:
    """One bar of a chart."""

    at: datetime
    succeeded: int = 0
    failed: int = 0
    p50: float | None = None
    p95: float | None = None


async def series(reader: Reader, window: Window, workflow: str | None = None) -> dict[str, list[Point]]:
    """What finished in each bar of the window, by workflow; bars in which nothing did are there, and empty.

    How long it took only for a workflow asked for by name.
    """
    newest: datetime = await reader.value("SELECT date_trunc(%s, now())", window.grain)
    found: dict[str, dict[datetime, Point]] = {}
    length = window.step * window.bars
    asked = {"grain": window.grain, "length": length, "workflow": workflow, "durations": workflow is not None}
    for row in await reader.named(_SERIES, **asked):
        name = row.pop("workflow")
        found.setdefault(name, {})[row["at"]] = Point(**row)
    moments = [newest - window.step * back for back in reversed(range(window.bars))]
    return {name: [points.get(at, Point(at)) for at in moments] for name, points in found.items()}


async def overview(reader: Reader) -> list[Row]:
    """One row a workflow: its state, and where its results go."""
    return await reader.rows(
        "SELECT s.*, w.downstream, w.relation::text AS relation, w.status_column, w.ready FROM scheduler.status AS s"
        " JOIN scheduler.workflow AS w ON w.name = s.workflow ORDER BY w.created_at, w.name"
    )


async def control(reader: Reader) -> Row:
    return (
        await reader.row(
            "SELECT paused_at, paused_by, paused_reason, maintained_at, current_database() AS database,"
            " (SELECT count(*) FROM scheduler.listeners WHERE state = 'alive') AS alive FROM scheduler.control"
        )
        or {}
    )


async def workflow(reader: Reader, name: str) -> Row | None:
    """Settings and state of one workflow."""
    return await reader.row(
        "SELECT w.*, w.queued AS queued_word, w.processing AS processing_word,"
        " w.relation::text AS relation, w.key_type::text AS key_type, s.* FROM scheduler.workflow AS w"
        " JOIN scheduler.status AS s ON s.workflow = w.name WHERE w.name = %s",
        name,
    )


async def settings(reader: Reader, name: str) -> Row | None:
    """Only the settings, which cost one row."""
    return await reader.row(
        "SELECT w.*, w.name AS workflow, w.relation::text AS relation, w.key_type::text AS key_type"
        " FROM scheduler.workflow AS w WHERE w.name = %s",
        name,
    )


async def schedule(reader: Reader, name: str) -> Row:
    return await reader.row("SELECT * FROM scheduler.schedules WHERE workflow = %s", name) or {}


async def next_fires(reader: Reader, name: str, most: int = 5) -> list[datetime]:
    rows = await reader.rows(
        """WITH RECURSIVE fire (n, at, schedule) AS (
               SELECT 1, greatest(s.next_slot, now()), w.schedule
               FROM scheduler.workflow AS w JOIN scheduler.state AS s ON s.workflow = w.name
               WHERE w.name = %s AND w.schedule IS NOT NULL
               UNION ALL
               SELECT f.n + 1, scheduler.cron_next(f.schedule, f.at), f.schedule FROM fire AS f WHERE f.n < %s
           ) SELECT at FROM fire WHERE at IS NOT NULL ORDER BY n""",
        name,
        most,
    )
    return [row["at"] for row in rows]


async def runs(reader: Reader, name: str) -> list[Row]:
    # the newest by the index, then only these through the view
    return await reader.rows(
        "SELECT * FROM scheduler.runs WHERE run = ANY (ARRAY("
        " SELECT id FROM scheduler.run WHERE workflow = %s ORDER BY started_at DESC LIMIT %s)) ORDER BY run DESC",
        name,
        LIST,
    )


async def in_flight(reader: Reader, name: str) -> list[Row]:
    return await reader.rows("SELECT * FROM scheduler.in_flight WHERE workflow = %s LIMIT %s", name, LIST)


async def errors(reader: Reader, name: str) -> list[Row]:
    """As the view scheduler.errors, over the newest failures only: folding 50,000 texts takes it a second."""
    return await reader.named(
        """SELECT scheduler._shape(a.error) AS error, count(*) AS items,
                  count(*) FILTER (WHERE a.state = 'dead') AS dead,
                  count(*) FILTER (WHERE a.state = 'waiting') AS waiting, max(a.last_at) AS last_at,
                  (array_agg(a.key ORDER BY a.last_at DESC))[1] AS example_key,
                  (array_agg(a.error ORDER BY a.last_at DESC))[1] AS example
           FROM ((SELECT key, state, error, last_at FROM scheduler.attempt
                  WHERE workflow = %(name)s AND state = 'dead' ORDER BY last_at DESC LIMIT %(most)s)
                 UNION ALL
                 (SELECT key, state, error, last_at FROM scheduler.attempt
                  WHERE workflow = %(name)s AND state = 'waiting' ORDER BY retry_at DESC LIMIT %(most)s)) AS a
           WHERE a.error IS NOT NULL GROUP BY 1 ORDER BY 2 DESC, 5 DESC LIMIT %(list)s""",
        name=name,
        most=GROUPED,
        list=LIST,
    )


async def dead_letters(reader: Reader, name: str) -> list[Row]:
    return await reader.rows(
        "SELECT key, attempts, reason, error, first_at, last_at FROM scheduler.attempt"
        " WHERE workflow = %s AND state = 'dead' ORDER BY last_at DESC LIMIT %s",
        name,
        LIST,
    )


async def failed(reader: Reader, name: str, error: str | None) -> int:
    """How many items requeue() would take without keys, counted to COUNTED."""
    return int(
        await reader.value(
            "SELECT count(*) FROM (SELECT FROM scheduler.attempt WHERE workflow = %s AND state IN ('dead', 'waiting')"
            " AND (%s::text IS NULL OR error ILIKE %s) LIMIT %s) AS a",
            name,
            error,
            error,
            COUNTED,
        )
    )


async def retrying(reader: Reader, name: str) -> list[Row]:
    return await reader.rows(
        "SELECT key, attempts, error, retry_at FROM scheduler.attempt"
        " WHERE workflow = %s AND state = 'waiting' ORDER BY retry_at LIMIT %s",
        name,
        LIST,
    )


async def preview(reader: Reader, name: str) -> list[Row]:
    """What the next dispatches would queue, whether or not there is room for it now."""
    return await reader.rows("SELECT key, cause FROM scheduler.preview(%s, most => %s)", name, LIST)


async def why(reader: Reader, name: str, key: str) -> str:
    return str(await reader.value("SELECT scheduler.why(%s, %s::text)", name, key))


async def attempt(reader: Reader, name: str, key: str) -> Row | None:
    return await reader.row("SELECT * FROM scheduler.attempt WHERE workflow = %s AND key = %s", name, key)


async def run_of(reader: Reader, name: str, key: str) -> Row | None:
    """The open run that has the item."""
    return await reader.row(
        "SELECT f.* FROM scheduler.in_flight AS f JOIN scheduler.run AS r ON r.id = f.run"
        " WHERE f.workflow = %s AND %s = ANY (r.keys) ORDER BY f.run DESC LIMIT 1",
        name,
        key,
    )


async def business_row(reader: Reader, settings: Row, key: str) -> Row | None:
    """The row itself, where scheduler_monitor may read its table; None where it may not, or there is none."""
    allowed = await reader.value(
        "SELECT has_table_privilege(relation, 'SELECT') FROM scheduler.workflow WHERE name = %s", settings["workflow"]
    )
    if not allowed:
        return None
    query = sql.SQL("SELECT t.* FROM {} AS t WHERE t.{} = {}::{}").format(
        sql.SQL(settings["relation"]),  # regclass::text is quoted by the server
        sql.Identifier(settings["key_column"]),
        sql.Literal(key),
        sql.SQL(settings["key_type"]),
    )
    return await reader.row(query)


async def audit(
    reader: Reader, *, workflow: str | None = None, key: str | None = None, before: int | None = None
) -> list[Row]:
    """The newest first; of an item, what was asked for it by name."""
    return await reader.named(
        """SELECT id, at, who, action, workflow, affected, detail FROM scheduler.audit
           WHERE (%(workflow)s::text IS NULL OR workflow = %(workflow)s)
             AND (%(key)s::text IS NULL OR detail -> 'first' ? %(key)s)
             AND (%(before)s::bigint IS NULL OR id < %(before)s)
             AND at > now() - interval '90 days'
           ORDER BY id DESC LIMIT %(most)s""",
        workflow=workflow,
        key=key,
        before=before,
        most=LIST if key else 4 * LIST,
    )


async def listeners(reader: Reader) -> list[Row]:
    return await reader.rows("SELECT * FROM scheduler.listeners LIMIT %s", 4 * LIST)


async def doctor(reader: Reader) -> list[Row]:
    return await reader.rows("SELECT * FROM scheduler.doctor()")


async def findings(reader: Reader) -> list[Row]:
    """How many of each kind the doctor finds."""
    return await reader.rows("SELECT severity, code, count(*) AS found FROM scheduler.doctor() GROUP BY 1, 2")


async def scheduler_status(reader: Reader) -> list[dict[str, Any]]:
    """Every schedule as /api/scheduler_status gives it."""
    rows = await reader.rows(
        """SELECT s.workflow, s.schedule, s.next_fire, s.clock, s.last_slot, s.last_dispatch_at, s.last_clock,
                  s.last_queued, s.last_note, s.missed_slots, s.cron_status, s.cron_message,
                  w.max_instances, w.batch_size, w.paused_at IS NOT NULL AS paused,
                  (SELECT count(*) FROM scheduler.run AS r
                   WHERE r.workflow = s.workflow AND r.finished_at IS NULL) AS running
           FROM scheduler.schedules AS s LEFT JOIN scheduler.workflow AS w ON w.name = s.workflow"""
    )
    return [
        {
            "id": row["workflow"],
            "trigger": row["schedule"],
            "next_run": row["next_fire"],
            "clock": row["clock"],
            "paused": row["paused"] or False,
            "last_run": row["last_dispatch_at"],
            "last_result": {
                "slot": row["last_slot"],
                "clock": row["last_clock"],
                "queued": row["last_queued"],
                "note": row["last_note"],
                "missed_slots": row["missed_slots"],
                "cron_status": row["cron_status"],
                "cron_message": row["cron_message"],
            },
            "instances": {"running": row["running"], "max": row["max_instances"]},
            "batch_size": row["batch_size"],
        }
        for row in rows
    ]
