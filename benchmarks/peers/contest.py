"""The measurements, each in processes of its own, one peer after the other, round after round."""

import json
import os
import signal
import statistics
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

import psycopg

from benchmarks.peers.environment import Environment, UnavailableError
from benchmarks.peers.roster import Peer
from listener.postgres.throwaway import Throwaway

ROOT = Path(__file__).parents[2]
_PATIENCE = 60.0


@dataclass(frozen=True)
class Scale:
    single: int
    bulk: int
    latency: int
    """The first twentieth does not count: nobody's process is warm then."""
    rounds: int


FULL = Scale(single=1000, bulk=50_000, latency=200, rounds=3)
QUICK = Scale(single=20, bulk=200, latency=5, rounds=1)


@dataclass
class Score:
    """One peer's figures, a list of rounds each."""

    version: str = ""
    single: list[float] = field(default_factory=list)
    bulk: list[float] = field(default_factory=list)
    drain1: list[float] = field(default_factory=list)
    drain2: list[float] = field(default_factory=list)
    wal: list[float] = field(default_factory=list)
    held: list[float] = field(default_factory=list)
    commits: list[float] = field(default_factory=list)
    dead: list[float] = field(default_factory=list)
    memory: list[float] = field(default_factory=list)
    latencies: list[float] = field(default_factory=list)
    trouble: str = ""

    def figures(self) -> dict[str, float]:
        found = {
            name: statistics.median(values)
            for name, values in (
                ("enqueue_per_second", self.single),
                ("bulk_per_second", self.bulk),
                ("drain_1_per_second", self.drain1),
                ("drain_2_per_second", self.drain2),
                ("wal_bytes_per_item", self.wal),
                ("commits_per_item", self.commits),
                ("held_per_second", self.held),
                ("dead_tuples_per_item", self.dead),
                ("worker_mb", self.memory),
            )
            if values
        }
        if len(self.latencies) > 1:
            cuts = statistics.quantiles(self.latencies, n=100)
            found |= {"pickup_p50_ms": cuts[49], "pickup_p99_ms": cuts[98]}
        return found


class Entrant:
    """A peer with its own database."""

    def __init__(self, peer: Peer, environment: Environment, cluster: Throwaway) -> None:
        self.peer = peer
        self._environment = environment
        environment.install(peer)
        name = f"peer_{peer.script.partition('.')[0]}{peer.variant}"
        self._url = cluster.create_database(name)
        self.score = Score(version=environment.version(peer))
        self._ask("setup")

    def measure(self, scale: Scale) -> None:
        """One round. What is left of an earlier step is worked off first, so that each starts with an empty queue."""
        self.score.single.append(scale.single / self._seconds("single", scale.single))
        self._drain(1)
        bulk = max(100, round(scale.bulk * self.peer.share))
        for workers, held, drains in (
            (1, False, self.score.drain1),
            (2, False, self.score.drain2),
            (1, True, self.score.held),
        ):
            self.score.bulk.append(bulk / self._seconds("bulk", bulk))
            self._execute("VACUUM ANALYZE")
            wal, commits, dead = self._wal(), self._commits(), self._dead()
            with self._snapshot(held):
                drains.append(bulk / self._drain(workers))
            if workers == 1 and not held:
                self.score.wal.append((self._wal() - wal) / bulk)
                self.score.commits.append((self._commits() - commits) / bulk)
                self.score.dead.append((self._dead() - dead) / bulk)
        self.score.latencies += self._ask("latency", scale.latency)["milliseconds"][scale.latency // 20 :]

    def _seconds(self, verb: str, items: int) -> float:
        return float(self._ask(verb, items)["seconds"])

    def _ask(self, verb: str, items: int = 0) -> dict[str, Any]:
        """Run the adapter to its end; its last word."""
        with self._started(verb, items) as (process, complaint):
            try:
                said, _ = process.communicate(timeout=_PATIENCE)
            except subprocess.TimeoutExpired:
                raise UnavailableError(f"{verb} took more than {_PATIENCE:.0f} s") from None
            lines = [line for line in said.splitlines() if line.startswith("{")]
            if process.returncode or not lines:
                raise UnavailableError(f"{verb} failed: {complaint()}")
            return dict(json.loads(lines[-1]))

    def _drain(self, workers: int) -> float:
        """Seconds from the first call of a handler to the moment when the database has no unfinished item."""
        with psycopg.connect(self._url, autocommit=True) as db:
            firsts: list[float] = []
            processes = []
            try:
                for _ in range(workers):
                    started = self._started("work", 0)
                    processes.append((started, *started.__enter__()))
                    threading.Thread(target=_note_first, args=(processes[-1][1].stdout, firsts), daemon=True).start()
                ended = self._await_empty(db, lambda: [c() for _, p, c in processes if p.poll() is not None])
                self.score.memory.append(_megabytes(processes[0][1].pid))
            finally:
                for started, process, _ in processes:
                    if process.poll() is None:
                        process.send_signal(signal.SIGTERM)
                    started.__exit__(None, None, None)
            return ended - min(firsts) if firsts else 1e-9

    def _await_empty(self, db: psycopg.Connection, dead: Callable[[], list[str]]) -> float:
        deadline = time.monotonic() + _PATIENCE
        while True:
            asked = time.monotonic()
            row = db.execute(self.peer.left).fetchone()
            now = time.monotonic()
            if row is not None and not row[0]:
                return now
            if complaints := dead():
                raise UnavailableError(f"its worker ended: {complaints[0]}")
            if now > deadline:
                raise UnavailableError(f"not drained after {_PATIENCE:.0f} s")
            # looking takes little of a processor, also from those whose finished jobs it has to pass over
            time.sleep(min(0.05, max(0.01, 4 * (now - asked))))

    @contextmanager
    def _started(self, verb: str, items: int) -> "Iterator[tuple[subprocess.Popen[str], Callable[[], str]]]":
        with tempfile.TemporaryFile("w+") as errors:
            process = subprocess.Popen(
                self._environment.command(self.peer, verb, items),
                cwd=ROOT,
                env={**os.environ, "DATABASE_URL": self._url, "VARIANT": self.peer.variant},
                stdout=subprocess.PIPE,
                stderr=errors,
                text=True,
            )

            def complaint() -> str:
                errors.seek(0)
                lines = errors.read().strip().splitlines()
                return lines[-1][:300] if lines else f"exit code {process.returncode}, without a word"

            try:
                yield process, complaint
            finally:
                try:
                    process.wait(10 if process.poll() is None else 0)
                except subprocess.TimeoutExpired:
                    process.kill()
                    process.wait()

    @contextmanager
    def _snapshot(self, wanted: bool) -> Iterator[None]:
        """A report that runs the whole time: nothing that dies meanwhile can be cleaned away."""
        if not wanted:
            yield
            return
        with psycopg.connect(self._url) as db:
            db.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
            db.execute("SELECT count(*) FROM pg_class")
            yield

    def _execute(self, statement: str) -> Any:
        with psycopg.connect(self._url, autocommit=True) as db:
            cursor = db.execute(statement.encode())
            return cursor.fetchone() if cursor.description else None

    def _wal(self) -> float:
        return float(self._execute("SELECT pg_current_wal_insert_lsn() - '0/0'::pg_lsn")[0])

    def _commits(self) -> float:
        # counters of other sessions arrive with a second's delay
        self._execute("SELECT pg_stat_force_next_flush()")
        return float(self._execute("SELECT xact_commit FROM pg_stat_database WHERE datname = current_database()")[0])

    def _dead(self) -> float:
        """Rows that an UPDATE or DELETE has left behind so far."""
        return float(self._execute("SELECT sum(n_tup_upd + n_tup_del) FROM pg_stat_user_tables")[0])


def _megabytes(pid: int) -> float:
    shown = subprocess.run(["ps", "-o", "rss=", "-p", str(pid)], capture_output=True, text=True, check=False).stdout
    return float(shown or 0) / 1024


def _note_first(stream: IO[str] | None, firsts: list[float]) -> None:
    # the stream goes on until the worker ends, so that it never blocks on a full pipe
    firsts.extend(float(json.loads(line)["first"]) for line in stream or () if line.startswith('{"first"'))
