"""A second server that follows a throw-away cluster by streaming replication, and can be promoted."""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psycopg
from psycopg import conninfo, sql

from listener.postgres import port
from listener.postgres.account import Account
from listener.postgres.throwaway import Throwaway
from tests.waiting import wait_until

NAME = "standby"


class Standby:
    def __init__(self, primary: Throwaway, data: Path, account: Account) -> None:
        self._primary = primary
        self._data = data
        self._account = account
        self.port = port.first_free(port.FIRST + 5000)

    def start(self) -> None:
        options = f"-p {self.port} -c unix_socket_directories={self._data.parent}"
        self._pg_ctl("start", "-l", str(self._data.parent / "standby.log"), "-o", options)

    def hold_back(self) -> None:
        """Receive nothing more: as a standby that has fallen behind."""
        settings = self._data / "postgresql.auto.conf"
        settings.write_text(settings.read_text() + "primary_conninfo = ''\n")
        self._pg_ctl("reload")
        wait_until(lambda: _execute(self._primary, _STREAMING) is False, what="the standby to stop following")

    def promote(self) -> None:
        self._pg_ctl("promote")

    def stop(self) -> None:
        self._pg_ctl("stop", "-m", "immediate")

    def url(self, dbname: str) -> str:
        return conninfo.make_conninfo(self._primary.url(dbname), port=self.port)

    def both(self, dbname: str) -> str:
        """A connection string that names both servers, as an operator of a pair would write it."""
        first = conninfo.conninfo_to_dict(self._primary.url(dbname))
        host, ports = first["host"], f"{first['port']},{self.port}"
        return conninfo.make_conninfo(self._primary.url(dbname), host=f"{host},{host}", port=ports, connect_timeout=2)

    def _pg_ctl(self, action: str, *options: str) -> None:
        program = self._primary.server.program("pg_ctl")
        done = self._account.run([program, action, "-D", self._data, "-w", *options])
        assert done.returncode == 0, done.stdout + done.stderr


@contextmanager
def standby_of(primary: Throwaway, folder: Path, *, synchronous: bool = True) -> Iterator[Standby]:
    """A synchronous one has what the primary acknowledges; another may be behind."""
    account = Account.unprivileged()
    data = primary.cluster.home.data
    with (data / "pg_hba.conf").open("a") as rules:
        rules.write("host replication all 127.0.0.1/32 scram-sha-256\n")
    _execute(primary, "SELECT pg_reload_conf()")
    copy = folder / NAME
    account.give(folder)
    source = conninfo.make_conninfo(primary.url("postgres"), application_name=NAME)
    done = account.run(
        [primary.server.program("pg_basebackup"), "-D", copy, "-X", "stream", "-c", "fast", "-d", source]
    )
    assert done.returncode == 0, done.stdout + done.stderr
    settings = copy / "postgresql.auto.conf"
    quoted = source.replace("'", "''")
    settings.write_text(settings.read_text() + f"primary_conninfo = '{quoted}'\n")
    (copy / "standby.signal").touch()
    account.give_tree(copy)
    standby = Standby(primary, copy, account)
    standby.start()
    try:
        if synchronous:
            _execute(primary, sql.SQL("ALTER SYSTEM SET synchronous_standby_names = {}").format(NAME))
            _execute(primary, "ALTER SYSTEM SET synchronous_commit = 'remote_apply'")
            _execute(primary, "SELECT pg_reload_conf()")
        wait_until(lambda: _execute(primary, _SYNC if synchronous else _STREAMING), what="the standby to follow")
        yield standby
    finally:
        standby.stop()
        shutil.rmtree(copy, ignore_errors=True)


_STREAMING = "SELECT count(*) > 0 FROM pg_stat_replication WHERE state = 'streaming'"
_SYNC = "SELECT count(*) > 0 FROM pg_stat_replication WHERE sync_state = 'sync'"


def _execute(primary: Throwaway, statement: str | sql.Composed) -> object:
    with psycopg.connect(primary.url("postgres"), autocommit=True) as db:
        cursor = db.execute(statement.encode() if isinstance(statement, str) else statement)
        row = cursor.fetchone() if cursor.description else None
        return row[0] if row else None
