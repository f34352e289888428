"""One read for all who watch: a hundred open pages ask the database as often as one does."""

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import TypeVar, cast

T = TypeVar("T")


class Shared:
    """What was read a moment ago, and reads under way that others can wait for as well."""

    def __init__(self) -> None:
        self._known: dict[str, tuple[float, object]] = {}
        self._locks: dict[str, asyncio.Lock] = {}

    async def get(self, name: str, seconds: float, read: Callable[[], Awaitable[T]]) -> T:
        """What `read` gave at most so many seconds ago."""
        async with self._locks.setdefault(name, asyncio.Lock()):
            until, value = self._known.get(name, (0.0, None))
            if until < time.monotonic():
                value = await read()
                self._known[name] = (time.monotonic() + seconds, value)
            return cast("T", value)

    def forget(self) -> None:
        """Something was changed: look again."""
        self._known.clear()
