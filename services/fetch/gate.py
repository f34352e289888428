"""Each host's turns: how many at once, how long between them, and a rest for one that asks for it or is down."""

from asyncio import Semaphore
from collections import OrderedDict
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from listener import Clock
from services.fetch.errors import BusyError, TurnError

_MOST_HOSTS = 10_000
_FAILURES = 3
"""So many connections in a row that came to nothing, and the host is left alone for a while."""
_REST_SECONDS = 60.0
_LONGEST_REST = 3600.0


class Gate:
    """One host."""

    def __init__(self, host: str, concurrency: int, clock: Clock) -> None:
        self._host = host
        self._clock = clock
        self._slots = Semaphore(concurrency)
        self._last = float("-inf")
        self._waiting = 0
        self._booked = float("-inf")
        self._rest_until = 0.0
        self._why = ""
        self._failures = 0
        self._users = 0

    @asynccontextmanager
    async def turn(self, seconds: float, patience: float) -> AsyncIterator[None]:
        """Wait for a turn, `seconds` after the one before; TurnError if it is further away than `patience`.

        With 0 it does not count as a visit: robots.txt, or a redirect within the host.
        """
        self._check_rest()
        now = self._clock.monotonic()
        wait = max(self._last + seconds - now, 0.0) + self._waiting * seconds
        if wait > patience:
            # each is sent to a time of its own, or all would come back at once and find it busy again
            self._booked = max(self._booked + seconds, now + wait)
            words = f"{self._host} has its share of requests for the moment"
            raise TurnError(words, retry_after=self._booked - now)
        self._users += 1
        try:
            async with self._in_time(seconds):
                self._check_rest()
                yield
        finally:
            self._users -= 1

    @asynccontextmanager
    async def _in_time(self, seconds: float) -> AsyncIterator[None]:
        self._waiting += 1
        try:
            await self._slots.acquire()
        finally:
            self._waiting -= 1
        try:
            if seconds:
                now = self._clock.monotonic()
                self._last = max(now, self._last + seconds)
                if self._last > now:
                    await self._clock.sleep(self._last - now)
            yield
        finally:
            self._slots.release()

    def _check_rest(self) -> None:
        left = self._rest_until - self._clock.monotonic()
        if left > 0:
            raise BusyError(f"{self._host} {self._why}", retry_after=left)

    def answered(self) -> None:
        self._failures = 0

    def failed(self, why: str) -> None:
        """It could not be reached at all."""
        self._failures += 1
        if self._failures >= _FAILURES:
            self.rest(_REST_SECONDS, f"is left alone for a while: {why}")

    def rest(self, seconds: float, why: str) -> None:
        until = self._clock.monotonic() + min(seconds, _LONGEST_REST)
        if until > self._rest_until:
            self._rest_until, self._why = until, why

    def is_idle(self) -> bool:
        """Nothing would be lost by forgetting it."""
        now = self._clock.monotonic()
        return not self._users and max(self._last + _REST_SECONDS, self._booked, self._rest_until) <= now


class Gates:
    """The gates of all hosts seen lately."""

    def __init__(self, concurrency: int, clock: Clock) -> None:
        self._concurrency = concurrency
        self._clock = clock
        self._gates: OrderedDict[str, Gate] = OrderedDict()

    def of(self, host: str) -> Gate:
        gate = self._gates.get(host)
        if gate is None:
            self._forget()
            gate = self._gates[host] = Gate(host, self._concurrency, self._clock)
        self._gates.move_to_end(host)
        return gate

    def _forget(self) -> None:
        """Drop those not seen for longest; never one in use, or its limits would start anew."""
        for host in [host for host, _ in zip(self._gates, range(100), strict=False)]:
            if len(self._gates) < _MOST_HOSTS:
                return
            if self._gates[host].is_idle():
                del self._gates[host]
