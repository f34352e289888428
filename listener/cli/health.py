"""`scrapersky health`: one line and an exit code, for container health checks and scripts."""

import json
import urllib.error
import urllib.request
from typing import Annotated

import typer

from listener.cli.ask import AsJson, connected, print_json
from listener.errors import UserError

SECONDS = 5
LARGEST = 64 * 1024


def health(
    url: Annotated[
        str | None,
        typer.Option("--url", help="Ask here instead of at WEB_HOST and WEB_PORT.", show_default=False),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Ask whether all is well, for scripts. Exit code 0 if so, else 1.

    The listener is asked, at its /health, when WEB_PORT is set in the environment or in .env; else the database.

    Examples: scrapersky health · scrapersky health --url http://127.0.0.1:8642/ready
    """
    address = url or _listener()
    if address is None:
        with connected() as connection:
            connection.execute("SELECT FROM scheduler.control")
        answer = {"status": "ok", "asked": "database"}
    else:
        answer = {**_ask(address), "asked": address}
    if as_json:
        print_json(answer)
    else:
        typer.echo(f"{answer['status']} ({answer['asked']})")


def _listener() -> str | None:
    from listener.settings import environment

    said = environment()
    port = said.get("WEB_PORT")
    return f"http://{said.get('WEB_HOST', '127.0.0.1')}:{port}/health" if port else None


def _ask(address: str) -> dict[str, str]:
    hint = "Is the listener running, with WEB_PORT set? 'scrapersky health --url URL' asks elsewhere."
    if not address.startswith(("http://", "https://")):
        raise UserError(f"{address} is not a web address.", "Write it as http://127.0.0.1:8642/health.")
    # no proxy: a health check is about this very process
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        with opener.open(address, timeout=SECONDS) as response:
            answer = json.loads(response.read(LARGEST))
        status = str(answer["status"])
    except urllib.error.HTTPError as error:
        raise UserError(f"{address} says {error.code}.", hint) from error
    except (OSError, ValueError, TypeError, KeyError) as error:
        raise UserError(f"{address} does not answer: {error}.", hint) from error
    if status != "ok":
        raise UserError(f"{address} says it is not well: {status}.", "See its log, and 'scrapersky doctor'.")
    return {"status": status}
