"""The schema of the database: its revisions, and the files of sql/ that make it.

sql/install.sql holds the one list of files. Those before its line "Repeatable" run once, as revisions of Alembic; those
after it are replaced as a whole after every upgrade.
"""

import logging
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final, TextIO, TypedDict, cast

import psycopg
from alembic import command
from alembic.config import Config
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from alembic.script.revision import ResolutionError
from alembic.util import CommandError
from sqlalchemy import NullPool, create_engine
from sqlalchemy.exc import DBAPIError

from listener.errors import UserError
from listener.postgres.choose import URL_VARIABLE
from listener.postgres.provide import find_url as find_url
from listener.share import share

if TYPE_CHECKING:
    from psycopg.errors import Diagnostic
    from sqlalchemy import Connection

log = logging.getLogger(__name__)


class _VersionTable(TypedDict):
    version_table: str
    version_table_schema: str


# Not public.alembic_version: the application may have one of its own.
VERSION_TABLE: Final = _VersionTable(version_table="schema_version", version_table_schema="scheduler")

_MARKER = "-- Repeatable:"
# Nothing that someone has put into another schema can take the place of what is meant.
_PATH = "SET LOCAL search_path = pg_catalog, pg_temp;"
_CONNECT_SECONDS = 10
# Alembic's `context` and `op` are global.
_alone = threading.Lock()


def migrate(url: str, revision: str = "head", *, pipeline: bool | None = None) -> None:
    """Bring the database to this revision, and its functions and views to this version, in one transaction.

    A new database gets the pipeline's tables unless `pipeline` is False; one without them gets them if it is True.
    """
    with _alone:
        command.upgrade(_config(url, pipeline), revision)


def downgrade(url: str, revision: str) -> None:
    """Back to an earlier revision; ``base`` removes the engine."""
    with _alone:
        command.downgrade(_config(url), revision)


def current(url: str) -> str | None:
    """The revision the database has, or None if the engine is not installed there."""
    with transaction(url) as connection:
        return MigrationContext.configure(connection, opts=dict(VERSION_TABLE)).get_current_revision()


def registered(url: str) -> set[str]:
    """The names of the workflows the database has; none where the engine is not installed."""
    with transaction(url) as connection:
        if connection.exec_driver_sql("SELECT to_regclass('scheduler.workflow')").scalar() is None:
            return set()
        return {str(name) for (name,) in connection.exec_driver_sql("SELECT name FROM scheduler.workflow")}


def head() -> str:
    """The newest revision."""
    return str(ScriptDirectory.from_config(_config()).get_current_head())


def script(out: TextIO, revision: str = "head", *, pipeline: bool | None = None) -> None:
    """Write what `migrate` would run in an empty database, as SQL for psql."""
    with _alone:
        config = _config(pipeline=pipeline)
        config.output_buffer = out
        command.upgrade(config, revision, sql=True)


def wants_pipeline(migration: MigrationContext) -> bool:
    """Whether a database that does not have the pipeline's tables gets them with the revision that brings them."""
    return migration.opts["pipeline"] is not False


def has_pipeline(migration: MigrationContext) -> bool:
    """Whether the database has the pipeline's tables; of a migration that is only printed, whether it was asked to."""
    if migration.as_sql:
        return wants_pipeline(migration)
    session = _session(migration)
    return session.execute("SELECT to_regclass('scheduler.gate') IS NOT NULL").fetchone() == (True,)


def repeatables(*, pipeline: bool = True) -> list[str]:
    """The files of sql/ that are replaced after every upgrade, in their order, with those of the pipeline or not."""
    _, marker, after = share("sql", "install.sql").read_text("utf-8").partition(_MARKER)
    if not marker:
        raise UserError(f"sql/install.sql has lost its line '{_MARKER}'.", "Put it above '\\ir engine/clean.sql'.")
    names: list[str] = re.findall(r"^\\ir\s+(\S+)\s*$", after, re.MULTILINE)
    return [name for name in names if pipeline or not name.startswith("pipeline/")]


def apply(migration: MigrationContext, *names: str) -> None:
    """Run whole files of sql/ in this migration, or print them if it is only printed."""
    texts = {name: share("sql", name).read_text("utf-8") for name in names}
    if migration.as_sql:
        migration.impl.static_output("\n\n".join((_PATH, *texts.values(), "SET LOCAL search_path TO DEFAULT;")))
        return
    session = _session(migration)
    before = session.execute("SELECT current_setting('search_path')").fetchone()
    session.execute(_PATH)
    for name, text in texts.items():
        try:
            # Without parameters psycopg sends the text as it is: many statements, and % is only a character.
            session.execute(text.encode())
        except psycopg.Error as error:
            error.add_note(f"in sql/{name}{_line(text, error)}")
            raise
    session.execute("SELECT set_config('search_path', %s, true)", before)


@contextmanager
def transaction(url: str) -> Iterator["Connection"]:
    """A transaction of SQLAlchemy on any URL or connection string that libpq understands.

    What the person who migrates can put right comes out of it as a UserError.
    """

    def connect() -> psycopg.Connection:
        try:
            session = psycopg.connect(
                re.sub(r"^(postgres(?:ql)?)\+\w+:", r"\1:", url),
                connect_timeout=_CONNECT_SECONDS,
                fallback_application_name="scrapersky migrate",
                prepare_threshold=None,  # a PgBouncer in transaction mode keeps no prepared statements
            )
        except psycopg.ProgrammingError:
            # without libpq's words, which may repeat the password
            raise UserError(
                "The database URL is not one that PostgreSQL understands.",
                "Write it as postgresql://user:password@host:5432/database, special characters as in %40 for @.",
            ) from None
        session.add_notice_handler(_pass_on)
        return session

    # Under an older snapshot, whoever waited for another migration would not see what it did.
    engine = create_engine(
        "postgresql+psycopg://", creator=connect, poolclass=NullPool, isolation_level="READ COMMITTED"
    )
    with _explained(), engine.begin() as connection:
        connection.exec_driver_sql("SET LOCAL statement_timeout = 0")
        yield connection


def _session(migration: MigrationContext) -> psycopg.Connection:
    connection = cast("Connection", migration.connection)
    return cast("psycopg.Connection", connection.connection.driver_connection)


def _config(url: str | None = None, pipeline: bool | None = None) -> Config:
    config = Config(str(share("alembic.ini")))
    config.attributes["url"] = url
    config.attributes["pipeline"] = pipeline
    return config


def _pass_on(notice: "Diagnostic") -> None:
    level = logging.WARNING if notice.severity_nonlocalized == "WARNING" else logging.INFO
    log.log(level, "%s", " ".join(filter(None, (notice.message_primary, notice.message_hint))))


def _line(text: str, error: psycopg.Error) -> str:
    position = error.diag.statement_position
    return f", line {text.count(chr(10), 0, int(position) - 1) + 1}" if position else ""


@contextmanager
def _explained() -> Iterator[None]:
    try:
        yield
    except (DBAPIError, psycopg.Error) as error:
        cause = error.orig if isinstance(error, DBAPIError) else error
        if isinstance(cause, psycopg.OperationalError) and cause.sqlstate is None:
            raise UserError(
                f"No connection to the database: {' '.join(str(cause).split()).removeprefix('connection failed: ')}",
                f"Is it running, and is {URL_VARIABLE} right? 'scrapersky db start' starts the private PostgreSQL.",
            ) from error
        if isinstance(cause, psycopg.errors.InsufficientPrivilege):
            raise UserError(
                f"This role may not migrate: {cause.diag.message_primary}.",
                cause.diag.message_hint
                or "Migrate as the role that installed the engine, as the owner of the database, or as a superuser.",
            ) from error
        raise
    except CommandError as error:
        if isinstance(error.__cause__, ResolutionError):
            raise UserError(
                f"{error}.",
                f"This version knows the revisions up to {head()}: correct the revision, or, if a newer version has "
                "migrated this database, install that one.",
            ) from error
        raise
