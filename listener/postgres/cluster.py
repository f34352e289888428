"""One private PostgreSQL cluster: created, started, stopped, looked at and destroyed."""

import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from urllib.parse import quote

import psycopg

from listener.errors import UserError
from listener.postgres import configuration, port, process
from listener.postgres.account import Account
from listener.postgres.configuration import DATABASE, SUPERUSER
from listener.postgres.creation import create
from listener.postgres.home import Home, Memory, Say, write_private
from listener.postgres.lock import lock_file, locked
from listener.postgres.server import Server, find, inspect, major_of
from listener.postgres.trouble import explain, is_taken_port, is_winding_down

START_SECONDS = 60
START_ATTEMPTS = 20
_WINDING_DOWN_PAUSE = 0.5
# The tightest limit of the systems we know is macOS's 104 bytes, the final zero included.
SOCKET_PATH_LIMIT = 103


@dataclass(frozen=True)
class Status:
    """What `scrapersky db status` tells."""

    state: str
    """`running`, `stopped` or `absent`."""
    directory: str
    port: int | None = None
    pid: int | None = None
    version: str | None = None
    pg_cron: str | None = None
    url: str | None = None


def quiet(_: str) -> None:
    """For callers that want no progress lines."""


class Cluster:
    """The cluster in `directory`. Only `start` creates anything."""

    def __init__(
        self,
        directory: Path,
        *,
        settings: Mapping[str, str] = configuration.DURABLE,
        first_port: int = port.FIRST,
        say: Say = quiet,
    ) -> None:
        self.home = Home(directory)
        self._settings = settings
        self._first_port = first_port
        self._say = say

    @property
    def memory(self) -> Memory:
        memory = self.home.recall()
        if memory is None:
            raise UserError(
                f"There is no private PostgreSQL in {self.home.path}.",
                "Create it with 'scrapersky db start', or name a database of yours in DATABASE_URL.",
            )
        return memory

    @property
    def server(self) -> Server:
        """The programs this cluster runs with."""
        bindir = Path(self.memory.bindir)
        server = inspect(bindir)
        if server is None:
            raise UserError(
                f"The PostgreSQL programs of this cluster are gone from {bindir}.",
                "Install them again, or start over with 'scrapersky db destroy' and 'scrapersky db start'.",
            )
        return server

    @property
    def pid(self) -> int | None:
        """The postmaster's process id while it runs."""
        return process.postmaster(self.home.data)

    def url(self, dbname: str = DATABASE) -> str:
        memory = self.memory
        password = self.home.password_file.read_text().strip()
        return f"postgresql://{SUPERUSER}:{quote(password)}@{port.ADDRESS}:{memory.port}/{quote(dbname)}"

    def status(self) -> Status:
        memory = self.home.recall()
        if memory is None:
            return Status("absent", str(self.home.path))
        server = inspect(Path(memory.bindir))
        pid = self.pid
        return Status(
            "running" if pid else "stopped",
            str(self.home.path),
            port=memory.port,
            pid=pid,
            version=server.version if server else None,
            pg_cron=server.cron if server and memory.cron else None,
            url=self.url(),
        )

    def start(self, server: Server) -> None:
        """Create the cluster if need be and start it with these programs. Harmless when it already runs."""
        with locked(self.home.path) as lock:
            try:
                self.home.create(self._say)
                if self.pid is None:
                    self._start(self._reachable(self._matching(server)), lock)
                self._prepare_database()
            except OSError as error:
                raise explain("start", str(error), self.home.path) from error

    def stop(self, mode: str = "fast") -> bool:
        """Stop the server; False if it was not running."""
        with locked(self.home.path):
            return self._stop(mode)

    def require_ours(self) -> None:
        """Refuse, with the reason, what `destroy` would refuse."""
        self.home.require_ours()

    def destroy(self) -> None:
        """Stop the server and delete the directory, if it is ours."""
        self.require_ours()
        with locked(self.home.path):
            memory = self.home.recall()
            self._stop("immediate")
            self.home.remove()
            if memory is not None:
                shutil.rmtree(memory.sockets, ignore_errors=True)
            lock_file(self.home.path).unlink(missing_ok=True)

    def psql(self, arguments: list[str]) -> int:
        """psql in the foreground, on our database unless the arguments name another."""
        if self.pid is None:
            raise UserError("The private PostgreSQL is not running.", "Start it with 'scrapersky db start'.")
        environment = os.environ | {
            "PGHOST": port.ADDRESS,
            "PGPORT": str(self.memory.port),
            "PGUSER": SUPERUSER,
            "PGDATABASE": DATABASE,
            "PGPASSWORD": self.home.password_file.read_text().strip(),
        }
        return subprocess.run([self.server.program("psql"), *arguments], env=environment, check=False).returncode

    @property
    def _account(self) -> Account:
        return self.home.account

    def _matching(self, server: Server) -> Server:
        """Data files belong to one major version: a newer PostgreSQL on the machine must not take them over."""
        version_file = self.home.data / "PG_VERSION"
        if self.home.recall() is None or not version_file.is_file():
            return server
        major = major_of(version_file.read_text())
        if major == server.major:
            return server
        same = next((other for other in find() if other.major == major), None)
        same = same or inspect(Path(self.memory.bindir))
        if same is None or same.major != major:
            raise UserError(
                f"The cluster in {self.home.path} was created by PostgreSQL {major}, and {server.label} is here.",
                f"Install PostgreSQL {major}, or give up the data with 'scrapersky db destroy'.",
            )
        return same

    def _reachable(self, server: Server) -> Server:
        """The same programs, copied if the account cannot reach them: a wheel in a closed checkout."""
        account = self._account
        if account.can_run(server.program("postgres")):
            return server
        copy = self.home.root / "server"
        if not (copy / "bin" / "postgres").exists():
            self._say(f"User {account.name} cannot run the programs in {server.bindir}: copying them to {copy}.")
            unneeded = shutil.ignore_patterns("include", "*.a", "doc")
            shutil.copytree(server.bindir.parent, copy, symlinks=True, ignore=unneeded)
            account.give_tree(copy)
        copied = inspect(copy / "bin", from_wheel=server.from_wheel)
        if copied is None or not account.can_run(copied.program("postgres")):
            raise UserError(
                f"User {account.name} cannot run the PostgreSQL in {server.bindir}.",
                "Install PostgreSQL for the whole machine, or run the command as an ordinary user.",
            )
        return copied

    def _start(self, server: Server, lock: int) -> None:
        memory = self.home.recall()
        if memory is None:
            create(self.home, server, sync=self._settings.get("fsync") != "off", lock=lock, say=self._say)
            memory = Memory(port=port.first_free(self._first_port), bindir="", sockets="", cron=False)
        self._drop_stale_pid_file(memory)
        self._truncate_log()
        wanted, output = memory.port, ""
        for _ in range(START_ATTEMPTS):
            if not port.is_free(wanted):
                taken, wanted = wanted, port.first_free(max(wanted + 1, self._first_port))
                self._say(f"Port {taken} is in use by another program: taking {wanted} instead.")
            memory = replace(
                memory,
                port=wanted,
                bindir=str(server.bindir),
                sockets=self._sockets(memory.sockets, wanted),
                cron=server.cron is not None,
            )
            self._write_settings(memory)
            # Before the server runs: whoever finds it running must be able to reach it.
            self.home.remember(memory)
            output = self._try_to_start(server)
            if not output:
                return
            if is_winding_down(output):
                time.sleep(_WINDING_DOWN_PAUSE)
            elif not is_taken_port(output):
                raise explain("start", output, self.home.path)
        raise explain("start", output, self.home.path)

    def _drop_stale_pid_file(self, memory: Memory) -> None:
        """A dead pid PostgreSQL sees through by itself. One reused by another program it takes for a server."""
        pid = process.recorded_pid(self.home.data)
        if pid is None:
            return
        self._say(f"The server was not stopped properly (stale postmaster.pid of process {pid}): it recovers now.")
        if process.is_alive(pid):
            (self.home.data / "postmaster.pid").unlink()
            # Beside the socket it left the same pid.
            (Path(memory.sockets) / f".s.PGSQL.{memory.port}.lock").unlink(missing_ok=True)

    def _truncate_log(self) -> None:
        """Keep the log of the last run beside this one's, so that it cannot grow for ever."""
        if self.home.log.exists():
            self.home.log.replace(self.home.log.with_suffix(".log.1"))

    def _sockets(self, remembered: str, wanted: int) -> str:
        """A directory for the Unix socket: in the cluster if its path is short enough, else a short one."""
        preferred = self.home.root / "sockets"
        if len(os.fsencode(preferred / f".s.PGSQL.{wanted}")) <= SOCKET_PATH_LIMIT:
            return str(self._account.make_directory(preferred))
        if remembered and Path(remembered).is_dir() and Account.owner_of(Path(remembered)) == self._account:
            return remembered
        short = Path(tempfile.mkdtemp(prefix="scrapersky-", dir="/tmp"))
        self._account.give(short)
        return str(short)

    def _write_settings(self, memory: Memory) -> None:
        chosen = configuration.settings(
            port=memory.port, sockets=memory.sockets, cron=memory.cron, extra=self._settings
        )
        write_private(self.home.data / configuration.INCLUDED_FILE, configuration.render(chosen), self._account)

    def _try_to_start(self, server: Server) -> str:
        """Empty on success, else what was printed and logged."""
        result = self._pg_ctl(server, "start", "--log", self.home.log, "--timeout", START_SECONDS)
        if result.returncode == 0:
            return ""
        logged = self.home.log.read_text(errors="replace") if self.home.log.exists() else ""
        return f"{result.stdout}{result.stderr}{logged}"

    def _stop(self, mode: str) -> bool:
        if self.pid is None:
            return False
        result = self._pg_ctl(self.server, "stop", "--mode", mode, "--timeout", START_SECONDS)
        if result.returncode != 0 and self.pid is not None:
            raise explain("stop", result.stdout + result.stderr, self.home.path)
        return True

    def _pg_ctl(self, server: Server, action: str, *options: object) -> subprocess.CompletedProcess[str]:
        command: list[str | Path] = [server.program("pg_ctl"), action, "--pgdata", self.home.data, "--wait"]
        command += map(str, options)
        return self._account.run(command)

    def _prepare_database(self) -> None:
        if self.memory.cron:
            with psycopg.connect(self.url(), autocommit=True) as connection:
                connection.execute("CREATE EXTENSION IF NOT EXISTS pg_cron")
