"""What other packages bring, ours in services/ too: commands, by the entry-point group `scrapersky.commands`, and
workflows.

Each entry's name is the command's; it names a `typer.Typer` (a noun with verbs) or a plain function. Import only what
is light at the top of such a module: every start of `scrapersky` imports them all.
"""

from collections.abc import Iterable
from importlib.metadata import EntryPoint, entry_points
from typing import TYPE_CHECKING, Any

import typer

from listener.cli.say import say

if TYPE_CHECKING:
    from listener.workflow import Workflow

GROUP = "scrapersky.commands"
HEADING = "Pipeline, and other packages"


def add_commands(app: typer.Typer, found: Iterable[EntryPoint] | None = None) -> None:
    """Add them all. One that cannot be loaded is reported, and the rest work."""
    taken = {group.name for group in app.registered_groups} | {_name(command) for command in app.registered_commands}
    for entry in sorted(entry_points(group=GROUP) if found is None else found, key=lambda entry: entry.name):
        if entry.name in taken:
            say(f"The command {entry.name} of {entry.value} is left out: there is one of that name.")
            continue
        try:
            loaded = entry.load()
        except Exception as error:
            say(f"The command {entry.name} cannot be loaded from {entry.value}: {type(error).__name__}: {error}")
            continue
        taken.add(entry.name)
        if isinstance(loaded, typer.Typer):
            app.add_typer(loaded, name=entry.name, rich_help_panel=HEADING)
        else:
            app.command(entry.name, rich_help_panel=HEADING)(loaded)


def workflows() -> "dict[str, Workflow[Any, Any]]":
    """All that can be loaded, for commands that read about them: one line for each that cannot."""
    from listener.discover import find

    loaded, broken = find()
    for one in broken:
        say(f"A workflow cannot be loaded: {one}")
    return loaded


def _name(command: typer.models.CommandInfo) -> str | None:
    if command.name or command.callback is None:
        return command.name
    return command.callback.__name__.replace("_", "-")
