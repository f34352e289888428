"""Installing PostgreSQL and pg_cron from Debian's or Ubuntu's packages, before any server starts."""

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from listener.errors import UserError
from listener.postgres.home import Say
from listener.postgres.server import Server, find
from listener.postgres.trouble import last_line

# Debian starts a "main" cluster with a new server package; we neither need nor want to own one.
_NO_MAIN_CLUSTER = Path("/etc/postgresql-common/createcluster.d/scrapersky.conf")
_ENGLISH = ["env", "LC_ALL=C"]
_APT = [*_ENGLISH, "DEBIAN_FRONTEND=noninteractive", "apt-get", "-y", "-q", "-o", "DPkg::Lock::Timeout=300"]


def is_debian() -> bool:
    return Path("/etc/debian_version").exists() and shutil.which("apt-get") is not None


def root_prefix() -> tuple[str, ...] | None:
    """What to put before a command to run it as root without a question; None if that is not possible."""
    if os.geteuid() == 0:
        return ()
    if shutil.which("sudo") is None:
        return None
    asked = subprocess.run(["sudo", "-n", "true"], capture_output=True, check=False)
    return ("sudo", "-n") if asked.returncode == 0 else None


class Apt:
    """apt-get as root. The package lists are fetched once, and only if something is to be installed."""

    def __init__(self, prefix: Sequence[str], say: Say) -> None:
        self._prefix = list(prefix)
        self._say = say
        self._updated = False

    def install_postgres(self) -> None:
        """The distribution's PostgreSQL, without creating or starting a system cluster."""
        with self._without_main_cluster():
            self.install("postgresql")

    def install_cron(self, servers: Sequence[Server]) -> None:
        """pg_cron for the newest server that has a package of it."""
        self._update()
        for server in servers:
            package = f"postgresql-{server.major}-cron"
            if self.offers(package):
                self.install(package)
                return
        majors = ", ".join(str(server.major) for server in servers)
        raise UserError(f"The package sources have no pg_cron for PostgreSQL {majors}.")

    def install_check(self, server: Server) -> bool:
        """plpgsql_check, which the tests lint the engine with; False if there is no package."""
        self._update()
        package = f"postgresql-{server.major}-plpgsql-check"
        if self.offers(package):
            self.install(package)
            return True
        return False

    def offers(self, package: str) -> bool:
        asked = subprocess.run([*_ENGLISH, "apt-cache", "policy", package], capture_output=True, text=True, check=False)
        return "Candidate:" in asked.stdout and "Candidate: (none)" not in asked.stdout

    def install(self, package: str) -> None:
        self._update()
        self._say(f"Installing the package {package} ...")
        self._run("install", "--no-install-recommends", package)

    def _update(self) -> None:
        if not self._updated:
            self._say("Fetching the package lists (apt-get update) ...")
            self._run("update")
            self._updated = True

    def _run(self, *arguments: str) -> None:
        result = subprocess.run(
            [*self._prefix, *_APT, *arguments],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )
        if result.returncode != 0:
            errors = "\n".join(line for line in result.stdout.splitlines() if line.startswith("E:"))
            raise UserError(f"apt-get {' '.join(arguments)} failed: {last_line(errors or result.stdout)}")

    @contextmanager
    def _without_main_cluster(self) -> Iterator[None]:
        with tempfile.NamedTemporaryFile("w", suffix=".conf") as draft:
            draft.write("create_main_cluster = false\n")
            draft.flush()
            self._as_root("install", "-D", "-m", "644", draft.name, str(_NO_MAIN_CLUSTER))
        try:
            yield
        finally:
            self._as_root("rm", "-f", str(_NO_MAIN_CLUSTER))

    def _as_root(self, *command: str) -> None:
        result = subprocess.run(
            [*self._prefix, *command], stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False
        )
        if result.returncode != 0:
            raise UserError(f"{' '.join(command)} failed: {last_line(result.stderr)}")


def install(prefix: Sequence[str], say: Say) -> list[Server]:
    """PostgreSQL if there is none, pg_cron if no server has it; the servers found afterwards."""
    apt = Apt(prefix, say)
    if not find():
        apt.install_postgres()
    servers = find()
    if servers and not any(server.cron for server in servers):
        apt.install_cron(servers)
    return find()
