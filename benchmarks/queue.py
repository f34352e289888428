"""A queue to measure: a table loaded as fast as the server can, registered as a workflow of the same name."""

import time
from collections.abc import Callable
from functools import partial
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
# As a business table is: a key that is not in the order of the rows, and more than the engine needs.
_LOAD_PLACES = """
    CREATE TABLE {table} (
        id uuid NOT NULL DEFAULT gen_random_uuid(), name text NOT NULL DEFAULT 'a business of middling name',
        status text, error text, sent bigint NOT NULL DEFAULT 0,
        created_at timestamptz NOT NULL DEFAULT now(), updated_at timestamptz NOT NULL DEFAULT now()
    ) WITH (fillfactor = {fillfactor});
    INSERT INTO {table} (status, created_at)
    SELECT CASE WHEN n <= {finished} THEN 'Completed' ELSE 'Queued' END,
           timestamptz '2025-01-01' + n * interval '1 second'
    FROM generate_series(1, {finished} + {queued}) AS n;
    ALTER TABLE {table} ADD PRIMARY KEY (id)
"""
_CREATE = """
    SELECT scheduler.create_workflow({name}, {name}, 'status', error_column => 'error', processing => {processing},
                                     batch_size => 1000, concurrency => 100, lease => {lease}, doorbell => {doorbell})
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
    _load: LiteralString = _LOAD

    def __init__(
        self,
        db: psycopg.Connection,
        name: str,
        *,
        queued: int,
        finished: int = 0,
        paused: bool = False,
        processing: str | None = "Processing",
        lease: str = "1 day",
        doorbell: str = "commit",
        fillfactor: int = 50,
    ) -> None:
        self.db = db
        self.name = name
        self._fillfactor = fillfactor
        # One transaction: at wal_level minimal a table made in it is written once, not twice.
        with db.transaction():
            self._do(
                self._load,
                finished=sql.Literal(finished),
                queued=sql.Literal(queued),
                fillfactor=sql.Literal(fillfactor),
            )
            self._do(
                _CREATE, processing=sql.Literal(processing), lease=sql.Literal(lease), doorbell=sql.Literal(doorbell)
            )
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
        while self.finished() < items:
            if time.monotonic() > deadline:
                raise AssertionError(f"{self.name}: not drained in {_PATIENCE_SECONDS} s")
            time.sleep(_PAUSE_SECONDS)

    def pace(self, items: int) -> float:
        """Items per second while a listener finishes so many; paused before and after."""
        before = self.finished()
        self.resume()
        self.drained(before + 1)
        start, first = time.perf_counter(), self.finished()
        self.drained(first + items)
        seconds, done = time.perf_counter() - start, self.finished() - first
        self._do("SELECT scheduler.pause({name})")
        while self._row("SELECT count(*) FROM scheduler.run WHERE workflow = %s AND finished_at IS NULL", self.name)[0]:
            time.sleep(_PAUSE_SECONDS)
        return done / seconds

    def left(self) -> bool:
        """Whether any item is unfinished, by the two partial indexes that there are anyway."""
        query = sql.SQL(
            "SELECT EXISTS (SELECT FROM {table} WHERE status = 'Queued')"
            " OR EXISTS (SELECT FROM scheduler.run WHERE workflow = {name} AND finished_at IS NULL)"
        ).format(table=sql.Identifier(self.name), name=sql.Literal(self.name))
        return bool(self.db.execute(query).fetchall()[0][0])

    def finished(self) -> int:
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


class Places(Queue):
    """The same over a table like `place`."""

    _load = _LOAD_PLACES

    def bare_loops(self, batch: int, each: int) -> list[Callable[[], None]]:
        """Two bare UPDATEs of the queued rows, by lists of keys, in a table of the same rows and indexes without
        triggers; `each` rows in a loop, until none is left."""
        table = f"{self.name}_bare"
        self._do(
            "CREATE TABLE {bare} (LIKE {table} INCLUDING ALL EXCLUDING INDEXES) WITH (fillfactor = {fillfactor})",
            bare=sql.Identifier(table),
            fillfactor=sql.Literal(self._fillfactor),
        )
        self._do("INSERT INTO {bare} SELECT * FROM {table} ORDER BY created_at", bare=sql.Identifier(table))
        self._do("ALTER TABLE {bare} ADD PRIMARY KEY (id)", bare=sql.Identifier(table))
        self._do("CREATE INDEX ON {bare} (updated_at) WHERE status = 'Queued'", bare=sql.Identifier(table))
        self._do("VACUUM (ANALYZE) {bare}", bare=sql.Identifier(table))
        rows = self.db.execute(
            sql.SQL("SELECT id FROM {} WHERE status = 'Queued' ORDER BY created_at").format(sql.Identifier(table))
        ).fetchall()
        keys = [str(row[0]) for row in rows]
        batches = ["{" + ",".join(keys[n : n + batch]) + "}" for n in range(0, len(keys), batch)]
        # the same hint that the engine gives: without it the planner reads the whole table for each batch
        update = sql.SQL("UPDATE {} SET status = %s WHERE id = ANY ((SELECT %s::text[])::uuid[])").format(
            sql.Identifier(table)
        )

        def loop(some: list[str]) -> None:
            for ids in some:
                for word in ("Processing", "Completed"):
                    self.db.execute(update, [word, ids])

        step = each // batch
        return [partial(loop, batches[first : first + step]) for first in range(0, len(batches), step)]


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
