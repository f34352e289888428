"""What `work` is given beside its item: the HTTP client, settings, the clock, a logger, and which attempt this is."""

import asyncio
import time
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from listener.logs import FieldLog, log_of

if TYPE_CHECKING:
    import httpx

    from listener.database import Database


class Closable(Protocol):
    """Something that is closed when its listener ends."""

    async def aclose(self) -> None: ...


Shared = TypeVar("Shared", bound=Closable)


class Clock:
    """Time as `work` should ask for it, so that a test can put another in its place."""

    def now(self) -> datetime:
        return datetime.now(UTC)

    def monotonic(self) -> float:
        return time.monotonic()

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)


class Toolbox:
    """What all items of one listener share. The HTTP client is made when it is first asked for."""

    def __init__(self, http: "httpx.AsyncClient | None" = None, clock: Clock | None = None) -> None:
        self._http = http
        self._shared: dict[type[Closable], Closable] = {}
        self._one_question = asyncio.Semaphore(1)
        self.clock = clock or Clock()
        self.database: Database | None = None
        """The listener's; none in a test without one."""

    @property
    def http(self) -> "httpx.AsyncClient":
        if self._http is None:
            import httpx

            self._http = httpx.AsyncClient(timeout=httpx.Timeout(30, connect=10))
        return self._http

    def shared(self, kind: type[Shared], make: Callable[[], Shared]) -> Shared:
        found = self._shared.get(kind)
        if not isinstance(found, kind):
            found = self._shared[kind] = make()
        return found

    async def ask(self, statement: str, parameters: Sequence[Any]) -> tuple[Any, ...] | None:
        if self.database is None:
            return None
        # one after the other, whatever the lanes do: it is the pool of those who claim and finish
        async with self._one_question, self.database.transaction() as transaction:
            cursor = await transaction.connection.execute(statement.encode(), parameters)
            row: tuple[Any, ...] | None = await cursor.fetchone()
            return row

    async def close(self) -> None:
        while self._shared:
            await self._shared.popitem()[1].aclose()
        if self._http is not None:
            await self._http.aclose()
            self._http = None


class Tools:
    """The tools for one attempt at one item."""

    # Made once for every item, so it holds references and builds the rest when asked.
    __slots__ = ("_box", "_workflow", "attempt", "key", "settings")

    def __init__(self, box: Toolbox, workflow: str, settings: Any, key: str, attempt: int) -> None:
        self._box = box
        self._workflow = workflow
        self.settings = settings
        """An instance of the class given as `Workflow(settings=...)`."""
        self.key = key
        """The item's key, as text."""
        self.attempt = attempt
        """1 for the first try."""

    @property
    def http(self) -> "httpx.AsyncClient":
        """One client for the whole listener: connections are kept and shared."""
        return self._box.http

    def shared(self, kind: type[Shared], make: Callable[[], Shared]) -> Shared:
        """The one object of this kind in the listener, made when it is first asked for and closed in the end."""
        return self._box.shared(kind, make)

    async def ask(self, statement: str, *parameters: Any) -> tuple[Any, ...] | None:
        """The first row of one quick statement, in a transaction that is over when this returns; None without a
        database. For what must be known before a call is made, such as whether a budget has room for it: what `work`
        finds out belongs into `save`.
        """
        return await self._box.ask(statement, parameters)

    @property
    def clock(self) -> Clock:
        return self._box.clock

    @property
    def log(self) -> FieldLog:
        """A logger whose lines carry the workflow, the item's key and the attempt."""
        fields = {"workflow": self._workflow, "item": self.key, "attempt": self.attempt}
        return FieldLog(log_of(self._workflow), fields)

    @property
    def idempotency_key(self) -> str:
        """The same on every attempt at this item: send it with calls that must not take effect twice."""
        return f"{self._workflow}:{self.key}"
