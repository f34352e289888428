"""Faults of pg_cron: its launcher ended or killed, and a server that was down when a slot was due.

Each on a server of its own, because pg_cron 1.4 does not come back before the server is started again.
"""

import os
import signal
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

import psycopg

from listener import schema
from listener.postgres.throwaway import Throwaway, throwaway
from tests.faults.scenario import NotHere, Scene, fault
from tests.faults.stage import Stage, staged
from tests.faults.verdict import Verdict
from tests.sql.queue import one
from tests.waiting import wait_until

_LAUNCHER = "SELECT pid FROM pg_stat_activity WHERE backend_type = 'pg_cron launcher'"
_OVERDUE = (
    "UPDATE scheduler.state SET next_slot = now() - interval '3 minutes';"
    "UPDATE scheduler.control SET pg_cron_seen_at = now() - interval '10 minutes'"
)
"""Time is moved: as if pg_cron had been silent for ten minutes, and the last three slots had been missed."""


@fault("F16", "pg_cron's launcher ended; then the server down over a due slot")
def launcher_ended(scene: Scene) -> Verdict:
    with _scheduled(scene) as (stage, cluster):
        db = stage.bench.db
        launcher = one(db, _LAUNCHER)
        assert launcher is not None, "pg_cron has no launcher"
        db.execute("SELECT pg_terminate_backend(%s)", [launcher])
        _miss_a_slot(stage, 20)
        with stage.fault(probes=0):
            pass
        stage.await_effects(20)
        findings = db.execute("SELECT finding FROM scheduler.doctor()").fetchall()
        assert any("pg_cron" in finding for (finding,) in findings), findings
        _want(stage, 20)
        cluster.cluster.stop("fast")
        cluster.cluster.start(cluster.server)
        stage.bench.reconnect()
        with stage.fault(probes=0):
            stage.bench.db.execute(_OVERDUE)
        stage.await_effects(40)
        verdict = stage.finish()
        slots = one(stage.bench.db, "SELECT clock FROM scheduler.schedules WHERE workflow = 'chaos'")
        verdict.notes.append(f"missed slots made up by {slots}")
        return verdict


@fault("F17", "kill -9 of pg_cron's launcher: the whole server crashes and comes back")
def launcher_killed(scene: Scene) -> Verdict:
    with _scheduled(scene) as (stage, _):
        stage.queue(40, "slow 0.2")
        stage.await_effects(10)
        launcher = one(stage.bench.db, _LAUNCHER)
        assert launcher is not None, "pg_cron has no launcher"
        os.kill(launcher, signal.SIGKILL)
        wait_until(lambda: _is_back(stage), what="the server to come back")
        stage.over()
        verdict = stage.finish()
        wait_until(lambda: one(stage.bench.db, _LAUNCHER) is not None, what="pg_cron to come back")
        return verdict


@contextmanager
def _scheduled(scene: Scene) -> Iterator[tuple[Stage, Throwaway]]:
    with ExitStack() as stack:
        cluster = stack.enter_context(throwaway(durable=True))
        if not cluster.cluster.memory.cron:
            raise NotHere("this PostgreSQL has no pg_cron")
        schema.migrate(cluster.url(), pipeline=False)
        stage = stack.enter_context(
            staged(
                cluster,
                url=cluster.url(),
                fenced=scene.fenced,
                terms={"ready": "task LIKE 'wanted%' AND status IS NULL", "schedule": "* * * * *"},
            )
        )
        stage.cast()
        yield stage, cluster


def _want(stage: Stage, count: int) -> None:
    """Rows that only a dispatch will queue."""
    stage.bench.db.execute(
        "INSERT INTO item (id, task) SELECT n, 'wanted' FROM generate_series("
        " (SELECT coalesce(max(id), 0) + 1000 FROM item), (SELECT coalesce(max(id), 0) + 999 + %s FROM item)) AS n",
        [count],
    )


def _miss_a_slot(stage: Stage, count: int) -> None:
    _want(stage, count)
    stage.bench.db.execute(_OVERDUE)


def _is_back(stage: Stage) -> bool:
    try:
        stage.bench.reconnect()
    except psycopg.OperationalError:
        return False
    return True
