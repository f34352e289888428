"""pgqueuer over asyncpg, batches of 500: what its own benchmark uses."""

import asyncio
from datetime import timedelta

import asyncpg
import uvloop
from lap import URL, Gate, arguments, say, timed, until_terminated
from pgqueuer import PgQueuer
from pgqueuer.db import AsyncpgDriver
from pgqueuer.queries import Queries

gate = Gate()


async def main() -> None:
    verb, items = arguments()
    connection = await asyncpg.connect(URL)
    queries = Queries(AsyncpgDriver(connection))
    if verb == "setup":
        await queries.install()
        say(ok=True)
    elif verb == "single":

        async def one_by_one():
            for _ in range(items):
                await queries.enqueue("noop", None)

        await timed(one_by_one)
    elif verb == "bulk":

        async def bulk():
            for start in range(0, items, 1000):
                n = min(1000, items - start)
                await queries.enqueue(["noop"] * n, [None] * n, [0] * n)

        await timed(bulk)
    else:
        pgq = PgQueuer(AsyncpgDriver(await asyncpg.connect(URL)))

        @pgq.entrypoint("noop")
        async def noop(_job) -> None:
            gate.hit()
            gate.ring()

        worker = asyncio.create_task(pgq.run(batch_size=500, dequeue_timeout=timedelta(seconds=30)))
        if verb == "work":
            await until_terminated()
        else:
            await asyncio.sleep(1)
            await gate.latencies(items, lambda: queries.enqueue("noop", None))
        pgq.shutdown.set()
        worker.cancel()
        await asyncio.gather(worker, return_exceptions=True)
    await connection.close()


uvloop.run(main())
