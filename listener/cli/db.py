"""`scrapersky db`: the private PostgreSQL of this project."""

import json
import shutil
import subprocess
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from listener.cli.outline import Outline
from listener.cli.say import say
from listener.errors import UserError
from listener.postgres.choose import URL_VARIABLE
from listener.postgres.home import LOCAL_VARIABLE
from listener.postgres.provide import existing, named_url, provide

STOPPED = 3
"""The exit code of `status` when nothing runs, the same as pg_ctl's."""

app = typer.Typer(
    cls=Outline,
    no_args_is_help=True,
    help="Start, stop or enter the private PostgreSQL. Its own directory, port and socket, never the system's cluster.",
)

Directory = Annotated[
    Path | None,
    typer.Option(
        "--dir",
        envvar=LOCAL_VARIABLE,
        help="Use this directory instead of .local in the project.",
        show_default=False,
    ),
]


@app.command()
def start(directory: Directory = None) -> None:
    """Create the private PostgreSQL if need be, and start it. Starting twice is harmless.

    With DATABASE_URL set, that database is used and nothing is started. Else it takes the first of: an installed
    PostgreSQL with pg_cron; the distribution's packages (Debian and Ubuntu, as root or with sudo); Docker; a
    PostgreSQL from a Python wheel. It says which, and why not the ones before.

    Example: scrapersky db start && scrapersky db psql -c 'SELECT version()'
    """
    provided = provide(directory, say=say)
    if provided.private is None:
        return
    status = provided.private.status()
    cron = f"pg_cron {status.pg_cron}" if status.pg_cron else "no pg_cron"
    say(f"PostgreSQL {status.version} ({cron}) is running on port {status.port}; its files are in {status.directory}.")


@app.command()
def stop(directory: Directory = None) -> None:
    """Stop the private PostgreSQL; its data stays.

    Example: scrapersky db stop
    """
    say("Stopped." if existing(directory, say=say).stop() else "It was not running.")


@app.command()
def status(
    directory: Directory = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Show whether it runs, where, and which version. Exit code 0 if it runs, 3 if not.

    Example: scrapersky db status --json
    """
    found = existing(directory, say=say).status()
    # The URL holds the password, which does not belong on a screen that may be shared.
    shown = {name: value for name, value in asdict(found).items() if name != "url"}
    if as_json:
        typer.echo(json.dumps(shown))
    else:
        for name, value in shown.items():
            if value is not None:
                typer.echo(f"{name:<10} {value}")
    if named_url():
        say(f"{URL_VARIABLE} is set: other commands use that database, not this one.")
    if found.state != "running":
        raise typer.Exit(STOPPED)


@app.command()
def url(directory: Directory = None) -> None:
    """Print the connection URL, password included. With DATABASE_URL set, also in .env, print that.

    Example: psql "$(scrapersky db url)"
    """
    typer.echo(named_url() or existing(directory, say=say).url())


@app.command(context_settings={"allow_extra_args": True, "ignore_unknown_options": True})
def psql(context: typer.Context, directory: Directory = None) -> None:
    """Open psql on the database, or pass psql's own options on.

    Example: scrapersky db psql -c 'SELECT * FROM scheduler.status'
    """
    named = named_url()
    if named:
        program = shutil.which("psql")
        if program is None:
            raise UserError("psql is not installed.", "Install PostgreSQL's client package.")
        raise typer.Exit(subprocess.run([program, named, *context.args], check=False).returncode)
    raise typer.Exit(existing(directory, say=say).psql(context.args))


@app.command()
def destroy(
    directory: Directory = None,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
) -> None:
    """Stop the private PostgreSQL and delete its data for good.

    Example: scrapersky db destroy --yes
    """
    private = existing(directory, say=say)
    where = private.status().directory
    private.require_ours()
    if not yes:
        typer.confirm(f"Delete the cluster in {where} with all its data?", abort=True, err=True)
    private.destroy()
    say(f"Deleted {where}.")
