"""dbos: workflows enqueued on a queue without limits, from the client; one executor."""

import os
import threading
import time

from dbos import DBOS, DBOSClient
from lap import URL, Gate, arguments, say, timed_sync

gate = Gate()
came = threading.Event()
at = [0.0]
DBOS(config={"name": "peer", "system_database_url": URL, "run_admin_server": False, "log_level": "ERROR"})


@DBOS.workflow(name="noop")
def noop() -> None:
    gate.hit()
    at[0] = time.monotonic()
    came.set()


def main() -> None:
    verb, items = arguments()
    if verb == "setup":
        DBOS.launch()
        DBOS.register_queue("noop", polling_interval_sec=0.01)
        DBOS.destroy()
        say(ok=True)
        return
    if verb in ("single", "bulk"):
        client = DBOSClient(system_database_url=URL)
        options = {"queue_name": "noop", "workflow_name": "noop"}
        timed_sync(lambda: [client.enqueue(options) for _ in range(items)])
        client.destroy()
        return
    DBOS.launch()
    if verb == "work":
        threading.Event().wait()
    client = DBOSClient(system_database_url=URL)
    taken = []
    for _ in range(items):
        came.clear()
        client.enqueue({"queue_name": "noop", "workflow_name": "noop"})
        sent = time.monotonic()
        if not came.wait(30):
            raise TimeoutError
        taken.append(max(0.0, at[0] - sent) * 1000)
    say(milliseconds=taken)
    os._exit(0)


main()
