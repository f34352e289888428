"""`scrapersky web`: the web page and the endpoints for machines, without a listener."""

import asyncio
import signal
from typing import Annotated, Any

import typer

from listener.cli.say import say


def web(
    port: Annotated[
        int | None, typer.Option("--port", help="Serve on this port (WEB_PORT, else 8642).", show_default=False)
    ] = None,
    host: Annotated[
        str | None, typer.Option("--host", help="Serve at this address (WEB_HOST, else 127.0.0.1).", show_default=False)
    ] = None,
) -> None:
    """Serve the web page and the endpoints for machines. Until SIGTERM or Ctrl-C.

    Without WEB_TOKEN or WEB_USERS the page only shows, and only to this machine. With one of them people sign in and
    may also pause, resume, dispatch, requeue and cancel; each action is confirmed first and written into the audit.

    Example: WEB_TOKEN=$(python3 -c 'import secrets; print(secrets.token_urlsafe(24))') scrapersky web --port 8642
    """
    # Starlette and pydantic take a moment to import, which the other commands need not wait for.
    from listener import logs
    from listener.schema import find_url
    from listener.settings import read
    from listener.web.server import Web

    overrides: dict[str, Any] = {
        **({"web_port": port} if port is not None else {}),
        **({"web_host": host} if host is not None else {}),
    }
    settings = read({}, **overrides).settings
    logs.configure(settings.log_level, settings.log_format)

    async def run() -> None:
        site = Web(settings.database_url or find_url(), settings)
        say(f"Serving {site.bind()} - stop with Ctrl-C")
        for number in (signal.SIGTERM, signal.SIGINT):
            asyncio.get_running_loop().add_signal_handler(number, site.stop)
        await site.run()

    asyncio.run(run())
