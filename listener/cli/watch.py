"""`scrapersky status`, `runs`, `errors` and `dead`: the views, fitted to the terminal."""

from typing import Annotated, Any, LiteralString

import typer

from listener.cli.ask import AsJson, MaybeName, Name, connected, print_rows, rows_of
from listener.cli.say import paint, say
from listener.errors import UserError

# In the order of their worth: on a narrow terminal the last are left out.
_STATUS: LiteralString = """
SELECT workflow, state, queued, processing AS running, waiting AS retry, dead, oldest_queued_age AS oldest, per_minute,
       eta, next_dispatch AS next, success_rate_1h AS success, p50, p95, schedule, note, paused,
       queued_exact, last_dispatch
FROM scheduler.status WHERE workflow = coalesce(%s, workflow)
"""
_ONLY_JSON = ("note", "paused", "queued_exact", "last_dispatch")

_RUNS: LiteralString = """
SELECT run, workflow, outcome, started_at AS started, took, claimed, succeeded, failed, rejected, released, rescued,
       cancelled, discarded, p95, listener
FROM scheduler.runs WHERE workflow = coalesce(%s, workflow) ORDER BY run DESC LIMIT %s
"""
_ERRORS: LiteralString = """
SELECT workflow, items, dead, waiting AS retry, last_at AS last, example_key AS example, error
FROM scheduler.errors WHERE workflow = coalesce(%s, workflow) LIMIT %s
"""
_DEAD: LiteralString = """
SELECT key, attempts, last_at AS last, reason, error
FROM scheduler.dead_letter WHERE workflow = %s LIMIT %s
"""
_DEAD_OF_ALL: LiteralString = """
SELECT workflow, key, attempts, last_at AS last, reason, error FROM scheduler.dead_letter LIMIT %s
"""

_COLOURS = {"broken": "red", "paused": "yellow", "held": "yellow", "running": "green", "waiting": "cyan"}

Limit = Annotated[int, typer.Option("--limit", "-n", min=1, max=10000, help="Show at most so many.")]


def status(workflow: MaybeName = None, as_json: AsJson = False) -> None:
    """Show how each workflow is.

    What waits and runs, how fast it goes, when it will be done; the less important columns only where there is room. Below the table stands, for each workflow that does not simply run, why.

    Examples: scrapersky status · scrapersky status deep_scan --json | jq '.[0].queued'
    """
    with connected() as connection:
        names, rows = rows_of(connection, _STATUS, [workflow])
        if not rows:
            _require_known(connection, workflow)
    print_rows(
        names,
        rows,
        as_json=as_json,
        empty="No workflow is registered yet: see scheduler.create_workflow(), or docs/tour.md.",
        paint=paint_status,
        hide=_ONLY_JSON,
    )
    if not as_json:
        for line in _notes(names, rows):
            typer.echo(line)


def runs(workflow: MaybeName = None, limit: Limit = 20, as_json: AsJson = False) -> None:
    """Show the newest runs. A run is one claimed batch, here with what became of its items.

    Examples: scrapersky runs deep_scan -n 50 · scrapersky runs --json | jq '[.[] | .failed] | add'
    """
    _print(_RUNS, workflow, limit, as_json, "No run in the last 7 days.")


def errors(workflow: MaybeName = None, limit: Limit = 20, as_json: AsJson = False) -> None:
    """Show errors, grouped by what they have in common. Only of items that have not succeeded yet.

    Examples: scrapersky errors · scrapersky errors deep_scan --json
    """
    _print(_ERRORS, workflow, limit, as_json, "No item has failed.")


def dead(workflow: MaybeName = None, limit: Limit = 20, as_json: AsJson = False) -> None:
    """Show the dead letter. Its items failed for good and wait for a person.

    Once the cause is gone, `scrapersky requeue` gives them a new start.

    Examples: scrapersky dead deep_scan · scrapersky dead --json | jq -r '.[].key'
    """
    if workflow is None:
        with connected() as connection:
            names, rows = rows_of(connection, _DEAD_OF_ALL, [limit])
        print_rows(names, rows, as_json=as_json, empty="The dead letter is empty.")
        return
    _print(_DEAD, workflow, limit, as_json, f"No item of {workflow} is in the dead letter.")


def paint_status(column: str, text: str, value: Any) -> str:
    if column == "state":
        return paint(text, "red" if str(value).startswith("breaker") else _COLOURS.get(str(value)))
    if column == "dead" and value:
        return paint(text, "red")
    return text


def _print(query: LiteralString, workflow: Name | None, limit: int, as_json: bool, empty: str) -> None:
    with connected() as connection:
        names, rows = rows_of(connection, query, [workflow, limit])
        if not rows:
            _require_known(connection, workflow)
    print_rows(names, rows, as_json=as_json, empty=empty)
    if len(rows) == limit and not as_json:
        say(f"Only the first {limit}; more with --limit.")


def _notes(names: list[str], rows: list[tuple[Any, ...]]) -> list[str]:
    at = {name: i for i, name in enumerate(names)}
    return [
        f"{row[at['workflow']]}: {row[at['note']]}"
        for row in rows
        if row[at["note"]] and row[at["state"]] not in ("idle", "running")
    ]


def _require_known(connection: Any, workflow: str | None) -> None:
    """An unknown name is a mistake, not an empty answer."""
    if workflow is None:
        return
    registered = [name for (name,) in connection.execute("SELECT name FROM scheduler.workflow ORDER BY name")]
    if workflow not in registered:
        known = f"Registered: {', '.join(registered)}." if registered else "Nothing is registered yet."
        raise UserError(f"There is no workflow '{workflow}'.", known)
