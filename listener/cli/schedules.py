"""`scrapersky schedules`: how often each workflow is dispatched, and where the environment wants it otherwise."""

from typing import TYPE_CHECKING, Annotated, Any, cast

import psycopg
import typer

from listener.cli.ask import AsJson, acting, connected, print_rows, rows_of
from listener.cli.outline import Outline
from listener.cli.say import say
from listener.errors import UserError

if TYPE_CHECKING:
    from listener.seeds import Difference

app = typer.Typer(cls=Outline, help="Show or apply how often and in what batches workflows run.", no_args_is_help=True)

Session = psycopg.Connection[tuple[Any, ...]]
STORED = "SELECT name, schedule, batch_size, max_instances FROM scheduler.workflow ORDER BY name"


@app.command()
def show(as_json: AsJson = False) -> None:
    """The schedules in the database, which are in force, and what the environment would have them be.

    Example: scrapersky schedules show
    """
    with connected() as connection:
        wanted = {(change.workflow, change.setting): change for change in _differences(connection)}
        names, rows = rows_of(connection, STORED)
    stated = [
        (*row, "; ".join(f"{c.variable}={_said(c)}" for (workflow, _), c in wanted.items() if workflow == row[0]))
        for row in rows
    ]
    print_rows([*names, "environment_differs"], stated, as_json=as_json, empty="No workflow is registered.")
    if wanted and not as_json:
        say("'scrapersky schedules apply' brings the database to what the environment says.")


@app.command()
def apply(
    workflows: Annotated[list[str] | None, typer.Argument(help="Only these.", show_default=False)] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only say what would change.")] = False,
    as_json: AsJson = False,
) -> None:
    """Bring the schedules in the database to what the environment and .env say. What they leave unset stays as it is.

    Example: DEEP_SCAN_SCHEDULER_INTERVAL_MINUTES=10 scrapersky schedules apply deep_scan
    """
    with acting() as connection:
        registered = {row[0] for row in rows_of(connection, STORED)[1]}
        unknown = sorted(set(workflows or ()) - registered)
        if unknown:
            raise UserError(
                f"There is no workflow {', '.join(unknown)}.", f"Registered: {', '.join(sorted(registered))}."
            )
        changes = [c for c in _differences(connection) if not workflows or c.workflow in workflows]
        if not dry_run:
            _write(connection, changes)
    rows = [(c.workflow, c.setting, c.database, c.environment, c.variable) for c in changes]
    print_rows(
        ["workflow", "setting", "before", "dry_run" if dry_run else "after", "variable"],
        rows,
        as_json=as_json,
        empty="The database has what the environment says.",
    )


def seed(url: str, new: set[str]) -> int:
    """The environment's schedules for workflows that were registered just now; returns how many settings changed."""
    from listener import schema

    with schema.transaction(url) as connection:
        session = cast("Session", connection.connection.driver_connection)
        changes = [change for change in _differences(session) if change.workflow in new]
        _write(session, changes)
    return len(changes)


def _write(connection: Session, changes: list["Difference"]) -> None:
    for workflow in dict.fromkeys(change.workflow for change in changes):
        values = {c.setting: c.environment for c in changes if c.workflow == workflow}
        connection.execute(
            "SELECT scheduler.alter_workflow(%s, schedule => %s, batch_size => %s, max_instances => %s)",
            [workflow, values.get("schedule"), values.get("batch_size"), values.get("max_instances")],
        )


def check() -> None:
    """Refuse variables that cannot be used, before anything is done."""
    from listener.cli.plugins import workflows
    from listener.seeds import read_seeds
    from listener.settings import environment

    read_seeds(workflows().values(), environment())


def _differences(connection: Session) -> list["Difference"]:
    from listener.cli.plugins import workflows
    from listener.seeds import differences, read_seeds
    from listener.settings import environment

    installed = workflows()
    seeds = read_seeds(installed.values(), environment())
    names, rows = rows_of(connection, STORED)
    stored = {row[0]: dict(zip(names, row, strict=True)) for row in rows}
    return [
        change
        for name, workflow in installed.items()
        if name in stored
        for change in differences(workflow, seeds[name], stored[name])
    ]


def _said(change: "Difference") -> str:
    return f"{change.environment!r}" if isinstance(change.environment, str) else str(change.environment)
