"""The one place where a test may pause: waiting for something to become true, never for time to pass."""

import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")

_PAUSE_SECONDS = 0.02
PATIENCE = 60.0
"""For things that take milliseconds, on a machine that may be busy with anything."""


def wait_until(predicate: Callable[[], T], deadline: float = PATIENCE, what: str = "") -> T:
    """Poll until the predicate is true and return what it returned; fail after `deadline` seconds."""
    end = time.monotonic() + deadline
    while True:
        # After the deadline comes one last look: on a busy machine the pause itself may have been long.
        is_last = time.monotonic() >= end
        if result := predicate():
            return result
        if is_last:
            name = what or getattr(predicate, "__name__", "it")
            raise AssertionError(f"waited {deadline} s in vain for {name}; last seen: {result!r}")
        time.sleep(_PAUSE_SECONDS)
