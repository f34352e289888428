"""Throw-away clusters for tests and benchmarks: up in half a second, gone without a trace."""

import os
import random
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from pathlib import Path

import psycopg
from psycopg import sql

from listener.errors import UserError
from listener.postgres import configuration, guard, port
from listener.postgres.account import Account
from listener.postgres.cluster import Cluster
from listener.postgres.configuration import DATABASE
from listener.postgres.server import Server, best, find

_FALLBACK_FOLDERS = ("/var/tmp", "/tmp")  # noqa: S108 - only ever the parents of a mkdtemp
_MEMORY_FOLDER = Path("/dev/shm")  # noqa: S108
_MEMORY_BYTES = 4 * 2**30
"""So much must be free there, or a container's 64 MB would be full at once."""


class Throwaway:
    """A running throw-away cluster."""

    def __init__(self, cluster: Cluster, server: Server) -> None:
        self.cluster = cluster
        self.server = server
        self._session: psycopg.Connection | None = None

    def url(self, dbname: str = DATABASE) -> str:
        return self.cluster.url(dbname)

    def create_database(self, name: str, template: str | None = None) -> str:
        """A new database, a copy of `template` if given (which nobody may be connected to); its URL."""
        source = sql.Identifier(template or "template1")
        # its checkpoints cost nothing without fsync: 40-60 ms instead of 90 through the WAL, the default since 15
        strategy = sql.SQL(" STRATEGY file_copy" if template and self.server.major >= 15 else "")
        self._maintain(sql.SQL("CREATE DATABASE {} TEMPLATE {}{}").format(sql.Identifier(name), source, strategy))
        return self.url(name)

    def drop_database(self, name: str) -> None:
        if name == DATABASE:
            # FORCE would terminate the pg_cron launcher, which version 1.4 never restarts.
            raise UserError(f"{DATABASE} is the database of pg_cron and stays.", "Empty it instead.")
        self._maintain(sql.SQL("DROP DATABASE IF EXISTS {} WITH (FORCE)").format(sql.Identifier(name)))

    def restart(self, mode: str = "fast") -> None:
        """Stop (`fast`, or `immediate` for a crash) and start again on the same port."""
        self.cluster.stop(mode)
        self.cluster.start(self.server)

    def close(self) -> None:
        if self._session is not None:
            self._session.close()

    def _maintain(self, statement: sql.Composed) -> None:
        """In one session for all: signing in takes 20 ms. It is made anew after a restart."""
        for fresh in (False, True):
            if fresh or self._session is None or self._session.closed:
                self.close()
                self._session = psycopg.connect(self.url("postgres"), autocommit=True)
            try:
                self._session.execute(statement)
            except psycopg.OperationalError:
                if fresh or not self._session.closed:
                    raise
            else:
                return


@contextmanager
def throwaway(
    server: Server | None = None, *, durable: bool = False, settings: Mapping[str, str] | None = None
) -> Iterator[Throwaway]:
    """A cluster that lives as long as the block, or as long as this process if it is killed inside.

    `durable=False` turns off what only matters if the machine crashes; measure durability with `durable=True`.
    """
    server = server or best(find())
    if server is None:
        raise UserError(
            "No PostgreSQL server programs found.", "Install PostgreSQL, or run 'scrapersky db start' once."
        )
    base = configuration.DURABLE if durable else configuration.FLEETING
    directory = _directory(in_memory=not durable)
    watcher = subprocess.Popen(
        [sys.executable, "-m", "listener.postgres.guard", directory],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        start_new_session=True,  # Ctrl-C is for the tests, not for who cleans up after them
    )
    try:
        cluster = Cluster(
            directory / guard.CLUSTER,
            settings={**base, **(settings or {})},
            # Parallel workers start at different ports, so that they seldom meet on one.
            first_port=random.randint(port.FIRST + 100, port.LAST - 1000),  # noqa: S311
        )
        cluster.start(server)
        with closing(Throwaway(cluster, server)) as running:
            yield running
    finally:
        guard.remove(directory)
        watcher.communicate()


def _directory(*, in_memory: bool) -> Path:
    """A temporary directory that the server's account can enter, whatever TMPDIR says.

    In memory if there is room: a database is three hundred files, and where thousands of files are made and deleted a
    disk's file system searches ever longer for free names. It was most of the time of the test suite.
    """
    account = Account.unprivileged()
    for parent in (*_memory(in_memory), None, *_FALLBACK_FOLDERS):
        directory = Path(tempfile.mkdtemp(prefix="scrapersky-", dir=parent))
        account.give(directory)
        if account.can_enter(directory):
            return directory
        directory.rmdir()
    raise UserError(f"User {account.name} can write to no temporary directory.", "Set TMPDIR to one that it can.")


def _memory(wanted: bool) -> tuple[Path, ...]:
    if not wanted or os.environ.get("TMPDIR") or not os.access(_MEMORY_FOLDER, os.W_OK):
        return ()
    return (_MEMORY_FOLDER,) if shutil.disk_usage(_MEMORY_FOLDER).free >= _MEMORY_BYTES else ()
