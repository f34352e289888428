"""The PostgreSQL servers tests can run on: a private throw-away cluster, a container, or one that a URL names."""

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Protocol
from urllib.parse import quote, urlencode

import psycopg
import pytest
from psycopg import conninfo, sql

from listener.errors import UserError
from listener.postgres import choose, packages, wheel
from listener.postgres.choose import URL_VARIABLE, Choice
from listener.postgres.home import Say
from listener.postgres.server import Server, ask, best, find, major_of
from listener.postgres.throwaway import Throwaway, throwaway
from tests import unpacked

KINDS = ("private", "container", "url")
CONTAINER_IMAGE = "postgres:17"


@dataclass(frozen=True)
class ServerInfo:
    """What a test may need to know about the server it runs on."""

    version: str
    cron: str | None
    """The version of pg_cron that is loaded, or None."""
    plpgsql_check: bool
    cron_database: str | None
    programs: Server | None
    """The server's own programs, for tests that call psql or pg_dump; None if they are not on this machine."""


class Postgres(Protocol):
    """What the fixture `postgres` gives."""

    @property
    def server(self) -> ServerInfo: ...

    @property
    def throwaway(self) -> Throwaway | None:
        """The cluster itself, to stop and restart it; None for a server that is not ours."""

    def url(self, dbname: str) -> str: ...

    def create_database(self, name: str, template: str | None = None) -> str: ...

    def drop_database(self, name: str) -> None: ...


class Remote:
    """A server that is already running, reached by a superuser's URL."""

    throwaway: Throwaway | None = None

    def __init__(self, url: str) -> None:
        self._url = url
        with psycopg.connect(self.url("postgres"), autocommit=True) as connection:
            self.server = _ask(connection)

    def url(self, dbname: str) -> str:
        # a URI, as those of the other servers are: not every library reads libpq's own spelling
        given = {name: str(value) for name, value in conninfo.conninfo_to_dict(self._url).items()}
        server = {name: quote(given.pop(name, ""), safe="") for name in ("user", "password", "host", "port")}
        given.pop("dbname", None)
        return (
            f"postgresql://{server['user']}:{server['password']}@{server['host']}:{server['port']}/{quote(dbname)}"
            + (f"?{urlencode(given)}" if given else "")
        )

    def create_database(self, name: str, template: str | None = None) -> str:
        source = sql.Identifier(template or "template1")
        self._maintain(sql.SQL("CREATE DATABASE {} TEMPLATE {}").format(sql.Identifier(name), source))
        return self.url(name)

    def drop_database(self, name: str) -> None:
        self._maintain(sql.SQL("DROP DATABASE IF EXISTS {} WITH (FORCE)").format(sql.Identifier(name)))

    def _maintain(self, statement: sql.Composed) -> None:
        with psycopg.connect(self.url("postgres"), autocommit=True) as connection:
            connection.execute(statement)


class Private:
    """A throw-away cluster of this test process alone."""

    def __init__(self, cluster: Throwaway) -> None:
        self.throwaway: Throwaway | None = cluster
        self.url = cluster.url
        self.create_database = cluster.create_database
        self.drop_database = cluster.drop_database
        with psycopg.connect(cluster.url("postgres"), autocommit=True) as connection:
            self.server = _ask(connection, cluster.server)


def _ask(connection: psycopg.Connection, programs: Server | None = None) -> ServerInfo:
    row = connection.execute(
        """
        SELECT current_setting('server_version'),
               (SELECT default_version FROM pg_available_extensions WHERE name = 'pg_cron'),
               EXISTS (SELECT FROM pg_available_extensions WHERE name = 'plpgsql_check'),
               current_setting('cron.database_name', true),
               current_setting('shared_preload_libraries') ~ 'pg_cron'
        """
    ).fetchone()
    assert row is not None
    version, cron, check, cron_database, loaded = row
    return ServerInfo(version, cron if loaded else None, check, cron_database if loaded else None, programs)


def program_of(server: ServerInfo, name: str) -> Path:
    """The server's own psql or pg_dump, else the one on this machine; skips the test where none can be used."""
    found = server.programs.program(name) if server.programs else Path(shutil.which(name) or "nowhere")
    if not found.exists():
        pytest.skip(f"{name} is not on this machine")
    if name == "pg_dump" and (version := major_of(ask(found, "--version"))) < major_of(server.version):
        pytest.skip(f"pg_dump {version} refuses a server of version {server.version}")
    return found


def prepare(kind: str, say: Say) -> None:
    """Once, before any test process or server starts: install what the tests need, and say so."""
    if kind == "container":
        _require_docker()
    if kind == "url" and not os.environ.get(URL_VARIABLE):
        raise pytest.UsageError(f"--postgres=url needs a superuser's URL in {URL_VARIABLE}")
    if kind != "private":
        return
    choice = _choose(say)
    say(choice.explanation)
    server = choice.server
    prefix = packages.root_prefix()
    if server and not server.plpgsql_check and not server.from_wheel and packages.is_debian() and prefix is not None:
        try:
            if not packages.Apt(prefix, say).install_check(server):
                say(f"There is no package of plpgsql_check for PostgreSQL {server.major}: its tests are skipped.")
        except UserError as error:
            say(f"plpgsql_check could not be installed, so its tests are skipped: {error}")
    unpacked.fetch(say)


def _require_docker() -> None:
    import docker
    from docker.errors import DockerException

    try:
        docker.from_env().close()
    except DockerException as error:
        raise pytest.UsageError(f"--postgres=container needs a running Docker engine: {error}") from error


def _choose(say: Say) -> Choice:
    """As for `db start`, but never DATABASE_URL or Docker: those are for --postgres=url and --postgres=container."""
    facts = choose.observe(ignore_url=True)
    return choose.settle(say, replace(facts, docker_obstacle="tests use it with --postgres=container"))


@contextmanager
def running(kind: str) -> Iterator[Postgres]:
    """The server for one test process."""
    if kind == "container":
        with _container() as url:
            yield Remote(url)
    elif kind == "url":
        yield Remote(os.environ[URL_VARIABLE])
    else:
        # none by default; one test leaves a transaction in the middle of its two phases
        with throwaway(best(find()) or wheel.installed(), settings={"max_prepared_transactions": "4"}) as cluster:
            yield Private(cluster)


@contextmanager
def _container() -> Iterator[str]:
    from testcontainers.community.postgres import PostgresContainer

    with PostgresContainer(CONTAINER_IMAGE, username="postgres", driver=None) as container:
        yield container.get_connection_url()
