"""The list of commands in a help text: under headings, and no sentence cut short."""

from typing import Any

import typer
from typer.core import TyperGroup


class Outline(TyperGroup):
    """The first sentence of each command, under the heading it was added with."""

    def format_commands(self, ctx: typer.Context, formatter: Any) -> None:  # type: ignore[override]
        sections: dict[str, list[tuple[str, str]]] = {}
        for name in self.list_commands(ctx):
            command = self.get_command(ctx, name)
            if command is None or command.hidden:
                continue
            heading = getattr(command, "rich_help_panel", None) or "Commands"
            sections.setdefault(heading, []).append((name, _first_sentence(command.help or "")))
        # one column for all of them
        widest = max((len(name) for rows in sections.values() for name, _ in rows), default=0)
        for heading, rows in sections.items():
            with formatter.section(heading):
                formatter.write_dl([(name.ljust(widest), said) for name, said in rows])


def _first_sentence(text: str) -> str:
    paragraph = " ".join(text.strip().split("\n\n")[0].split())
    sentence, _, _ = paragraph.partition(". ")
    return sentence.rstrip(".")
