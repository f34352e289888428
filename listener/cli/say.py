"""How the command line speaks: results to standard output, everything else to standard error, colours to people."""

import os
import shutil
import sys
import textwrap
from functools import partial
from typing import TextIO

import typer

from listener.errors import UserError


def say(text: str) -> None:
    """A line of progress."""
    typer.echo(text, err=True)


def complain(error: UserError) -> None:
    """What went wrong, and what to do about it."""
    label = "Error:"
    said = _wrapped(f"{label} {error.message.strip()}")
    typer.echo(paint(label, "red", bold=True, stream=sys.stderr) + said.removeprefix(label), err=True)
    if error.hint:
        typer.echo(_wrapped(error.hint), err=True)


def _wrapped(text: str) -> str:
    """On a terminal, lines that end between words; elsewhere, such as in a log, as it is."""
    if not sys.stderr.isatty():
        return text.rstrip()
    width = shutil.get_terminal_size().columns
    wrap = partial(textwrap.wrap, width=width, break_long_words=False, break_on_hyphens=False)
    return "\n".join("\n".join(wrap(line)) for line in text.splitlines())


def is_colourful(stream: TextIO | None = None) -> bool:
    """On a terminal that can, unless NO_COLOR says no."""
    return (stream or sys.stdout).isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def paint(text: str, colour: str | None, *, bold: bool = False, stream: TextIO | None = None) -> str:
    if not is_colourful(stream) or not (colour or bold):
        return text
    return typer.style(text, fg=colour, bold=bold)
