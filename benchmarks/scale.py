"""How much is measured."""

from collections.abc import Callable
from dataclasses import dataclass

Say = Callable[[str], None]
Figures = dict[str, float | int]


@dataclass(frozen=True)
class Scale:
    finished: int
    rounds: int
    pickups: int
    """Items picked up one at a time."""
    drained: int
    """Items in one drain by a listener."""
    drains: int
    many: int
    """Items for the look at a listener's memory."""
    long_drain: int
    enqueue_seconds: int
    """How long each of the measurements of single enqueues lasts."""
    lease_seconds: int
    """Of the run whose listener is killed."""


FULL = Scale(
    finished=10_000_000,
    rounds=100,
    pickups=1000,
    drained=20_000,
    drains=5,
    many=1_000_000,
    long_drain=200_000,
    enqueue_seconds=3,
    lease_seconds=5,
)
QUICK = Scale(
    finished=20_000,
    rounds=3,
    pickups=10,
    drained=2_000,
    drains=1,
    many=5_000,
    long_drain=3_000,
    enqueue_seconds=1,
    lease_seconds=1,
)
