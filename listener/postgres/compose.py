"""The private PostgreSQL in a container, where Docker is there and suitable programs are not."""

import hashlib
import json
import os
import secrets
import shutil
import subprocess
from pathlib import Path
from urllib.parse import quote

from listener.errors import UserError
from listener.postgres import configuration, port
from listener.postgres.cluster import Status
from listener.postgres.configuration import DATABASE, SUPERUSER
from listener.postgres.home import Say
from listener.postgres.trouble import last_line

MAJOR = 17
_START_SECONDS = 600

_DOCKERFILE = f"""\
FROM postgres:{MAJOR}
RUN apt-get update \\
 && apt-get install -y --no-install-recommends postgresql-{MAJOR}-cron \\
 && rm -rf /var/lib/apt/lists/*
"""


class Compose:
    """A compose project in `directory`; the same commands as a `Cluster`."""

    def __init__(self, directory: Path, *, say: Say) -> None:
        self.directory = directory
        self._file = directory / "compose.json"
        self._password = directory / "password"
        self._say = say

    @property
    def exists(self) -> bool:
        return self._file.is_file()

    def start(self) -> None:
        self.directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        if not self._password.exists():
            with os.fdopen(os.open(self._password, os.O_WRONLY | os.O_CREAT, 0o600), "w") as file:
                file.write(secrets.token_urlsafe(24))
        (self.directory / "Dockerfile").write_text(_DOCKERFILE)
        if not self._running():
            self._file.write_text(json.dumps(self._project(self._choose_port()), indent=2))
        self._say("Building and starting the container (the first time takes a minute) ...")
        self._compose("up", "--detach", "--build", "--wait", "--wait-timeout", str(_START_SECONDS))
        self._query(DATABASE, "CREATE EXTENSION IF NOT EXISTS pg_cron")

    def stop(self) -> bool:
        running = self._running()
        self._compose("stop")
        return running

    def require_ours(self) -> None:
        if not self.exists:
            raise UserError(f"There is no compose project of ours in {self.directory}.", "Nothing was deleted.")

    def destroy(self) -> None:
        self.require_ours()
        self._compose("down", "--volumes", "--rmi", "local")
        shutil.rmtree(self.directory)

    def status(self) -> Status:
        if not self.exists:
            return Status("absent", str(self.directory))
        running = self._running()
        return Status(
            "running" if running else "stopped",
            str(self.directory),
            port=self._port(),
            version=str(MAJOR),
            pg_cron="yes",
            url=self.url(),
        )

    def url(self, dbname: str = DATABASE) -> str:
        password = quote(self._password.read_text())
        return f"postgresql://{SUPERUSER}:{password}@{port.ADDRESS}:{self._port()}/{quote(dbname)}"

    def psql(self, arguments: list[str]) -> int:
        command = [*self._command(), "exec", "postgres", "psql", "-U", SUPERUSER, "-d", DATABASE, *arguments]
        return subprocess.run(command, check=False).returncode

    def _choose_port(self) -> int:
        remembered = self._port() if self.exists else port.FIRST
        return remembered if port.is_free(remembered) else port.first_free()

    def _port(self) -> int:
        if not self.exists:
            raise UserError(f"There is no container in {self.directory}.", "Create it with 'scrapersky db start'.")
        published: str = json.loads(self._file.read_text())["services"]["postgres"]["ports"][0]
        return int(published.split(":")[1])

    def _project(self, chosen_port: int) -> dict[str, object]:
        """Compose reads YAML, and JSON is YAML: no template, no quoting."""
        digest = hashlib.sha256(str(self.directory.resolve()).encode()).hexdigest()[:12]
        options = configuration.settings(port=5432, sockets="/var/run/postgresql", cron=True, extra={})
        # inside the container the outside world is another address
        options |= {"listen_addresses": "*", "unix_socket_permissions": "0777"}
        service = {
            "build": ".",
            "command": [
                "postgres",
                *(part for name, value in options.items() for part in ("-c", f"{name}={value}")),
            ],
            "environment": {"POSTGRES_PASSWORD": self._password.read_text(), "POSTGRES_DB": DATABASE},
            "ports": [f"{port.ADDRESS}:{chosen_port}:5432"],
            "volumes": ["data:/var/lib/postgresql/data"],
            "shm_size": "256mb",
            "healthcheck": {
                "test": ["CMD", "pg_isready", "-h", port.ADDRESS, "-U", SUPERUSER, "-d", DATABASE],
                "interval": "1s",
                "retries": 60,
            },
        }
        return {"name": f"scrapersky-{digest}", "services": {"postgres": service}, "volumes": {"data": {}}}

    def _running(self) -> bool:
        return self.exists and bool(self._compose("ps", "--quiet", "--status", "running").strip())

    def _query(self, dbname: str, statement: str) -> None:
        self._compose("exec", "-T", "postgres", "psql", "-U", SUPERUSER, "-d", dbname, "-qc", statement)

    def _command(self) -> list[str]:
        return ["docker", "compose", "--file", str(self._file)]

    def _compose(self, *arguments: str) -> str:
        result = subprocess.run(
            [*self._command(), *arguments],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
        )
        if result.returncode != 0:
            raise UserError(
                f"docker compose {arguments[0]} failed: {last_line(result.stderr)}",
                f"Try it by hand: docker compose --file {self._file} {' '.join(arguments)}",
            )
        return result.stdout
