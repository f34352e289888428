"""Fixtures: one PostgreSQL for each test process, one database for each test."""

import fcntl
import itertools
import os
import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import psycopg
import pytest
from psycopg import sql

from listener.schema import migrate
from tests.servers import KINDS, Postgres, prepare, running

Connect = Callable[..., psycopg.Connection]

_WORKER = os.environ.get("PYTEST_XDIST_WORKER", "main")
# The process id keeps two runs apart that share one server.
_names = (f"test_{_WORKER}_{os.getpid()}_{number}" for number in itertools.count())


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--postgres",
        choices=KINDS,
        default="private",
        help="private: a throw-away cluster per test process (default); container: testcontainers; "
        "url: the server that DATABASE_URL names, as a superuser",
    )
    parser.addoption(
        "--poll-only",
        action="store_true",
        help="every listener does without LISTEN: losing all notifications may cost time, never work",
    )


def pytest_configure(config: pytest.Config) -> None:
    if config.getoption("--poll-only"):
        # also for the listeners that tests start as processes; see tests/listener/quiet.py
        os.environ.update(LISTENER_POLL_ONLY="true", LISTENER_POLL_SECONDS="0.2")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if config.getoption("--poll-only"):
        for item in items:
            if item.get_closest_marker("doorbell"):
                item.add_marker(pytest.mark.skip("is about LISTEN itself, or about settings that poll-only changes"))


@pytest.hookimpl(tryfirst=True)
def pytest_sessionstart(session: pytest.Session) -> None:
    """Install packages once, before xdist starts its workers and they start their servers."""
    config = session.config
    if hasattr(config, "workerinput") or config.option.collectonly:
        return
    writer = config.get_terminal_writer()
    prepare(config.getoption("--postgres"), lambda line: writer.line(line))
    if _wants_browser(config):
        from tests.browser import chromium

        chromium.install(lambda line: writer.line(line))


def _wants_browser(config: pytest.Config) -> bool:
    """Whether tests/browser may be among what was asked for; all of it is slow."""
    folder = Path(__file__).parent / "browser"
    asked = [Path(argument.split("::")[0]).resolve() for argument in config.args]
    return config.option.markexpr != "not slow" and any(
        folder == path or folder in path.parents or path in folder.parents for path in asked
    )


@pytest.fixture(scope="session")
def postgres(request: pytest.FixtureRequest) -> Iterator[Postgres]:
    """This test process's PostgreSQL, as superuser: `.url(dbname)`, `.create_database(name, template=)`, `.server`."""
    with running(request.config.getoption("--postgres")) as server:
        yield server


@contextmanager
def migrated(postgres: Postgres, *, pipeline: bool) -> Iterator[str]:
    """The name of a new database with the engine, with the pipeline's tables or without."""
    name = f"{next(_names)}_template"
    migrate(postgres.create_database(name), pipeline=pipeline)
    yield name
    postgres.drop_database(name)


@pytest.fixture(scope="session")
def template(postgres: Postgres) -> Iterator[str]:
    """The name of a database with the engine alone, to be copied. Nobody may stay connected to it."""
    with migrated(postgres, pipeline=False) as name:
        yield name


@pytest.fixture
def database(postgres: Postgres, template: str) -> Iterator[str]:
    """The URL of a fresh database with the engine installed."""
    name = next(_names)
    yield postgres.create_database(name, template=template)
    postgres.drop_database(name)


@pytest.fixture
def empty_database(postgres: Postgres) -> Iterator[str]:
    """The URL of a fresh database with nothing in it."""
    name = next(_names)
    yield postgres.create_database(name)
    postgres.drop_database(name)


@pytest.fixture
def connect(request: pytest.FixtureRequest) -> Iterator[Connect]:
    """Opens sessions: `connect(role=None, *, autocommit=True, url=None, **options)`; all are closed after the test.

    Without `url` they go to this test's `database`. With `role` the session is that role's own: its rights are
    checked as if it had logged in, also where it may not log in at all.
    """
    with ExitStack() as opened:

        def open_session(
            role: str | None = None, *, autocommit: bool = True, url: str | None = None, **options: Any
        ) -> psycopg.Connection:
            target = url or request.getfixturevalue("database")
            session = psycopg.connect(target, autocommit=True, **options)
            # Closed, not committed: the database may be gone by then, and a test's open transaction with it.
            opened.callback(session.close)
            if role is not None:
                session.execute(sql.SQL("SET SESSION AUTHORIZATION {}").format(sql.Identifier(role)))
            session.autocommit = autocommit
            return session

        yield open_session


@pytest.fixture
def db(connect: Connect) -> psycopg.Connection:
    """A superuser's autocommit session in this test's `database`."""
    return connect()


@pytest.fixture
def page_port() -> Iterator[None]:
    """`up` and `demo` look for a free port and take it a moment later; only one of them at a time may do so."""
    with (Path(tempfile.gettempdir()) / "scrapersky-tests-page-port.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


@pytest.fixture
def cron_database(postgres: Postgres) -> Iterator[str]:
    """The URL of the one database in which pg_cron lives, emptied, with the engine installed anew."""
    if postgres.throwaway is None:
        pytest.skip("this fixture empties pg_cron's database, which is only done on a throw-away cluster")
    if postgres.server.cron_database is None:
        pytest.skip(f"PostgreSQL {postgres.server.version} here has no pg_cron")
    url = postgres.url(postgres.server.cron_database)
    _empty(url)
    migrate(url, pipeline=False)
    yield url
    # Else its jobs would go on firing while other tests run.
    _empty(url)


def _empty(url: str) -> None:
    with psycopg.connect(url, autocommit=True) as connection:
        # Never the launcher itself: pg_cron 1.4 does not come back from that. Nor is the extension made anew: a
        # launcher that misses some of the server's messages, as after many changes within a second, would know the
        # old table for ever, and never hear of a job again.
        connection.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
            " WHERE datname = current_database() AND backend_type = 'client backend' AND pid <> pg_backend_pid()"
        )
        connection.execute("CREATE EXTENSION IF NOT EXISTS pg_cron")
        connection.execute("TRUNCATE cron.job, cron.job_run_details RESTART IDENTITY")
        schemas = connection.execute(
            "SELECT nspname FROM pg_namespace WHERE nspname !~ '^pg_' AND nspname NOT IN ('information_schema', 'cron')"
        ).fetchall()
        for (schema,) in schemas:
            connection.execute(sql.SQL("DROP SCHEMA {} CASCADE").format(sql.Identifier(schema)))
        connection.execute("CREATE SCHEMA public AUTHORIZATION pg_database_owner")
        connection.execute("GRANT USAGE ON SCHEMA public TO PUBLIC")
