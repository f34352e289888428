"""A random mix of faults against real listeners, the same for the same seed, and what came of it.

Lease 3 s, poll 1 s. Every listener has a network of its own, so that one can be cut off and the others not.
"""

import random
import signal
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import LiteralString

import psycopg
from psycopg import conninfo

from listener import schema
from listener.postgres.throwaway import Throwaway
from tests.faults.proxy import Proxy, proxied
from tests.faults.sink import Sink, sink_on_loopback
from tests.listener.started import Bench, Process
from tests.listener.unfenced import NO_FENCE
from tests.waiting import wait_until

LEASE_SECONDS = 3.0
POLL_SECONDS = 1.0
PATIENCE = 120.0


@dataclass
class Report:
    seed: int
    items: int
    fenced: bool
    faults: dict[str, int] = field(default_factory=dict)
    lost: int = 0
    """Items without a final word in the end."""
    duplicates: int = 0
    """Effects that exist more than once."""
    missing: int = 0
    """Items with a final word and no effect."""
    repeated: int = 0
    """Items for which the outside was called more than once; allowed, and counted."""
    refused: int = 0
    """Results that the fence kept out."""
    recovery: float = 0.0
    """The longest time from the end of a fault to the next committed effect, in seconds."""
    seconds: float = 0.0


class Fleet:
    """The server, the listeners with their networks, and what can be done to them."""

    def __init__(self, cluster: Throwaway, bench: Bench, proxies: list[Proxy], sink_url: str) -> None:
        self._cluster = cluster
        self._bench = bench
        self._proxies = proxies
        self._sink_url = sink_url
        self.listeners: list[Process] = [self._start(number) for number in range(len(proxies))]
        self.ends: list[float] = []
        """When each fault was over, by the server's clock, which is this machine's."""

    def _start(self, number: int) -> Process:
        url = conninfo.make_conninfo(self._bench.url, host="127.0.0.1", port=self._proxies[number].port)
        return self._bench.start(
            entries=("chaos = tests.faults.workflow:chaos",),
            url=url,
            ready=False,
            SINK=self._sink_url,
            LISTENER_POLL_SECONDS=str(POLL_SECONDS),
            LISTENER_STATEMENT_SECONDS="5",
        )

    def kill(self, number: int) -> None:
        self.listeners[number].kill()
        self.listeners[number] = self._start(number)

    def freeze(self, number: int) -> None:
        """Longer than its lease, so that others have its items when it wakes."""
        self.listeners[number].signal(signal.SIGSTOP)
        self._pause(LEASE_SECONDS + 1.5)
        self.listeners[number].signal(signal.SIGCONT)

    def cut(self, _number: int) -> None:
        for role in ("listener", "doorbell", "heartbeat"):
            self._bench.terminate_backends(role)

    def partition(self, number: int) -> None:
        self._proxies[number].mode = "stall"
        self._pause(LEASE_SECONDS + 1)
        self._proxies[number].mode = "pass"

    def reset(self, number: int) -> None:
        self._proxies[number].reset()

    def slow(self, number: int) -> None:
        self._proxies[number].mode = "slow"
        self._pause(1)
        self._proxies[number].mode = "pass"

    def lock(self, _number: int) -> None:
        with psycopg.connect(self._bench.url) as blocker:
            blocker.execute("LOCK TABLE item IN ACCESS EXCLUSIVE MODE")
            self._pause(0.7)

    def restart(self, _number: int) -> None:
        self._cluster.restart("fast")
        self._bench.reconnect()

    def crash(self, _number: int) -> None:
        self._cluster.restart("immediate")
        self._bench.reconnect()

    def drain(self, number: int) -> None:
        self.listeners[number].signal(signal.SIGTERM)
        self.listeners[number].wait(40)
        self.listeners[number] = self._start(number)

    @property
    def faults(self) -> dict[str, Callable[[int], None]]:
        return {
            fault.__name__: fault
            for fault in (
                self.kill,
                self.freeze,
                self.cut,
                self.partition,
                self.reset,
                self.slow,
                self.lock,
                self.restart,
                self.crash,
                self.drain,
            )
        }

    @staticmethod
    def _pause(seconds: float) -> None:
        """The length of a fault; nothing is waited for."""
        threading.Event().wait(seconds)


def run_mix(
    cluster: Throwaway, seed: int, *, items: int = 600, listeners: int = 3, faults: int = 8, fenced: bool = True
) -> Report:
    """One seed: so many faults while so many items are worked on, then everything is left to recover."""
    chance = random.Random(seed)
    report = Report(seed, items, fenced)
    started = time.monotonic()
    with _fleet(cluster, listeners, items, fenced=fenced) as (fleet, bench, sink):
        kinds = list(fleet.faults) if fenced else ["freeze", "partition"]
        share = items // (faults + 1)
        for number in range(faults):
            # in step with the work, so that every fault finds items in flight
            bench.db.execute(
                "UPDATE item SET status = 'Queued' WHERE id > %s AND id <= %s", [number * share, (number + 1) * share]
            )
            _await_effects(bench, number * share)
            kind = chance.choice(kinds)
            report.faults[kind] = report.faults.get(kind, 0) + 1
            fleet.faults[kind](chance.randrange(listeners))
            fleet.ends.append(time.time())
        bench.db.execute("UPDATE item SET status = 'Queued' WHERE id > %s", [faults * share])
        _await_end(bench)
        _judge(report, fleet, bench, sink)
    report.seconds = time.monotonic() - started
    return report


@contextmanager
def _fleet(cluster: Throwaway, listeners: int, items: int, *, fenced: bool) -> Iterator[tuple[Fleet, Bench, Sink]]:
    name = f"chaos_{random.SystemRandom().randrange(10**9)}"
    url = cluster.create_database(name)
    schema.migrate(url)
    with ExitStack() as stack:
        stack.callback(cluster.drop_database, name)
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        sink, sink_url = stack.enter_context(sink_on_loopback())
        bench = Bench(url, folder)
        stack.callback(bench.close)
        bench.db.execute("ALTER TABLE effect ADD COLUMN at timestamptz")
        bench.adopt(
            "chaos", lease=f"{LEASE_SECONDS} seconds", batch_size=20, concurrency=10, max_attempts=50, breaker=False
        )
        bench.db.execute("INSERT INTO item (id) SELECT generate_series(1, %s)", [items])
        if not fenced:
            bench.db.execute(NO_FENCE)
        port = int(conninfo.conninfo_to_dict(url)["port"] or 0)
        proxies = [stack.enter_context(proxied(port)) for _ in range(listeners)]
        yield Fleet(cluster, bench, proxies, sink_url), bench, sink


def _await_effects(bench: Bench, count: int) -> None:
    """Until work of this share has begun to arrive."""
    wait_until(lambda: _number(bench, "SELECT count(*) FROM effect") > count * 0.8, PATIENCE, "progress")


def _await_end(bench: Bench) -> None:
    left: LiteralString = "SELECT count(*) FROM item WHERE status IS DISTINCT FROM 'Completed'"
    runs: LiteralString = "SELECT count(*) FROM scheduler.run WHERE finished_at IS NULL"
    wait_until(lambda: _number(bench, left) + _number(bench, runs) == 0, PATIENCE, "every item to be completed")


def _judge(report: Report, fleet: Fleet, bench: Bench, sink: Sink) -> None:
    report.lost = _number(bench, "SELECT count(*) FROM item WHERE status IS DISTINCT FROM 'Completed'")
    report.duplicates = _number(bench, "SELECT count(*) - count(DISTINCT item) FROM effect")
    report.missing = _number(
        bench, "SELECT count(*) FROM item WHERE NOT EXISTS (SELECT FROM effect WHERE effect.item = item.id)"
    )
    report.repeated = sink.repeated
    report.refused = sum(
        int(line.get("items", 0)) for process in bench.processes for line in process.lines("results refused")
    )
    for end in fleet.ends:
        row = bench.db.execute(
            "SELECT extract(epoch FROM min(at)) FROM effect WHERE at > to_timestamp(%s)", [end]
        ).fetchone()
        if row is not None and row[0] is not None:
            report.recovery = max(report.recovery, float(row[0]) - end)


def _number(bench: Bench, query: LiteralString) -> int:
    row = bench.db.execute(query).fetchone()
    return int(row[0]) if row else 0
