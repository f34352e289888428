"""The primary dies under load and a standby takes over, with synchronous replication and without."""

import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import psycopg
import pytest

from listener import schema
from listener.postgres.configuration import DATABASE
from listener.postgres.throwaway import Throwaway, throwaway
from tests.faults.scenario import NotHere, Scene, fault
from tests.faults.stage import Stage, staged
from tests.faults.standby import Standby, standby_of
from tests.faults.verdict import Verdict
from tests.listener.pgbouncer import pgbouncer
from tests.sql.queue import one
from tests.waiting import wait_until

REPLICATED = {"wal_level": "replica", "max_wal_senders": "5", "hot_standby": "on"}
_ACKNOWLEDGED = 200


@fault("F31", "the primary dies and its synchronous standby takes over, pg_cron with it")
def synchronous(scene: Scene) -> Verdict:
    with pair() as (primary, standby), _app(primary, scene, schedule="* * * * *") as stage:
        stage.cast(1, env={"DATABASE_URL": standby.both(DATABASE)})
        verdict = _take_over(stage, primary, standby)
        if primary.cluster.memory.cron:
            # promoted, its launcher begins: at the next full minute it is heard
            heard = "SELECT pg_cron_seen_at > to_timestamp(%s) FROM scheduler.control"
            end = stage.blows[-1].ended
            wait_until(lambda: one(stage.bench.db, heard, end), 130, what="pg_cron on the promoted server")
            verdict.notes.append("pg_cron fires there")
        return verdict


@fault("F31b", "the same through PgBouncer in transaction mode, with a direct connection for LISTEN")
def pooled(scene: Scene) -> Verdict:
    with ExitStack() as stack:
        primary, standby = stack.enter_context(pair())
        stage = stack.enter_context(_app(primary, scene))
        try:
            # behind the proxy: whoever runs a pooler points it to the new primary
            pooler = stack.enter_context(pgbouncer(stage.url()))
        except pytest.skip.Exception as reason:
            raise NotHere(str(reason)) from None
        stage.cast(1, env={"DATABASE_URL": pooler, "DATABASE_LISTEN_URL": standby.both(DATABASE)})
        verdict = _take_over(stage, primary, standby)
        wait_until(lambda: stage.bench.backends("doorbell") == 1, what="the listener to listen at the new primary")
        verdict.notes.append("listens there directly")
        return verdict


def _take_over(stage: Stage, primary: Throwaway, standby: Standby) -> Verdict:
    stage.queue(_ACKNOWLEDGED)  # one commit: acknowledged, so the standby has it
    stage.await_effects(20)
    stage.bench.db.close()
    primary.cluster.stop("immediate")
    standby.promote()
    for proxy in stage.proxies:
        proxy.target = standby.port
    follow(stage, standby)
    stage.over()
    verdict = stage.finish()
    gone = _ACKNOWLEDGED - stage.number("SELECT count(*) FROM item WHERE id <= 200")
    assert gone == 0, f"{gone} acknowledged items are gone"
    verdict.notes.append("acknowledged and gone: 0")
    return verdict


@fault("F31a", "the primary dies and its asynchronous standby takes over: what it had not received is gone")
def asynchronous(scene: Scene) -> Verdict:
    with pair(synchronous=False) as (primary, standby), _app(primary, scene) as stage:
        stage.cast(1, env={"DATABASE_URL": standby.both(DATABASE)})
        stage.queue(_ACKNOWLEDGED)
        stage.await_effects(20)
        standby.hold_back()
        stage.queue(50)
        stage.await_effects(40)
        stage.bench.db.close()
        primary.cluster.stop("immediate")
        standby.promote()
        follow(stage, standby)
        stage.over()
        gone = 50 - stage.number("SELECT count(*) FROM item WHERE id BETWEEN 201 AND 250")
        verdict = stage.finish()
        verdict.notes.append(f"acknowledged and gone: {gone} of the last 50, which the standby had not received")
        return verdict


@contextmanager
def pair(*, synchronous: bool = True) -> Iterator[tuple[Throwaway, Standby]]:
    with (
        throwaway(durable=True, settings=REPLICATED) as primary,
        tempfile.TemporaryDirectory(prefix="scrapersky-standby-") as folder,
        standby_of(primary, Path(folder), synchronous=synchronous) as standby,
    ):
        yield primary, standby


@contextmanager
def _app(primary: Throwaway, scene: Scene, **terms: object) -> Iterator[Stage]:
    """In the database in which pg_cron lives."""
    schema.migrate(primary.url(), pipeline=False)
    with staged(primary, url=primary.url(), fenced=scene.fenced, terms=terms) as stage:
        yield stage


def follow(stage: Stage, standby: Standby) -> None:
    """The test's own session goes to the promoted server too."""
    stage.bench.url = standby.url(DATABASE)
    wait_until(lambda: _is_primary(stage.bench.url), what="the promoted server")
    stage.bench.db = psycopg.connect(stage.bench.url, autocommit=True)


def _is_primary(url: str) -> bool:
    with psycopg.connect(url, autocommit=True) as db:
        return db.execute("SELECT pg_is_in_recovery()").fetchone() == (False,)
