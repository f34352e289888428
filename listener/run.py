"""A claimed batch in memory: the run, its jobs, and how each of them came out."""

import asyncio
import time
from dataclasses import dataclass, field
from typing import Any

from listener.engine import Terms


class Job:
    """One item of a run."""

    __slots__ = ("attempt", "cancelled", "item", "key", "run", "started", "timer")

    def __init__(self, run: "Run", key: str, attempt: int, item: Any) -> None:
        self.run = run
        self.key = key
        self.attempt = attempt
        self.item = item
        self.started = 0.0
        self.timer: asyncio.Timeout | None = None
        """Runs while `work` does."""
        self.cancelled: str | None = None
        """Why its work was stopped: `lost`, `revoked` or `drain`."""

    def cancel(self, why: str) -> None:
        """Stop its work now, if it is under way; what comes of it is then not an outcome."""
        self.cancelled = why
        if self.timer is not None and not self.timer.expired():
            self.timer.reschedule(asyncio.get_running_loop().time())


@dataclass(slots=True)
class Run:
    """One claimed batch."""

    id: int
    terms: Terms
    deadline: float
    """Monotonic, so that the clocks of two machines need not agree."""
    jobs: dict[str, Job] = field(default_factory=dict)
    """What is not settled yet: waiting, being worked on, or finished and not committed."""
    claimed: int = 0
    unfinished: int = 0
    """How many are waiting or being worked on."""
    started: float = field(default_factory=time.monotonic)
    lost: bool = False
    suspect: bool = False
    """One of its items may kill this process: nothing else of the workflow is put at risk with it."""
    committing: bool = False
    succeeded: int = 0
    failed: int = 0
    rejected: int = 0
    released: int = 0
    refused: int = 0
    span: Any = None
    """Its trace, where there is one."""

    def settle(self, key: str) -> None:
        self.jobs.pop(key, None)


@dataclass(slots=True)
class Success:
    job: Job
    result: Any
    word: str | None
    milliseconds: float


@dataclass(slots=True)
class Failure:
    job: Job
    error: str
    permanent: bool
    retry_after: float | None
    milliseconds: float


@dataclass(slots=True)
class Release:
    job: Job
    reason: str
    hold: float | None = None


@dataclass(slots=True)
class Deferral:
    """It waits for its turn, with no attempt spent."""

    job: Job
    reason: str
    after: float | None


Outcome = Success | Failure | Release | Deferral
