"""The engine's functions as Python calls. No rule of the engine lives here: PostgreSQL decides, this only asks."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any, LiteralString, NamedTuple
from uuid import UUID

import psycopg
from psycopg.rows import class_row
from psycopg.types.json import Jsonb

from listener.roundtrip import Plans, ask

AsyncConnection = psycopg.AsyncConnection[Any]

CHANNEL = "scrapersky"
NEEDS = "0001"
"""The oldest revision whose functions this module can call; raised only when a call below needs a newer one."""
BUCKETS = 48
"""Length of a histogram of durations; see scheduler.duration_bucket()."""


@dataclass(frozen=True, slots=True)
class Terms:
    """What the database says about a workflow at the moment of a claim. Seconds are plain numbers here."""

    relation: str
    key_column: str
    key_type: str
    batch_size: int
    max_instances: int | None
    concurrency: int
    lease: float
    timeout: float


@dataclass(frozen=True, slots=True)
class Claim:
    """One claimed batch, or the reason why there is none."""

    terms: Terms
    run: int | None
    keys: list[str]
    attempts: list[int]
    seconds_left: float
    """Until the run's deadline, by the database's clock."""
    reason: str | None
    again_in: float | None
    """When it is worth asking again without a doorbell."""
    suspect: bool = False
    """Whether the listener of one of these items has vanished before: perhaps it kills its listener."""

    @property
    def retried(self) -> bool:
        """Whether one of these items was tried before."""
        return any(attempt > 1 for attempt in self.attempts)


class Beat(NamedTuple):
    """The database's answer about one run."""

    run: int
    lost: bool
    revoked: list[str]


class Registered(NamedTuple):
    """A workflow as an operator wants to see it at start."""

    name: str
    schedule: str | None
    batch_size: int
    max_instances: int | None
    paused: bool


class Tick(NamedTuple):
    """One dispatch that this listener had to make in pg_cron's place, or a note about one."""

    workflow: str
    queued: int | None
    note: str | None


class Alert(NamedTuple):
    """Something that changed for a workflow, to be told to somebody outside."""

    id: int
    at: datetime
    workflow: str
    code: str
    event: str
    text: str
    fix: str


async def one(cursor: psycopg.AsyncCursor[Any]) -> tuple[Any, ...]:
    """The only row of an answer that always has one."""
    row: tuple[Any, ...] | None = await cursor.fetchone()
    if row is None:
        raise RuntimeError("the database gave no answer where it always gives one")
    return row


_PLAIN = re.compile(r"[0-9a-f-]+(?:,[0-9a-f-]+)*")


def text_array(keys: Sequence[str] | None) -> str | list[str] | None:
    """Keys as a parameter for text[]. Numbers and uuids need no quoting: psycopg looks at each to find out, we at all
    of them at once, which is 20 times faster."""
    if keys is None:
        return None
    joined = ",".join(keys)
    return f"{{{joined}}}" if _PLAIN.fullmatch(joined) else list(keys)


# Settings and claim in one round trip: a change by alter_workflow() counts from the next claim on.
_CLAIM = """
SELECT w.relation::text, w.key_column, format_type(w.key_type, -1), w.batch_size, w.max_instances, w.concurrency,
       extract(epoch FROM w.lease)::float8, extract(epoch FROM w.timeout)::float8,
       c.run, c.keys, c.attempts, extract(epoch FROM c.deadline - now())::float8,
       c.reason, extract(epoch FROM c.again_at - now())::float8
FROM scheduler.workflow AS w, LATERAL scheduler.claim(w.name, $1, $2) AS c,
     -- nothing is lost with a claim that a crash undoes (docs/decisions/0005-claims-do-not-wait-for-the-disk.md)
     set_config('synchronous_commit', 'off', true)
WHERE w.name = $3
"""


# of the run of the claim made by this very transaction
_CLAIMED: LiteralString = """(SELECT r.{} FROM scheduler.run AS r
                   WHERE r.workflow = $1 AND r.listener = $2::uuid AND r.finished_at IS NULL AND r.started_at >= now()
                   ORDER BY r.id DESC LIMIT 1)"""
CLAIMED_KEYS = _CLAIMED.format("keys")
CLAIMED_PLACES = _CLAIMED.format("places")

# asked apart: what the claim itself has just rescued is not visible to its own statement
_SUSPECT = """
SELECT EXISTS (SELECT FROM scheduler.run AS r JOIN scheduler.attempt AS a USING (workflow)
               WHERE r.id = $1::bigint AND a.key = ANY (r.keys) AND a.state = 'active' AND a.rescues > 0)
"""


async def claim(connection: AsyncConnection, workflow: str, listener: UUID, items: int | None = None) -> Claim | None:
    """Claim a batch; None if no such workflow is registered."""
    cursor = psycopg.AsyncRawCursor(connection)
    await cursor.execute(_CLAIM, (listener, items, workflow))
    claim = _claimed(await cursor.fetchall())
    if claim is None or not claim.retried:
        return claim
    await cursor.execute(_SUSPECT, (claim.run,))
    return replace(claim, suspect=bool((await one(cursor))[0]))


async def claim_with(
    connection: AsyncConnection, plans: Plans, workflow: str, listener: UUID, query: str
) -> tuple[Claim | None, list[tuple[Any, ...]]]:
    """The same and, in the same transaction and round trip, what `query` finds with CLAIMED_KEYS or CLAIMED_PLACES."""
    who = str(listener)
    found, rows = await ask(connection, plans, (_CLAIM, (who, None, workflow)), (query, (workflow, who)))
    claim = _claimed(found)
    if claim is not None and claim.retried:
        ((suspect,),) = (await ask(connection, plans, (_SUSPECT, (str(claim.run),))))[0]
        claim = replace(claim, suspect=suspect)
    return claim, rows


def _claimed(rows: list[tuple[Any, ...]]) -> Claim | None:
    if not rows:
        return None
    run, keys, attempts, seconds_left, reason, again_in = rows[0][8:]
    return Claim(Terms(*rows[0][:8]), run, keys or [], attempts or [], seconds_left or 0.0, reason, again_in)


async def succeed(
    connection: AsyncConnection,
    run: int,
    keys: Sequence[str] | None,
    words: Sequence[str | None] | None = None,
    histogram: Sequence[int] | None = None,
) -> tuple[int, list[str]]:
    """Take the fence and finish these items (None: all the run still has): how many it accepted, which it refused."""
    cursor = await connection.execute(
        "SELECT accepted, refused FROM scheduler.succeed(%s, %s::text[], %s::text[], %s::integer[])",
        (run, text_array(keys), words, histogram),
    )
    accepted, refused = await one(cursor)
    return accepted, refused or []


async def fail(
    connection: AsyncConnection,
    run: int,
    keys: Sequence[str],
    errors: Sequence[str],
    permanent: Sequence[bool],
    retry_after: Sequence[float | None],
    histogram: Sequence[int] | None = None,
) -> tuple[list[str], list[str]]:
    """Record failures: the keys it refused, and those now in the dead letter."""
    delays = [None if seconds is None else timedelta(seconds=seconds) for seconds in retry_after]
    cursor = await connection.execute(
        "SELECT refused, dead FROM scheduler.fail(%s, %s::text[], %s::text[], %s::boolean[], %s::interval[],"
        " %s::integer[])",
        (run, text_array(keys), errors, permanent, delays, histogram),
    )
    refused, dead = await one(cursor)
    return refused or [], dead or []


async def defer(
    connection: AsyncConnection, run: int, keys: Sequence[str], reasons: Sequence[str], after: Sequence[float | None]
) -> tuple[int, list[str]]:
    """Items wait for their turn, no attempt spent: how many were taken back, and the keys it refused."""
    delays = [None if seconds is None else timedelta(seconds=seconds) for seconds in after]
    cursor = await connection.execute(
        "SELECT accepted, refused FROM scheduler.defer(%s, %s::text[], %s::text[], %s::interval[])",
        (run, text_array(keys), reasons, delays),
    )
    accepted, refused = await one(cursor)
    return int(accepted), refused or []


async def release(
    connection: AsyncConnection, run: int, keys: Sequence[str] | None, reason: str, hold: float | None = None
) -> int:
    """Give items back with no attempt spent; with `hold`, the whole workflow waits that many seconds."""
    cursor = await connection.execute(
        "SELECT scheduler.release(%s, %s::text[], %s, %s::interval)",
        (run, text_array(keys), reason, None if hold is None else timedelta(seconds=hold)),
    )
    (released,) = await one(cursor)
    return int(released or 0)


async def release_after(connection: AsyncConnection, workflow: str, listener: UUID, newest: int) -> int:
    """Give back what a claim brought whose answer never came; `newest` is the last run this listener knows of."""
    cursor = await connection.execute(
        "SELECT coalesce(sum(scheduler.release(r.id, NULL, 'the claim was interrupted')), 0) FROM scheduler.run AS r"
        " WHERE r.workflow = %s AND r.listener = %s AND r.finished_at IS NULL AND r.id > %s",
        (workflow, listener, newest),
    )
    (released,) = await one(cursor)
    return int(released)


async def claimable(connection: AsyncConnection, workflows: Sequence[str]) -> set[str]:
    """Those of the workflows that are worth a claim."""
    cursor = await connection.execute("SELECT scheduler.claimable(%s::text[])", (list(workflows),))
    return {name for (name,) in await cursor.fetchall()}


async def tick(connection: AsyncConnection) -> list[Tick]:
    """Fire what pg_cron should have fired, if it is missing or silent. Usually nothing."""
    cursor = await connection.execute("SELECT workflow, queued, note FROM scheduler.tick('listener')")
    return [Tick(*row) for row in await cursor.fetchall()]


async def take_alerts(connection: AsyncConnection) -> list[Alert]:
    """What has changed and is this listener's to tell; usually nothing."""
    async with connection.cursor(row_factory=class_row(Alert)) as cursor:
        await cursor.execute("SELECT id, at, workflow, code, event, text, fix FROM scheduler.take_alerts()")
        return await cursor.fetchall()


async def alert_sent(connection: AsyncConnection, alert: int) -> None:
    await connection.execute("SELECT scheduler.alert_sent(%s)", (alert,))


async def registered(connection: AsyncConnection) -> list[Registered]:
    async with connection.cursor(row_factory=class_row(Registered)) as cursor:
        await cursor.execute(
            "SELECT name, schedule, batch_size, max_instances, paused_at IS NOT NULL AS paused"
            " FROM scheduler.workflow ORDER BY name"
        )
        return await cursor.fetchall()


def heartbeat(
    connection: psycopg.Connection[Any],
    listener: UUID,
    runs: Sequence[int],
    *,
    host: str,
    pid: int,
    version: str,
    workflows: Sequence[str],
    detail: dict[str, Any],
    stopped: bool = False,
) -> list[Beat]:
    """Say that this listener lives and still works on these runs. Called from the heartbeat's own thread."""
    rows = connection.execute(
        "SELECT run, lost, revoked FROM scheduler.heartbeat(%s, %s::bigint[], %s, %s, %s, %s::text[], %s, %s)",
        (listener, list(runs), host, pid, version, list(workflows), Jsonb(detail), stopped),
    ).fetchall()
    return [Beat(run, lost, revoked or []) for run, lost, revoked in rows]
