"""awa: its Rust core under Python handlers, COPY for bulk, 100 workers on one queue."""

import asyncio
import os
import subprocess
import sys
from dataclasses import dataclass

import awa
from lap import URL, Gate, arguments, say, timed, until_terminated

gate = Gate()


@dataclass
class Noop:
    n: int


async def main() -> None:
    verb, items = arguments()
    if verb == "setup":
        subprocess.run(
            [sys.executable, "-m", "awa", "--database-url", URL, "migrate"], check=True, stdout=subprocess.DEVNULL
        )
        await awa.AsyncClient(URL).install_queue_storage()
        say(ok=True)
        return
    client = awa.AsyncClient(URL)
    if verb == "single":

        async def one_by_one():
            for n in range(items):
                await client.insert(Noop(n), queue="noop")

        await timed(one_by_one)
    elif verb == "bulk":

        async def bulk():
            for start in range(0, items, 1000):
                await client.enqueue_many_copy([Noop(n) for n in range(min(1000, items - start))], queue="noop")

        await timed(bulk)
    else:

        @client.task(Noop, queue="noop")
        async def noop(_job):
            gate.hit()
            gate.ring()

        await client.start([("noop", 100)], poll_interval_ms=50)
        if verb == "work":
            await until_terminated()
        else:
            await asyncio.sleep(1)
            await gate.latencies(items, lambda: client.insert(Noop(0), queue="noop"))
        os._exit(0)


asyncio.run(main())
