"""A test kit for those who write workflows: one item through `work`, a queue drained inside a test, what is queued."""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

import psycopg
from psycopg import sql

from listener.errors import UserError
from listener.process import Listener
from listener.settings import Settings
from listener.tools import Clock, Toolbox, Tools
from listener.workflow import Done, Final, Workflow, is_async, refuse_coroutine

if TYPE_CHECKING:
    import httpx

Item = TypeVar("Item")
Result = TypeVar("Result")


async def run_item(
    workflow: Workflow[Item, Result],
    item: Item,
    *,
    key: str = "1",
    attempt: int = 1,
    settings: Any = None,
    http: "httpx.AsyncClient | None" = None,
    clock: Clock | None = None,
) -> Done[Item, Result]:
    """Call `work` as a listener would, without a database: what `save` would get, or whatever `work` raises.

    Without `settings` the workflow's own are read from the environment. Give `http` a client with a mock transport,
    and `clock` one that does not wait.
    """
    box = Toolbox(http, clock)
    tools = Tools(box, workflow.name, settings or _own(workflow), key, attempt)
    try:
        if is_async(workflow.work):
            result = await workflow.work(item, tools)
        else:
            result = await asyncio.to_thread(workflow.work, item, tools)
        refuse_coroutine("work", result, awaited=is_async(workflow.work))
    finally:
        if http is None:
            await box.close()
    if isinstance(result, Final):
        return Done(item, result.result, key, attempt, result.word)
    return Done(item, result, key, attempt)


@dataclass(frozen=True)
class Drained:
    """What became of one workflow's items. An item that is tried again counts each time."""

    succeeded: int = 0
    failed: int = 0
    rejected: int = 0
    released: int = 0
    """Given back with no attempt spent, as by a `Hold`."""


async def drain(
    url: str,
    *workflows: Workflow[Any, Any],
    settings: Mapping[str, Any] | None = None,
    http: "httpx.AsyncClient | None" = None,
    clock: Clock | None = None,
    seconds: float = 30.0,
) -> dict[str, Drained]:
    """Run a real listener for these workflows in this process until nothing of theirs can be claimed any more.

    Rows that one workflow queues for another are worked on too. Items that wait for a retry, and workflows that are
    paused or held, are left as they are. `settings` are instances of the workflows' settings classes, by name.
    """
    wanted = {"listener_poll_only": True, "listener_poll_seconds": 3600, "listener_drain_seconds": 0}
    own = {workflow.name: (settings or {}).get(workflow.name) or _own(workflow) for workflow in workflows}
    by_name = {workflow.name: workflow for workflow in workflows}
    listener = Listener(url, by_name, Settings.model_validate(wanted), own, toolbox=Toolbox(http, clock))
    running = asyncio.create_task(listener.run(), name="listener")
    try:
        async with asyncio.timeout(seconds):
            await _work_off(listener, running)
    except TimeoutError:
        raise AssertionError(f"not drained after {seconds:g} s: {listener.metrics.brief()}") from None
    finally:
        listener.stop()
        listener.stop()  # the second time means at once
        await asyncio.wait({running})
    lanes = listener.metrics.lanes
    return {name: Drained(lane.succeeded, lane.failed, lane.rejected, lane.released) for name, lane in lanes.items()}


async def _work_off(listener: Listener, running: "asyncio.Task[int]") -> None:
    ready = asyncio.create_task(listener.ready.wait())
    await asyncio.wait({ready, running}, return_when=asyncio.FIRST_COMPLETED)
    if running.done():
        ready.cancel()
        running.result()  # raises why it did not even start
    await listener.exhaust()
    if problems := listener.metrics.problems():
        raise AssertionError(f"not drained: {problems}")


def queued(connection: psycopg.Connection[Any], workflow: str) -> list[str]:
    """The keys of a workflow's Queued items, as this connection sees them: also before it has committed."""
    row = connection.execute(
        "SELECT relation::text, key_column, status_column, queued FROM scheduler.workflow WHERE name = %s", [workflow]
    ).fetchone()
    if row is None:
        raise UserError(f"There is no workflow {workflow}.", "Register it with scheduler.create_workflow().")
    relation, key, status, word = row
    query = sql.SQL("SELECT {key}::text FROM {table} WHERE {status}::text = %s ORDER BY {key}").format(
        key=sql.Identifier(key),
        # printed by the server from regclass, quoted as it must be
        table=sql.SQL(relation),
        status=sql.Identifier(status),
    )
    return [found for (found,) in connection.execute(query, [word]).fetchall()]


def assert_queued(connection: psycopg.Connection[Any], workflow: str, *keys: object) -> None:
    """Exactly these items are Queued; without keys, none is. If not, say which, and why they are not."""
    found = queued(connection, workflow)
    wanted = [str(key) for key in keys]
    lines = [f"{key} is not Queued: {_why(connection, workflow, key)}" for key in wanted if key not in found]
    lines += [f"{key} is Queued and should not be" for key in found if key not in wanted]
    if lines:
        raise AssertionError(f"workflow {workflow}:\n" + "\n".join(f"  {line}" for line in lines))


def _why(connection: psycopg.Connection[Any], workflow: str, key: str) -> str:
    row = connection.execute("SELECT scheduler.why(%s, %s)", [workflow, key]).fetchone()
    return str(row and row[0])


def _own(workflow: Workflow[Any, Any]) -> Any:
    return workflow.settings() if workflow.settings is not None else None
