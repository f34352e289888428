"""`scrapersky verify-deploy`: is it well, an hour, a day, a week after a deploy."""

from enum import StrEnum
from typing import Annotated

import typer

from listener.cli.table import table
from listener.errors import UserError


class Stage(StrEnum):
    """How long ago the deploy was."""

    HOUR = "hour"
    DAY = "day"
    WEEK = "week"


def verify_deploy(
    stage: Annotated[Stage, typer.Option(help="What can be known by now; each includes the ones before.")] = Stage.HOUR,
) -> None:
    """Ask what should be true after a deploy; each question is answered with yes or no. Exit code 1 if any is no.

    The same in psql: SELECT * FROM scheduler.verify_deploy('hour')

    Example: scrapersky verify-deploy --stage day
    """
    import psycopg

    from listener import schema

    url = schema.find_url()
    has, wants = schema.current(url), schema.head()
    if has != wants:
        raise UserError(
            f"The database is at revision {has or 'none'}, this version needs {wants}.",
            "Bring it there: scrapersky migrate",
        )
    with psycopg.connect(url, autocommit=True) as connection:
        answers = connection.execute("SELECT * FROM scheduler.verify_deploy(%s)", [stage.value]).fetchall()
    typer.echo(
        table(["", "check", "detail"], [("yes" if ok else "NO", check, detail) for check, ok, detail in answers])
    )
    if not all(ok for _, ok, _ in answers):
        raise typer.Exit(1)
