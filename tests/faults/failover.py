"""The primary dies under load and a standby takes over, with synchronous replication and without."""

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psycopg

from listener import schema
from listener.postgres.throwaway import Throwaway, throwaway
from tests.faults.scenario import Scene, fault
from tests.faults.stage import Stage, staged
from tests.faults.standby import Standby, standby_of
from tests.faults.verdict import Verdict
from tests.waiting import wait_until

REPLICATED = {"wal_level": "replica", "max_wal_senders": "5", "hot_standby": "on"}
_ACKNOWLEDGED = 200


@fault("F31", "the primary dies and its synchronous standby takes over")
def synchronous(scene: Scene) -> Verdict:
    with pair() as (primary, standby), _app(primary, scene) as stage:
        stage.cast(1, env={"DATABASE_URL": standby.both("app")})
        stage.queue(_ACKNOWLEDGED)  # one commit: acknowledged, so the standby has it
        stage.await_effects(20)
        stage.bench.db.close()
        primary.cluster.stop("immediate")
        standby.promote()
        follow(stage, standby)
        stage.over()
        verdict = stage.finish()
        there = stage.number("SELECT count(*) FROM item WHERE id <= 200")
        assert there == _ACKNOWLEDGED, f"{_ACKNOWLEDGED - there} acknowledged items are gone"
        verdict.notes.append("acknowledged and gone: 0")
        return verdict


@fault("F31a", "the primary dies and its asynchronous standby takes over: what it had not received is gone")
def asynchronous(scene: Scene) -> Verdict:
    with pair(synchronous=False) as (primary, standby), _app(primary, scene) as stage:
        stage.cast(1, env={"DATABASE_URL": standby.both("app")})
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
def _app(primary: Throwaway, scene: Scene) -> Iterator[Stage]:
    schema.migrate(primary.create_database("app"), pipeline=False)
    with staged(primary, url=primary.url("app"), fenced=scene.fenced) as stage:
        yield stage


def follow(stage: Stage, standby: Standby) -> None:
    """The test's own session goes to the promoted server too."""
    stage.bench.url = standby.url("app")
    wait_until(lambda: _is_primary(stage.bench.url), 20, "the promoted server")
    stage.bench.db = psycopg.connect(stage.bench.url, autocommit=True)


def _is_primary(url: str) -> bool:
    with psycopg.connect(url, autocommit=True) as db:
        return db.execute("SELECT pg_is_in_recovery()").fetchone() == (False,)
