"""The site as one ASGI application."""

from collections.abc import Sequence
from pathlib import Path

import psycopg
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Mount
from starlette.staticfiles import StaticFiles

from listener.faults import describe, is_passing, is_structural
from listener.logs import log_of
from listener.web.access import Access
from listener.web.desk import Desk
from listener.web.extension import Extension
from listener.web.guard import Guard
from listener.web.machine import Machine, Vitals
from listener.web.pages import Pages, Shell
from listener.web.store import Store, said

_log = log_of("web")


def build(store: Store, access: Access, extensions: Sequence[Extension], vitals: Vitals | None) -> Guard:
    """Everything behind one guard."""
    shell = Shell(store, access, extensions)

    async def known(request: Request, error: Exception) -> Response:
        assert isinstance(error, HTTPException)  # noqa: S101 - by registration below
        return await shell.page(request, "trouble.html", error.status_code, message=error.detail, hint="")

    async def database(request: Request, error: Exception) -> Response:
        """The database said no, or nothing."""
        if is_passing(error):
            return await shell.page(
                request, "trouble.html", 503, message="The database does not answer.", hint=describe(error)
            )
        if isinstance(error, psycopg.errors.InsufficientPrivilege):
            hint = "The page's database login needs: GRANT scheduler_monitor TO …"
            return await shell.page(request, "trouble.html", 403, message=said(error), hint=hint)
        if isinstance(error, psycopg.Error) and not is_structural(error):
            # a key of the wrong type, such as a word where a number is asked for
            return await shell.page(
                request, "trouble.html", 400, message=said(error), hint=error.diag.message_hint or ""
            )
        _log.error("a page failed", exc_info=error, extra={"path": request.url.path})
        return await shell.page(
            request, "trouble.html", 500, message=describe(error), hint="See SELECT * FROM scheduler.doctor();"
        )

    app = Starlette(
        routes=[
            *Machine(store, vitals).routes(),
            *Pages(shell).routes(),
            *Desk(shell).routes(),
            Mount("/static", StaticFiles(directory=Path(__file__).parent / "static")),
        ],
        exception_handlers={HTTPException: known, psycopg.Error: database, TimeoutError: database, OSError: database},
    )
    return Guard(app, access)
