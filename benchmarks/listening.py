"""What a real listener does with a queue: how soon it begins, how fast it drains, and what it keeps in memory."""

import json
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import IO, LiteralString, cast

import psycopg
from psycopg import conninfo

from benchmarks.child import PICKUP, RAW, STEADY
from benchmarks.queue import Places, Queue
from benchmarks.scale import Figures, Say, Scale
from benchmarks.stopwatch import alternate, timed

BATCH_ITEMS = 1000
WARMUP = 20
_TICK_SECONDS = 0.01
_PATIENCE_MS = 60_000
_REST_SECONDS = 0.01
"""So long, and a processor that has nothing to do falls asleep."""


class Child:
    """A listener in another process."""

    def __init__(self, popen: "subprocess.Popen[str]") -> None:
        self._popen = popen
        self._lines = cast("IO[str]", popen.stdout)

    def line(self) -> str:
        line = self._lines.readline()
        if not line:
            raise AssertionError(f"the listener has ended with code {self._popen.wait()}")
        return line.strip()

    def kill(self) -> None:
        self._popen.kill()

    def stop(self) -> str:
        """Let it finish; its last line."""
        self._popen.terminate()
        lines = self._lines.read().strip().splitlines()
        return lines[-1] if lines else ""

    def memory(self) -> int:
        """In kB, what it occupies now."""
        shown = subprocess.run(["ps", "-o", "rss=", "-p", str(self._popen.pid)], capture_output=True, check=True)
        return int(shown.stdout)


@contextmanager
def child(db: psycopg.Connection, *workflows: str) -> Iterator[Child]:
    url = conninfo.make_conninfo(db.info.dsn, password=db.info.password)
    command = [sys.executable, "-m", "benchmarks.child", url, *workflows]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as popen:
        try:
            started = Child(popen)
            while started.line() != "ready":
                pass
            yield started
        finally:
            popen.terminate()


def pickup(db: psycopg.Connection, scale: Scale, say: Say) -> Figures:
    """From COMMIT to the first line of `work`, one item at a time, next to a bare notification to the same process.

    Each is sent as soon as the listener has finished with the one before; and a tenth as many after a rest.
    """
    say(f"Picking up {scale.pickups} items, one at a time, beside bare notifications ...")
    rests = max(2, scale.pickups // 10)
    items = 2 * WARMUP + scale.pickups + rests
    queue = Queue(db, PICKUP, queued=0, finished=items)
    keys = iter(range(1, items + 1))
    with child(db, PICKUP) as listener, psycopg.connect(db.info.dsn, password=db.info.password) as session:

        def wait_for(statement: LiteralString, *values: object) -> float:
            session.execute(statement, values)
            start = time.monotonic_ns()
            session.commit()
            return (int(listener.line()) - start) / 1e9

        def item() -> float:
            key = next(keys)
            seconds = wait_for("UPDATE pickup SET status = 'Queued' WHERE id = %s", key)
            queue.drained(key)
            return seconds

        def rested(lap: Callable[[], float]) -> float:
            time.sleep(_REST_SECONDS)
            return lap()

        def bare() -> float:
            return wait_for(f"NOTIFY {RAW}")

        work, bell = alternate(item, bare, rounds=scale.pickups, warmup=WARMUP)
        work_rested, bell_rested = alternate(lambda: rested(item), lambda: rested(bare), rounds=rests, warmup=WARMUP)
    return {
        "pickup_p50_ms": work.ms,
        "pickup_p95_ms": 1000 * statistics.quantiles(work.seconds, n=100)[94],
        "pickup_p99_ms": 1000 * statistics.quantiles(work.seconds, n=100)[98],
        "notify_p50_ms": bell.ms,
        "notify_p99_ms": 1000 * statistics.quantiles(bell.seconds, n=100)[98],
        "pickup_rested_p50_ms": work_rested.ms,
        "notify_rested_p50_ms": bell_rested.ms,
    }


def drain(db: psycopg.Connection, scale: Scale, say: Say) -> Figures:
    """One listener, no-op work, from the bell to the last commit; beside claim + succeed in a plain loop."""
    rounds = range(1 + scale.drains)
    say(f"Draining {scale.drained:,} items {len(rounds)} times by a listener and by a plain loop ...")
    plain = [Queue(db, f"plain_{n}", queued=scale.drained) for n in rounds]
    drained = [Queue(db, f"drain_{n}", queued=scale.drained, paused=True) for n in rounds]
    with child(db, *(queue.name for queue in drained)):

        def loop(queue: Queue) -> None:
            for _ in range(scale.drained // BATCH_ITEMS):
                queue.work(BATCH_ITEMS)

        def listen(queue: Queue) -> None:
            queue.resume()
            queue.drained(scale.drained)

        loops, listens = iter(plain), iter(drained)
        by_loop, by_listener = alternate(
            lambda: timed(lambda: loop(next(loops))),
            lambda: timed(lambda: listen(next(listens))),
            rounds=scale.drains,
            warmup=1,
        )
    return {
        "drained_items": scale.drained,
        "listener_items_per_second": scale.drained / by_listener.median,
        "plain_loop_items_per_second": scale.drained / by_loop.median,
        "listener_to_loop_ratio": by_loop.median / by_listener.median,
    }


def memory(db: psycopg.Connection, scale: Scale, say: Say) -> Figures:
    """Whether a listener grows with what it has done: its memory after a tenth of the items, and after all."""
    say(f"Draining {scale.many:,} items to see what stays in memory ...")
    queue = Queue(db, "many", queued=scale.many, paused=True)
    with child(db, queue.name) as listener:
        queue.resume()
        queue.drained(scale.many // 10)
        early = listener.memory()
        queue.drained(scale.many)
        late = listener.memory()
    return {
        "memory_items": scale.many,
        "memory_early_kb": early,
        "memory_late_kb": late,
        "memory_growth_ratio": late / early,
    }


def steady(db: psycopg.Connection, scale: Scale, say: Say) -> Figures:
    """The same while items keep coming at half of what one listener can do, a hundred times a second."""
    queue = Places(db, STEADY, queued=2 * scale.drained, paused=True)
    with (
        child(db, STEADY) as listener,
        psycopg.connect(db.info.dsn, password=db.info.password, autocommit=True) as session,
    ):
        capacity = queue.pace(scale.drained)
        queue.resume()
        while queue.left():
            time.sleep(_REST_SECONDS)
        each = max(1, int(capacity / 2 * _TICK_SECONDS))
        say(f"Half of {capacity:,.0f} items/s for {scale.drained:,} items ...")
        due = time.monotonic()
        for _ in range(max(1, scale.drained // each)):
            due += _TICK_SECONDS
            time.sleep(max(0.0, due - time.monotonic()))
            session.execute(
                "INSERT INTO steady (status, sent) SELECT 'Queued', %s FROM generate_series(1, %s)",
                (time.monotonic_ns(), each),
            )
        while queue.left():
            time.sleep(_REST_SECONDS)
        # the rows that were there before were never sent
        taken = [ms for ms in json.loads(listener.stop()) if ms < _PATIENCE_MS]
    cuts = statistics.quantiles(taken, n=100)
    return {
        "steady_items_per_second": each / _TICK_SECONDS,
        "steady_p50_ms": cuts[49],
        "steady_p95_ms": cuts[94],
        "steady_p99_ms": cuts[98],
    }
