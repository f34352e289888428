"""One lane a workflow: claims, works, hands over what came of it. Whatever breaks in here stays in here."""

import asyncio
import random
import time
from collections import deque
from contextlib import suppress
from dataclasses import dataclass
from types import CoroutineType
from typing import Any
from uuid import UUID

from listener import engine
from listener.backoff import Backoff
from listener.begun import Begun
from listener.completion import Completion
from listener.database import Database
from listener.engine import Claim
from listener.errors import UnregisteredError, UserError
from listener.faults import describe, is_cancelled, is_passing, storable, words
from listener.heartbeat import Heartbeat
from listener.items import Loader, NoLoader, UnloadableError, loader_for
from listener.logs import FieldLog, log_of
from listener.metrics import Metrics
from listener.pace import Pace
from listener.run import Deferral, Failure, Job, Outcome, Release, Run, Success
from listener.threads import Threads
from listener.tools import Toolbox, Tools
from listener.traces import Traces
from listener.workflow import Final, Hold, Reject, Retry, Workflow, is_async, refuse_coroutine

_TURN_SECONDS = 0.005
"""How long items that never wait for anything may keep the event loop from the other lanes."""
_MORE_SECONDS = 0.1
"""After a batch that was not full: by then a bell has rung if there is more. Asked at once, nothing would be found, and
the next item would wait for that answer: half of its way from the doorbell to the first line of work."""
_SETTLE_SECONDS = 2.0
"""How long cancelled work gets to clean up before its item is released over its head."""
_MOST_HUNG = 100
_TOO_MANY_HUNG = f"{_MOST_HUNG} calls of work go on past their timeout; restart this listener"


@dataclass(frozen=True)
class Surroundings:
    """What a lane needs from its listener."""

    listener: UUID
    database: Database
    heartbeat: Heartbeat
    toolbox: Toolbox
    metrics: Metrics
    poll_seconds: float
    traces: Traces | None = None


class Lane:
    """One workflow in this process."""

    def __init__(self, workflow: Workflow[Any, Any], around: Surroundings, settings: Any = None) -> None:
        self.workflow = workflow
        self.name = workflow.name
        self.poll_seconds = around.poll_seconds
        self.swept = asyncio.Event()
        """Set once it has asked the database for work for the first time."""
        self._resting = asyncio.Event()
        self._nudge = asyncio.Event()
        self._around = around
        self._database = around.database
        self._metrics = around.metrics.lane(workflow.name)
        self._settings = settings
        self._log = FieldLog(log_of(workflow.name), {"workflow": workflow.name})
        self._loader = _loader_of(workflow)
        self._threads = None if is_async(workflow.work) else Threads(workflow.name)
        self._completion = Completion(
            workflow,
            around.database,
            self._metrics,
            self._log,
            is_busy=lambda: bool(self._waiting or self._working),
            taken=self._nudge.set,
            settled=self._settled,
            pausing=around.heartbeat.soon,
        )
        self._concurrency = 1
        self._enough = 1
        """How much finished work may wait for a commit before nothing more is claimed."""
        self._pace = Pace()
        self._max_instances: int | None = None
        self._runs: dict[int, Run] = {}
        self._waiting: deque[Job] = deque()
        self._working: set[Job] = set()
        self._workers: set[asyncio.Task[None]] = set()
        self._left_behind = 0
        """Workers whose work does not end though it was told to."""
        self._newest_run = 0
        self._in_doubt = False
        """Whether a claim was sent whose answer never came: it may have brought a run."""
        self._look_again = False
        """Whether items may have been taken from its runs since the last claim."""
        self._backoff = Backoff(0.5, 60)
        self._rung: str | None = None
        self._expect_more = False
        self._may_prefetch = False
        self._more_at = 0.0
        self._futile = 0
        self._next_poll = float("inf")
        self._not_before = 0.0
        self._held_until = 0.0
        self._draining = False
        self._claiming = asyncio.Lock()
        around.metrics.gauges.append(self.measure)

    # -- what others tell it ------------------------------------------------------------------------------------------

    def ring(self, why: str = "bell") -> None:
        """There may be work."""
        self._rung = why
        self._nudge.set()

    def pass_over(self) -> None:
        """Somebody who asked for many lanes at once has seen that there is nothing to claim."""
        self._plan_poll()
        self.swept.set()

    def urge(self) -> None:
        """Something changed for this workflow: it was resumed, or items were taken from a run."""
        self._held_until = 0.0
        if self._runs:
            self._around.heartbeat.soon()
            self._look_again = True
        self.ring()

    def beat(self, beat: engine.Beat) -> None:
        """What the database said about one of its runs."""
        run = self._runs.get(beat.run)
        if run is None:
            return
        if beat.lost and not run.committing:
            self._lose(run)
            return
        for key in beat.revoked:
            job = run.jobs.get(key)
            if job is not None and job.cancelled is None:
                self._log.info("item taken away", extra={"run": run.id, "item": key})
                self._abandon(job, "revoked")

    def measure(self) -> None:
        """Bring the gauges up to date; called by whoever wants to read them, also from another thread."""
        metrics = self._metrics
        metrics.waiting = len(self._waiting)
        metrics.working = len(self._working)
        metrics.unsaved = self._completion.unsaved
        metrics.open_runs = len(self._runs)

    # -- its life ------------------------------------------------------------------------------------------------------

    async def claim_forever(self) -> None:
        """Claim whenever there is reason and room, until the lane is drained."""
        while not self._draining:
            why, wait = self._reason()
            if why is None:
                if self.idle:
                    self._resting.set()
                self._nudge.clear()
                try:
                    async with asyncio.timeout(wait):
                        await self._nudge.wait()
                except TimeoutError:
                    pass
                continue
            self._rung = None
            try:
                async with self._claiming:
                    await self._claim(why)
            except Exception as error:
                self._stumble(error)
            self.swept.set()

    async def commit_forever(self) -> None:
        await self._completion.run()

    @property
    def idle(self) -> bool:
        """Nothing is claimed, and nothing waits to be committed."""
        return not self._runs and self._completion.idle

    async def drain(self, patience: "asyncio.Future[None]") -> None:
        """Stop claiming, finish what is being worked on until `patience` is done, release the rest."""
        self._draining = True
        self._nudge.set()
        self._release_waiting("drained")
        async with self._claiming:
            pass  # a claim under way is waited for: what it brings is released at once
        while self._working and not patience.done():
            await asyncio.wait([patience, *self._workers], return_when=asyncio.FIRST_COMPLETED)
        for job in list(self._working):
            job.cancel("drain")
        if self._workers:
            await asyncio.wait(self._workers, timeout=_SETTLE_SECONDS)
        for job in list(self._working):
            # a thread, or work that swallows its cancellation: the fence keeps out whatever it still does
            self._leave_behind(job)
            self._add(Release(job, "drained"))
        with suppress(Exception):  # what a claim of unknown fate took is otherwise free when its lease ends
            await self._return_orphans()
        await self._completion.emptied()

    async def exhaust(self) -> None:
        """Ask for work now, and wait until there is no more and all of it is done with."""
        self._resting.clear()
        self.ring("start")
        await self._resting.wait()

    def give_up(self) -> None:
        self._completion.give_up()

    @property
    def given_up(self) -> int:
        return self._completion.given_up

    def close(self) -> None:
        if self._threads is not None:
            self._threads.close()

    # -- claiming ------------------------------------------------------------------------------------------------------

    def _reason(self) -> tuple[str | None, float | None]:
        """Why to claim now; or None, and for how long there will be no reason unless something happens."""
        now = time.monotonic()
        if self._not_before > now:
            return None, self._not_before - now
        if not self._has_room():
            return None, self.poll_seconds
        if self._rung == "start":
            return "start", None
        if self._next_poll <= now:
            return "poll", None
        if self._held_until > now:
            # polling goes on: a hold may be lifted, and whoever lifts it need not be heard
            return None, min(self._held_until, self._next_poll) - now
        if self._rung is not None:
            return self._rung, None
        if self._expect_more and (self._may_prefetch or self.idle):
            if self._may_prefetch or self._more_at <= now:
                return "more", None
            return None, min(self._more_at, self._next_poll) - now
        return None, self._next_poll - now if self._next_poll < float("inf") else None

    def _has_room(self) -> bool:
        """Room for another batch: only so many that every worker finds its next item, whatever the backlog."""
        if self._max_instances is not None and len(self._runs) >= self._max_instances:
            return False
        if any(run.suspect for run in self._runs.values()):
            return False
        hung = self._left_behind if self._threads is None else self._threads.busy - len(self._working)
        if hung >= _MOST_HUNG:
            self._trouble(_TOO_MANY_HUNG)
            return False
        if self._metrics.problem == _TOO_MANY_HUNG:
            self._metrics.problem = None
        if self._completion.unsaved >= self._enough:
            # save is slower than work: what is claimed now would only wait, while its lease runs
            return False
        idle_workers = self._concurrency - len(self._working)
        return len(self._waiting) < (self._stock() if self._may_prefetch else idle_workers)

    def _stock(self) -> int:
        """How few may be waiting before the next claim: as many as are done by the time it is back."""
        return max(self._concurrency, self._pace.during_a_claim)

    async def _claim(self, why: str) -> None:
        """One short transaction: Queued → Processing, and the rows as items."""
        name, listener = self.name, self._around.listener
        await self._return_orphans()
        self._metrics.asked += 1
        self._metrics.last_claim = time.time()
        asked = time.monotonic()
        self._in_doubt = True
        look_again, self._look_again = self._look_again, False
        loader = self._loader
        async with self._database.transaction(session=loader.needs_session, direct=loader.knows_table) as transaction:
            claim, loaded = await loader.claim(transaction, name, listener)
        self._in_doubt = False
        if look_again:
            # the claim may have been the one to take items from a run, unseen by a heartbeat beside it
            self._around.heartbeat.soon()
        if claim is None:
            raise UnregisteredError(name)
        self._recovered()
        self._concurrency, self._max_instances = claim.terms.concurrency, claim.terms.max_instances
        self._enough = max(claim.terms.batch_size, claim.terms.concurrency)
        if claim.run is None:
            self._nothing(why, claim)
        else:
            self._pace.claimed(asked, claim.terms.batch_size)
            self._begin(why, claim, claim.run, loaded)

    def _nothing(self, why: str, claim: Claim) -> None:
        now = time.monotonic()
        self._expect_more = self._may_prefetch = False
        self._plan_poll()
        if claim.again_in is not None:
            again = now + max(claim.again_in, 0.0)
            if claim.reason == "empty":
                self._next_poll = min(self._next_poll, again)
            else:
                # a bell changes nothing about a hold or a used-up rate
                self._held_until = again
                self._next_poll = min(self._next_poll, again)
        if why == "bell":
            # a flood of bells that lead to nothing may cost polling, never the database
            self._futile += 1
            if self._futile > 3:
                self._held_until = max(self._held_until, now + min(0.05, 0.001 * 2 ** min(self._futile, 10)))

    def _begin(self, why: str, claim: Claim, run_id: int, loaded: dict[str, Any]) -> None:
        self._futile = 0
        self._plan_poll()
        self._expect_more = True
        self._may_prefetch = len(claim.keys) >= claim.terms.batch_size
        self._more_at = time.monotonic() + _MORE_SECONDS
        run = Run(run_id, claim.terms, time.monotonic() + claim.seconds_left)
        run.claimed = run.unfinished = len(claim.keys)
        run.suspect = claim.suspect
        if self._around.traces is not None:
            run.span = self._around.traces.began(self.name, run)
        self._runs[run_id] = run
        self._newest_run = max(self._newest_run, run_id)
        self._metrics.found(why, len(claim.keys))
        self._around.heartbeat.add(run_id, claim.terms.lease, self)
        unfit: list[Outcome] = []
        for key, attempt in zip(claim.keys, claim.attempts, strict=True):
            item = loaded.get(key, _GONE)
            job = run.jobs[key] = Job(run, key, attempt, item)
            if item is _GONE:
                unfit.append(Failure(job, "the row is not there, or hidden from the listener", False, None, 0.0))
            elif isinstance(item, UnloadableError):
                unfit.append(Failure(job, str(item), True, None, 0.0))
            else:
                self._waiting.append(job)
        if self._draining:
            self._release_waiting("drained")
        else:
            self._employ()
        for outcome in unfit:
            self._add(outcome)

    def _plan_poll(self) -> None:
        self._next_poll = time.monotonic() + self.poll_seconds * random.uniform(0.8, 1.0)  # noqa: S311 - spreads load

    async def _return_orphans(self) -> None:
        """A claim that failed was perhaps committed, perhaps not: given back as soon as the database answers."""
        if self._in_doubt:
            async with self._database.transaction() as transaction:
                await engine.release_after(transaction.connection, self.name, self._around.listener, self._newest_run)
            self._in_doubt = False

    def _stumble(self, error: Exception) -> None:
        """The lane cannot claim: say so once, wait longer each time, and a bell does not shorten it."""
        self._metrics.registered = not isinstance(error, UnregisteredError)
        self._trouble(describe(error) if not isinstance(error, UserError) else str(error), passing=is_passing(error))
        delay = self._backoff.next()
        if is_passing(error) or not self._metrics.registered:
            # a server that is back, or a workflow just registered, must not be kept waiting longer than a lost
            # notification would
            delay = min(delay, self.poll_seconds)
        self._not_before = time.monotonic() + delay
        self._next_poll = min(self._next_poll, self._not_before)
        self._expect_more = True

    def _trouble(self, problem: str, *, passing: bool = False) -> None:
        if self._metrics.problem != problem:
            self._metrics.problem = problem
            level = 20 if not self._metrics.registered else 30 if passing else 40
            self._log.log(level, "this workflow cannot run here", extra={"error": problem})

    def _recovered(self) -> None:
        if self._metrics.problem is not None and self._backoff.failures:
            self._log.info("runs again", extra={"failures": self._backoff.failures})
            self._metrics.problem = None
        self._metrics.registered = True
        self._backoff.reset()

    # -- working -------------------------------------------------------------------------------------------------------

    def _employ(self) -> None:
        """As many workers as there are items waiting, at most `concurrency`."""
        for _ in range(min(self._concurrency - self._at_work, len(self._waiting))):
            worker = asyncio.create_task(self._work(), name=f"work {self.name}")
            self._workers.add(worker)
            worker.add_done_callback(self._worker_left)

    def _worker_left(self, worker: "asyncio.Task[None]") -> None:
        self._workers.discard(worker)
        if not worker.cancelled() and (error := worker.exception()) is not None:
            self._log.error("a worker broke", exc_info=error)
        if self._waiting and not self._draining:
            self._employ()

    async def _work(self) -> None:
        """Items one after the other, until none waits."""
        turned = time.monotonic()
        traces = self._around.traces
        while self._waiting and self._at_work <= self._concurrency:
            job = self._waiting.popleft()
            self._working.add(job)
            outcome = await (self._outcome(job) if traces is None else traces.item(self.name, job, self._outcome(job)))
            if job not in self._working:
                self._left_behind -= 1
                continue  # given up meanwhile
            self._working.discard(job)
            if outcome is not None:
                self._add(outcome)
            else:
                self._forget(job)
            self._pace.done += 1
            if self._may_prefetch and len(self._waiting) < self._stock():
                self._nudge.set()
            now = time.monotonic()
            if now - turned > _TURN_SECONDS:
                await asyncio.sleep(0)
                turned = time.monotonic()
        if not self._waiting and not self._working:
            self._pace.idle()
        self._nudge.set()

    async def _outcome(self, job: Job) -> Outcome | None:
        """Do the work and say how it went; None if it is no longer this lane's business."""
        timeout = job.run.terms.timeout
        if job.run.deadline < time.monotonic():
            # it would be rescued while being worked on
            return Release(job, "no time left before the deadline of its run")
        tools = Tools(self._around.toolbox, self.name, self._settings, job.key, job.attempt)
        job.started = time.monotonic()
        try:
            if self._threads is None:
                begun = Begun(self.workflow.work(job.item, tools))
                if begun.waits:
                    async with asyncio.timeout(timeout) as job.timer:
                        await begun
                result = begun.result
                if type(result) is CoroutineType:
                    refuse_coroutine("work", result, awaited=True)
            else:
                async with asyncio.timeout(timeout) as job.timer:
                    result = await self._threads.call(self.workflow.work, job.item, tools)
                refuse_coroutine("work", result)
        except Retry as error:
            if not error.spend:
                return self._deferral(job, error)
            return self._failure(job, error, retry_after=error.after)
        except Reject as error:
            return self._failure(job, error, permanent=True)
        except Hold as error:
            self._hold(error)
            return Release(job, str(error), error.after)
        except asyncio.CancelledError:
            if is_cancelled():
                raise
            # raised by the work itself, such as by a task group of its own
            return self._failure(job, RuntimeError("work was cancelled from within"))
        except TimeoutError as error:
            if job.timer is None or not job.timer.expired():
                return self._failure(job, error)
            if job.cancelled is not None:
                return Release(job, "drained") if job.cancelled == "drain" else None
            self._metrics.timeouts += 1
            return self._failure(job, TimeoutError(f"not done after {timeout:g} s"))
        except GeneratorExit:
            raise
        except BaseException as error:
            return self._failure(job, error)
        finally:
            job.timer = None
        if job.cancelled is not None and job.cancelled != "drain":
            return None
        milliseconds = self._took(job)
        if isinstance(result, Final):
            return Success(job, result.result, result.word, milliseconds)
        return Success(job, result, None, milliseconds)

    def _failure(
        self, job: Job, error: BaseException, *, permanent: bool = False, retry_after: float | None = None
    ) -> Failure | Release | None:
        if job.cancelled is not None and job.cancelled != "drain":
            return None
        if isinstance(error, Retry | Reject):
            text, unexpected = storable(words(error)), None
        elif job.cancelled is not None:
            # some code answers a cancellation with an error of its own; it is not the item's fault
            return Release(job, "drained")
        else:
            text, unexpected = storable(f"{type(error).__name__}: {words(error)}".rstrip(": ")), error
        milliseconds = self._took(job)
        self._log.warning(
            "item rejected" if permanent else "item failed",
            extra={
                "run": job.run.id,
                "table": job.run.terms.relation,
                "item": job.key,
                "attempt": job.attempt,
                "error": text,
                "error_class": type(error).__name__,
                "duration_ms": round(milliseconds, 1),
            },
            exc_info=unexpected if unexpected is not None and not isinstance(unexpected, TimeoutError) else None,
        )
        if self._around.traces is not None:
            self._around.traces.failed(error, text)
        return Failure(job, text, permanent, retry_after, milliseconds)

    def _deferral(self, job: Job, error: Retry) -> Deferral | None:
        if job.cancelled is not None and job.cancelled != "drain":
            return None
        text = storable(words(error))
        self._log.info(
            "item put off", extra={"run": job.run.id, "item": job.key, "reason": text, "seconds": error.after}
        )
        return Deferral(job, text, error.after)

    def _took(self, job: Job) -> float:
        milliseconds = (time.monotonic() - job.started) * 1000
        self._metrics.took(milliseconds)
        return milliseconds

    def _hold(self, hold: Hold) -> None:
        """What every item needs is unavailable, so those that wait here need not find out one by one."""
        self._log.warning("held", extra={"reason": str(hold), "seconds": hold.after})
        self._held_until = max(self._held_until, time.monotonic() + hold.after)
        self._release_waiting(str(hold), hold.after)

    @property
    def _at_work(self) -> int:
        return len(self._workers) - self._left_behind

    # -- letting go ----------------------------------------------------------------------------------------------------

    def let_go(self) -> None:
        """Leave work behind that was cancelled and goes on, so that it takes no more from its lane than its item."""
        now = asyncio.get_running_loop().time()
        for job in list(self._working):
            timer = job.timer
            if timer is None or not timer.expired() or now - (timer.when() or now) < _SETTLE_SECONDS:
                continue
            if job.cancelled == "drain":
                continue  # given back by drain()
            self._log.error("work goes on though it was cancelled", extra={"run": job.run.id, "item": job.key})
            self._leave_behind(job)
            if job.cancelled is None:
                self._metrics.timeouts += 1
            text = f"TimeoutError: not done after {job.run.terms.timeout:g} s, and it does not let itself be stopped"
            self._add(Failure(job, text, False, None, self._took(job)))
            self._employ()

    def _leave_behind(self, job: Job) -> None:
        self._working.discard(job)
        self._left_behind += 1

    def _release_waiting(self, reason: str, hold: float | None = None) -> None:
        while self._waiting:
            self._add(Release(self._waiting.popleft(), reason, hold))

    def _add(self, outcome: Outcome) -> None:
        if outcome.job.cancelled in ("lost", "revoked"):
            self._forget(outcome.job)
        else:
            self._completion.add(outcome)

    def _lose(self, run: Run) -> None:
        """The lease is gone: another listener may be at it, so this work stops."""
        run.lost = True
        self._metrics.lost_runs += 1
        self._log.warning("run lost: its lease ran out or it was closed", extra={"run": run.id, "items": len(run.jobs)})
        for job in list(run.jobs.values()):
            self._abandon(job, "lost")
        # work that does not let itself be stopped must not keep the lane from its next run
        self._close(run)

    def _abandon(self, job: Job, why: str) -> None:
        job.cancel(why)
        if job in self._working:
            return  # its worker notices
        try:
            self._waiting.remove(job)
        except ValueError:
            return  # finished: the database will refuse it
        self._forget(job)

    def _forget(self, job: Job) -> None:
        job.run.unfinished -= 1
        job.run.settle(job.key)
        self._settled(job.run)

    def _settled(self, run: Run) -> None:
        """Some of its items are done with; after the last, the run is over."""
        if not run.jobs:
            self._close(run)
        self._nudge.set()

    def _close(self, run: Run) -> None:
        if self._runs.pop(run.id, None) is None:
            return
        self._around.heartbeat.drop(run.id)
        if self._around.traces is not None:
            self._around.traces.finished(run)
        if run.failed:
            # nobody rings for a retry: the next claim says when it is due
            self._expect_more = True
        unusual = {name: count for name in ("rejected", "released", "refused") if (count := getattr(run, name))}
        self._log.info(
            "run finished",
            extra={
                "run": run.id,
                "found": run.claimed,
                "succeeded": run.succeeded,
                "failed": run.failed + run.rejected,
                **unusual,
                "seconds": round(time.monotonic() - run.started, 3),
            },
        )


def _loader_of(workflow: Workflow[Any, Any]) -> Loader:
    try:
        return loader_for(workflow.item)
    except UserError as error:
        return NoLoader(error)


_GONE = object()
