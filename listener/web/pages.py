"""The pages: what is read for each, and the template that shows it."""

from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import quote

import psycopg
from jinja2 import Environment, FileSystemLoader, StrictUndefined
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response, StreamingResponse
from starlette.routing import Route

from listener import __version__
from listener.faults import is_bad_data, is_structural
from listener.web import charts, reads, tables
from listener.web.access import Access, Person
from listener.web.actions import ACTIONS, SETTINGS
from listener.web.extension import Extension, Table
from listener.web.picture import draw, inferred
from listener.web.reads import WINDOWS, Point
from listener.web.shared import Shared
from listener.web.store import EXPORT_SECONDS, Reader, Row, Store
from listener.web.tables import View, existing, view_of
from listener.web.words import FILTERS, item_path

FLASH = "scrapersky_told"
_NOTHING_AROUND: Row = {"tables": [], "paused_at": None, "alive": None, "database": None}
_EXPORTS = {"csv": (tables.as_csv, "text/csv; charset=utf-8"), "json": (tables.as_json, "application/json")}


class Shell:
    """What every page has around it: navigation, who is signed in, what was just done."""

    def __init__(self, store: Store, access: Access, extensions: Sequence[Extension]) -> None:
        self.store = store
        self.access = access
        self.shared = Shared()
        self.extensions = list(extensions)
        self._environment = Environment(
            loader=FileSystemLoader(Path(__file__).parent / "templates"),
            autoescape=True,
            undefined=StrictUndefined,
            trim_blocks=True,
            lstrip_blocks=True,
        )
        self._environment.filters.update(FILTERS)
        self._environment.globals.update(item_path=item_path, version=__version__, actions=ACTIONS, charts=charts)

    @property
    def tables(self) -> list[Table]:
        return [table for extension in self.extensions for table in extension.tables]

    async def view(self, reader: Reader, name: str) -> View:
        wanted = [table for table in self.tables if table.name == name]
        for table in await existing(reader, wanted):
            if view := await view_of(reader, table):
                return view
        raise HTTPException(404, f"There is no table {name!r} here, or scheduler_monitor may not read it.")

    async def page(self, request: Request, template: str, status: int = 200, **shown: Any) -> Response:
        person: Person | None = request.state.person
        told = self._told(request)
        # whoever has not signed in learns nothing from around a page either: no table, no database, no pause
        known = person is not None or self.access.is_open
        text = self._environment.get_template(template).render(
            request=request,
            path=request.url.path,
            person=person,
            may_act=person is not None and person.may_act,
            open=self.access.is_open,
            told=told,
            known=known,
            around=await self._around() if known and status != 503 else _NOTHING_AROUND,
            form_token=self.access.form_token(person) if person else "",
            **shown,
        )
        response = HTMLResponse(text, status)
        if told:
            response.delete_cookie(FLASH)
        return response

    def tell(self, response: Response, message: str) -> None:
        """Say this on the next page."""
        signed = self.access.sign("told", {"message": message[:500]})
        response.set_cookie(FLASH, signed, max_age=60, httponly=True, samesite="strict")

    def _told(self, request: Request) -> str | None:
        cookie = request.cookies.get(FLASH)
        said = self.access.unsign("told", cookie) if cookie else None
        return str(said["message"]) if said else None

    async def _around(self) -> Row:
        async def read() -> Row:
            async with self.store.reading() as reader:
                found = await reads.control(reader)
                found["tables"] = await existing(reader, self.tables)
                return found

        try:
            return await self.shared.get("around", 2, read)
        except Exception:  # the page about the trouble needs its navigation too
            return _NOTHING_AROUND

    async def findings(self) -> list[Row]:
        async def read() -> list[Row]:
            async with self.store.reading() as reader:
                return await reads.doctor(reader)

        return await self.shared.get("doctor", 10, read)


class Pages:
    """Everything that only looks."""

    def __init__(self, shell: Shell) -> None:
        self._shell = shell
        self._store = shell.store

    def routes(self) -> list[Route]:
        return [
            Route("/", self.pipeline),
            Route("/workflows/{name}", self.workflow),
            Route("/workflows/{name}/items", self.find),
            Route("/workflows/{name}/items/{key:path}", self.item),
            Route("/listeners", self.listeners),
            Route("/doctor", self.doctor),
            Route("/audit", self.audit),
            Route("/data/{table}", self.table),
            Route("/data/{table}/export.{form}", self.export),
        ]

    async def pipeline(self, request: Request) -> Response:
        async def read() -> tuple[list[Row], dict[str, list[Point]]]:
            async with self._store.reading() as reader:
                return await reads.overview(reader), await reads.series(reader, WINDOWS["hour"])

        rows, points = await self._shell.shared.get("overview", 1, read)
        handovers = [pair for extension in self._shell.extensions for pair in extension.handovers]
        handovers += [(row["workflow"], row["downstream"]) for row in rows if row["downstream"]]
        handovers += inferred(rows)
        found = {row["workflow"]: row for row in rows}
        picture = draw(list(found), handovers)
        return await self._shell.page(
            request,
            "pipeline.html",
            rows={name: found[name] for line in picture.rows for name in line if name},
            picture=picture,
            sparks={name: charts.spark(series) for name, series in points.items()},
            failed={name: sum(point.failed for point in series) for name, series in points.items()},
            totals=_totals(rows),
            findings=await self._shell.findings(),
        )

    async def workflow(self, request: Request) -> Response:
        name = request.path_params["name"]
        window = WINDOWS.get(request.query_params.get("window", ""), WINDOWS["hour"])
        async with self._store.reading() as reader:
            settings = _found(await reads.workflow(reader, name), f"There is no workflow {name!r}.")
            points = (await reads.series(reader, window, name)).get(name, [])
            shown: dict[str, Any] = {
                "schedule": await reads.schedule(reader, name),
                "next_fires": await reads.next_fires(reader, name),
                "runs": await reads.runs(reader, name),
                "in_flight": await reads.in_flight(reader, name),
                "errors": await self._shell.shared.get(f"errors {name}", 4, lambda: reads.errors(reader, name)),
                "dead_letters": await reads.dead_letters(reader, name),
                "retrying": await reads.retrying(reader, name),
            }
            shown["preview"] = [] if settings["state"] == "broken" else await reads.preview(reader, name)
        return await self._shell.page(
            request,
            "workflow.html",
            w=settings,
            settings=SETTINGS,
            grouped=reads.GROUPED,
            window=window,
            windows=WINDOWS,
            bars=charts.bars(points),
            lines=charts.lines(points),
            **shown,
        )

    async def find(self, request: Request) -> Response:
        """The search box: from a key to its page."""
        key = request.query_params.get("key", "").strip()
        name = request.path_params["name"]
        return RedirectResponse(item_path(name, key) if key else f"/workflows/{quote(name)}", 303)

    async def item(self, request: Request) -> Response:
        name, key = request.path_params["name"], request.path_params["key"]
        async with self._store.reading() as reader:
            settings = _found(await reads.settings(reader, name), f"There is no workflow {name!r}.")
            shown: dict[str, Any] = {
                "why": await reads.why(reader, name, key),
                "attempt": await reads.attempt(reader, name, key),
                "run": await reads.run_of(reader, name, key),
                "row": await reads.business_row(reader, settings, key),
                "audit": await reads.audit(reader, workflow=name, key=key),
                "chain": await self._chain(reader, name, key),
            }
        return await self._shell.page(request, "item.html", w=settings, key=key, **shown)

    async def _chain(self, reader: Reader, name: str, key: str) -> list[Row]:
        """What came before the item and what came of it, as far as an installed pipeline says."""
        queries = [extension.chain[name] for extension in self._shell.extensions if name in extension.chain]
        try:
            return [row for query in queries for row in await reader.named(query, key=key)]
        except psycopg.Error as error:
            if is_structural(error) or is_bad_data(error):
                return []  # a workflow of that name over somebody else's table
            raise

    async def listeners(self, request: Request) -> Response:
        async with self._store.reading() as reader:
            rows = await reads.listeners(reader)
        return await self._shell.page(request, "listeners.html", rows=rows)

    async def doctor(self, request: Request) -> Response:
        return await self._shell.page(request, "doctor.html", findings=await self._shell.findings())

    async def audit(self, request: Request) -> Response:
        workflow = request.query_params.get("workflow") or None
        before = request.query_params.get("before", "")
        async with self._store.reading() as reader:
            rows = await reads.audit(reader, workflow=workflow, before=int(before) if before.isdigit() else None)
        return await self._shell.page(request, "audit.html", rows=rows, workflow=workflow)

    # -- tables of results ---------------------------------------------------------------------------------------------

    async def table(self, request: Request) -> Response:
        offset = request.query_params.get("offset", "0")
        start = min(int(offset), 1_000_000) if offset.isdigit() else 0
        async with self._store.reading() as reader:
            view = await self._shell.view(reader, request.path_params["table"])
            wanted = tables.Filter.read(view, request.query_params)
            rows = await tables.page(reader, view, wanted, start)
        return await self._shell.page(
            request,
            "table.html",
            view=view,
            wanted=wanted,
            rows=rows[: tables.PAGE],
            offset=start,
            more=start + tables.PAGE if len(rows) > tables.PAGE else None,
            query=_query_of(request.query_params, without="offset"),
        )

    async def export(self, request: Request) -> Response:
        name, form = request.path_params["table"], request.path_params["form"]
        if form not in _EXPORTS:
            raise HTTPException(404, "Exports are .csv and .json.")
        write, media_type = _EXPORTS[form]
        async with self._store.reading() as reader:
            view = await self._shell.view(reader, name)
        wanted = tables.Filter.read(view, request.query_params)

        async def lines() -> AsyncIterator[str]:
            async with self._store.reading(EXPORT_SECONDS) as reader:
                async for line in write(view, tables.rows(reader, view, wanted)):
                    yield line

        headers = {"Content-Disposition": f'attachment; filename="{view.table.name}.{form}"'}
        return StreamingResponse(lines(), media_type=media_type, headers=headers)


def _found(row: Row | None, message: str) -> Row:
    if row is None:
        raise HTTPException(404, message)
    return row


def _totals(rows: Sequence[Row]) -> dict[str, Any]:
    add: Callable[[str], Any] = lambda column: sum(row[column] or 0 for row in rows)  # noqa: E731
    return {column: add(column) for column in ("queued", "processing", "waiting", "dead", "per_minute")}


def _query_of(query: Mapping[str, str], *, without: str) -> str:
    return "&".join(f"{quote(name)}={quote(value)}" for name, value in query.items() if name != without and value)
