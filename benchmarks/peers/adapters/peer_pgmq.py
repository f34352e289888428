"""pgmq's SQL with a bare loop: read 1000, delete 1000. No retries, no results: the least a queue can do."""

import asyncio
import os

import psycopg
from lap import URL, Gate, arguments, say, timed, until_terminated
from pgmq.install import get_embedded_install_sql

gate = Gate()
READ = "SELECT msg_id FROM pgmq.read('noop', 30, 1000)"
DELETE = "SELECT pgmq.delete('noop', %s::bigint[])"


async def drain(connection):
    while True:
        rows = await (await connection.execute(READ)).fetchall()
        if not rows:
            return
        gate.hit()
        gate.ring()
        await connection.execute(DELETE, ([row[0] for row in rows],))


async def work(connection, bell):
    await bell.execute('LISTEN "pgmq.q_noop.INSERT"')
    await drain(connection)
    while True:
        async for _ in bell.notifies(timeout=1, stop_after=1):
            pass
        await drain(connection)


async def main() -> None:
    verb, items = arguments()
    connection = await psycopg.AsyncConnection.connect(URL, autocommit=True)
    if verb == "setup":
        await connection.execute(get_embedded_install_sql())
        await connection.execute("SELECT pgmq.create('noop')")
        await connection.execute("SELECT pgmq.enable_notify_insert('noop', 0)")
        say(ok=True)
    elif verb == "single":

        async def one_by_one():
            for _ in range(items):
                await connection.execute("SELECT pgmq.send('noop', '{}')")

        await timed(one_by_one)
    elif verb == "bulk":

        async def bulk():
            for start in range(0, items, 1000):
                await connection.execute(
                    "SELECT pgmq.send_batch('noop', array_fill('{}'::jsonb, ARRAY[%s::int]))",
                    (min(1000, items - start),),
                )

        await timed(bulk)
    else:
        worker = asyncio.create_task(work(connection, await psycopg.AsyncConnection.connect(URL, autocommit=True)))
        if verb == "work":
            await until_terminated()
        else:
            await asyncio.sleep(0.5)
            other = await psycopg.AsyncConnection.connect(URL, autocommit=True)
            await gate.latencies(items, lambda: other.execute("SELECT pgmq.send('noop', '{}')"))
        worker.cancel()
        os._exit(0)


asyncio.run(main())
