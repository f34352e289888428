"""Waiting longer after each failure, never all at the same moment."""

import random


class Backoff:
    """Delays that double from `first` to `most`, each drawn from the upper half of its range."""

    def __init__(self, first: float, most: float) -> None:
        self._first = first
        self._most = most
        self.failures = 0

    def next(self) -> float:
        """The delay after one more failure."""
        ceiling: float = min(self._most, self._first * 2 ** min(self.failures, 30))
        self.failures += 1
        return ceiling * random.uniform(0.5, 1)  # noqa: S311 - spreads load, guards nothing

    def reset(self) -> None:
        self.failures = 0
