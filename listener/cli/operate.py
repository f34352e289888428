"""`scrapersky dispatch`, `pause`, `resume`, `requeue` and `cancel`: the operating functions, with a question first."""

from typing import Annotated, Any, LiteralString

import typer

from listener.cli.ask import AsJson, Name, Yes, acting, connected, print_json, rows_of
from listener.cli.ask import complete_workflow as complete
from listener.cli.table import plain, printable
from listener.errors import UserError

NameOrAll = Annotated[
    str | None, typer.Argument(metavar="[WORKFLOW]", help="Its name.", show_default=False, autocompletion=complete)
]
All = Annotated[bool, typer.Option("--all", help="Every workflow.")]
Ids = Annotated[list[str], typer.Argument(metavar="ID...", help="Keys of items.")]
MaybeIds = Annotated[list[str] | None, typer.Argument(metavar="[ID]...", help="Only these items.", show_default=False)]


def dispatch(workflow: Name, as_json: AsJson = False) -> None:
    """Queue what is ready now. Up to the batch size, as its schedule would.

    Example: scrapersky dispatch deep_scan
    """
    _tell(_call("SELECT * FROM scheduler.dispatch(%s)", workflow), as_json)


def pause(
    workflow: NameOrAll = None,
    reason: Annotated[str | None, typer.Option("--reason", "-r", help="Why, for whoever looks next.")] = None,
    everything: All = False,
    yes: Yes = False,
    as_json: AsJson = False,
) -> None:
    """Stop queueing and claiming; running items finish.

    Examples: scrapersky pause deep_scan --reason 'API key expired' · scrapersky pause --all --yes
    """
    if _is_all(workflow, everything):
        _confirm("Pause every workflow?", yes)
        _tell(_call("SELECT scheduler.pause_all(%s) AS pause_all", reason), as_json)
    else:
        _tell(_call("SELECT scheduler.pause(%s, %s) AS pause", workflow, reason), as_json)


def resume(workflow: NameOrAll = None, everything: All = False, as_json: AsJson = False) -> None:
    """Go on; also closes an open breaker and ends a hold. With --all, ends `pause --all`.

    Examples: scrapersky resume deep_scan · scrapersky resume --all
    """
    if _is_all(workflow, everything):
        _tell(_call("SELECT scheduler.resume_all() AS resume_all"), as_json)
    else:
        _tell(_call("SELECT scheduler.resume(%s) AS resume", workflow), as_json)


def requeue(
    workflow: Name,
    ids: MaybeIds = None,
    error: Annotated[
        str | None, typer.Option("--error", help="Only items whose error is LIKE this, as in '%timeout%'.")
    ] = None,
    where: Annotated[
        str | None, typer.Option("--where", help="Only rows of the table for which this SQL condition holds.")
    ] = None,
    stranded: Annotated[
        bool, typer.Option("--stranded", help="Instead: items that show the processing word but belong to no run.")
    ] = False,
    yes: Yes = False,
    as_json: AsJson = False,
) -> None:
    """Give failed and dead items a new start. Without ids or options, all of them.

    Examples: scrapersky requeue deep_scan 17 18 · scrapersky requeue deep_scan --error '%timeout%' --yes
    """
    if stranded and (ids or error or where):
        raise UserError("--stranded stands alone.", "Leave out the ids, --error and --where.")
    if ids:
        query: LiteralString = "SELECT scheduler.requeue(%s, %s::text[], %s, %s) AS requeued"
        _tell(_call(query, workflow, ids, error, where), as_json)
        return
    if not (error or where or stranded):
        _confirm(f"Requeue all {_failed(workflow)} failed and dead items of {workflow}?", yes)
    else:
        _confirm(f"Requeue the items of {workflow} that this selects?", yes)
    query = "SELECT scheduler.requeue(%s, error => %s, predicate => %s, stranded => %s) AS requeued"
    _tell(_call(query, workflow, error, where, stranded), as_json)


def cancel(workflow: Name, ids: Ids, yes: Yes = False, as_json: AsJson = False) -> None:
    """Take items out of the queue, running ones too. The schedule leaves them alone until they are asked for again.

    Example: scrapersky cancel deep_scan 17 18 --yes
    """
    _confirm(f"Cancel {len(ids)} items of {workflow}?", yes)
    _tell(_call("SELECT * FROM scheduler.cancel(%s, %s::text[])", workflow, ids), as_json)


def _call(query: LiteralString, *values: Any) -> dict[str, Any]:
    with acting() as connection:
        names, rows = rows_of(connection, query, values)
    return dict(zip(names, rows[0], strict=True))


def _tell(result: dict[str, Any], as_json: bool) -> None:
    if as_json:
        print_json({name: plain(value) for name, value in result.items()})
        return
    shown = [
        printable(value) if isinstance(value, str) else f"{name} {value}"
        for name, value in result.items()
        if value is not None
    ]
    typer.echo(", ".join(shown))


def _confirm(question: str, yes: bool) -> None:
    if not yes:
        typer.confirm(question, abort=True, err=True)


def _is_all(workflow: str | None, everything: bool) -> bool:
    if (workflow is None) != everything:
        raise UserError("Which one?", "Name a workflow, or say --all.")
    return everything


def _failed(workflow: str) -> int:
    with connected() as connection:
        _, rows = rows_of(
            connection,
            "SELECT count(*) FROM scheduler.attempt WHERE workflow = %s AND state IN ('dead', 'waiting')",
            [workflow],
        )
    return int(rows[0][0])
