"""`scrapersky adopt-legacy`: from the APScheduler system to this one, one workflow at a time."""

from typing import Annotated

import typer

from listener.cli.table import table
from listener.errors import UserError
from services import legacy, legacy_move


def adopt_legacy(
    workflow: Annotated[
        str | None, typer.Option("--workflow", help="Only this one, such as deep_scan.", show_default=False)
    ] = None,
    apply: Annotated[bool, typer.Option("--apply", help="Adopt it; without this, only show what would run.")] = False,
    paused: Annotated[bool, typer.Option("--paused", help="Adopt it, but let nothing run until resume().")] = False,
    move: Annotated[
        bool, typer.Option("--move", help="Copy the old rows into our own tables instead; the old ones stay.")
    ] = False,
    schema: Annotated[str, typer.Option(help="Where the old tables are.")] = "public",
    prefix: Annotated[str, typer.Option(help="Before the names of the workflows.")] = legacy.PREFIX,
    zombie_minutes: Annotated[
        int, typer.Option(min=0, help="A row in Processing that has not changed for so long has lost its worker.")
    ] = legacy.ZOMBIE_MINUTES,
) -> None:
    """Adopt the tables of the APScheduler system. They stay where they are; first of all, it shows what would run.

    Without --apply nothing is changed. With it, one workflow is registered over its old table and its zombies, rows
    left in Processing by a worker that died, are queued again. The statement that undoes it is printed.

    Example: scrapersky adopt-legacy && scrapersky adopt-legacy --workflow deep_scan --apply
    """
    from listener.schema import find_url

    if move:
        _show_moved(legacy_move.move(find_url(), schema, apply=apply), applied=apply)
        return
    chosen = [legacy.named(workflow)] if workflow else list(legacy.OLD)
    if not apply:
        _show([legacy.look(find_url(), old, schema, zombie_minutes) for old in chosen])
        return
    if workflow is None:
        raise UserError(
            "One workflow at a time.",
            f"Name it: scrapersky adopt-legacy --workflow {legacy.OLD[0].name} --apply",
        )
    for fact in legacy.adopt(find_url(), chosen[0], schema, zombie_minutes, prefix=prefix, paused=paused):
        typer.echo(fact)
    typer.echo("The way back:")
    typer.echo(legacy.way_back(prefix + workflow))


def _show(shadows: list[legacy.Shadow]) -> None:
    names = [
        "workflow",
        "table",
        "queued",
        "ready",
        "zombies",
        "just begun",
        "failed",
        "done",
        "queued first",
        "adopted as",
    ]
    rows = [
        (
            *(s.old.name, s.old.table, s.queued, s.ready, s.zombies, s.young, s.failed, s.completed),
            *(_brief(s.next_keys), s.adopted),
        )
        for s in shadows
        if not s.problem
    ]
    typer.echo(table(names, rows))
    for shadow in shadows:
        if shadow.problem:
            typer.echo(f"{shadow.old.name} cannot be adopted: {shadow.problem} {shadow.hint}".rstrip())


def _brief(keys: tuple[str, ...]) -> str:
    return ", ".join(keys[:2]) + (f" and {len(keys) - 2} more" if len(keys) > 2 else "")


def _show_moved(moved: list[legacy_move.Moved], *, applied: bool) -> None:
    names = ["from", "to", "moved", "there already", "not allowed", "columns left out"]
    typer.echo(
        table(
            names,
            [(m.pair.old, m.pair.new, m.moved, m.already, m.refused, ", ".join(m.left_out)) for m in moved],
        )
    )
    if not applied:
        typer.echo("Nothing was changed. With --apply it is.")
