"""ScraperSky as its own peer: `python -m benchmarks.peers.ours VERB N`, the same verbs as the adapters.

An ordinary table with a uuid key, and room in its pages for both status changes, as docs/howto/ready-for-production.md
advises; the real listener with every guarantee on. With VARIANT=light the workflow has no
processing word, so claiming leaves the row alone.
"""

import asyncio
import os
import time
from dataclasses import dataclass
from typing import Any
from uuid import UUID

import psycopg

from benchmarks.peers.adapters.lap import URL, Gate, arguments, say, timed, until_terminated
from listener import Tools, Workflow, logs
from listener.process import Listener
from listener.schema import migrate
from listener.settings import Settings

BATCH = 1000
LIGHT = os.environ.get("VARIANT") == "light"

_TABLE = """
CREATE TABLE item (
    id uuid PRIMARY KEY DEFAULT gen_random_uuid(),
    name text NOT NULL DEFAULT 'a business of middling name',
    status text, error text,
    created_at timestamptz NOT NULL DEFAULT now(),
    updated_at timestamptz NOT NULL DEFAULT now()
) WITH (fillfactor = 50)"""
_ADOPT = """
SELECT scheduler.create_workflow('noop', 'item', 'status', error_column => 'error', processing => %s,
                                 batch_size => %s, concurrency => 100)"""
_ONE = "INSERT INTO item (status) VALUES ('Queued')"
_MANY = "INSERT INTO item (status) SELECT 'Queued' FROM generate_series(1, %s)"


@dataclass
class Item:
    id: UUID


gate = Gate()


async def noop(_item: Item, _tools: Tools) -> None:
    gate.hit()
    gate.ring()


def setup() -> None:
    migrate(URL)
    with psycopg.connect(URL, autocommit=True) as db:
        db.execute(_TABLE)
        db.execute(_ADOPT, [None if LIGHT else "Processing", BATCH])
    say(ok=True)


async def enqueue(db: psycopg.AsyncConnection[Any], verb: str, items: int) -> None:
    if verb == "single":
        for _ in range(items):
            await db.execute(_ONE)
    else:
        for start in range(0, items, BATCH):
            await db.execute(_MANY, [min(BATCH, items - start)])


async def listen(verb: str, items: int) -> None:
    logs.configure("WARNING")
    listener = Listener(URL, {"noop": Workflow("noop", Item, noop)}, Settings(_env_file=None, database_url=URL))  # type: ignore[call-arg]
    running = asyncio.create_task(listener.run())
    if verb == "work":
        await until_terminated()
    else:
        db = await psycopg.AsyncConnection.connect(URL, autocommit=True)
        await _ready(listener)
        await gate.latencies(items, lambda: db.execute(_ONE))
        await db.close()
    listener.stop()
    await running


async def _ready(listener: Listener) -> None:
    deadline = time.monotonic() + 30
    while not listener.metrics.listening:
        if time.monotonic() > deadline:
            raise TimeoutError("the listener does not listen")
        await asyncio.sleep(0.05)


async def main() -> None:
    verb, items = arguments()
    if verb == "setup":
        await asyncio.to_thread(setup)
    elif verb in ("single", "bulk"):
        async with await psycopg.AsyncConnection.connect(URL, autocommit=True) as db:
            await timed(lambda: enqueue(db, verb, items))
    else:
        await listen(verb, items)


if __name__ == "__main__":
    asyncio.run(main())
