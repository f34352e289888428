"""Counters of this process in one place. `snapshot()` is what a health check, a page or a heartbeat shows."""

import math
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from listener.engine import BUCKETS


def bucket(milliseconds: float) -> int:
    """The same as scheduler.duration_bucket(), counted from 0."""
    return 0 if milliseconds < 1 else min(BUCKETS - 1, 1 + math.floor(2 * math.log2(milliseconds)))


@dataclass(slots=True)
class LaneMetrics:
    """One workflow in this process."""

    asked: int = 0
    """How often it asked the database for work."""
    claims: dict[str, int] = field(default_factory=dict)
    """Claims that found work, by what led to them: bell, poll, more, again or start."""
    items: dict[str, int] = field(default_factory=dict)
    """The items those claims brought."""
    claimed: int = 0
    succeeded: int = 0
    failed: int = 0
    rejected: int = 0
    released: int = 0
    dead: int = 0
    refused: int = 0
    """Results the database did not take: the lease was gone, or a person had changed the row."""
    lost_runs: int = 0
    timeouts: int = 0
    commits: int = 0
    waiting: int = 0
    """Claimed, not yet begun."""
    working: int = 0
    unsaved: int = 0
    """Finished, not yet committed."""
    open_runs: int = 0
    last_claim: float | None = None
    """When it last asked for work, whether or not there was any (Unix time)."""
    problem: str | None = None
    """What keeps this lane from working, in words."""
    registered: bool = True
    """Whether the database knows this workflow; one that it does not know is nobody's trouble."""
    durations: list[int] = field(default_factory=lambda: [0] * BUCKETS)
    busy_seconds: float = 0.0
    """The sum of those durations."""

    def took(self, milliseconds: float) -> None:
        self.durations[bucket(milliseconds)] += 1
        self.busy_seconds += milliseconds / 1000

    def found(self, why: str, items: int) -> None:
        self.claims[why] = self.claims.get(why, 0) + 1
        self.items[why] = self.items.get(why, 0) + items
        self.claimed += items


@dataclass(slots=True)
class Metrics:
    """The whole process."""

    started: float = field(default_factory=time.time)
    listening: bool = False
    """Whether the doorbell can ring."""
    notifications: int = 0
    last_notification: float | None = None
    reconnects: int = 0
    """How often the LISTEN connection had to be made anew."""
    heartbeats: int = 0
    last_heartbeat: float | None = None
    heartbeat_failures: int = 0
    ticks: int = 0
    dispatched: int = 0
    """Dispatches this listener made in place of pg_cron."""
    loop_turned: float = field(default_factory=time.monotonic)
    """When the event loop last turned (monotonic)."""
    draining: bool = False
    lanes: dict[str, LaneMetrics] = field(default_factory=dict)
    broken: dict[str, str] = field(default_factory=dict)
    """What was found installed and cannot be loaded, and why."""
    gauges: list[Callable[[], None]] = field(default_factory=list)
    """Called before reading, so that counting costs nothing while nobody looks."""

    def lane(self, workflow: str) -> LaneMetrics:
        return self.lanes.setdefault(workflow, LaneMetrics())

    def snapshot(self) -> dict[str, Any]:
        """Plain values, safe to keep: nothing in it changes afterwards."""
        self._gauge()
        shown = asdict(replace(self, gauges=[]))
        del shown["gauges"]
        shown["loop_lag_seconds"] = round(time.monotonic() - shown.pop("loop_turned"), 3)
        return shown

    def problems(self) -> dict[str, str]:
        """Of the lanes that cannot work, what keeps them from it."""
        return {name: lane.problem for name, lane in self.lanes.items() if lane.problem}

    def brief(self) -> dict[str, Any]:
        """What the database keeps about this listener with each heartbeat."""
        self._gauge()
        problems = self.broken | {name: text for name, text in self.problems().items() if self.lanes[name].registered}
        return {
            "listening": self.listening,
            "draining": self.draining,
            "working": sum(lane.working for lane in self.lanes.values()),
            "waiting": sum(lane.waiting for lane in self.lanes.values()),
            **({"problems": problems} if problems else {}),
        }

    def _gauge(self) -> None:
        for measure in self.gauges:
            measure()
