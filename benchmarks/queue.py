"""A queue to measure: a table loaded as fast as the server can, registered as a workflow of the same name."""

import time
from collections.abc import Callable
from typing import Any, LiteralString

import psycopg
from psycopg import sql

from benchmarks.stopwatch import timed

# The key is added after the rows: 10 million sort faster than they insert into an index.
_LOAD = """
    CREATE TABLE {table} (id bigint NOT NULL, status text, error text, created_at timestamptz NOT NULL);
    INSERT INTO {table}
    SELECT n, CASE WHEN n <= {finished} THEN 'Completed' ELSE 'Queued' END, NULL,
           timestamptz '2025-01-01' + n * interval '1 second'
    FROM generate_series(1, {finished} + {queued}) AS n;
    ALTER TABLE {table} ADD PRIMARY KEY (id)
"""
_CREATE = """
    SELECT scheduler.create_workflow({name}, {name}, 'status', error_column => 'error',
                                     batch_size => 1000, lease => '1 day')
"""
# LIKE copies the primary key and the engine's partial index, not its triggers.
_COPY = "CREATE TABLE {bare} (LIKE {table} INCLUDING ALL); INSERT INTO {bare} SELECT * FROM {table} ORDER BY id"

# The keys are made in the server: sent as a list from Python, the bare side takes 6.9 ms instead of 6.1, not by its own
# fault, and the engine looks better than it is (0.82 instead of 0.72).
BY_KEYS: LiteralString = "id = ANY (ARRAY(SELECT generate_series(%s::bigint, %s)))"
# The least of all, and not to be had in a queue, whose items seldom have consecutive keys.
BY_RANGE: LiteralString = "id BETWEEN %s AND %s"
_PAUSE_SECONDS = 0.002
_PATIENCE_SECONDS = 600


class Queue:
    def __init__(
        self, db: psycopg.Connection, name: str, *, queued: int, finished: int = 0, paused: bool = False
    ) -> None:
        self.db = db
        self.name = name
        # One transaction: at wal_level minimal a table made in it is written once, not twice.
        with db.transaction():
            self._do(_LOAD, finished=sql.Literal(finished), queued=sql.Literal(queued))
            self._do(_CREATE)
            if paused:
                self._do("SELECT scheduler.pause({name})")
        self._do("VACUUM (ANALYZE) {table}")

    def claim(self, items: int) -> int:
        """The run of exactly so many items."""
        run, keys = self._row("SELECT run, keys FROM scheduler.claim(%s, NULL, %s)", self.name, items)
        if len(keys) != items:
            raise AssertionError(f"{self.name}: claimed {len(keys)} of {items} items")
        return int(run)

    def succeed(self, run: int) -> int:
        return int(self._row("SELECT accepted FROM scheduler.succeed(%s)", run)[0])

    def resume(self) -> None:
        self._do("SELECT scheduler.resume({name})")

    def drained(self, items: int) -> None:
        """Wait until a listener has finished so many. The runs tell: they cost less than looking at the items."""
        deadline = time.monotonic() + _PATIENCE_SECONDS
        while self._finished() < items:
            if time.monotonic() > deadline:
                raise AssertionError(f"{self.name}: not drained in {_PATIENCE_SECONDS} s")
            time.sleep(_PAUSE_SECONDS)

    def _finished(self) -> int:
        return int(self._row("SELECT sum(succeeded) FROM scheduler.run WHERE workflow = %s", self.name)[0] or 0)

    def claim_lap(self, items: int) -> Callable[[], float]:
        """Times the claim alone, then finishes what it took."""

        def lap() -> float:
            runs: list[int] = []
            seconds = timed(lambda: runs.append(self.claim(items)))
            self.succeed(runs[0])
            return seconds

        return lap

    def work(self, items: int) -> None:
        if (accepted := self.succeed(self.claim(items))) != items:
            raise AssertionError(f"{self.name}: finished {accepted} of {items} items")

    def through(self, db: psycopg.Connection) -> "Queue":
        """The same queue in another session."""
        other = object.__new__(Queue)
        other.db, other.name = db, self.name
        return other

    def bare(self, where: LiteralString) -> "Bare":
        table = f"{self.name}_{'range' if where == BY_RANGE else 'keys'}"
        self._do(_COPY, bare=sql.Identifier(table))
        self._do("VACUUM (ANALYZE) {bare}", bare=sql.Identifier(table))
        return Bare(self.db, table, where)

    def _do(self, text: LiteralString, **parts: sql.Composable) -> None:
        given = {"table": sql.Identifier(self.name), "name": sql.Literal(self.name), **parts}
        self.db.execute(sql.SQL(text).format(**given))

    def _row(self, query: LiteralString, *values: object) -> Any:
        return self.db.execute(query, values).fetchone()


class Bare:
    """The same rows and indexes without the engine: the least that two status changes can cost."""

    def __init__(self, db: psycopg.Connection, table: str, where: LiteralString) -> None:
        self.db = db
        self._update = sql.SQL("UPDATE {} SET status = %s WHERE {}").format(sql.Identifier(table), sql.SQL(where))
        self._done = 0

    def work(self, items: int) -> None:
        first, last = self._done + 1, self._done + items
        self._done = last
        for word in ("Processing", "Completed"):
            if self.db.execute(self._update, [word, first, last]).rowcount != items:
                raise AssertionError("the bare table has run out of rows")
