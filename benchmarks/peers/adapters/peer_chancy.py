"""chancy with its asyncio executor, concurrency 1000, the fastest of its executors for no-op work."""

import asyncio
import os

from chancy import Chancy, Queue, Worker, job
from lap import URL, Gate, arguments, say, timed, until_terminated

gate = Gate()


@job(queue="default")
async def noop():
    gate.hit()
    gate.ring()


async def main() -> None:
    verb, items = arguments()
    async with Chancy(URL) as chancy:
        if verb == "setup":
            await chancy.migrate()
            await chancy.declare(
                Queue(
                    "default", concurrency=1000, executor="chancy.executors.asyncex.AsyncExecutor", polling_interval=1
                )
            )
            say(ok=True)
        elif verb == "single":

            async def one_by_one():
                for _ in range(items):
                    await chancy.push(noop)

            await timed(one_by_one)
        elif verb == "bulk":

            async def bulk():
                async for _ in chancy.push_many([noop.job for _ in range(items)], batch_size=1000):
                    pass

            await timed(bulk)
        else:
            async with Worker(chancy):
                if verb == "work":
                    await until_terminated()
                else:
                    await asyncio.sleep(2)
                    await gate.latencies(items, lambda: chancy.push(noop))
                os._exit(0)


asyncio.run(main())
