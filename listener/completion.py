"""Outcomes on their way into the database: gathered, then committed in batches together with what `save` writes.

An idle lane commits at once; a busy one lets outcomes gather for a moment, so that a thousand items cost one commit.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from listener import engine
from listener.backoff import Backoff
from listener.database import Database, Transaction
from listener.faults import (
    describe,
    driver_error,
    is_bad_data,
    is_cancelled,
    is_outage,
    is_passing,
    is_structural,
    where,
    words,
)
from listener.metrics import LaneMetrics, bucket
from listener.run import Deferral, Failure, Outcome, Release, Run, Success
from listener.workflow import Done, Reject, Retry, Workflow, is_async, refuse_coroutine

LINGER_SECONDS = 0.05
"""How long an outcome may wait for others while the lane is busy."""
LARGEST_COMMIT = 1000
MOST_COMMITS = 2
"""At once, of different runs: while one waits for the disk, the server works on the other."""
_WORTH_ITS_OWN = 100
"""Fewer outcomes wait for the commit under way to end, and go together with those that come meanwhile."""
_PATIENCE = 3
"""How often a whole batch is tried again after a passing error of the server before it is split."""
_LONGEST_HOLD = 86400.0
_LONGEST_PAUSE = 2.0
"""Between two attempts to commit: finished work waits for nothing but the server."""


class SaveError(Exception):
    """`save` failed, not the engine: `cause` says how."""

    def __init__(self, cause: Exception) -> None:
        super().__init__(describe(cause))
        self.cause = cause


class Completion:
    """One lane's way into the database."""

    def __init__(
        self,
        workflow: Workflow[Any, Any],
        database: Database,
        metrics: LaneMetrics,
        log: logging.LoggerAdapter[logging.Logger],
        *,
        is_busy: Callable[[], bool],
        taken: Callable[[], None],
        settled: Callable[[Run], None],
        pausing: Callable[[], None],
    ) -> None:
        self._database = database
        self._metrics = metrics
        self._log = log
        self._is_busy = is_busy
        self._taken = taken
        self._settled = settled
        self._pausing = pausing
        self._own_save = workflow.save
        self._save = _saver(workflow)
        self._outbox: list[Outcome] = []
        self._now = asyncio.Event()
        self._under_way: set[int] = set()
        """The runs that are being committed to."""
        self._handing_over = False
        """Whether outcomes have left the outbox whose commit is not under way yet."""
        self._ended = asyncio.Event()
        self._empty = asyncio.Event()
        self._empty.set()
        self._timer: asyncio.TimerHandle | None = None
        self._all = False
        """Whether outcomes of runs that go on are to be committed, too."""
        self._giving_up = False
        self.given_up = 0
        """Outcomes that could not be recorded before the process had to end."""

    @property
    def unsaved(self) -> int:
        """How many wait for the commit that is under way to end."""
        return len(self._outbox)

    @property
    def idle(self) -> bool:
        return self._empty.is_set()

    def add(self, outcome: Outcome) -> None:
        run = outcome.job.run
        run.unfinished -= 1
        self._outbox.append(outcome)
        self._empty.clear()
        # twice: a finished run may wait for its turn beside one that goes on
        if len(self._outbox) >= 2 * LARGEST_COMMIT or not self._is_busy():
            self._commit_all()
        elif not run.unfinished:
            # each run has a commit of its own, so a finished one gains nothing by waiting for others
            self._now.set()
        elif self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(LINGER_SECONDS, self._commit_all)

    def give_up(self) -> None:
        """No more patience with an unreachable database: the process is about to end."""
        self._giving_up = True
        self._commit_all()

    def _commit_all(self) -> None:
        """What there is, also of runs that go on."""
        self._all = True
        self._now.set()

    async def emptied(self) -> None:
        """Wait until everything added so far has been settled."""
        await self._empty.wait()

    async def run(self) -> None:
        """Commit for as long as the lane lives."""
        async with asyncio.TaskGroup() as group:
            while True:
                await self._now.wait()
                while len(self._under_way) >= (MOST_COMMITS if len(self._outbox) >= _WORTH_ITS_OWN else 1):
                    await self._one_ends()
                by_run = self._take()
                self._taken()
                self._handing_over = True
                for run, outcomes in by_run.items():
                    # those of one run follow each other: the fence would make them wait anyway
                    while len(self._under_way) >= MOST_COMMITS or run in self._under_way:
                        await self._one_ends()
                    self._under_way.add(run)
                    group.create_task(self._settle_safely(outcomes))
                self._handing_over = False

    def _take(self) -> dict[int, list[Outcome]]:
        """What is to be committed now, by run. One that goes on is left alone if it may: naming the rest of its items
        once more costs as much as they do."""
        self._now.clear()
        batch = [outcome for outcome in self._outbox if self._all or not outcome.job.run.unfinished]
        self._outbox = [] if self._all else [outcome for outcome in self._outbox if outcome.job.run.unfinished]
        self._all = False
        if self._timer is not None and not self._outbox:
            self._timer.cancel()
            self._timer = None
        by_run: dict[int, list[Outcome]] = {}
        for outcome in batch:
            by_run.setdefault(outcome.job.run.id, []).append(outcome)
        return by_run

    async def _one_ends(self) -> None:
        self._ended.clear()
        await self._ended.wait()

    async def _settle_safely(self, outcomes: list[Outcome]) -> None:
        run = outcomes[0].job.run
        try:
            await self._settle(run, outcomes)
        except Exception:
            # a fault of ours; the outcomes of the other runs must not go with it
            self._log.exception("results lost; their items are tried again", extra={"run": run.id})
        finally:
            self._under_way.remove(run.id)
            self._ended.set()
            if not (self._outbox or self._under_way or self._handing_over):
                self._empty.set()

    async def _settle(self, run: Run, outcomes: list[Outcome]) -> None:
        """Commit what one run has to say, whatever it takes; afterwards these items are no longer this lane's."""
        run.committing = True
        try:
            for start in range(0, len(outcomes), LARGEST_COMMIT):
                await self._commit(run, outcomes[start : start + LARGEST_COMMIT])
        finally:
            run.committing = False
            for outcome in outcomes:
                run.settle(outcome.job.key)
            self._settled(run)

    async def _commit(self, run: Run, outcomes: list[Outcome]) -> None:
        backoff = Backoff(0.1, _LONGEST_PAUSE)
        while not run.lost:
            try:
                await self._write(run, outcomes)
            except Exception as error:
                cause = error.cause if isinstance(error, SaveError) else error
                # a file that save does not find is an OSError too, and no outage of the database
                is_ours = not isinstance(error, SaveError) or driver_error(cause) is not None
                if is_ours and (is_outage(cause) or (is_passing(cause) and backoff.failures < _PATIENCE)):
                    if self._giving_up:
                        self.given_up += len(outcomes)
                        break
                    self._complain("cannot commit, trying again", cause)
                    # while a commit waits for a lock its run cannot be given a longer lease; now it can
                    self._pausing()
                    await asyncio.sleep(backoff.next())
                elif is_structural(cause) and not isinstance(error, SaveError):
                    # the engine itself cannot work: a dropped column, a revoked right. Splitting would not help.
                    if self._giving_up:
                        self.given_up += len(outcomes)
                        break
                    self._complain("the engine refuses to record results, trying again", cause)
                    # while a commit waits for a lock its run cannot be given a longer lease; now it can
                    self._pausing()
                    await asyncio.sleep(backoff.next())
                else:
                    await self._commit_apart(run, outcomes, cause)
                    return
            else:
                self._metrics.problem = None
                return
        self._drop(run, outcomes)

    async def _commit_apart(self, run: Run, outcomes: list[Outcome], cause: Exception) -> None:
        """The batch cannot be committed as it is: find the items to blame, so that their neighbours are not."""
        if is_structural(cause):
            # every one of them would fail in the same way
            await self._commit(run, [_failed(o, cause) if isinstance(o, Success) else o for o in outcomes])
        elif len(outcomes) > 1:
            middle = len(outcomes) // 2
            await self._commit(run, outcomes[:middle])
            await self._commit(run, outcomes[middle:])
        elif isinstance(outcomes[0], Success):
            at = where(cause, self._own_save)
            self._log.warning("save failed", extra={"item": outcomes[0].job.key, "error": describe(cause), "at": at})
            await self._commit(run, [_failed(outcomes[0], cause)])
        else:
            # not even its failure can be written; without a heartbeat the database rescues what is left of the run
            self._log.error("cannot record an item", extra={"item": outcomes[0].job.key, "error": describe(cause)})
            run.lost = True
            self._drop(run, outcomes)

    async def _write(self, run: Run, outcomes: list[Outcome]) -> None:
        """One transaction: the fence first, then the failures and releases, then what `save` writes."""
        successes = [outcome for outcome in outcomes if isinstance(outcome, Success)]
        failures = [outcome for outcome in outcomes if isinstance(outcome, Failure)]
        releases = [outcome for outcome in outcomes if isinstance(outcome, Release)]
        deferrals = [outcome for outcome in outcomes if isinstance(outcome, Deferral)]
        refused: set[str] = set()
        accepted = released = 0
        dead: list[str] = []
        saves = bool(self._save and successes)
        plain = (
            not saves
            and len(successes) in (0, len(outcomes))
            and len(failures) in (0, len(outcomes))
            and not (releases or deferrals)
        )
        async with self._database.transaction(session=saves, at_once=plain) as transaction:
            connection = transaction.connection
            if successes:
                # a whole run that saves nothing need not name its items: that many keys cost more than the rest
                accepted, keys = await _succeed(
                    connection, run, successes, all_of_it=plain and len(outcomes) == run.claimed
                )
                refused.update(keys)
            if failures:
                keys, dead = await _fail(connection, run, failures)
                refused.update(keys)
            if deferrals:
                released, keys = await _defer(connection, run, deferrals)
                refused.update(keys)
            for reason, hold in {(outcome.reason, outcome.hold): None for outcome in releases}:
                mine = [o.job.key for o in releases if (o.reason, o.hold) == (reason, hold)]
                released += await engine.release(connection, run.id, mine, reason, hold and min(hold, _LONGEST_HOLD))
            if self._save and accepted:
                await self._save(transaction, [_done(o) for o in successes if o.job.key not in refused])
        self._count(run, accepted, [o for o in failures if o.job.key not in refused], released, len(dead))
        missed = len(outcomes) - accepted - released - sum(o.job.key not in refused for o in failures)
        if missed:
            run.refused += missed
            self._metrics.refused += missed
            self._log.warning(
                "results refused: the items are no longer this run's", extra={"run": run.id, "items": missed}
            )

    def _count(self, run: Run, accepted: int, failures: list[Failure], released: int, dead: int) -> None:
        rejected = sum(failure.permanent for failure in failures)
        run.succeeded += accepted
        run.failed += len(failures) - rejected
        run.rejected += rejected
        run.released += released
        metrics = self._metrics
        metrics.commits += 1
        metrics.succeeded += accepted
        metrics.failed += len(failures) - rejected
        metrics.rejected += rejected
        metrics.released += released
        metrics.dead += dead

    def _complain(self, what: str, error: Exception) -> None:
        problem = describe(error)
        if self._metrics.problem != problem:
            self._metrics.problem = problem
            self._log.error(what, extra={"error": problem})

    def _drop(self, run: Run, outcomes: Sequence[Outcome]) -> None:
        run.refused += len(outcomes)
        self._metrics.refused += len(outcomes)


async def _succeed(
    connection: engine.AsyncConnection, run: Run, successes: list[Success], *, all_of_it: bool
) -> tuple[int, list[str]]:
    words = [outcome.word for outcome in successes]
    with_words = any(words)
    return await engine.succeed(
        connection,
        run.id,
        None if all_of_it and not with_words else [outcome.job.key for outcome in successes],
        words if with_words else None,
        histogram(successes),
    )


async def _fail(connection: engine.AsyncConnection, run: Run, failures: list[Failure]) -> tuple[list[str], list[str]]:
    return await engine.fail(
        connection,
        run.id,
        [outcome.job.key for outcome in failures],
        [outcome.error for outcome in failures],
        [outcome.permanent for outcome in failures],
        [outcome.retry_after for outcome in failures],
        histogram(failures),
    )


async def _defer(connection: engine.AsyncConnection, run: Run, deferrals: list[Deferral]) -> tuple[int, list[str]]:
    return await engine.defer(
        connection,
        run.id,
        [outcome.job.key for outcome in deferrals],
        [outcome.reason for outcome in deferrals],
        [outcome.after for outcome in deferrals],
    )


def histogram(outcomes: Sequence[Success | Failure]) -> list[int]:
    counts = [0] * engine.BUCKETS
    for outcome in outcomes:
        counts[bucket(outcome.milliseconds)] += 1
    return counts


def _done(outcome: Success) -> Done[Any, Any]:
    job = outcome.job
    return Done(job.item, outcome.result, job.key, job.attempt, outcome.word)


def _failed(outcome: Success, cause: Exception) -> Failure:
    """What becomes of an item whose result cannot be saved."""
    return Failure(
        outcome.job,
        describe(cause),
        permanent=isinstance(cause, Reject) or is_bad_data(cause),
        retry_after=cause.after if isinstance(cause, Retry) else None,
        milliseconds=outcome.milliseconds,
    )


Save = Callable[[Transaction, list[Done[Any, Any]]], Awaitable[None]]


def _saver(workflow: Workflow[Any, Any]) -> Save | None:
    """The workflow's `save`, async or not, with its own errors marked as such."""
    save = workflow.save
    if save is None:
        return None
    awaitable = is_async(save)

    async def run(transaction: Transaction, results: list[Done[Any, Any]]) -> None:
        try:
            if awaitable:
                await save(transaction.session, results)
            else:
                refuse_coroutine("save", await transaction.session.run_sync(save, results))
            await transaction.session.flush()
        except Exception as error:
            raise SaveError(error) from error
        except BaseException as error:
            if isinstance(error, GeneratorExit) or is_cancelled():
                raise
            # SystemExit would end the listener, and a cancellation from within the task that commits
            raise SaveError(RuntimeError(f"save raised {type(error).__name__}: {words(error)}".rstrip(": "))) from error

    return run
