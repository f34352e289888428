"""Large numbers: a million queued items, a thousand workflows, two hundred connections of listeners."""

import os
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any
from uuid import uuid4

import psycopg

from listener import Workflow, schema
from listener.cli.say import say
from listener.cli.table import table
from listener.postgres.throwaway import Throwaway
from tests.listener.started import Bench
from tests.sql.queue import Queue, one
from tests.waiting import wait_until

ROOMY = {"max_connections": "400", "max_locks_per_transaction": "512", "shared_buffers": "512MB"}
MILLION = 1_000_000
WORKFLOWS = 1000
CONNECTIONS = 200
_WATCHED = {
    "status": "SELECT * FROM scheduler.status",
    "doctor": "SELECT * FROM scheduler.doctor()",
    "maintain": "SELECT * FROM scheduler.maintain()",
    "tick": "SELECT * FROM scheduler.tick()",
}


@dataclass(frozen=True)
class Figure:
    """The same of something small and of something large."""

    what: str
    small: float
    large: float
    most: float = float("inf")
    """What the large one may be."""


def scale(cluster: Throwaway) -> int:
    figures: list[Figure] = []
    for play in (million, thousand, connections):
        for figure in play(cluster):
            figures.append(figure)
            say(f"{figure.what}: {figure.small:.1f}; {figure.large:.1f}")
    print(table(("", "small", "large"), [(f.what, f"{f.small:.1f}", f"{f.large:.1f}") for f in figures]))
    if failed := [f"{f.what}: {f.large:.1f}, and {f.most:.1f} is the most" for f in figures if f.large > f.most]:
        print("\nFAILED: " + "; ".join(failed))
    return 1 if failed else 0


def million(cluster: Throwaway) -> Iterator[Figure]:
    """The same statements with a thousand items queued and with a million."""
    figures: list[dict[str, float]] = []
    for size in (1000, MILLION):
        with _database(cluster) as db:
            Queue(db, 0, batch_size=100, breaker=False)
            db.execute("INSERT INTO item (id, status) SELECT n, 'Queued' FROM generate_series(1, %s) AS n", [size])
            db.execute("VACUUM ANALYZE item")
            queue = Queue.of(db)
            took: dict[str, list[float]] = {"claim of 100": [], "finish of 100": []}
            for _ in range(min(200, size // 100)):
                claim = _timed(took["claim of 100"], queue.claim)
                _timed(took["finish of 100"], partial(queue.succeed, claim.run))
            figures.append({name: statistics.median(values) for name, values in took.items()} | _watch(db))
    for name, small in figures[0].items():
        # flat; a few milliseconds more or less say nothing
        yield Figure(f"{name}, ms, 1 thousand and 1 million queued", small, figures[1][name], most=4 * small + 20)


_READY = "a listener of all: ms until ready"


def thousand(cluster: Throwaway) -> Iterator[Figure]:
    """Ten workflows and a thousand, each with a table and a schedule; and one listener that serves them all."""
    figures: list[dict[str, float]] = []
    for count in (10, WORKFLOWS):
        with _database(cluster) as db, _bench(db) as bench:
            began = time.perf_counter()
            names = [f"job{number}" for number in range(count)]
            for name in names:
                bench.adopt(name, table=f"t_{name}", schedule="*/5 * * * *")
            found = {"create_workflow": (time.perf_counter() - began) * 1000 / count} | _watch(db)
            began = time.perf_counter()
            listener = bench.inside(*(_plain(name) for name in names), listener_poll_seconds=5)
            found[_READY] = (time.perf_counter() - began) * 1000
            began, used = time.perf_counter(), time.process_time()
            for number in range(20):
                bench.queue("ok", table=f"t_{names[-1]}", first=number + 1)
                wait_until(lambda: listener.counts(names[-1]).succeeded > number, what="the last one's item")  # noqa: B023
            found["a listener of all: queued to done"] = (time.perf_counter() - began) * 1000 / 20
            began, used = time.perf_counter(), time.process_time()
            _rest(10)
            found["a listener of all: CPU in a second, idle"] = (
                (time.process_time() - used) / (time.perf_counter() - began) * 1000
            )
            found["a listener of all: connections"] = bench.backends("listener")
            figures.append(found)
    for name, small in figures[0].items():
        most = 10_000 if name == _READY else float("inf")
        yield Figure(f"{name}, 10 workflows and {WORKFLOWS}", small, figures[1][name], most)


def connections(cluster: Throwaway) -> Iterator[Figure]:
    """One listener and as many as hold two hundred connections: from commit to done, and through the whole queue."""
    figures: list[dict[str, float]] = []
    for wanted in (1, CONNECTIONS):
        with _database(cluster) as db, _bench(db) as bench:
            bench.adopt("job", batch_size=20, concurrency=20)
            ours = "SELECT count(*) FROM pg_stat_activity WHERE application_name LIKE 'scrapersky%'"
            listeners = 0
            while one(db, ours) < wanted:
                bench.inside(_plain("job"), listener_poll_seconds=5)
                listeners += 1
            waits: list[float] = []
            for number in range(1, 51):
                began = time.perf_counter()
                bench.queue("ok", first=number)
                done = "SELECT count(*) FROM item WHERE status = 'Completed'"
                wait_until(lambda: one(db, done) == number, what="the item")  # noqa: B023
                waits.append((time.perf_counter() - began) * 1000)
            began = time.perf_counter()
            bench.queue(*["ok"] * 5000, first=1000)
            wait_until(lambda: one(db, done) == 5050, what="all of them")  # noqa: B023
            figures.append(
                {
                    "listeners": listeners,
                    "connections": one(db, ours),
                    "queued to done, ms": statistics.median(waits),
                    "items a second": 5000 / (time.perf_counter() - began),
                }
            )
    for name, small in figures[0].items():
        yield Figure(f"{name}, one listener and many", small, figures[1][name])


def _plain(name: str) -> Workflow[Any, Any]:
    async def work(_item: dict[str, Any], _tools: Any) -> None:
        return None

    return Workflow(name, dict, work)


def _watch(db: psycopg.Connection) -> dict[str, float]:
    found = {}
    for name, query in _WATCHED.items():
        took: list[float] = []
        for _ in range(5):
            _timed(took, lambda: db.execute(query.encode()).fetchall())  # noqa: B023 - called at once
        found[name] = statistics.median(took)
    return found


def _timed(into: list[float], act: Callable[[], Any]) -> Any:
    began = time.perf_counter()
    answer = act()
    into.append((time.perf_counter() - began) * 1000)
    return answer


def _rest(seconds: float) -> None:
    end = time.monotonic() + seconds
    wait_until(lambda: time.monotonic() > end, what="the end of the measurement")


@contextmanager
def _database(cluster: Throwaway) -> Iterator[psycopg.Connection]:
    name = f"scale_{uuid4().hex[:8]}"
    url = cluster.create_database(name)
    schema.migrate(url, pipeline=False)
    with psycopg.connect(url, autocommit=True) as db:
        yield db
    cluster.drop_database(name)


@contextmanager
def _bench(db: psycopg.Connection) -> Iterator[Bench]:
    with tempfile.TemporaryDirectory() as folder:
        os.environ["GATES"] = folder
        url = db.info.dsn + f" password={db.info.password}"
        bench = Bench(url, Path(folder))
        try:
            yield bench
        finally:
            bench.close()
