"""The primary dies under load and a standby takes over: listener and queue go on, nothing acknowledged is lost."""

import tempfile
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from listener import schema
from listener.postgres.throwaway import Throwaway, throwaway
from tests.faults import every
from tests.faults.scenario import run
from tests.faults.sink import sink_on_loopback
from tests.faults.standby import Standby, standby_of
from tests.listener.started import Bench, bench_on
from tests.waiting import wait_until

pytestmark = pytest.mark.slow

REPLICATED = {"wal_level": "replica", "max_wal_senders": "5", "hot_standby": "on"}


@pytest.fixture
def pair() -> Iterator[tuple[Throwaway, Standby]]:
    with (
        throwaway(durable=True, settings=REPLICATED) as primary,
        tempfile.TemporaryDirectory(prefix="scrapersky-standby-") as folder,
        standby_of(primary, Path(folder)) as standby,
    ):
        yield primary, standby


def test_after_a_failover_every_acknowledged_item_is_done_once(pair: tuple[Throwaway, Standby], tmp_path: Path) -> None:
    primary, standby = pair
    schema.migrate(primary.create_database("app"), pipeline=False)
    with bench_on(primary.url("app"), tmp_path) as bench, sink_on_loopback() as (_, sink_url):
        bench.db.execute("ALTER TABLE effect ADD COLUMN at timestamptz")
        bench.adopt("chaos", lease="3 seconds", batch_size=20, max_attempts=50, breaker=False)
        bench.start(
            entries=("chaos = tests.faults.workflow:chaos",),
            url=standby.both("app"),
            SINK=sink_url,
            LISTENER_POLL_SECONDS="0.5",
        )
        # one commit for many: acknowledged, so the standby has it
        bench.queue(*["ok"] * 400)
        wait_until(lambda: len(bench.effects()) >= 40, what="work under way")
        bench.db.close()
        primary.cluster.stop("immediate")
        standby.promote()
        _follow(bench, standby)
        bench.wait_for("Completed")
        assert bench.effects() == list(range(1, 401))
        # the schedules came along: the promoted server answers for them
        row = bench.db.execute("SELECT count(*) FROM scheduler.status WHERE workflow = 'chaos'").fetchone()
        assert row == (1,)


def test_the_same_behind_pgbouncer_with_a_direct_connection_for_listen(cluster: Throwaway) -> None:
    outcome = run(every.chosen(["F31b"])[0], cluster)
    if outcome.skipped:
        pytest.skip(outcome.skipped)
    assert outcome.word == "ok", outcome
    assert outcome.verdict.items


def _follow(bench: Bench, standby: Standby) -> None:
    bench.url = standby.url("app")
    bench.db = psycopg.connect(bench.url, autocommit=True)
