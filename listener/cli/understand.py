"""`scrapersky why`, `preview` and `doctor`: what is going on, and what to do about it."""

from typing import Annotated, Any

import typer

from listener.cli.ask import AsJson, Name, connected, print_json, print_rows, rows_of
from listener.cli.say import paint, say
from listener.cli.table import plain, wrap

_COLOURS = {"error": "red", "warning": "yellow", "info": "cyan"}


def why(
    workflow: Name,
    item: Annotated[str, typer.Argument(metavar="ID", help="The item's key.")],
    as_json: AsJson = False,
) -> None:
    """Say why an item is not running. In words, with what would make it run.

    Example: scrapersky why deep_scan 4711
    """
    with connected() as connection:
        _, rows = rows_of(connection, "SELECT scheduler.why(%s, %s::text)", [workflow, item])
    answer = rows[0][0]
    if as_json:
        print_json({"workflow": workflow, "id": item, "why": answer})
    else:
        typer.echo(wrap(answer))


def preview(
    workflow: Name,
    most: Annotated[
        int | None, typer.Option("--most", "-n", min=1, help="So many, whatever room the queue has.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Show what the next dispatch would queue. Changes nothing.

    Example: scrapersky preview deep_scan --most 5
    """
    with connected() as connection:
        connection.add_notice_handler(lambda notice: say(wrap(notice.message_primary or "")))
        names, rows = rows_of(connection, "SELECT * FROM scheduler.preview(%s, %s)", [workflow, most])
    print_rows(names, rows, as_json=as_json, empty="A dispatch now would queue nothing.")


def doctor(as_json: AsJson = False) -> None:
    """Show what is wrong, and the SQL that fixes it. Exit code 1 if a finding is an error.

    The worst come first. Schedules that this environment sets (as in DEEP_SCAN_SCHEDULER_BATCH_SIZE) are compared with
    those in force.

    Examples: scrapersky doctor || alert · scrapersky doctor --json | jq -r '.[] | select(.severity == "error") | .fix'
    """
    with connected() as connection:
        names, rows = rows_of(
            connection, "SELECT * FROM scheduler.doctor(%s::jsonb)", [_seeds(_registered(connection))]
        )
    findings = [dict(zip(names, map(plain, row), strict=True)) for row in rows]
    if as_json:
        print_json(findings)
    elif not findings:
        typer.echo(paint("All is well.", "green"))
    else:
        typer.echo("\n\n".join(_told(finding) for finding in findings))
    if any(finding["severity"] == "error" for finding in findings):
        raise typer.Exit(1)


def _told(finding: dict[str, Any]) -> str:
    severity = str(finding["severity"])
    subject = f"{finding['workflow']}: " if finding["workflow"] else ""
    head = wrap(f"{severity.upper()}  {subject}{finding['finding']}", "  ")
    head = paint(severity.upper(), _COLOURS[severity], bold=True) + head[len(severity) :]
    # never wrapped: it is there to be copied
    fix = paint("\n".join(f"    {line}" for line in str(finding["fix"]).splitlines()), None, bold=True)
    return f"{head}\n{wrap(str(finding['meaning']), '  ', first='  ')}\n{fix}"


def _registered(connection: Any) -> list[str]:
    return [name for (name,) in connection.execute("SELECT name FROM scheduler.workflow")]


def _seeds(registered: list[str]) -> str | None:
    """What the environment says of their schedules, as scheduler.doctor() takes it."""
    import json

    from pydantic import ValidationError

    from listener.cli.plugins import workflows
    from listener.seeds import Seed
    from listener.settings import environment

    said: dict[str, dict[str, Any]] = {}
    everything = environment()
    for name, workflow in workflows().items():
        try:
            seed = Seed.read(workflow.env_prefix, everything)
        except ValidationError:
            continue  # `scrapersky listen` refuses it in words
        values = {"schedule": seed.schedule, "batch_size": seed.batch_size, "max_instances": seed.max_instances}
        if name in registered and any(value is not None for value in values.values()):
            said[name] = {key: value for key, value in values.items() if value is not None}
    return json.dumps(said) if said else None
