"""The heartbeat: a thread with a connection of its own, so that a blocked event loop loses no lease.

It only ever asks. The database renews a lease no further than the run's deadline, so a hung run ends all the same.
"""

import asyncio
import logging
import os
import socket
import sys
import threading
import time
import traceback
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any, Protocol
from uuid import UUID

import psycopg

from listener import __version__, engine
from listener.backoff import Backoff
from listener.database import connection_string
from listener.engine import Beat
from listener.faults import describe
from listener.logs import log_of
from listener.metrics import Metrics

IDLE_SECONDS = 10.0
"""Between two beats of a listener with nothing to do."""
BEATS_PER_LEASE = 3
BLOCKED_SECONDS = 2.0
"""An event loop that has not turned for this long is reported, with the line it hangs in."""

_log = log_of("heartbeat")


class Holder(Protocol):
    """Who has a run: told, in the event loop, what the database says about it."""

    def beat(self, beat: Beat) -> None: ...


class Heartbeat:
    """Keeps the leases of all open runs of this process, and its row in scheduler.listener."""

    def __init__(self, url: str, listener: UUID, metrics: Metrics, workflows: Sequence[str]) -> None:
        self._url = self._connected_to = connection_string(url, "heartbeat")
        self._listener = listener
        self._metrics = metrics
        self._workflows = list(workflows)
        self._runs: dict[int, tuple[float, Holder]] = {}
        self._changed = threading.Condition()
        self._soon = False
        self._stopping = False
        self._loop: asyncio.AbstractEventLoop | None = None
        self._connection: psycopg.Connection[Any] | None = None
        self._thread = threading.Thread(target=self._run, name="heartbeat", daemon=True)
        self.turned = time.monotonic()
        """When the thread last came round."""
        self.connecting = False
        """Connecting may take long, with many hosts or without DNS; it ends by itself."""
        self._main = threading.get_ident()
        self._last = 0.0
        self._reported_block = 0.0

    def start(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._main = threading.get_ident()
        self._thread.start()

    def add(self, run: int, lease: float, holder: Holder) -> None:
        with self._changed:
            self._runs[run] = (lease, holder)
            # the thread may be in the middle of a long pause
            self._changed.notify()

    def drop(self, run: int) -> None:
        with self._changed:
            self._runs.pop(run, None)

    def soon(self) -> None:
        """Beat now: something changed for items that are running."""
        with self._changed:
            self._soon = True
            self._changed.notify()

    def reconnect(self, url: str) -> None:
        """Use another URL from the next beat on."""
        with self._changed:
            self._url = connection_string(url, "heartbeat")
            self._soon = True
            self._changed.notify()

    async def stop(self, patience: float = 5.0) -> None:
        """One last beat that says this listener has stopped."""
        with self._changed:
            self._stopping = True
            self._changed.notify()
        if self._thread.ident is None:
            return  # it was never started
        await asyncio.to_thread(self._thread.join, patience)

    # -- in the thread -------------------------------------------------------------------------------------------------

    def _run(self) -> None:
        backoff = Backoff(0.2, 5)
        pause = 0.0
        while self._wait(pause):
            try:
                beats = self._beat()
            except (psycopg.Error, OSError) as error:
                self._disconnect()
                self._metrics.heartbeat_failures += 1
                if backoff.failures == 0:
                    _log.warning("no heartbeat, trying again", extra={"error": describe(error)})
                pause = min(backoff.next(), self._interval())
            except Exception:
                # without this thread all leases would run out, and nobody would know why
                _log.exception("the heartbeat broke, trying again")
                pause = min(backoff.next(), self._interval())
            else:
                backoff.reset()
                self._tell(beats)
                pause = self._interval()
        try:
            self._beat(stopped=True)
        except (psycopg.Error, OSError) as error:
            _log.warning("could not say goodbye", extra={"error": describe(error)})
        self._disconnect()

    def _wait(self, pause: float) -> bool:
        """Until the next beat is due; False when it is time to stop."""
        due = time.monotonic() + pause
        with self._changed:
            while not self._stopping and not self._soon:
                self.turned = time.monotonic()
                # a new run with a short lease brings the next beat forward
                left = min(due, self._last + self._interval()) - self.turned
                if left <= 0:
                    break
                # short turns, to see an event loop that hangs
                self._changed.wait(min(left, BLOCKED_SECONDS / 2))
                self._report_block()
            self._soon = False
            return not self._stopping

    def _interval(self) -> float:
        shortest = min((lease for lease, _ in list(self._runs.values())), default=float("inf"))
        return min(IDLE_SECONDS, shortest / BEATS_PER_LEASE)

    def _beat(self, *, stopped: bool = False) -> list[Beat]:
        self._last = time.monotonic()
        beats = engine.heartbeat(
            self._connect(),
            self._listener,
            list(self._runs),
            host=socket.gethostname(),
            pid=os.getpid(),
            version=__version__,
            workflows=self._workflows,
            detail=self._metrics.brief(),
            stopped=stopped,
        )
        self._metrics.heartbeats += 1
        self._metrics.last_heartbeat = time.time()
        return beats

    def _tell(self, beats: list[Beat]) -> None:
        for beat in beats:
            if (beat.lost or beat.revoked) and (found := self._runs.get(beat.run)) is not None:
                self._in_loop(found[1].beat, beat)

    def _in_loop(self, function: Callable[[Beat], None], beat: Beat) -> None:
        if self._loop is not None:
            with suppress(RuntimeError):  # the loop is closed: nobody is left to tell
                self._loop.call_soon_threadsafe(function, beat)

    def _connect(self) -> psycopg.Connection[Any]:
        if self._connected_to != self._url:
            self._disconnect()
            self._connected_to = self._url
        if self._connection is None or self._connection.closed:
            # autocommit: every beat is a transaction of its own, also through a pooler
            self.connecting = True
            try:
                self._connection = psycopg.connect(self._url, autocommit=True, prepare_threshold=None)
            finally:
                self.connecting = False
        return self._connection

    def _disconnect(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()

    def _report_block(self) -> None:
        """Name the line that keeps the event loop from turning: all lanes stand still meanwhile."""
        stuck = time.monotonic() - self._metrics.loop_turned
        if stuck < BLOCKED_SECONDS:
            self._reported_block = 0.0
            return
        if stuck < 2 * self._reported_block:
            return
        self._reported_block = stuck
        frame = sys._current_frames().get(self._main)  # noqa: SLF001 - the documented way to another thread's stack
        where = traceback.extract_stack(frame)[-1] if frame is not None else None
        _log.log(
            logging.WARNING,
            "the event loop is blocked; use await, or a plain function for work, which runs in a thread",
            extra={
                "seconds": round(stuck, 1),
                "at": f"{where.filename}:{where.lineno} in {where.name}" if where else None,
            },
        )
