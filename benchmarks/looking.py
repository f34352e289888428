"""What it costs the database to be looked at: each view, each function that explains, each page of the web page."""

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Sequence
from contextlib import asynccontextmanager
from typing import LiteralString, TypeVar

import httpx
import psycopg
from psycopg import conninfo, sql

from benchmarks.scale import Figures, Say, Scale
from benchmarks.stopwatch import Times, alternate, timed
from listener.web import extension
from listener.web.access import Access
from listener.web.app import build
from listener.web.store import PAGE_SECONDS, Query, Reader, Row, Store

T = TypeVar("T")

WORKFLOW = "large"
"""The one with the finished rows, of the case `history`."""
WARMUP = 2
PAGE_WARMUP = 8
"""The pages take turns on a few connections, each of which compiles the engine's functions when it first calls them."""

_LEFT = """
    SELECT scheduler.drop_workflow(name, force => true) FROM scheduler.workflow
    WHERE created_at > (SELECT created_at FROM scheduler.workflow WHERE name = %s)
"""
"""Some twenty workflows of the cases before, each of which costs the pages that show all of them a millisecond."""

# Failures, a week of runs, every statistic that is kept, actions and results; no fewer on a quick run, they are cheap.
_FILL = """
    UPDATE {name} SET status = 'Queued' WHERE id <= {backlog};
    UPDATE {name} SET status = 'Error' WHERE id > {backlog} AND id <= {backlog} + 2000;
    INSERT INTO scheduler.attempt (workflow, key, state, attempts, retry_at, error, reason, first_at, last_at)
    SELECT {word}, n, CASE n % 2 WHEN 0 THEN 'dead' ELSE 'waiting' END, 3,
           CASE n % 2 WHEN 1 THEN now() + interval '1 hour' END,
           (ARRAY['HTTP 503 from https://', 'no such host: ', 'timeout after 30 s: https://'])[1 + n % 3]
           || n || '.example',
           'attempts', now() - interval '1 hour', now() - n * interval '1 second'
    FROM generate_series({backlog} + 1, {backlog} + 2000) AS n;
    INSERT INTO scheduler.run (workflow, keys, claimed, succeeded, failed, started_at, lease_until, deadline,
                               finished_at, rolled_up, histogram)
    SELECT {word}, '{{}}', 1000, 990, 10, at, at, at, at + interval '9 seconds', true, array_fill(20, ARRAY[48])
    FROM (SELECT now() - n * interval '1 minute' AS at FROM generate_series(1, 10000) AS n) AS q;
    INSERT INTO scheduler.stat (workflow, grain, at, runs, claimed, succeeded, failed, rejected, released, cancelled,
                                discarded, rescued, histogram)
    SELECT {word}, grain, date_trunc(grain, now()) - n * ('1 ' || grain)::interval, 1, 1000, 990, 10, 0, 0, 0, 0, 0,
           array_fill(20, ARRAY[48])
    FROM (VALUES ('minute', 2880), ('hour', 2160), ('day', 365)) AS kept (grain, many), generate_series(1, many) AS n
    ON CONFLICT DO NOTHING;
    INSERT INTO scheduler.audit (who, action, workflow, affected, detail)
    SELECT 'somebody', 'requeue', {word}, 1, '{{"first": ["1"]}}' FROM generate_series(1, 10000);
    INSERT INTO public.domain (domain) SELECT 'shop' || n || '.example' FROM generate_series(1, 20000) AS n;
    INSERT INTO public.contact (domain_id, name, email, created_at)
    SELECT d.id, 'Anna Berger', 'contact' || n || '@' || d.domain, now() - random() * interval '90 days'
    FROM public.domain AS d, generate_series(1, 5) AS n
"""

# Lists are read from their newest end, as the commands and pages do.
_VIEWS: tuple[tuple[str, LiteralString], ...] = (
    ("status", "SELECT * FROM scheduler.status"),
    ("queue_depth", "SELECT * FROM scheduler.queue_depth"),
    ("in_flight", "SELECT * FROM scheduler.in_flight"),
    ("stuck", "SELECT * FROM scheduler.stuck"),
    ("dead_letter", "SELECT * FROM scheduler.dead_letter"),
    ("errors", "SELECT * FROM scheduler.errors"),
    ("throughput", "SELECT * FROM scheduler.throughput WHERE at > now() - interval '1 hour'"),
    ("runs", "SELECT * FROM scheduler.runs LIMIT 100"),
    ("listeners", "SELECT * FROM scheduler.listeners"),
    ("schedules", "SELECT * FROM scheduler.schedules"),
    ("doctor", "SELECT * FROM scheduler.doctor()"),
    ("why_queued_last", "SELECT scheduler.why('large', {last})"),
    ("why_done", "SELECT scheduler.why('large', {done})"),
    ("preview", "SELECT * FROM scheduler.preview('large')"),
)
_PAGES = (
    ("pipeline", "/"),
    ("workflow", "/workflows/large"),
    ("workflow_day", "/workflows/large?window=day"),
    ("workflow_month", "/workflows/large?window=month"),
    ("item_queued_last", "/workflows/large/items/{last}"),
    ("item_dead", "/workflows/large/items/{dead}"),
    ("listeners", "/listeners"),
    ("doctor", "/doctor"),
    ("audit", "/audit"),
    ("audit_of_one", "/audit?workflow=large"),
    ("contacts", "/data/contacts"),
    ("metrics", "/metrics"),
    ("scheduler_status", "/api/scheduler_status"),
)
_TOKEN = "benchmark-of-the-page"


def looking(db: psycopg.Connection, scale: Scale, say: Say) -> Figures:
    """Every view and page: beside all the finished rows, over a backlog, failures and a week of history."""
    rounds = max(3, scale.rounds // 10)
    backlog = min(100_000, scale.finished // 2)
    db.execute(_LEFT, (WORKFLOW,))
    say(f"Looking at a backlog of {backlog:,}: {len(_VIEWS)} views and functions, {len(_PAGES)} pages ...")
    db.execute(
        sql.SQL(_FILL).format(name=sql.Identifier(WORKFLOW), word=sql.Literal(WORKFLOW), backlog=sql.Literal(backlog))
    )
    db.execute("VACUUM (ANALYZE)")
    keys = {"last": backlog, "dead": backlog + 2, "done": backlog + 3000}
    queries = [(name, text.format(**{key: f"'{value}'" for key, value in keys.items()})) for name, text in _VIEWS]
    views = alternate(
        *(lambda text=text: timed(lambda: db.execute(text.encode()).fetchall()) for _, text in queries),
        rounds=rounds,
        warmup=WARMUP,
    )
    url = conninfo.make_conninfo(db.info.dsn, password=db.info.password)
    pages = asyncio.run(_pages(url, [path.format(**keys) for _, path in _PAGES], rounds))
    found = {f"view_{name}_ms": times.ms for (name, _), times in zip(queries, views, strict=True)}
    found |= {f"page_{name}_ms": times.ms for (name, _), times in zip(_PAGES, pages, strict=True)}
    return {"looked_at_backlog": backlog, "slowest_look_ms": max(found.values()), **found}


async def _pages(url: str, paths: Sequence[str], rounds: int) -> list[Times]:
    """The seconds each page spends waiting for the database."""
    store = _TimedStore(url)
    access = Access.read(_TOKEN, ())
    extensions = extension.discover()
    await store.open()
    try:
        seconds: list[list[float]] = [[] for _ in paths]
        for _ in range(PAGE_WARMUP + rounds):
            for path, laps in zip(paths, seconds, strict=True):
                # a new site each time: it remembers nothing that it read before
                site = httpx.ASGITransport(build(store, access, extensions, None))
                store.seconds = 0.0
                async with httpx.AsyncClient(transport=site, base_url="http://localhost") as client:
                    answer = await client.get(path, headers={"Authorization": f"Bearer {_TOKEN}"})
                answer.raise_for_status()
                laps.append(store.seconds)
        return [Times(laps[PAGE_WARMUP:]) for laps in seconds]
    finally:
        await store.close()


class _TimedStore(Store):
    """Counts the time from sending a query to having its rows."""

    seconds = 0.0

    @asynccontextmanager
    async def reading(self, seconds: int = PAGE_SECONDS) -> AsyncIterator["_TimedReader"]:
        async with super().reading(seconds) as reader:
            yield _TimedReader(self, reader)

    async def timed(self, work: Awaitable[T]) -> T:
        start = time.perf_counter()
        try:
            return await work
        finally:
            self.seconds += time.perf_counter() - start


class _TimedReader(Reader):
    def __init__(self, store: _TimedStore, reader: Reader) -> None:
        super().__init__(reader.connection)
        self._store = store

    async def rows(self, query: Query, *values: object) -> list[Row]:
        return await self._store.timed(super().rows(query, *values))

    async def named(self, query: Query, **values: object) -> list[Row]:
        return await self._store.timed(super().named(query, **values))

    async def row(self, query: Query, *values: object) -> Row | None:
        return await self._store.timed(super().row(query, *values))
