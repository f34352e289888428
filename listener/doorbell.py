"""The doorbell: one direct connection that does nothing but LISTEN. Losing it costs latency, never work.

Always in this order: LISTEN, then a sweep of every lane, then wait. What was queued before LISTEN is found by the
sweep, what is queued after it rings.
"""

import asyncio
import time
from collections.abc import Callable
from typing import Any

import psycopg

from listener.backoff import Backoff
from listener.database import connection_string
from listener.engine import CHANNEL
from listener.faults import describe, is_cancelled
from listener.logs import log_of
from listener.metrics import Metrics
from listener.pooler import is_pooled, shares_backends

PROBE_SECONDS = 30.0
"""How often the connection has to prove that it still listens."""
_ANSWER_SECONDS = 10.0
_POOLER_SECONDS = 60.0

_log = log_of("doorbell")


class PooledError(Exception):
    """LISTEN cannot work here: a pooler in transaction mode is in between."""

    def __init__(self) -> None:
        super().__init__(
            "the connection for LISTEN goes through a pooler in transaction mode, where notifications are lost:"
            " set DATABASE_LISTEN_URL to the server's own address; until then work is found by polling"
        )


class Doorbell:
    """Calls `rung` with the payload of each notification, and `opened` whenever it has begun to listen."""

    def __init__(self, url: str, metrics: Metrics, *, rung: Callable[[str], None], opened: Callable[[], None]) -> None:
        self._url = connection_string(url, "doorbell")
        self._metrics = metrics
        self._rung = rung
        self._opened = opened
        self._listening: asyncio.Task[None] | None = None
        self._probe_seconds = PROBE_SECONDS

    async def run(self) -> None:
        """Listen for as long as the process lives."""
        while True:
            self._listening = asyncio.create_task(self._listen_on_one_url(), name="listen")
            try:
                await self._listening
            except asyncio.CancelledError:
                if is_cancelled():
                    raise

    async def _listen_on_one_url(self) -> None:
        backoff = Backoff(0.1, 10)
        while True:
            try:
                await self._listen(backoff)
            except PooledError as error:
                if backoff.failures == 0:
                    _log.error(str(error))
                backoff.failures += 1
                await asyncio.sleep(_POOLER_SECONDS)
            except (psycopg.Error, OSError) as error:
                # TimeoutError is an OSError: a server that does not answer is treated like one that is gone
                if backoff.failures == 0:
                    _log.warning("not listening, polling meanwhile", extra={"error": describe(error)})
                await asyncio.sleep(backoff.next())

    def reconnect(self, url: str) -> None:
        """Listen on another URL from now on."""
        self._url = connection_string(url, "doorbell")
        if self._listening is not None:
            self._listening.cancel()

    async def _listen(self, backoff: Backoff) -> None:
        connection = await psycopg.AsyncConnection.connect(self._url, autocommit=True, prepare_threshold=None)
        async with connection:
            try:
                async with asyncio.timeout(_ANSWER_SECONDS):
                    await self._refuse_pooler(connection)
                    await connection.execute(f"LISTEN {CHANNEL}")
                if backoff.failures:
                    _log.info("listening again", extra={"failures": backoff.failures})
                    self._metrics.reconnects += 1
                    backoff.reset()
                self._metrics.listening = True
                self._opened()
                await self._wait(connection)
            finally:
                self._metrics.listening = False

    async def _wait(self, connection: psycopg.AsyncConnection[Any]) -> None:
        while True:
            async for notification in connection.notifies(timeout=self._probe_seconds):
                self._metrics.notifications += 1
                self._metrics.last_notification = time.time()
                self._rung(notification.payload)
            async with asyncio.timeout(_ANSWER_SECONDS):
                await self._probe(connection)

    async def _probe(self, connection: psycopg.AsyncConnection[Any]) -> None:
        """A connection can die without a word, and LISTEN can be undone by whoever shares it."""
        cursor = await connection.execute("SELECT %s IN (SELECT pg_listening_channels())", (CHANNEL,))
        row = await cursor.fetchone()
        if row is None or not row[0]:
            if await is_pooled(connection):
                raise PooledError
            raise psycopg.OperationalError("the connection no longer listens")

    async def _refuse_pooler(self, connection: psycopg.AsyncConnection[Any]) -> None:
        if not await is_pooled(connection):
            return
        async with await psycopg.AsyncConnection.connect(self._url, autocommit=True, prepare_threshold=None) as other:
            if await shares_backends(connection, other):
                raise PooledError
