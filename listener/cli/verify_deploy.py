"""`scrapersky verify-deploy`: is it well, an hour, a day, a week after a deploy."""

from collections.abc import Sequence
from enum import StrEnum
from typing import Annotated, Any

import typer

from listener.cli.ask import AsJson, connected, print_rows, rows_of
from listener.cli.say import paint
from listener.cli.table import wrap
from listener.errors import UserError


class Stage(StrEnum):
    """How long ago the deploy was."""

    HOUR = "hour"
    DAY = "day"
    WEEK = "week"


def verify_deploy(
    stage: Annotated[Stage, typer.Option(help="What can be known by now; each includes the ones before.")] = Stage.HOUR,
    as_json: AsJson = False,
) -> None:
    """Ask what should be true after a deploy. Each question is answered with yes or no; exit code 1 if any is no.

    The same in psql: SELECT * FROM scheduler.verify_deploy('hour')

    Example: scrapersky verify-deploy --stage day
    """
    from listener import schema

    url = schema.find_url()
    has, wants = schema.current(url), schema.head()
    if has != wants:
        raise UserError(
            f"The database is at revision {has or 'none'}, this version needs {wants}.",
            "Bring it there: scrapersky migrate",
        )
    with connected() as connection:
        names, answers = rows_of(connection, "SELECT * FROM scheduler.verify_deploy(%s)", [stage.value])
    if as_json:
        print_rows(names, answers, as_json=True)
    else:
        _tell(answers)
    if not all(ok for _, ok, _ in answers):
        raise typer.Exit(1)


def _tell(answers: Sequence[tuple[Any, ...]]) -> None:
    for check, ok, detail in answers:
        typer.echo(f"{paint('yes', 'green') if ok else paint('NO ', 'red', bold=True)}  {check}")
        if detail:
            typer.echo(wrap(detail, "     ", first="     "))
