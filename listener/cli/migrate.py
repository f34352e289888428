"""`scrapersky migrate`: the schema of the database."""

import sys
from typing import Annotated

import typer

from listener.cli.say import say


def migrate(
    revision: Annotated[str, typer.Option(help="Stop at this revision instead of the newest.")] = "head",
    down: Annotated[
        str | None,
        typer.Option(
            metavar="REVISION",
            help="The way back: down to this revision; `base` removes the engine, and the pipeline's tables with their"
            " rows.",
            show_default=False,
        ),
    ] = None,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask before going down.")] = False,
    sql: Annotated[bool, typer.Option("--sql", help="Only print the SQL for an empty database.")] = False,
    pipeline: Annotated[
        bool | None,
        typer.Option(
            "--pipeline/--engine-only",
            help="With the pipeline's tables (place, domain, contact, ...) in schema public, or without; a new database"
            " gets them, others stay as they are.",
        ),
    ] = None,
) -> None:
    """Install or upgrade the engine and the pipeline's tables. All or nothing; twice is harmless.

    Workflows that this registers take their schedule from the environment, such as DEEP_SCAN_SCHEDULER_BATCH_SIZE.
    The database is the one DATABASE_URL names, else the private PostgreSQL.

    Example: scrapersky migrate
    """
    # Alembic and SQLAlchemy take a third of a second to import, which the other commands need not wait for.
    from listener import schema
    from listener.cli import schedules

    if sql:
        schema.script(sys.stdout, revision, pipeline=pipeline)
        return
    url = schema.find_url()
    before = schema.current(url)
    if down is not None:
        if not yes:
            typer.confirm(
                f"Go down to {down}? What newer revisions added is dropped, rows and all.", abort=True, err=True
            )
        schema.downgrade(url, down)
        typer.echo(f"{before or 'nothing'} → {schema.current(url) or 'nothing'}")
        return
    schedules.check()
    known = schema.registered(url)
    schema.migrate(url, revision, pipeline=pipeline)
    typer.echo(f"{before or 'nothing'} → {schema.current(url)}")
    new = schema.registered(url) - known
    if new:
        seeded = schedules.seed(url, new)
        say(f"registered: {', '.join(sorted(new))}; {seeded} settings taken from the environment")
