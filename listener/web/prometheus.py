"""/metrics: what the database knows of every workflow, and what this process counts, in Prometheus' text format."""

import math
from typing import Any

from listener import __version__
from listener.metrics import LaneMetrics, Metrics
from listener.web.store import Reader, Row

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"

_VIA = {"bell": "notify"}
_STATUSES = ("queued", "processing", "waiting", "dead")


class Exposition:
    """Families in the order they are first named, each with its samples together."""

    def __init__(self) -> None:
        self._families: dict[str, list[str]] = {}

    def add(self, name: str, kind: str, help_text: str, value: float | None, suffix: str = "", **labels: str) -> None:
        family = f"scrapersky_{name}"
        lines = self._families.setdefault(family, [f"# HELP {family} {help_text}", f"# TYPE {family} {kind}"])
        if value is not None:
            shown = "{" + ",".join(f'{key}="{_escaped(text)}"' for key, text in labels.items()) + "}" if labels else ""
            lines.append(f"{family}{suffix}{shown} {_number(value)}")

    def text(self) -> str:
        return "\n".join(line for lines in self._families.values() for line in lines) + "\n"


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


def _number(value: float) -> str:
    return "+Inf" if value == math.inf else repr(float(value)) if value != int(value) else str(int(value))


def build_info(out: Exposition) -> None:
    out.add("build_info", "gauge", "The version that answers.", 1, version=__version__)


def of_process(out: Exposition, metrics: Metrics) -> None:
    """What this listener counts."""
    out.add("listen_connected", "gauge", "Whether the LISTEN connection is up.", metrics.listening)
    out.add("db_reconnects_total", "counter", "How often LISTEN had to be set up anew.", metrics.reconnects)
    out.add("notifications_total", "counter", "Notifications heard.", metrics.notifications)
    out.add("heartbeats_total", "counter", "Heartbeats sent.", metrics.heartbeats)
    out.add("heartbeat_failures_total", "counter", "Heartbeats that failed.", metrics.heartbeat_failures)
    out.add("dispatches_total", "counter", "Dispatches made in place of pg_cron.", metrics.dispatched)
    out.add("draining", "gauge", "Whether this listener is about to stop.", metrics.draining)
    out.add("process_start_time_seconds", "gauge", "When this listener started.", metrics.started)
    for workflow, lane in metrics.lanes.items():
        _of_lane(out, workflow, lane)


def _of_lane(out: Exposition, workflow: str, lane: LaneMetrics) -> None:
    for why, items in lane.items.items():
        out.add(
            "claimed_total",
            "counter",
            "Items claimed, by what led to it.",
            items,
            workflow=workflow,
            via=_VIA.get(why, why),
        )
    for outcome in ("succeeded", "failed", "rejected", "released"):
        out.add(
            "completed_total",
            "counter",
            "Items done with, by outcome.",
            getattr(lane, outcome),
            workflow=workflow,
            outcome=outcome,
        )
    out.add(
        "retries_total",
        "counter",
        "Failures that are tried again, by class.",
        lane.timeouts,
        workflow=workflow,
        **{"class": "timeout"},
    )
    out.add(
        "retries_total",
        "counter",
        "Failures that are tried again, by class.",
        max(lane.failed - lane.timeouts, 0),
        workflow=workflow,
        **{"class": "error"},
    )
    out.add("lease_expired_total", "counter", "Runs this listener lost.", lane.lost_runs, workflow=workflow)
    out.add("fenced_total", "counter", "Results the database refused.", lane.refused, workflow=workflow)
    out.add("inflight", "gauge", "Items this listener is working on.", lane.working, workflow=workflow)
    out.add("last_sweep_timestamp_seconds", "gauge", "When it last asked for work.", lane.last_claim, workflow=workflow)
    _histogram(out, workflow, lane)


def _histogram(out: Exposition, workflow: str, lane: LaneMetrics) -> None:
    """Two buckets to an octave in the engine; every second edge is enough here."""
    help_text = "How long the work on an item took."
    counted = 0
    for index, items in enumerate(lane.durations):
        counted += items
        # the upper edge of bucket 0 is 1 ms, of each next one half an octave more
        if index % 2 == 0 and index < len(lane.durations) - 1:
            edge = f"{2 ** (index / 2) / 1000:.6g}"
            out.add("run_duration_seconds", "histogram", help_text, counted, "_bucket", workflow=workflow, le=edge)
    out.add("run_duration_seconds", "histogram", help_text, counted, "_bucket", workflow=workflow, le="+Inf")
    out.add("run_duration_seconds", "histogram", help_text, lane.busy_seconds, "_sum", workflow=workflow)
    out.add("run_duration_seconds", "histogram", help_text, counted, "_count", workflow=workflow)


def of_database(out: Exposition, rows: list[Row], schedules: list[Row], server: Row) -> None:
    """What holds for the whole fleet, whichever process is asked."""
    for row in rows:
        workflow = row["workflow"]
        for status in _STATUSES:
            out.add(
                "items",
                "gauge",
                "Items by what they are doing; queued may be an estimate.",
                _plain(row[status]),
                workflow=workflow,
                status=status,
            )
        out.add(
            "oldest_queued_age_seconds",
            "gauge",
            "How long the oldest queued item waits.",
            _seconds(row["oldest_queued_age"]) or 0,
            workflow=workflow,
        )
        out.add("dead_items", "gauge", "Items in the dead letter.", _plain(row["dead"]), workflow=workflow)
        out.add("paused", "gauge", "Whether the workflow is paused.", row["paused"], workflow=workflow)
        out.add(
            "broken", "gauge", "Whether the workflow cannot run at all.", row["state"] == "broken", workflow=workflow
        )
    for row in schedules:
        out.add(
            "schedule_late_seconds",
            "gauge",
            "How long a due slot has not been dispatched.",
            row["late"],
            schedule=row["workflow"],
        )
    out.add("notify_queue_usage_ratio", "gauge", "How full the notification queue is.", server["queue"])
    out.add("cron_launcher_up", "gauge", "Whether the background process of pg_cron runs.", server["launcher"])
    out.add("listeners", "gauge", "Listeners that are alive.", server["listeners"])


def of_doctor(out: Exposition, rows: list[Row]) -> None:
    """What is wrong, by its stable name; nothing at all when all is well."""
    for row in rows:
        out.add(
            "doctor_findings",
            "gauge",
            "What scheduler.doctor() finds, looked at once a minute.",
            row["found"],
            severity=row["severity"],
            code=row["code"],
        )


async def read(reader: Reader) -> tuple[list[Row], list[Row], Row]:
    rows = await reader.rows(
        "SELECT workflow, state, paused, queued, processing, waiting, dead, oldest_queued_age FROM scheduler.status"
    )
    schedules = await reader.rows(
        "SELECT workflow, greatest(0, extract(epoch FROM now() - next_slot))::float8 AS late"
        " FROM scheduler.state WHERE next_slot IS NOT NULL"
    )
    server = await reader.row(
        "SELECT pg_notification_queue_usage()::float8 AS queue, scheduler._launcher_lives() AS launcher,"
        " (SELECT count(*) FROM scheduler.listeners WHERE state = 'alive') AS listeners"
    )
    return rows, schedules, server or {}


def _plain(value: Any) -> float | None:
    return None if value is None else float(value)


def _seconds(value: Any) -> float | None:
    return None if value is None else value.total_seconds()
