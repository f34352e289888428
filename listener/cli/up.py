"""`scrapersky up`: everything on this machine in the foreground; Ctrl-C ends all of it."""

import asyncio
import os
import signal
import sys
from contextlib import suppress
from dataclasses import dataclass

import typer

from listener.cli import migrate
from listener.cli.db import Directory
from listener.cli.say import say
from listener.postgres.choose import URL_VARIABLE
from listener.postgres.port import ADDRESS, first_free
from listener.postgres.provide import existing, named_url, provide


@dataclass(frozen=True)
class Part:
    """A `scrapersky` command that runs beside the others."""

    name: str
    arguments: tuple[str, ...]


PARTS = (Part("listener", ("listen",)),)
"""What runs once the database is there. One more line here is one more process under the same roof."""


def up(directory: Directory = None) -> None:
    """Run everything here, in the foreground.

    A private PostgreSQL is started, the schema installed or upgraded, and a listener run, which also serves the web
    page on WEB_PORT, else on the first free port from 8642 on. Ctrl-C (or SIGTERM) drains the listener and then stops
    the PostgreSQL, unless it was running before or DATABASE_URL names another. A second Ctrl-C gives the items under
    way back at once. If a part ends by itself, all end, with its exit code.

    Example: scrapersky up
    """
    # uvicorn and pydantic take a moment to import, which the other commands need not wait for
    from listener.settings import environment
    from listener.web.server import DEFAULT_PORT

    if named := named_url():
        os.environ[URL_VARIABLE] = named  # in .env it counts as well
    ran_before = existing(directory, say=say).status().state == "running"
    provided = provide(directory, say=say)
    os.environ[URL_VARIABLE] = provided.url  # for the parts, and for migrating
    given = environment()
    # a listener that is given 0 chooses a port itself and says so in its log
    port = os.environ["WEB_PORT"] = given.get("WEB_PORT") or str(first_free(DEFAULT_PORT))
    try:
        migrate.migrate()
        code = asyncio.run(_run(PARTS, f"http://{given.get('WEB_HOST', ADDRESS)}:{port}/"))
    finally:
        if provided.private is not None and not ran_before:
            provided.private.stop()
            say("PostgreSQL is stopped; its data stays for the next time.")
    raise typer.Exit(code)


async def _run(parts: tuple[Part, ...], page: str) -> int:
    """The parts until one ends or a signal comes; then the end of all. Their worst exit code."""
    processes: dict[str, asyncio.subprocess.Process] = {}

    def end() -> None:
        for process in processes.values():
            with suppress(ProcessLookupError):
                process.send_signal(signal.SIGTERM)

    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, end)
    for part in parts:
        processes[part.name] = await asyncio.create_subprocess_exec(
            *(sys.executable, "-c", "from listener.cli import main; main()"),
            *part.arguments,
            # else a Ctrl-C would reach it twice, from the terminal and from us, and twice means hurry
            start_new_session=True,
        )
    say(f"Up: {', '.join(processes)}. The web page: {page}")
    say("In another terminal: scrapersky status; scrapersky --help. Ctrl-C here ends everything.")
    waits = {name: asyncio.create_task(process.wait()) for name, process in processes.items()}
    await asyncio.wait(waits.values(), return_when=asyncio.FIRST_COMPLETED)
    end()
    codes = {name: await wait for name, wait in waits.items()}
    for name, code in codes.items():
        if code:
            say(f"The {name} ended with exit code {code}.")
    return max((abs(code) for code in codes.values()), default=0)
