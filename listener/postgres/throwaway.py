"""Throw-away clusters for tests and benchmarks: up in half a second, gone without a trace."""

import random
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
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


class Throwaway:
    """A running throw-away cluster."""

    def __init__(self, cluster: Cluster, server: Server) -> None:
        self.cluster = cluster
        self.server = server

    def url(self, dbname: str = DATABASE) -> str:
        return self.cluster.url(dbname)

    def create_database(self, name: str, template: str | None = None) -> str:
        """A new database, a copy of `template` if given (which nobody may be connected to); its URL."""
        source = sql.Identifier(template or "template1")
        self._maintain(sql.SQL("CREATE DATABASE {} TEMPLATE {}").format(sql.Identifier(name), source))
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

    def _maintain(self, statement: sql.Composed) -> None:
        with psycopg.connect(self.url("postgres"), autocommit=True) as connection:
            connection.execute(statement)


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
    directory = _directory()
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
        yield Throwaway(cluster, server)
    finally:
        guard.remove(directory)
        watcher.communicate()


def _directory() -> Path:
    """A temporary directory that the server's account can enter, whatever TMPDIR says."""
    account = Account.unprivileged()
    for parent in (None, *_FALLBACK_FOLDERS):
        directory = Path(tempfile.mkdtemp(prefix="scrapersky-", dir=parent))
        account.give(directory)
        if account.can_enter(directory):
            return directory
        directory.rmdir()
    raise UserError(f"User {account.name} can write to no temporary directory.", "Set TMPDIR to one that it can.")
