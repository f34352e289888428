"""The command `scrapersky`.

One module a noun. To add `scrapersky NOUN VERB`, write `listener/cli/NOUN.py` with

    app = typer.Typer(help="...", no_args_is_help=True)

    @app.command()
    def verb(...) -> None: ...

and add one line to `_build` below: `app.add_typer(NOUN.app, name="NOUN", rich_help_panel="Watch")`. A command without a
noun, such as `scrapersky status`, is a plain function in its module and stands below its heading. Commands that need
`services/`, which this package must not import, come through an entry point instead: see `listener/cli/plugins.py`.

Report anything the user can put right by raising `listener.errors.UserError(message, hint)`: it is printed without a
traceback, and the exit code is 1. Print results with `typer.echo`, progress with `listener.cli.say.say` (standard
error), so that output can be piped. Docstrings are the help text; give each command an example.
"""

import sys
from typing import Annotated

import typer

from listener import __version__
from listener.cli import db, health, listen, migrate, operate, schedules, top, understand, up, verify_deploy, watch, web
from listener.cli.outline import Outline
from listener.cli.plugins import add_commands
from listener.cli.say import complain
from listener.errors import UserError


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"scrapersky {__version__}")
        raise typer.Exit


def _root(
    version: Annotated[
        bool,
        typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version and exit."),
    ] = False,
) -> None:
    """A workflow queue in which PostgreSQL is the scheduler and the row is the job.

    To see all of it at work: scrapersky demo. To make a queue of your own table: scrapersky db start, scrapersky
    migrate --engine-only, then SELECT scheduler.create_workflow(…) in psql; docs/tour.md goes through it.
    """


def _build() -> typer.Typer:
    app = typer.Typer(
        name="scrapersky",
        no_args_is_help=True,
        pretty_exceptions_enable=False,
        rich_markup_mode=None,
        cls=Outline,
        context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    )
    app.callback()(_root)
    app.add_typer(db.app, name="db", rich_help_panel="Run")
    for heading, commands in (
        ("Run", (migrate.migrate, listen.listen, web.web, up.up)),
        ("Watch", (watch.status, top.top, watch.runs, watch.errors, watch.dead)),
        (
            "Understand",
            (understand.why, understand.preview, understand.doctor, health.health, verify_deploy.verify_deploy),
        ),
        ("Operate", (operate.dispatch, operate.pause, operate.resume, operate.requeue, operate.cancel)),
    ):
        for command in commands:
            app.command(rich_help_panel=heading)(command)
    app.add_typer(schedules.app, name="schedules", rich_help_panel="Operate")
    add_commands(app)
    return app


app = _build()


def main() -> None:
    """The console script."""
    try:
        app()
    except UserError as error:
        complain(error)
        sys.exit(1)
    except BrokenPipeError:
        # `scrapersky ... | head` is not an error; without this Python complains while closing the stream
        sys.stderr.close()
        sys.exit(0)
