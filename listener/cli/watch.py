"""`scrapersky status`, `runs`, `errors` and `dead`: the views, fitted to the terminal."""

from typing import Annotated, Any, LiteralString

import typer

from listener.cli.ask import AsJson, MaybeName, connected, print_rows, rows_of
from listener.cli.say import paint, say
from listener.cli.table import Estimate, wrap
from listener.errors import UserError

# Columns and their headings in the order of their worth: on a narrow terminal the last are left out.
_STATUS = {
    "workflow": "workflow",
    "state": "state",
    "queued": "queued",
    "processing": "running",
    "waiting": "retry",
    "dead": "dead",
    "oldest_queued_age": "oldest",
    "per_minute": "/min",
    "eta": "eta",
    "next_dispatch": "next",
    "success_rate_1h": "success",
    "p50": "p50",
    "p95": "p95",
    "schedule": "schedule",
}
_RUNS = {
    "run": "run",
    "workflow": "workflow",
    "started_at": "started",
    "took": "took",
    "claimed": "items",
    "succeeded": "ok",
    "failed": "failed",
    "rejected": "rejected",
    "outcome": "outcome",
    "rescued": "rescued",
    "released": "released",
    "cancelled": "cancelled",
    "discarded": "discarded",
    "p95": "p95",
    "listener": "listener",
}
_RARE_IN_RUNS = ("failed", "rejected", "rescued", "released", "cancelled", "discarded", "p95", "listener")
_ERRORS = {
    "workflow": "workflow",
    "items": "items",
    "dead": "dead",
    "waiting": "retry",
    "error": "error",
    "example_key": "example",
    "last_at": "last",
}
_DEAD = {
    "workflow": "workflow",
    "key": "key",
    "attempts": "attempts",
    "error": "error",
    "last_at": "last",
    "reason": "reason",
}

_COLOURS = {"broken": "red", "paused": "yellow", "held": "yellow", "running": "green", "waiting": "cyan"}

Limit = Annotated[int, typer.Option("--limit", "-n", min=1, max=10000, help="Show at most so many.")]


def status(workflow: MaybeName = None, as_json: AsJson = False) -> None:
    """Show how each workflow is.

    What waits and runs, how fast it goes, when it will be done; the less important columns only where there is room.
    Below the table stands, for each workflow that does not simply run, why.

    Examples: scrapersky status · scrapersky status deep_scan --json | jq '.[0].queued'
    """
    names, rows = _read("SELECT * FROM scheduler.status WHERE workflow = coalesce(%s, workflow)", workflow)
    if not as_json:
        rows = [_estimated(names, row) for row in rows]
    print_rows(
        names,
        rows,
        as_json=as_json,
        empty="No workflow is registered yet: see scheduler.create_workflow(), or docs/tour.md.",
        headings=_STATUS,
        paint=paint_status,
    )
    if not as_json:
        for line in _notes(names, rows):
            typer.echo(wrap(line, "  "))


def runs(workflow: MaybeName = None, limit: Limit = 20, as_json: AsJson = False) -> None:
    """Show the newest runs. A run is one claimed batch, here with what became of its items.

    Examples: scrapersky runs deep_scan -n 50 · scrapersky runs --json | jq '[.[] | .failed] | add'
    """
    query: LiteralString = "SELECT * FROM scheduler.runs WHERE workflow = coalesce(%s, workflow) LIMIT %s"
    names, rows = _read(query, workflow, limit)
    print_rows(names, rows, as_json=as_json, empty="No run in the last 7 days.", headings=_RUNS, rare=_RARE_IN_RUNS)
    _say_more(rows, limit)


def errors(workflow: MaybeName = None, limit: Limit = 20, as_json: AsJson = False) -> None:
    """Show errors, grouped by what they have in common. Only of items that have not succeeded yet.

    Examples: scrapersky errors · scrapersky errors deep_scan --json
    """
    query: LiteralString = "SELECT * FROM scheduler.errors WHERE workflow = coalesce(%s, workflow) LIMIT %s"
    names, rows = _read(query, workflow, limit)
    if not as_json:
        rows = [_in_full(names, row) for row in rows]
    print_rows(names, rows, as_json=as_json, empty="No item has failed.", headings=_ERRORS)
    _say_more(rows, limit)


def dead(workflow: MaybeName = None, limit: Limit = 20, as_json: AsJson = False) -> None:
    """Show the dead letter. Its items failed for good and wait for a person.

    Once the cause is gone, `scrapersky requeue` gives them a new start.

    Examples: scrapersky dead deep_scan · scrapersky dead --json | jq -r '.[].key'
    """
    query: LiteralString = "SELECT * FROM scheduler.dead_letter WHERE workflow = coalesce(%s, workflow) LIMIT %s"
    names, rows = _read(query, workflow, limit)
    print_rows(names, rows, as_json=as_json, empty="The dead letter is empty.", headings=_DEAD)
    _say_more(rows, limit)


def _estimated(names: list[str], row: tuple[Any, ...]) -> tuple[Any, ...]:
    """A deep queue is not counted to its end, and nobody should take its depth for exact."""
    at, exact = names.index("queued"), row[names.index("queued_exact")]
    return row if exact is not False else (*row[:at], Estimate(row[at]), *row[at + 1 :])


def _in_full(names: list[str], row: tuple[Any, ...]) -> tuple[Any, ...]:
    """One of a kind has nothing in common with others: its error is shown as it is."""
    at = names.index("error")
    return (*row[:at], row[names.index("example")], *row[at + 1 :]) if row[names.index("items")] == 1 else row


def paint_status(column: str, text: str, value: Any) -> str:
    if column == "state":
        return paint(text, "red" if str(value).startswith("breaker") else _COLOURS.get(str(value)))
    if column == "dead" and value:
        return paint(text, "red")
    return text


def _read(query: LiteralString, workflow: str | None, *values: Any) -> tuple[list[str], list[tuple[Any, ...]]]:
    with connected() as connection:
        names, rows = rows_of(connection, query, [workflow, *values])
        if not rows:
            _require_known(connection, workflow)
    return names, rows


def _say_more(rows: list[tuple[Any, ...]], limit: int) -> None:
    if len(rows) == limit:
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
