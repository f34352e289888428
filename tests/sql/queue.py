"""A small queue to test on, and short names for the engine's functions."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import psycopg
from psycopg import sql

WORDS = ("New", "Queued", "Processing", "Completed", "Failed", "Filtered")


@dataclass(frozen=True)
class Claim:
    run: int | None
    keys: list[str]
    attempts: list[int]
    reason: str | None
    again_at: Any


class Queue:
    """A table `item` with `rows` rows, registered as workflow `job`; every call goes through the given session."""

    def __init__(self, db: psycopg.Connection, rows: int = 0, **settings: Any) -> None:
        self.db = db
        db.execute(
            "CREATE TABLE item (id integer PRIMARY KEY, wanted boolean NOT NULL DEFAULT false,"
            " priority integer, status text, error text, created_at timestamptz NOT NULL DEFAULT now())"
        )
        db.execute(
            "INSERT INTO item (id, created_at) SELECT n, now() - interval '1 day' + n * interval '1 second'"
            " FROM generate_series(1, %s) AS n",
            [rows],
        )
        self.create(**settings)

    def create(self, name: str = "job", **settings: object) -> None:
        given: dict[str, object] = {
            "relation": "item",
            "status_column": "status",
            "error_column": "error",
            "ready": "wanted AND status IS NULL",
            "backoff": "0",
            **settings,
        }
        call(self.db, "create_workflow", name=name, **given)

    def through(self, db: psycopg.Connection) -> "Queue":
        """The same queue in another session."""
        return Queue.of(db)

    @classmethod
    def of(cls, db: psycopg.Connection) -> "Queue":
        """The workflow `job` that someone else registered."""
        queue = object.__new__(cls)
        queue.db = db
        return queue

    def set(self, word: str | None, *ids: int) -> None:
        """What a person does: a plain UPDATE; without ids, of every row."""
        self.db.execute(
            "UPDATE item SET status = %s WHERE cardinality(%s::integer[]) = 0 OR id = ANY (%s)",
            [word, list(ids), list(ids)],
        )

    def want(self, *ids: int) -> None:
        self.db.execute(
            "UPDATE item SET wanted = true WHERE cardinality(%s::integer[]) = 0 OR id = ANY (%s)",
            [list(ids), list(ids)],
        )

    def status(self, key: int) -> str | None:
        return one(self.db, "SELECT status FROM item WHERE id = %s", key)  # type: ignore[no-any-return]

    def error(self, key: int) -> str | None:
        return one(self.db, "SELECT error FROM item WHERE id = %s", key)  # type: ignore[no-any-return]

    def counts(self) -> dict[str | None, int]:
        return dict(self.db.execute("SELECT status, count(*) FROM item GROUP BY 1").fetchall())

    def claim(self, items: int | None = None, listener: str | None = None, name: str = "job") -> Claim:
        row = self.db.execute(
            "SELECT run, keys, attempts, reason, again_at FROM scheduler.claim(%s, %s, %s)", [name, listener, items]
        ).fetchone()
        assert row is not None
        return Claim(*row)

    def succeed(self, run: int | None, *keys: str, words: Sequence[str | None] | None = None) -> tuple[int, list[str]]:
        row = self.db.execute(
            "SELECT accepted, refused FROM scheduler.succeed(%s, %s, %s)",
            [run, list(keys) or None, list(words) if words else None],
        ).fetchone()
        assert row is not None
        return row[0], row[1]

    def fail(
        self, run: int | None, *keys: str, error: str = "boom", permanent: bool = False, after: str | None = None
    ) -> tuple[int, list[str], list[str]]:
        row = self.db.execute(
            "SELECT accepted, refused, dead FROM scheduler.fail(%s, %s, %s, %s, %s::interval[])",
            [run, list(keys), [error] * len(keys), [permanent] * len(keys), [after] * len(keys)],
        ).fetchone()
        assert row is not None
        return row[0], row[1], row[2]

    def defer(
        self, run: int | None, *keys: str, reason: str = "busy", after: str | None = "1 minute"
    ) -> tuple[int, list[str]]:
        row = self.db.execute(
            "SELECT accepted, refused FROM scheduler.defer(%s, %s, %s, %s::interval[])",
            [run, list(keys), [reason] * len(keys), [after] * len(keys)],
        ).fetchone()
        assert row is not None
        return row[0], row[1]

    def heartbeat(self, listener: str, *runs: int) -> dict[int, tuple[bool, list[str]]]:
        rows = self.db.execute(
            "SELECT run, lost, revoked FROM scheduler.heartbeat(%s, %s)", [listener, list(runs)]
        ).fetchall()
        return {run: (lost, revoked) for run, lost, revoked in rows}

    def expire(self, run: int | None) -> None:
        """As if the lease had passed."""
        self.db.execute("UPDATE scheduler.run SET lease_until = now() - interval '1 second' WHERE id = %s", [run])

    def due(self) -> None:
        """As if every waiting time were over."""
        self.db.execute("UPDATE scheduler.attempt SET retry_at = now() WHERE state = 'waiting'")

    def ledger(self, key: int) -> tuple[str, int, int] | None:
        row = self.db.execute(
            "SELECT state, attempts, rescues FROM scheduler.attempt WHERE workflow = 'job' AND key = %s", [str(key)]
        ).fetchone()
        return row and (row[0], row[1], row[2])

    def run(self, run: int | None) -> dict[str, Any]:
        cursor = self.db.execute("SELECT * FROM scheduler.run WHERE id = %s", [run])
        assert cursor.description is not None
        row = cursor.fetchone()
        assert row is not None
        return dict(zip((column.name for column in cursor.description), row, strict=True))


def call(db: psycopg.Connection, function: str, **arguments: object) -> Any:
    """`SELECT scheduler.function(name => value, …)`, its first column."""
    named = sql.SQL(", ").join(
        sql.SQL("{} => {}").format(sql.Identifier(name), sql.Literal(value)) for name, value in arguments.items()
    )
    return one(db, sql.SQL("SELECT scheduler.{}({})").format(sql.Identifier(function), named))


def one(db: psycopg.Connection, query: Any, *values: object) -> Any:
    """The first column of the first row."""
    row = db.execute(query, values or None).fetchone()
    return None if row is None else row[0]
