"""`scrapersky demo`: the whole engine on this machine, in about a minute, ending by itself."""

import os
import shutil
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, LiteralString

import psycopg
import typer

from listener.cli.db import Directory
from listener.cli.say import say
from listener.cli.table import table
from listener.errors import UserError
from listener.postgres.provide import provide

WORKFLOW = "demo_letters"
LETTERS = 60
FIRING_SECONDS = 75
"""pg_cron fires at the start of a minute; this is a minute and some patience."""

TABLE = """
CREATE TABLE scrapersky_demo.letter (
    id         bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    recipient  text NOT NULL,
    approved   boolean NOT NULL DEFAULT false,
    status     text,
    error      text,
    created_at timestamptz NOT NULL DEFAULT now()
)"""

ROWS = """
INSERT INTO scrapersky_demo.letter (recipient, approved)
SELECT 'resident ' || n, mod(n, 3) > 0 FROM generate_series(1, %s) AS n"""

REGISTRATION = """
SELECT scheduler.create_workflow('demo_letters', 'scrapersky_demo.letter',
    status_column => 'status', error_column => 'error',
    ready         => 'approved AND status IS NULL',
    schedule      => '* * * * *', batch_size => 20, max_attempts => 2, backoff => '0')"""

REPORTS: tuple[tuple[str, LiteralString], ...] = (
    (
        "SELECT * FROM scheduler.status",
        """SELECT workflow, state, queued, processing, waiting, dead, per_minute, success_rate_1h
           FROM scheduler.status WHERE workflow = 'demo_letters'""",
    ),
    (
        "SELECT * FROM scheduler.runs",
        """SELECT run, outcome, claimed, succeeded, failed, rejected, date_trunc('millisecond', took) AS took
           FROM scheduler.runs WHERE workflow = 'demo_letters' ORDER BY run""",
    ),
    (
        "SELECT * FROM scheduler.errors",
        "SELECT items, dead, error, example FROM scheduler.errors WHERE workflow = 'demo_letters'",
    ),
    (
        "SELECT status, count(*) FROM scrapersky_demo.letter GROUP BY status",
        "SELECT status, count(*) FROM scrapersky_demo.letter GROUP BY status ORDER BY 1",
    ),
)

APPROVAL = "UPDATE scrapersky_demo.letter SET approved = true; SELECT * FROM scheduler.preview('demo_letters')"


@dataclass(frozen=True)
class Answer:
    """What the pretended delivery of a letter came to."""

    error: str | None = None
    permanent: bool = False


def demo(
    directory: Directory = None,
    quick: Annotated[bool, typer.Option("--quick", help="Do not wait for pg_cron to fire.")] = False,
) -> None:
    """Start a private PostgreSQL, make a queue of an ordinary table, and watch its rows being worked on.

    Everything it creates is in the schema scrapersky_demo and is created anew each time.

    Example: scrapersky demo && scrapersky db psql -c 'SELECT * FROM scheduler.runs'
    """
    # Alembic takes a third of a second to import, which the other commands need not wait for.
    from listener.schema import migrate

    provided = provide(directory, say=say)
    _step("Installing the engine (schema scheduler)")
    migrate(provided.url)
    with psycopg.connect(provided.url, autocommit=True) as connection:
        try:
            _prepare(connection)
            _work_by_hand(connection)
            if not quick:
                _work_by_clock(connection)
            _report(connection)
        except psycopg.errors.InsufficientPrivilege as error:
            raise UserError(f"The demo may not do this here: {error}", "Use a database you own.") from error
        finally:
            _stop_schedule(connection)
    _say_goodbye(directory, private=provided.private is not None)


def _prepare(connection: psycopg.Connection) -> None:
    connection.execute(
        "SELECT scheduler.drop_workflow(name, force => true) FROM scheduler.workflow WHERE name = %s", [WORKFLOW]
    )
    connection.execute("DROP SCHEMA IF EXISTS scrapersky_demo CASCADE")
    connection.execute("CREATE SCHEMA scrapersky_demo")
    connection.execute(TABLE)
    connection.execute(ROWS, [LETTERS])
    _step(f"An ordinary table with {LETTERS} rows becomes a queue with one call")
    typer.echo(REGISTRATION.strip() + ";")
    typer.secho(f"=> {_one(connection, REGISTRATION)}", fg=typer.colors.GREEN)


def _work_by_hand(connection: psycopg.Connection) -> None:
    _step("A person dispatches; a minimal loop claims the rows and finishes them")
    _show(connection, "SELECT * FROM scheduler.dispatch('demo_letters')")
    say(f"finished {_drain(connection)} letters")


def _work_by_clock(connection: psycopg.Connection) -> None:
    if _one(connection, "SELECT scheduler.cron_home()") == "here":
        _step("Now pg_cron dispatches, at the start of the next minute")
        _await_firing(connection)
        say(f"pg_cron fired; finished {_drain(connection)} letters")
        return
    _step("pg_cron is not in this database, so whoever listens is the clock as well")
    # The slot of this minute, as if it had just come.
    connection.execute("UPDATE scheduler.state SET next_slot = now() WHERE workflow = %s", [WORKFLOW])
    _show(connection, "SELECT * FROM scheduler.tick('listener')")
    say(f"finished {_drain(connection)} letters")


def _await_firing(connection: psycopg.Connection) -> None:
    begun = _one(connection, "SELECT now()")
    connection.execute("LISTEN scrapersky")
    deadline = time.monotonic() + FIRING_SECONDS
    with typer.progressbar(length=FIRING_SECONDS, label="waiting for it (up to a minute)") as bar:
        # The notification is only the doorbell: whether pg_cron rang is what the table says.
        while not _fired_since(connection, begun):
            if time.monotonic() > deadline:
                raise UserError(
                    "pg_cron did not fire within its minute.",
                    "See: SELECT * FROM scheduler.schedules; SELECT * FROM scheduler.doctor();",
                )
            for _ in connection.notifies(timeout=1, stop_after=1):
                pass
            bar.update(1)
        bar.update(FIRING_SECONDS)
    connection.execute("UNLISTEN scrapersky")


def _fired_since(connection: psycopg.Connection, moment: object) -> bool:
    row = connection.execute(
        "SELECT last_clock = 'pg_cron' AND last_dispatch_at > %s FROM scheduler.state WHERE workflow = %s",
        [moment, WORKFLOW],
    ).fetchone()
    return row is not None and bool(row[0])


def _drain(connection: psycopg.Connection) -> int:
    """The smallest listener there is: claim, work, finish, until nothing is left to claim."""
    finished = 0
    while True:
        row = connection.execute("SELECT run, keys, attempts FROM scheduler.claim(%s)", [WORKFLOW]).fetchone()
        if row is None or row[0] is None:
            return finished
        run, keys, attempts = row
        answers = {key: _deliver(int(key), attempt) for key, attempt in zip(keys, attempts, strict=True)}
        good = [key for key, answer in answers.items() if answer.error is None]
        bad = [key for key, answer in answers.items() if answer.error is not None]
        # What a workflow stores would be written in the same transaction as the status.
        with connection.transaction():
            connection.execute("SELECT scheduler.succeed(%s, %s)", [run, good])
            if bad:
                connection.execute(
                    "SELECT scheduler.fail(%s, %s, %s, %s)",
                    [run, bad, [answers[key].error for key in bad], [answers[key].permanent for key in bad]],
                )
        finished += len(good)


def _deliver(letter: int, attempt: int) -> Answer:
    """One in eleven has no such address, one in seven needs a second try."""
    if letter % 11 == 0:
        return Answer(f"no such address: resident {letter}", permanent=True)
    if letter % 7 == 0 and attempt == 1:
        return Answer(f"nobody at home at number {letter}")
    return Answer()


def _stop_schedule(connection: psycopg.Connection) -> None:
    """Else it would go on firing every minute after the demo."""
    if not connection.closed:
        connection.execute(
            "SELECT scheduler.alter_workflow(name, clear => '{schedule}') FROM scheduler.workflow"
            " WHERE name = %s AND schedule IS NOT NULL",
            [WORKFLOW],
        )


def _report(connection: psycopg.Connection) -> None:
    for query, shown in REPORTS:
        _step(query)
        _show(connection, shown)


def _say_goodbye(directory: Path | None, *, private: bool) -> None:
    option = f" --dir {directory}" if directory else ""
    # Not every shell has .venv/bin in its path.
    command = "scrapersky" if shutil.which("scrapersky") else os.path.relpath(sys.argv[0])
    say("\nThe letters without a status were never approved. Approve them and see what would be queued:")
    say(f'  {command} db psql{option} -c "{APPROVAL}"')
    if private:
        say(f"PostgreSQL keeps running. Stop it with: {command} db stop{option}")


def _step(title: str) -> None:
    typer.secho(f"\n{title}", bold=True)


def _one(connection: psycopg.Connection, query: LiteralString) -> object:
    row = connection.execute(query).fetchone()
    return row[0] if row else None


def _show(connection: psycopg.Connection, query: LiteralString) -> None:
    cursor = connection.execute(query)
    names = [column.name for column in cursor.description or ()]
    typer.echo(table(names, cursor.fetchall()))
