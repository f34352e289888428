"""How the command line speaks: results to standard output, everything else to standard error."""

import typer

from listener.errors import UserError


def say(text: str) -> None:
    """A line of progress."""
    typer.echo(text, err=True)


def complain(error: UserError) -> None:
    """What went wrong, and what to do about it."""
    typer.secho("Error: ", fg=typer.colors.RED, bold=True, nl=False, err=True)
    typer.echo(error.message.rstrip(), err=True)
    if error.hint:
        typer.echo(error.hint, err=True)
