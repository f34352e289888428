"""How the command line speaks: results to standard output, everything else to standard error, colours to people."""

import os
import sys
from typing import TextIO

import typer

from listener.errors import UserError


def say(text: str) -> None:
    """A line of progress."""
    typer.echo(text, err=True)


def complain(error: UserError) -> None:
    """What went wrong, and what to do about it."""
    typer.echo(paint("Error: ", "red", bold=True, stream=sys.stderr), nl=False, err=True)
    typer.echo(error.message.rstrip(), err=True)
    if error.hint:
        typer.echo(error.hint, err=True)


def is_colourful(stream: TextIO | None = None) -> bool:
    """On a terminal that can, unless NO_COLOR says no."""
    return (stream or sys.stdout).isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def paint(text: str, colour: str | None, *, bold: bool = False, stream: TextIO | None = None) -> str:
    if not is_colourful(stream) or not (colour or bold):
        return text
    return typer.style(text, fg=colour, bold=bold)
