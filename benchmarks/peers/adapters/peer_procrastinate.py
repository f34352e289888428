"""procrastinate. One worker, concurrency 100, finished jobs deleted: its documentation's advice for throughput."""

import asyncio

from lap import URL, Gate, arguments, say, timed, until_terminated
from procrastinate import App, PsycopgConnector

app = App(connector=PsycopgConnector(conninfo=URL))
gate = Gate()


@app.task(name="noop", pass_context=False)
async def noop(n: int) -> None:
    gate.hit()
    gate.ring()


async def main() -> None:
    verb, items = arguments()
    async with app.open_async():
        if verb == "setup":
            await app.schema_manager.apply_schema_async()
        elif verb == "single":

            async def one_by_one():
                for n in range(items):
                    await noop.defer_async(n=n)

            await timed(one_by_one)
        elif verb == "bulk":
            rows = [{"n": n} for n in range(items)]

            async def bulk():
                for start in range(0, items, 1000):
                    await noop.batch_defer_async(*rows[start : start + 1000])

            await timed(bulk)
        else:
            worker = asyncio.create_task(
                app.run_worker_async(
                    concurrency=100, delete_jobs="always", install_signal_handlers=False, listen_notify=True
                )
            )
            if verb == "work":
                await until_terminated()
            else:
                await asyncio.sleep(1)
                await gate.latencies(items, lambda: noop.defer_async(n=0))
            worker.cancel()
            await asyncio.gather(worker, return_exceptions=True)
    if verb == "setup":
        say(ok=True)


asyncio.run(main())
