"""Asking the database from the command line: one way to connect, one way to explain what went wrong."""

import getpass
import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Annotated, Any, LiteralString

import psycopg
import typer
from psycopg import sql

from listener.cli.table import Paint, plain, table, terminal_width
from listener.errors import UserError
from listener.postgres.provide import find_url

CONNECT_SECONDS = 10
COMPLETION_SECONDS = 1

AsJson = Annotated[bool, typer.Option("--json", help="Print JSON instead of a table; nothing is cut or rounded.")]
Yes = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")]


def complete_workflow(incomplete: str) -> list[str]:
    """The names of the registered workflows, for the shell; silent if the database does not answer at once."""
    try:
        with psycopg.connect(find_url(), connect_timeout=COMPLETION_SECONDS) as connection:
            rows = connection.execute("SELECT name FROM scheduler.workflow ORDER BY name").fetchall()
    except (psycopg.Error, UserError, OSError):
        return []
    return [name for (name,) in rows if name.startswith(incomplete)]


Name = Annotated[str, typer.Argument(metavar="WORKFLOW", help="Its name.", autocompletion=complete_workflow)]
MaybeName = Annotated[
    str | None,
    typer.Argument(metavar="[WORKFLOW]", help="Only this one.", show_default=False, autocompletion=complete_workflow),
]


@contextmanager
def connected() -> Iterator[psycopg.Connection[tuple[Any, ...]]]:
    """An autocommit session; what the user can put right comes out of it as a UserError."""
    with (
        explained(),
        psycopg.connect(
            find_url(),
            autocommit=True,
            connect_timeout=CONNECT_SECONDS,
            fallback_application_name="scrapersky",
            prepare_threshold=None,  # a PgBouncer in transaction mode keeps no prepared statements
        ) as connection,
    ):
        yield connection


@contextmanager
def acting() -> Iterator[psycopg.Connection[tuple[Any, ...]]]:
    """One transaction, with the person at the keyboard named in the audit."""
    with connected() as connection, connection.transaction():
        connection.execute("SELECT set_config('scheduler.actor', %s, true)", [_person()])
        yield connection


@contextmanager
def explained() -> Iterator[None]:
    try:
        yield
    except psycopg.errors.InsufficientPrivilege as error:
        raise UserError(
            f"This role may not do that: {error.diag.message_primary}.",
            error.diag.message_hint or "To look: GRANT scheduler_monitor TO …; to operate: GRANT scheduler_admin TO …;",
        ) from error
    except (
        psycopg.errors.UndefinedTable,
        psycopg.errors.InvalidSchemaName,
        psycopg.errors.UndefinedFunction,
    ) as error:
        if error.diag.message_hint and "scheduler." in error.diag.message_hint:
            raise _passed_on(error) from error
        raise UserError(
            f"The engine is not installed here, or it is another version's: {error.diag.message_primary}.",
            "Install or upgrade it with 'scrapersky migrate'.",
        ) from error
    except psycopg.OperationalError as error:
        if error.sqlstate is not None:
            raise _passed_on(error) from error
        raise UserError(
            f"No connection to the database: {' '.join(str(error).split()).removeprefix('connection failed: ')}",
            "Is it running, and is DATABASE_URL right? 'scrapersky db start' starts the private PostgreSQL.",
        ) from error
    except psycopg.ProgrammingError as error:
        if error.sqlstate is None:
            # without libpq's words, which may repeat the password
            raise UserError(
                "The database URL is not one that PostgreSQL understands.",
                "Write it as postgresql://user:password@host:5432/database, special characters as in %40 for @.",
            ) from None
        raise _passed_on(error) from error
    except psycopg.Error as error:
        raise _passed_on(error) from error


def rows_of(
    connection: psycopg.Connection[tuple[Any, ...]], query: LiteralString | sql.Composed, values: Sequence[Any] = ()
) -> tuple[list[str], list[tuple[Any, ...]]]:
    cursor = connection.execute(query, values or None)
    return [column.name for column in cursor.description or ()], cursor.fetchall()


def print_rows(
    names: Sequence[str],
    rows: Sequence[Sequence[Any]],
    *,
    as_json: bool,
    empty: str = "",
    headings: Mapping[str, str] | None = None,
    rare: Collection[str] = (),
    paint: Paint | None = None,
) -> None:
    """A list of objects with everything for programs, a table for people.

    The table has the columns of `headings`, in that order and with those names; `rare` ones only where they say
    something.
    """
    if as_json:
        print_json([dict(zip(names, map(plain, row), strict=True)) for row in rows])
    elif not rows and empty:
        typer.echo(empty)
    else:
        headings = headings or {name: name for name in names}
        at = {name: i for i, name in enumerate(names)}
        shown = [name for name in headings if name not in rare or any(row[at[name]] for row in rows)]
        picked = [[row[at[name]] for name in shown] for row in rows]
        typer.echo(table([headings[name] for name in shown], picked, width=terminal_width(), paint=paint))


def print_json(value: Any) -> None:
    typer.echo(json.dumps(value, ensure_ascii=False, default=plain))


def _passed_on(error: psycopg.Error) -> UserError:
    """The engine's own errors name their fix."""
    said = error.diag.message_primary or str(error).strip()
    return UserError(f"{said[:1].upper()}{said[1:]}.", error.diag.message_hint or "")


def _person() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):  # a container may run as a number without a name
        return ""
