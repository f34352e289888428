"""The stage on which every fault plays: a server, listeners with a network each, a queue, and the world outside.

Lease 3 s, poll 1 s. Every listener has a network of its own, so that one can be cut off and the others not.
"""

import random
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import LiteralString

from psycopg import conninfo

from listener import schema
from listener.postgres.throwaway import Throwaway
from tests.faults.proxy import Proxy, proxied
from tests.faults.sink import Sink, sink_on_loopback
from tests.faults.verdict import Blow, Verdict, judge, number
from tests.listener.started import Bench, Process
from tests.listener.unfenced import NO_FENCE
from tests.sql.queue import one
from tests.waiting import wait_until

LEASE_SECONDS = 3.0
POLL_SECONDS = 1.0
BOUND = LEASE_SECONDS + POLL_SECONDS
"""What is promised: so soon after a fault everything is in work again."""
PATIENCE = 120.0
PROBES = 5
CHAOS = "chaos = tests.faults.workflow:chaos"
Env = Mapping[str, str]


class Stage:
    """The server, the listeners with their networks, and what can be done to them."""

    def __init__(self, cluster: Throwaway, bench: Bench, proxies: list[Proxy], sink: Sink, sink_url: str) -> None:
        self.cluster = cluster
        self.bench = bench
        self.proxies = proxies
        self.sink = sink
        self.listeners: list[Process] = []
        self.blows: list[Blow] = []
        self._sink_url = sink_url
        self._next = 1

    # -- listeners -----------------------------------------------------------------------------------------------------

    def url(self, number: int = 0) -> str:
        """The database through the network of this listener."""
        return conninfo.make_conninfo(self.bench.url, host="127.0.0.1", port=self.proxies[number].port)

    def start(
        self, index: int = 0, *, ready: bool = False, entries: Sequence[str] = (CHAOS,), env: Env | None = None
    ) -> Process:
        given = {
            "SINK": self._sink_url,
            # not the workflows of the pipeline, which are installed here too
            "LISTENER_WORKFLOWS": ",".join(entry.split(" = ")[0] for entry in entries),
            "LISTENER_POLL_SECONDS": str(POLL_SECONDS),
            "LISTENER_STATEMENT_SECONDS": "5",
            "DATABASE_URL": self.url(index),
            **(env or {}),
        }
        return self.bench.start(entries=entries, ready=ready, url=given.pop("DATABASE_URL"), **given)

    def cast(
        self,
        count: int | None = None,
        *,
        ready: bool = True,
        entries: Sequence[str] = (CHAOS,),
        env: Env | None = None,
    ) -> None:
        """So many listeners; by default one for each network."""
        networks = [n % len(self.proxies) for n in range(count or len(self.proxies))]
        self.listeners = [self.start(network, entries=entries, env=env) for network in networks]
        if ready:
            for process in self.listeners:
                process.wait_line("ready")

    def revive(self) -> list[Process]:
        """As a supervisor does: start again what has died."""
        dead = [index for index, process in enumerate(self.listeners) if not process.running]
        for index in dead:
            self.listeners[index] = self.start(index)
        return [self.listeners[index] for index in dead]

    # -- the queue -----------------------------------------------------------------------------------------------------

    def queue(self, count: int, task: str = "ok") -> list[int]:
        """So many more items of this kind, Queued in one commit; their keys."""
        first, self._next = self._next, self._next + count
        self.bench.queue(*[task] * count, first=first)
        return list(range(first, self._next))

    def await_effects(self, count: int) -> None:
        wait_until(lambda: self.number("SELECT count(*) FROM effect") >= count, PATIENCE, f"{count} effects")

    def await_running(self, count: int = 1) -> None:
        """Until so many items are in the hands of listeners."""
        running: LiteralString = (
            "SELECT coalesce(sum(cardinality(keys)), 0) FROM scheduler.run WHERE finished_at IS NULL"
        )
        wait_until(lambda: self.number(running) >= count, PATIENCE, "items under way")

    def await_done(self, items: list[int]) -> None:
        """Until all these have their final word."""
        left: LiteralString = "SELECT count(*) FROM item WHERE id = ANY (%s) AND status IN ('Queued', 'Processing')"
        wait_until(lambda: one(self.bench.db, left, items) == 0, PATIENCE, "these items to be done")

    def busy(self) -> list[int]:
        """The listeners that have items in their hands at this moment."""
        rows = self.bench.db.execute(
            "SELECT l.pid FROM scheduler.run AS r JOIN scheduler.listener AS l ON l.id = r.listener"
            " WHERE r.finished_at IS NULL"
        ).fetchall()
        pids = {pid for (pid,) in rows}
        return [number for number, process in enumerate(self.listeners) if process.pid in pids]

    def await_ready_besides(self, number: int) -> None:
        """Until some other listener is there to go on."""
        others = [process for index, process in enumerate(self.listeners) if index != number]
        wait_until(lambda: any(process.lines("ready") for process in others), PATIENCE, "another listener")

    def keys_under_way(self) -> list[str]:
        rows = self.bench.db.execute("SELECT unnest(keys) FROM scheduler.run WHERE finished_at IS NULL").fetchall()
        return [key for (key,) in rows]

    def first_done(self, keys: list[str]) -> float:
        """When the first of these items had its effect, by the server's clock."""
        query = "SELECT coalesce(extract(epoch FROM min(at)), 0)::float8 FROM effect WHERE item::text = ANY (%s)"
        return float(one(self.bench.db, query, keys))

    def await_query(self, pattern: str, state: str = "active") -> None:
        """Until some session is busy with such a statement."""
        query = (
            "SELECT 1 FROM pg_stat_activity WHERE datname = current_database() AND query ILIKE %s AND state = %s"
            " AND pid <> pg_backend_pid()"
        )
        wait_until(lambda: self.bench.db.execute(query, [pattern, state]).fetchone(), PATIENCE, pattern)

    def over(self, probes: int = PROBES, *, began: float | None = None, name: str = "") -> None:
        """The fault is over now. A few new items show how soon work goes on, also where nothing was left."""
        blow = Blow(began or time.time(), time.time(), name)
        self.blows.append(blow)
        rows = self.bench.db.execute("SELECT id FROM item WHERE status IN ('Queued', 'Processing')").fetchall()
        blow.left += [key for (key,) in rows]
        blow.left += self.queue(probes)

    @contextmanager
    def fault(self, probes: int = PROBES, *, name: str = "") -> Iterator[None]:
        began = time.time()
        yield
        self.over(probes, began=began, name=name)

    def finish(self, patience: float = PATIENCE) -> Verdict:
        """Wait until every item has its final word, and judge."""
        wait_until(self._is_done, patience, "every item to have its final word")
        return judge(self.bench, self.sink, self.blows)

    def _is_done(self) -> bool:
        # a failed item is done with only when it is in the dead letter
        left: LiteralString = (
            "SELECT (SELECT count(*) FROM item WHERE status IN ('Queued', 'Processing'))"
            " + (SELECT count(*) FROM scheduler.attempt WHERE state IN ('waiting', 'active'))"
            " + (SELECT count(*) FROM scheduler.run WHERE finished_at IS NULL)"
        )
        return self.number(left) == 0

    def number(self, query: LiteralString) -> int:
        return number(self.bench, query)

    # -- time ----------------------------------------------------------------------------------------------------------

    @staticmethod
    def last(seconds: float) -> None:
        """The length of a fault; nothing is waited for."""
        threading.Event().wait(seconds)

    def keep_busy(self, seconds: float, act: Callable[[], object]) -> None:
        """Do this again and again for so long: the length of a fault that has to be made all the time."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            act()


@contextmanager
def staged(
    cluster: Throwaway,
    *,
    listeners: int = 2,
    fenced: bool = True,
    url: str | None = None,
    name: str = "chaos",
    terms: Mapping[str, object] | None = None,
) -> Iterator[Stage]:
    """A new database with the workflow `chaos` over a table `item`. Its listeners are yet to be started."""
    database = None
    if url is None:
        database = f"chaos_{random.SystemRandom().randrange(10**9)}"
        url = cluster.create_database(database)
        schema.migrate(url, pipeline=False)
    with ExitStack() as stack:
        if database is not None:
            stack.callback(cluster.drop_database, database)
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        sink, sink_url = stack.enter_context(sink_on_loopback())
        bench = Bench(url, folder)
        stack.callback(bench.close)
        bench.db.execute("ALTER TABLE effect ADD COLUMN at timestamptz")
        usual = {
            "lease": f"{LEASE_SECONDS} seconds",
            "batch_size": 20,
            "concurrency": 10,
            "max_attempts": 50,
            "breaker": False,
        }
        bench.adopt(name, "item", **{**usual, **(terms or {})})
        if not fenced:
            bench.db.execute(NO_FENCE)
        port = int(conninfo.conninfo_to_dict(url)["port"] or 0)
        proxies = [stack.enter_context(proxied(port)) for _ in range(listeners)]
        yield Stage(cluster, bench, proxies, sink, sink_url)
