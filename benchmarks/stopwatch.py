"""Timing two things side by side, so that a slow moment of the machine falls on both."""

import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass

Lap = Callable[[], float]
"""Does the work once and returns the seconds that count."""


@dataclass(frozen=True)
class Times:
    seconds: list[float]

    @property
    def median(self) -> float:
        return statistics.median(self.seconds)

    @property
    def ms(self) -> float:
        return self.median * 1000


def timed(work: Callable[[], object]) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def alternate(*laps: Lap, rounds: int, warmup: int = 3) -> tuple[Times, ...]:
    """A B A B …, after a few rounds that do not count."""
    rows = [[lap() for lap in laps] for _ in range(warmup + rounds)][warmup:]
    return tuple(Times(list(column)) for column in zip(*rows, strict=True))
