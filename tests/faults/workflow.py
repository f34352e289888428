"""What the listeners under fault run: one call outside, a short wait, one row as its effect.

What goes wrong with an item is written in the item itself, in its column `task`. The fail points are here and not in
the program: between the answer and the commit, inside `save`, and while the server works on the COMMIT.
"""

import asyncio
import os
import signal
import socket
import threading
from dataclasses import dataclass

import psycopg
from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncSession

from listener import Done, Retry, Tools, Workflow
from services.fetch import FetchSettings, fetcher, verdicts

_HOSTILE = {
    "nul": "a\x00b",
    "surrogate": "\udc80",
    "nan": '{"x": NaN}',
    "escape": '{"x": "\\u0000"}',
}
"""Results that PostgreSQL cannot hold; the last two are saved as JSON."""
_LARGER_THAN_JSONB = 257 * 1024 * 1024


@dataclass
class Item:
    id: int
    task: str


async def work(item: Item, tools: Tools) -> str:
    await _call(tools)
    match item.task.split():
        case ["die", "after-reply"] if tools.attempt == 1:
            _kill_myself()
        case ["abort"]:
            os.abort()
        case ["slow", seconds]:
            await tools.clock.sleep(float(seconds))
        case ["eat", mebibytes]:
            return str(len(bytearray(int(mebibytes) * 1024 * 1024)))
        case ["open", count]:
            await _open(int(count), tools)
        case ["result", "huge"]:
            return '"' + "x" * _LARGER_THAN_JSONB + '"'
        case ["result", kind]:
            return _HOSTILE[kind]
        case _:
            # between the answer and the commit: here is where a fault hurts most
            await tools.clock.sleep((item.id * 7919 % 60) / 1000)
    return "done"


async def save(session: AsyncSession, results: list[Done[Item, str]]) -> None:
    # no unique key: an effect that is written twice must be seen
    plain = [done for done in results if not done.result.startswith(('"', "{"))]
    if plain:
        await session.execute(
            text("INSERT INTO effect (item, result, at) VALUES (:item, :result, clock_timestamp())"),
            [{"item": done.item.id, "result": done.result} for done in plain],
        )
    for done in results:
        if done not in plain:
            await session.execute(
                text("INSERT INTO effect (item, result, at) VALUES (:item, CAST(:result AS jsonb), clock_timestamp())"),
                {"item": done.item.id, "result": done.result},
            )
        if done.attempt == 1 and done.item.task == "die in-save":
            _kill_myself()
        if done.attempt == 1 and done.item.task == "die in-commit":
            backend = await session.scalar(text("SELECT pg_backend_pid()"))
            threading.Thread(target=_die_in_commit, args=(backend,), daemon=True).start()


async def _call(tools: Tools) -> None:
    answer = await tools.http.post(os.environ["SINK"], headers={"Idempotency-Key": tools.idempotency_key})
    if answer.status_code == 429:
        raise Retry("too many requests", after=float(answer.headers["Retry-After"]))
    answer.raise_for_status()


async def _open(count: int, tools: Tools) -> None:
    opened: list[socket.socket] = []
    try:
        opened += [socket.socket() for _ in range(count)]
        await tools.clock.sleep(0.2)
    finally:
        for one in opened:
            one.close()


def _die_in_commit(backend: int) -> None:
    """The effect's constraint trigger lingers in the COMMIT; that it does shows that the server has begun with it."""
    lingers = "SELECT EXISTS (SELECT FROM pg_stat_activity WHERE pid = %s AND wait_event = 'PgSleep')"
    with psycopg.connect(os.environ["DATABASE_URL"], autocommit=True) as db:
        while db.execute(lingers, [backend]).fetchone() != (True,):
            pass
    _kill_myself()


def _kill_myself() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


async def fetch(item: Item, tools: Tools) -> str:
    """The item's task is an address; what comes of it is what the pipeline's own fetcher makes of it."""
    with verdicts():
        page = await fetcher(tools).get(item.task)
    await asyncio.sleep(0)
    return str(len(page.body))


async def newer(item: Item, tools: Tools) -> str:
    """A workflow that only the new version of the program knows."""
    await _call(tools)
    return "new"


chaos = Workflow("chaos", Item, work, save)
fetching = Workflow("fetching", Item, fetch, save, settings=FetchSettings)
later = Workflow("later", Item, newer, save)
