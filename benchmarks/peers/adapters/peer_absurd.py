"""absurd: the schema that comes with absurdctl, batches of 100, ten threads, and a poll each 10 ms instead of 250."""

import os
import signal
import threading
import time

import psycopg
from absurd_sdk import Absurd
from absurdctl import BUNDLED_SCHEMA_SQL
from lap import URL, Gate, arguments, say, timed_sync

gate = Gate()
came = threading.Event()
at = [0.0]


def work(app: Absurd) -> None:
    @app.register_task(name="noop")
    def noop(params, ctx):
        gate.hit()
        at[0] = time.monotonic()
        came.set()

    app.start_worker(concurrency=10, batch_size=100, poll_interval=0.01)


def main() -> None:
    verb, items = arguments()
    app = Absurd(URL, queue_name="noop")
    if verb == "setup":
        with psycopg.connect(URL, autocommit=True) as db:
            db.execute(BUNDLED_SCHEMA_SQL)
        app.create_queue("noop")
        say(ok=True)
    elif verb in ("single", "bulk"):
        # there is no call for many at once
        timed_sync(lambda: [app.spawn("noop", {}, queue="noop") for _ in range(items)])
    elif verb == "work":
        signal.signal(signal.SIGTERM, lambda *_: os._exit(0))
        work(app)
    else:
        threading.Thread(target=work, args=(app,), daemon=True).start()
        client = Absurd(URL, queue_name="noop")
        time.sleep(0.5)
        taken = []
        for _ in range(items):
            came.clear()
            client.spawn("noop", {}, queue="noop")
            sent = time.monotonic()
            if not came.wait(30):
                raise TimeoutError
            taken.append(max(0.0, at[0] - sent) * 1000)
        say(milliseconds=taken)
        os._exit(0)


main()
