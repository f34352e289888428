"""The listener as a process: its parts put together, started, kept going, reloaded, and drained in the end."""

import asyncio
import gc
import logging
import re
import signal
import time
from collections.abc import Callable, Coroutine, Iterable, Mapping
from typing import TYPE_CHECKING, Any
from uuid import UUID, uuid4

import psycopg

from listener import __version__, engine, systemd
from listener.alerts import Alerts
from listener.backoff import Backoff
from listener.clock import Clock
from listener.database import Database, connection_string
from listener.discover import Broken
from listener.doorbell import Doorbell
from listener.errors import UnregisteredError, UserError
from listener.faults import describe, is_cancelled
from listener.heartbeat import Heartbeat
from listener.lane import Lane, Surroundings
from listener.logs import log_of
from listener.metrics import Metrics
from listener.redact import know_url, redact
from listener.settings import Settings
from listener.share import share
from listener.sweep import FEW, Sweep
from listener.tools import Toolbox
from listener.traces import Traces
from listener.workflow import Workflow

if TYPE_CHECKING:
    from listener.web.server import Web

DRAINED = 0
TEMPORARY = 75
"""EX_TEMPFAIL: something could not be given back in time, or a part broke for good; start again."""

_RELEASE_SECONDS = 5.0
"""After the patience of a drain is over: how long giving items back may take."""
_WELL_SECONDS = 30.0
_HEALED_SECONDS = 60.0
"""A part that has run for so long is started again at once."""

_FIXED = ("listener_workflows", "listener_poll_only", "listener_statement_seconds", "alert_webhook_url")
"""Settings that a reload does not change."""

_log = log_of("listener")


class Listener:
    """One process beside the database. A new id on every start, so that no two ever share a name."""

    def __init__(
        self,
        url: str,
        workflows: Mapping[str, Workflow[Any, Any]],
        settings: Settings,
        own_settings: Mapping[str, Any] | None = None,
        *,
        toolbox: Toolbox | None = None,
        traces: Traces | None = None,
        broken: Iterable[Broken] = (),
    ) -> None:
        self.id: UUID = uuid4()
        self.metrics = Metrics()
        # by the name of the entry point, which is nearly always the workflow's: what the doctor and why() then say
        self.metrics.broken = {one.entry.name: redact(f"cannot be loaded: {one}") for one in broken}
        self._url = url
        self._workflows = dict(workflows)
        self._settings = settings
        self._own_settings = dict(own_settings or {})
        self._toolbox = toolbox or Toolbox()
        self._traces = traces
        self._database = Database(url, lanes=len(workflows), statement_seconds=settings.listener_statement_seconds)
        self._toolbox.database = self._database
        self._heartbeat = Heartbeat(url, self.id, self.metrics, list(workflows))
        self._clock = Clock(self._database, self.metrics, settings.listener_poll_seconds)
        self._doorbell = Doorbell(
            settings.database_listen_url or url, self.metrics, rung=self._rung, opened=self._sweep
        )
        self._web = self._make_web()
        self.lanes: dict[str, Lane] = {}
        self._sweep_all: Sweep | None = None
        """With many lanes, who asks for them."""
        self.ready = asyncio.Event()
        """Set once every lane has asked for work."""
        self._stop = asyncio.Event()
        self._hurry = asyncio.Event()
        self._tasks: set[asyncio.Task[Any]] = set()
        know_url(url)
        know_url(settings.database_listen_url)

    # -- its life ------------------------------------------------------------------------------------------------------

    async def run(self) -> int:
        """Work until told to stop; the exit code."""
        if self._web is not None:
            # before the database is reached: a listener that waits for it is alive, and says what it waits for
            _log.info("serving the web page", extra={"at": self._web.bind()})
            self._keep("web", self._web.run)
        started = await self._unless_stopped(self._reach_database())
        if not started:
            await self._end_tasks()
            return DRAINED
        try:
            await self._database.open()
            around = Surroundings(
                self.id,
                self._database,
                self._heartbeat,
                self._toolbox,
                self.metrics,
                self._settings.listener_poll_seconds,
                self._traces,
            )
            for name, workflow in self._workflows.items():
                self.lanes[name] = Lane(workflow, around, self._own_settings.get(name))
            self._heartbeat.start()
            try:
                await self._announce()
            except (psycopg.Error, OSError):
                # gone again already: said as soon as it is back, and no reason to end
                self._keep("announce", self._announce)
            parts = self._start()
            await self._stop.wait()
            return await self._drain(parts)
        finally:
            await self._close()

    def stop(self) -> None:
        """Drain; asked a second time, release everything and end at once."""
        if self._stop.is_set():
            self._hurry.set()
        self._stop.set()

    async def exhaust(self) -> None:
        """Wait until a whole round of claims has found nothing: one workflow may have queued items for another.

        Commits count as well: what was claimed before the first round may be saved only in its course.
        """
        seen = -1
        while seen != (seen := sum(lane.claimed + lane.commits for lane in self.metrics.lanes.values())):
            await asyncio.gather(*(lane.exhaust() for lane in self.lanes.values()))

    def handle_signals(self) -> None:
        loop = asyncio.get_running_loop()
        loop.add_signal_handler(signal.SIGTERM, self.stop)
        loop.add_signal_handler(signal.SIGINT, self.stop)
        loop.add_signal_handler(signal.SIGUSR1, self.dump)

    async def reload(self, url: str, settings: Settings) -> None:
        """Take over new settings without a restart; work under way goes on."""
        if self._web is not None:
            # first, because it may refuse
            await self._web.reload(url, settings)
        systemd.reloading()
        listened = self._settings.database_listen_url or self._url
        changed = [name for name in _FIXED if getattr(settings, name) != getattr(self._settings, name)]
        if changed:
            _log.warning("these count from the next start", extra={"settings": [name.upper() for name in changed]})
        self._settings = settings
        for lane in self.lanes.values():
            lane.poll_seconds = settings.listener_poll_seconds
        self._clock.seconds = settings.listener_poll_seconds
        if self._sweep_all is not None:
            self._sweep_all.seconds = settings.listener_poll_seconds
        know_url(url)
        know_url(settings.database_listen_url)
        if url != self._url:
            self._url = url
            await self._database.replace(url)
            self._heartbeat.reconnect(url)
        if (settings.database_listen_url or url) != listened:
            self._doorbell.reconnect(settings.database_listen_url or url)
        self._sweep()
        systemd.notify("READY=1")

    def dump(self) -> None:
        """Every task and where it stands, into the log."""
        for task in asyncio.all_tasks():
            frames = task.get_stack(limit=3)
            where = [f"{frame.f_code.co_filename}:{frame.f_lineno}" for frame in frames]
            _log.info("task", extra={"task": task.get_name(), "at": where})
        _log.info("metrics", extra={"metrics": self.metrics.snapshot()})

    def _make_web(self) -> "Web | None":
        if self._settings.web_port is None:
            return None
        from listener.web.machine import Vitals
        from listener.web.server import Web

        vitals = Vitals(self.metrics, self._settings.listener_poll_only, self._settings.listener_poll_seconds)
        return Web(self._url, self._settings, vitals)

    # -- starting ------------------------------------------------------------------------------------------------------

    async def _reach_database(self) -> None:
        """Wait for the server for as long as it takes; refuse at once what waiting cannot cure."""
        backoff = Backoff(0.2, 10)
        while True:
            try:
                async with await psycopg.AsyncConnection.connect(
                    connection_string(self._url, "listener"), autocommit=True, prepare_threshold=None
                ) as connection:
                    await _require_engine(connection)
                    return
            except (psycopg.OperationalError, OSError) as error:
                _refuse_if_lasting(error)
                if backoff.failures == 0:
                    _log.warning("waiting for the database", extra={"error": describe(error)})
                systemd.notify("STATUS=waiting for the database", "EXTEND_TIMEOUT_USEC=60000000")
                await asyncio.sleep(backoff.next())

    async def _announce(self) -> None:
        """One line that says what runs here, and on which terms."""
        async with self._database.transaction() as transaction:
            registered = await engine.registered(transaction.connection)
        served = [row for row in registered if row.name in self._workflows]
        terms = [
            f"{row.name} ({row.schedule or 'no schedule'}, batch {row.batch_size},"
            f" instances {row.max_instances or 'unlimited'}{', paused' if row.paused else ''})"
            for row in served
        ]
        _log.info(
            "serving " + (", ".join(terms) or "nothing yet"),
            extra={"listener": str(self.id), "version": __version__, "workflows": [row.name for row in served]},
        )
        if unregistered := sorted(set(self._workflows) - {row.name for row in served}):
            for name in unregistered:
                # said here once for all, not by each lane
                lane = self.metrics.lane(name)
                lane.registered, lane.problem = False, str(UnregisteredError(name))
            # asked for by name, it is missed; else it came along with a package and is not wanted here
            _log.log(
                logging.WARNING if self._settings.listener_workflows else logging.INFO,
                "installed, but not registered in this database: nothing to do for them"
                " until scheduler.create_workflow()",
                extra={"workflows": unregistered},
            )
        elsewhere = [row.name for row in registered if row.name not in self._workflows]
        # a listener of chosen workflows leaves the others to others
        if elsewhere and not self._settings.listener_workflows:
            _log.info(
                "registered, but without a function here: their items stay Queued", extra={"workflows": elsewhere}
            )

    def _start(self) -> list[asyncio.Task[Any]]:
        """What may be stopped the moment a drain begins."""
        for lane in self.lanes.values():
            self._keep(f"claim {lane.name}", lane.claim_forever)
            self._keep(f"commit {lane.name}", lane.commit_forever)
        self._keep("pulse", self._pulse)
        self._keep("watchdog", lambda: systemd.feed_watchdog(self._is_well))
        self._keep("ready", self._say_ready)
        parts = [self._keep("clock", self._clock.run)]
        if len(self.lanes) > FEW:
            self._sweep_all = Sweep(self._database, self.lanes, self._settings.listener_poll_seconds)
            parts.append(self._keep("sweep", self._sweep_all.run))
        if self._settings.alert_webhook_url:
            parts.append(self._keep("alerts", Alerts(self._database, self._settings.alert_webhook_url).run))
        if self._settings.listener_poll_only:
            self._sweep()
        else:
            parts.append(self._keep("doorbell", self._doorbell.run))
            # whoever waits for a doorbell that cannot be reached would never begin
            asyncio.get_running_loop().call_later(self._settings.listener_poll_seconds, self._sweep_unswept)
        return parts

    def _keep(self, name: str, part: Callable[[], Coroutine[Any, Any, None]]) -> "asyncio.Task[Any]":
        """Run a part; if it breaks, say so and start it again. No part takes another down with it."""

        async def keep() -> None:
            backoff = Backoff(0.5, 30)
            while True:
                started = time.monotonic()
                try:
                    return await part()
                except (Exception, asyncio.CancelledError) as error:
                    if isinstance(error, asyncio.CancelledError) and is_cancelled():
                        raise
                    _log.exception("a part broke and is started again", extra={"part": name})
                    if time.monotonic() - started > _HEALED_SECONDS:
                        backoff.reset()
                    await asyncio.sleep(backoff.next())

        task = asyncio.create_task(keep(), name=name)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    async def _say_ready(self) -> None:
        await asyncio.gather(*(lane.swept.wait() for lane in self.lanes.values()))
        # what was made at start is here to stay: to look at all of it again took 20 ms in the middle of a run
        gc.collect()
        gc.freeze()
        self.ready.set()
        _log.info("ready", extra={"listening": self.metrics.listening})
        systemd.notify("READY=1", f"STATUS=serving {len(self.lanes)} workflows")

    async def _unless_stopped(self, work: Coroutine[Any, Any, None]) -> bool:
        task = asyncio.create_task(work)
        stop = asyncio.create_task(self._stop.wait())
        await asyncio.wait({task, stop}, return_when=asyncio.FIRST_COMPLETED)
        stop.cancel()
        if not task.done():
            task.cancel()
            return False
        task.result()
        return True

    # -- running -------------------------------------------------------------------------------------------------------

    def _rung(self, payload: str) -> None:
        """A payload is only a hint: `name` there may be work, `name!` something changed. Others are not for us."""
        lane = self.lanes.get(payload.removesuffix("!"))
        if lane is None:
            return
        if payload.endswith("!"):
            lane.urge()
        else:
            lane.ring()

    def _sweep(self) -> None:
        """Ask for work everywhere, whether or not anything rang."""
        if self._sweep_all is not None:
            self._sweep_all.ask()
            return
        for lane in self.lanes.values():
            lane.ring("start")

    def _sweep_unswept(self) -> None:
        if not all(lane.swept.is_set() for lane in self.lanes.values()):
            self._sweep()

    async def _pulse(self) -> None:
        while True:
            self.metrics.loop_turned = time.monotonic()
            for lane in self.lanes.values():
                lane.let_go()
            await asyncio.sleep(0.5)

    def _is_well(self) -> bool:
        """This runs in the event loop, so that turns. An unreachable database is no reason to be killed; a heartbeat
        thread that no longer comes round is."""
        return self._heartbeat.connecting or time.monotonic() - self._heartbeat.turned < _WELL_SECONDS

    # -- stopping ------------------------------------------------------------------------------------------------------

    async def _drain(self, parts: "list[asyncio.Task[Any]]") -> int:
        self.metrics.draining = True
        systemd.notify("STOPPING=1", "STATUS=draining")
        working = self.metrics.brief()["working"]
        _log.info("draining", extra={"working": working, "patience": self._settings.listener_drain_seconds})
        for part in parts:
            part.cancel()
        patience = asyncio.create_task(self._out_of_patience(), name="patience")
        drains = asyncio.create_task(self._drain_lanes(patience), name="drain")
        await asyncio.wait([drains, patience], return_when=asyncio.FIRST_COMPLETED)
        if not drains.done():
            await asyncio.wait({drains}, timeout=_RELEASE_SECONDS)
        if not drains.done():
            for lane in self.lanes.values():
                lane.give_up()
            await asyncio.wait({drains}, timeout=_RELEASE_SECONDS)
        patience.cancel()
        left = sum(not lane.idle or lane.given_up > 0 for lane in self.lanes.values())
        refused = drains.done() and drains.exception() is not None
        if left or refused or not drains.done():
            drains.cancel()
            _log.error("not everything could be given back; the leases run out by themselves", extra={"lanes": left})
            return TEMPORARY
        _log.info("drained")
        return DRAINED

    async def _drain_lanes(self, patience: "asyncio.Task[None]") -> None:
        await asyncio.gather(*(lane.drain(patience) for lane in self.lanes.values()))

    async def _out_of_patience(self) -> None:
        try:
            async with asyncio.timeout(self._settings.listener_drain_seconds):
                await self._hurry.wait()
        except TimeoutError:
            pass

    async def _close(self) -> None:
        await self._end_tasks()
        await self._heartbeat.stop()
        for lane in self.lanes.values():
            lane.close()
        await self._toolbox.close()
        if self._traces is not None:
            await self._traces.close()
        await self._database.close()

    async def _end_tasks(self) -> None:
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)


async def _require_engine(connection: psycopg.AsyncConnection[Any]) -> None:
    # not to_regclass(), which raises an error instead of an answer where the schema may not be used
    cursor = await connection.execute(
        "SELECT current_user, n.oid IS NOT NULL, coalesce(has_schema_privilege(n.oid, 'USAGE'), false)"
        " FROM (VALUES (1)) AS always LEFT JOIN pg_catalog.pg_namespace AS n ON n.nspname = 'scheduler'"
    )
    user, installed, allowed = await engine.one(cursor)
    if not installed:
        raise UserError("The engine is not installed in this database.", "Install it with 'scrapersky migrate'.")
    if not allowed:
        raise UserError(f"Role {user} may not use the engine.", f'As an admin: GRANT scheduler_listener TO "{user}";')
    (revision,) = await engine.one(await connection.execute("SELECT max(version_num) FROM scheduler.schema_version"))
    known = sorted(path.stem.split("_")[0] for path in share("alembic", "versions").glob("[0-9]*.py"))
    if revision is None or revision < engine.NEEDS:
        raise UserError(
            f"This database has revision {revision}, and this listener needs at least {engine.NEEDS}.",
            "Upgrade it with 'scrapersky migrate'.",
        )
    if revision not in known:
        # revisions only add, so that the version before it goes on during an upgrade and after a way back
        _log.warning("a newer version has migrated this database", extra={"revision": revision, "known": known[-1]})
    elif revision != known[-1]:
        _log.warning("this database waits for 'scrapersky migrate'", extra={"revision": revision, "known": known[-1]})


_PASSING = re.compile(r"starting up|shutting down|recovery|too many|connection slots|read-only", re.IGNORECASE)


def _refuse_if_lasting(error: Exception) -> None:
    """The server answered and said no: a wrong password or name does not get better by waiting."""
    said = str(error).strip()
    if "FATAL" in said and not _PASSING.search(said):
        raise UserError(f"The database does not let us in: {said.splitlines()[-1]}", "Check DATABASE_URL.") from error
