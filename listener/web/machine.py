"""For machines: /health, /ready, /metrics and /api/scheduler_status."""

import asyncio
import time
from dataclasses import dataclass
from typing import Any

import psycopg
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.routing import Route

from listener.faults import describe
from listener.metrics import Metrics
from listener.web import prometheus, reads
from listener.web.shared import Shared
from listener.web.store import Row, Store

_ANSWER_SECONDS = 2.0
_FINDINGS_SECONDS = 60.0
"""The doctor looks at everything: once a minute is enough, however often and by how many this is scraped."""
_SWEEP_SLACK_SECONDS = 10.0
"""Beyond three polls: a busy machine is not an unready one."""


@dataclass(frozen=True)
class Vitals:
    """What the listener that serves this page knows of itself."""

    metrics: Metrics
    poll_only: bool
    poll_seconds: float

    def complaints(self) -> list[str]:
        """Why it is not ready; empty if it is."""
        metrics = self.metrics
        if metrics.draining:
            return ["draining"]
        if not metrics.lanes:
            return ["not started: the database has not been reached, or there is no workflow"]
        found = []
        if not metrics.listening and not self.poll_only:
            found.append("LISTEN is not up")
        patience = 3 * self.poll_seconds + _SWEEP_SLACK_SECONDS
        for name, lane in metrics.lanes.items():
            # a lane with its hands full has no reason to ask for more
            if lane.open_runs == 0 and (lane.last_claim is None or time.time() - lane.last_claim > patience):
                found.append(f"{name} has not asked for work for more than {patience:g} s")
        return found


class Machine:
    """The endpoints."""

    def __init__(self, store: Store, vitals: Vitals | None) -> None:
        self._store = store
        self._vitals = vitals
        self._shared = Shared()

    def routes(self) -> list[Route]:
        return [
            Route("/health", self.health),
            Route("/ready", self.ready),
            Route("/metrics", self.metrics),
            Route("/api/scheduler_status", self.scheduler_status),
        ]

    async def health(self, _request: Request) -> Response:
        """The event loop turns, else nobody would answer. Never the database: its outage is no reason for a restart."""
        return JSONResponse({"status": "ok"})

    async def ready(self, _request: Request) -> Response:
        complaints = self._vitals.complaints() if self._vitals else await self._silence()
        if complaints:
            return JSONResponse({"status": "not ready", "because": complaints}, 503)
        return JSONResponse({"status": "ready"})

    async def _silence(self) -> list[str]:
        try:
            async with asyncio.timeout(_ANSWER_SECONDS), self._store.reading() as reader:
                await reader.value("SELECT 1")
        except (psycopg.Error, OSError) as error:
            return [f"the database does not answer: {describe(error)}"]
        return []

    async def metrics(self, _request: Request) -> Response:
        out = prometheus.Exposition()
        prometheus.build_info(out)
        if self._vitals is not None:
            prometheus.of_process(out, self._vitals.metrics)
        up = True
        try:
            async with asyncio.timeout(_ANSWER_SECONDS), self._store.reading() as reader:
                prometheus.of_database(out, *await prometheus.read(reader))
            async with asyncio.timeout(_ANSWER_SECONDS):
                prometheus.of_doctor(out, await self._shared.get("findings", _FINDINGS_SECONDS, self._findings))
        except (psycopg.Error, OSError):
            # what this process counts is worth most while the database is away
            up = False
        out.add("database_up", "gauge", "Whether the database answered this scrape.", up)
        return PlainTextResponse(out.text(), media_type=prometheus.CONTENT_TYPE)

    async def _findings(self) -> list[Row]:
        async with self._store.reading() as reader:
            return await reads.findings(reader)

    async def scheduler_status(self, _request: Request) -> Response:
        async with self._store.reading() as reader:
            schedules = await reads.scheduler_status(reader)
        return JSONResponse(_jsonable({"schedules": schedules}))


def _jsonable(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _jsonable(inner) for name, inner in value.items()}
    if isinstance(value, list):
        return [_jsonable(inner) for inner in value]
    return value.isoformat() if hasattr(value, "isoformat") else value
