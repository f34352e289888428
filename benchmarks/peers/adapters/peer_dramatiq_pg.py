"""dramatiq-pg: the broker of one worker process with 8 threads, dramatiq's own default."""

import os
import signal
import subprocess
import sys
import threading
import time

import dramatiq
from dramatiq import Worker
from dramatiq_pg import PostgresBroker
from lap import URL, Gate, arguments, say, timed_sync

verb, items = arguments()
if verb == "setup":
    import dramatiq_pg as package

    schema = os.path.join(os.path.dirname(package.__file__), "schema.sql")
    subprocess.run(["psql", "-q", "-f", schema, URL], check=True, stdout=subprocess.DEVNULL)
    say(ok=True)
    sys.exit(0)

broker = PostgresBroker(url=URL, results=False)
dramatiq.set_broker(broker)
gate = Gate()
came = threading.Event()
at = [0.0]


@dramatiq.actor(queue_name="default")
def noop():
    gate.hit()
    at[0] = time.monotonic()
    came.set()


if verb in ("single", "bulk"):
    timed_sync(lambda: [noop.send() for _ in range(items)])
    sys.exit(0)

worker = Worker(broker, worker_timeout=100)
worker.start()
if verb == "work":
    signal.sigwait({signal.SIGTERM})
    os._exit(0)
time.sleep(1)
taken = []
for _ in range(items):
    came.clear()
    noop.send()
    sent = time.monotonic()
    if not came.wait(30):
        raise TimeoutError
    taken.append(max(0.0, at[0] - sent) * 1000)
say(milliseconds=taken)
os._exit(0)
