"""No workflow of the pipeline holds a transaction while it works: a slow website never holds the database up."""

import asyncio
import functools
from collections import Counter
from typing import Any

import psycopg
import pytest

from listener import Tools, Workflow
from listener.discover import discover
from listener.process import Listener
from listener.settings import Settings
from listener.workflow import is_async
from services.cli.demo import GATES as LATER_GATES
from services.simulation.google import Google
from services.simulation.internet import Internet
from services.simulation.server import serving
from services.simulation.world import make_world
from tests.waiting import PATIENCE, wait_until

KEY = "simulated-key"
GATES = (("deep_scan", "UPDATE place SET status = 'Selected' WHERE status = 'New'"), *LATER_GATES)
_OPEN = (
    "SELECT pid, xact_start, application_name, state, query FROM pg_stat_activity WHERE datname = current_database()"
    " AND application_name LIKE 'scrapersky %' AND (xact_start IS NOT NULL OR backend_xmin IS NOT NULL)"
)


class Watch:
    """Looks from outside while `work` runs: no transaction that was open when it began outlasts it."""

    def __init__(self, url: str) -> None:
        self._url = url
        self.seen: Counter[str] = Counter()
        self.held: list[Any] = []

    def over(self, workflow: Workflow[Any, Any]) -> Workflow[Any, Any]:
        def ends(before: set[Any], item: Any) -> None:
            # other items commit meanwhile, each for milliseconds; what is held lasts as long as the work does
            self.seen[workflow.name] += 1
            try:
                wait_until(lambda: not before & self.open(), 20, "transactions to end")
            except AssertionError:
                self.held += [(workflow.name, item, *row) for row in before & self.open()]

        async def work(item: Any, tools: Tools) -> Any:
            before = await asyncio.to_thread(self.open)
            try:
                return await workflow.work(item, tools)
            finally:
                await asyncio.to_thread(ends, before, item)

        def plain(item: Any, tools: Tools) -> Any:
            before = self.open()
            try:
                return workflow.work(item, tools)
            finally:
                ends(before, item)

        chosen: Any = work if is_async(workflow.work) else plain
        return Workflow(workflow.name, workflow.item, chosen, workflow.save, settings=workflow.settings)

    def open(self) -> set[Any]:
        with psycopg.connect(self._url, autocommit=True) as db:
            return {row[:4] for row in db.execute(_OPEN).fetchall()}


@pytest.mark.slow
async def test_no_transaction_is_open_while_any_workflow_of_the_pipeline_works(
    database: str, db: psycopg.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    installed = discover()
    world = make_world(1, 12)
    watch = Watch(database)
    with serving(Internet(world, Google(world.places, frozenset({KEY}), token_seconds=0))) as base_url:
        monkeypatch.setenv("GOOGLE_PLACES_API_KEY", KEY)
        monkeypatch.setenv("GOOGLE_PLACES_BASE_URL", base_url)
        monkeypatch.setenv("FETCH_REPLAY", f"*={base_url.removeprefix('http://')}")
        monkeypatch.setenv("FETCH_HOST_SECONDS", "0")
        own = {name: workflow.settings() for name, workflow in installed.items() if workflow.settings is not None}
        watched = {name: watch.over(workflow) for name, workflow in installed.items()}
        listener = Listener(database, watched, Settings(listener_poll_seconds=1), own)
        running = asyncio.create_task(listener.run())
        try:
            db.execute("INSERT INTO place_search (business_type, location) VALUES (%s, %s)", world.searches[0])

            def worked() -> bool:
                for name, select in GATES:
                    db.execute(select.encode())
                    db.execute("SELECT scheduler.dispatch(%s)", [name])
                return watch.seen.keys() == installed.keys()

            await asyncio.to_thread(wait_until, worked, PATIENCE, "every workflow to have worked")
        finally:
            listener.stop()
            await running
    assert watch.held == []


def test_the_watch_sees_a_connection_that_is_held(database: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tests.services.test_no_connection.wait_until", functools.partial(_at_once, wait_until))
    watch = Watch(database)
    with psycopg.connect(database, application_name="scrapersky listener") as held:
        held.execute("SELECT 1")
        watch.over(Workflow("held", dict, lambda item, tools: None)).work({}, None)  # type: ignore[arg-type]
    assert [row[0] for row in watch.held] == ["held"]


def _at_once(wait: Any, predicate: Any, _deadline: float, what: str) -> Any:
    return wait(predicate, 0.0, what)
