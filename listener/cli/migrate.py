"""`scrapersky migrate`: the schema of the database."""

import sys
from typing import Annotated

import typer


def migrate(
    revision: Annotated[str, typer.Option(help="Stop at this revision instead of the newest.")] = "head",
    sql: Annotated[bool, typer.Option("--sql", help="Only print the SQL for an empty database.")] = False,
) -> None:
    """Install the engine in the database, or upgrade it. All or nothing; migrating twice is harmless.

    The database is the one DATABASE_URL names, else the private PostgreSQL.

    Example: scrapersky migrate
    """
    # Alembic and SQLAlchemy take a third of a second to import, which the other commands need not wait for.
    from listener import schema

    if sql:
        schema.script(sys.stdout, revision)
        return
    url = schema.find_url()
    before = schema.current(url)
    schema.migrate(url, revision)
    typer.echo(f"{before or 'nothing'} → {schema.current(url)}")
