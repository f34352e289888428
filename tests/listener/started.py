"""The table a listener works on, and a real `scrapersky listen` in a process of its own."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from uuid import uuid4

import psycopg
from psycopg import conninfo, sql

from listener.workflow import Workflow
from tests.listener import quiet, workflows
from tests.listener.inside import Inside
from tests.sql.queue import call, one
from tests.waiting import PATIENCE, wait_until

ROOT = Path(__file__).parents[2]
_BACKENDS = "FROM pg_stat_activity WHERE datname = current_database() AND application_name = %s"


class Bench:
    """One test's tables, its folder of gates, and its listeners; all processes end with the test."""

    def __init__(self, url: str, folder: Path) -> None:
        self.url = url
        self.folder = folder
        self.gates = folder / "gates"
        self.gates.mkdir()
        self.db = psycopg.connect(url, autocommit=True)
        self.db.execute("CREATE TABLE effect (item integer NOT NULL, result text, word text)")
        self.processes: list[Process] = []
        self.insiders: list[Inside] = []
        self.roles: list[str] = []

    def adopt(self, name: str = "job", table: str = "item", **settings: object) -> None:
        """Register a workflow; by default quick to give up, so that no test has to wait."""
        self.db.execute(
            sql.SQL(
                "CREATE TABLE IF NOT EXISTS {} (id integer PRIMARY KEY, task text NOT NULL DEFAULT 'ok', status text,"
                " error text)"
            ).format(sql.Identifier(table))
        )
        given = {"status_column": "status", "error_column": "error", "backoff": "0", **settings}
        call(self.db, "create_workflow", name=name, relation=table, **given)

    def queue(self, *tasks: str, first: int = 1, table: str = "item") -> None:
        """One queued row for each task, in one transaction, numbered from `first`."""
        query = sql.SQL(
            "INSERT INTO {} (id, task, status)"
            " SELECT %s - 1 + n, t, 'Queued' FROM unnest(%s::text[]) WITH ORDINALITY AS u (t, n)"
        )
        self.db.execute(query.format(sql.Identifier(table)), [first, list(tasks)])

    def statuses(self, table: str = "item") -> dict[int, str | None]:
        query = sql.SQL("SELECT id, status FROM {} ORDER BY id").format(sql.Identifier(table))
        return dict(self.db.execute(query).fetchall())

    def wait_for(self, *words: str, table: str = "item", deadline: float = PATIENCE) -> None:
        """Until the rows show these words, in the order of their ids; one word stands for all rows."""

        seen: list[str | None] = []

        def reached() -> bool:
            seen[:] = self.statuses(table).values()
            return seen == list(words) if len(words) > 1 else set(seen) == set(words)

        try:
            wait_until(reached, deadline, what=f"{words}")
        except AssertionError as error:
            logs = "\n".join(process.log() for process in self.processes)
            raise AssertionError(f"{error}\n{seen[:30]}\n{logs}") from None

    def effects(self) -> list[int]:
        return [row[0] for row in self.db.execute("SELECT item FROM effect ORDER BY item").fetchall()]

    def begun(self, key: int | str) -> int:
        """How often `work` was called for this item."""
        path = self.gates / f"{key}.begun"
        return len(path.read_text().splitlines()) if path.exists() else 0

    def wait_begun(self, *keys: int, times: int = 1) -> None:
        wait_until(lambda: all(self.begun(key) >= times for key in keys), PATIENCE, f"work on {keys}")

    def open_gate(self, *keys: int) -> None:
        for key in keys:
            (self.gates / f"{key}.go").touch()

    def was_cancelled(self, key: int) -> bool:
        return (self.gates / f"{key}.cancelled").exists()

    def runs(self) -> list[tuple[Any, ...]]:
        """(id, lost its listener's lease?) of the open runs."""
        return self.db.execute("SELECT id FROM scheduler.run WHERE finished_at IS NULL").fetchall()

    def as_listener(self, name: str = "worker") -> str:
        """The URL of a login that is only a listener, as a careful DBA would make it."""
        role = f"{name}_{uuid4().hex[:8]}"
        self.db.execute(sql.SQL("CREATE ROLE {} LOGIN PASSWORD 'pw-of-worker'").format(sql.Identifier(role)))
        self.db.execute(sql.SQL("GRANT scheduler_listener TO {}").format(sql.Identifier(role)))
        self.db.execute(sql.SQL("GRANT SELECT ON ALL TABLES IN SCHEMA public TO {}").format(sql.Identifier(role)))
        self.db.execute(sql.SQL("GRANT INSERT ON effect TO {}").format(sql.Identifier(role)))
        self.roles.append(role)
        return conninfo.make_conninfo(self.url, user=role, password="pw-of-worker")

    def backends(self, role: str) -> int:
        """How many connections of the listeners play this part: `doorbell`, `heartbeat` or `listener` (the pool)."""
        return int(one(self.db, f"SELECT count(*) {_BACKENDS}", f"scrapersky {role}"))

    def terminate_backends(self, role: str) -> int:
        return int(one(self.db, f"SELECT count(pg_terminate_backend(pid)) {_BACKENDS}", f"scrapersky {role}"))

    def start(
        self,
        *arguments: str,
        entries: Sequence[str] = ("job",),
        ready: bool = True,
        url: str | None = None,
        **environment: str | None,
    ) -> "Process":
        """Start a listener with these entry points: names in tests.listener.workflows, or `name = module:object`."""
        site = _site(self.folder / f"site{len(self.processes)}", entries)
        process = Process(self, site, arguments, {"DATABASE_URL": url or self.url, **environment})
        self.processes.append(process)
        if ready:
            process.wait_line("ready")
        return process

    def inside(self, *chosen: str | Workflow[Any, Any], ready: bool = True, **given: Any) -> Inside:
        """Start a listener in this process, with these of tests.listener.workflows or with the test's own."""
        found = [getattr(workflows, one) if isinstance(one, str) else one for one in chosen or ("job",)]
        defaults = {"listener_poll_seconds": 60, "listener_drain_seconds": 0}
        url = given.pop("url", self.url)
        insider = Inside(url, {workflow.name: workflow for workflow in found}, **{**defaults, **given})
        self.insiders.append(insider)
        return insider.ready() if ready else insider

    def reconnect(self) -> None:
        """After the server has been restarted."""
        self.db.close()
        self.db = psycopg.connect(self.url, autocommit=True)

    def close(self) -> None:
        for process in self.processes:
            process.kill()
        for insider in self.insiders:
            insider.stop(twice=True)
        for role in self.roles:
            self.db.execute(sql.SQL("DROP OWNED BY {0}; DROP ROLE {0}").format(sql.Identifier(role)))
        self.db.close()


class Process:
    """One `scrapersky listen`."""

    def __init__(self, bench: Bench, site: Path, arguments: Sequence[str], environment: dict[str, str | None]) -> None:
        self._bench = bench
        self._path = bench.folder / f"listener{len(bench.processes)}.log"
        everything = {
            **{name: value for name, value in os.environ.items() if not name.startswith(("PYTEST", "LISTENER", "LOG"))},
            "PYTHONPATH": os.pathsep.join((str(site), str(ROOT))),
            "GATES": str(bench.gates),
            "LISTENER_POLL_SECONDS": "60",  # so that only a doorbell explains a quick find
            **environment,
            **quiet.environment(),
        }
        with self._path.open("w") as log:
            self._popen = subprocess.Popen(
                [sys.executable, "-c", "from listener.cli import main; main()", "listen", *arguments],
                stdout=subprocess.DEVNULL,
                stderr=log,
                stdin=subprocess.DEVNULL,
                cwd=bench.folder,  # no .env of ours here
                env={name: value for name, value in everything.items() if value is not None},
            )
        self.pid = self._popen.pid

    @property
    def running(self) -> bool:
        return self._popen.poll() is None

    def log(self) -> str:
        return self._path.read_text()

    def lines(self, event: str = "") -> list[dict[str, Any]]:
        """The log lines whose event contains this text."""
        found = []
        for line in self.log().splitlines():
            if line.startswith("{") and line.endswith("}"):
                fields = json.loads(line)
                if event in fields["event"]:
                    found.append(fields)
        return found

    def wait_line(self, event: str, count: int = 1, deadline: float = PATIENCE) -> dict[str, Any]:
        """The `count`-th line with this event."""

        def seen() -> bool:
            assert len(self.lines(event)) >= count or self._popen.poll() is None, self.log()
            return len(self.lines(event)) >= count

        try:
            wait_until(seen, deadline)
        except AssertionError as error:
            raise AssertionError(f"no line {event!r}: {error}\n{self.log()}") from None
        return self.lines(event)[count - 1]

    def signal(self, number: signal.Signals) -> None:
        self._popen.send_signal(number)

    def wait(self, deadline: float = PATIENCE) -> int:
        """Its exit code."""
        try:
            return self._popen.wait(deadline)
        except subprocess.TimeoutExpired:
            raise AssertionError(f"still running after {deadline} s\n{self.log()}") from None

    def stop(self) -> int:
        self.signal(signal.SIGTERM)
        return self.wait()

    def kill(self) -> None:
        """kill -9, also of one that is stopped."""
        if self._popen.poll() is None:
            self._popen.kill()
        self._popen.wait()


def _site(folder: Path, entries: Sequence[str]) -> Path:
    """An installed distribution that brings these entry points, as pip would leave it."""
    info = folder / "example-1.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: example\nVersion: 1\n")
    lines = [entry if "=" in entry else f"{entry} = tests.listener.workflows:{entry}" for entry in entries]
    (info / "entry_points.txt").write_text("\n".join(("[scrapersky.workflows]", *lines, "")))
    return folder


@contextmanager
def bench_on(url: str, folder: Path) -> Iterator[Bench]:
    bench = Bench(url, folder)
    try:
        yield bench
    finally:
        bench.close()
