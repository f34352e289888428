"""One real listener in a process of its own: `python -m benchmarks.child URL WORKFLOW…`.

The workflow `pickup` and the channel `raw` answer each item and each bare notification with a line on standard output:
the moment, by the clock that all processes of a machine share. `steady` notes how long ago each item was sent. Those
whose names begin with `slow` wait for a millisecond, the others do nothing.
"""

import asyncio
import json
import sys
import time
from dataclasses import dataclass
from typing import Any
from uuid import UUID

import psycopg

from listener import Tools, Workflow, logs
from listener.process import Listener
from listener.settings import Settings

PICKUP = "pickup"
STEADY = "steady"
RAW = "raw"


_SLOW_SECONDS = 0.001


@dataclass
class Item:
    id: int | UUID


@dataclass
class Sent:
    id: UUID
    sent: int


def _say(what: object) -> None:
    sys.stdout.write(f"{what}\n")
    sys.stdout.flush()


async def _pick_up(_item: Item, _tools: Tools) -> None:
    _say(time.monotonic_ns())


async def _nothing(_item: Item, _tools: Tools) -> None: ...


async def _slow(_item: Item, _tools: Tools) -> None:
    await asyncio.sleep(_SLOW_SECONDS)


_taken: list[float] = []


async def _steady(item: Sent, _tools: Tools) -> None:
    _taken.append((time.monotonic_ns() - item.sent) / 1e6)


def _workflow(name: str) -> Workflow[Any, Any]:
    if name == STEADY:
        return Workflow(name, Sent, _steady)
    return Workflow(name, Item, _slow if name.startswith("slow") else _nothing)


async def _hear(url: str) -> None:
    connection = await psycopg.AsyncConnection.connect(url, autocommit=True)
    async with connection:
        await connection.execute(f"LISTEN {RAW}")
        async for _ in connection.notifies():
            _say(time.monotonic_ns())


async def main(url: str, *names: str) -> None:
    logs.configure("WARNING")
    workflows: dict[str, Workflow[Any, Any]] = {name: _workflow(name) for name in names}
    if PICKUP in names:
        workflows[PICKUP] = Workflow(PICKUP, Item, _pick_up)
    listener = Listener(url, workflows, Settings.model_validate({"database_url": url}))
    listener.handle_signals()
    hearing = asyncio.create_task(_hear(url))
    running = asyncio.create_task(listener.run())
    await listener.ready.wait()
    _say("ready")
    await running
    hearing.cancel()
    if _taken:
        _say(json.dumps(_taken))


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
