"""A listener in a thread of the test's own process: up at once, and `work` may be a function of the test.

What only a process shows (signals, exit codes, log lines) is for tests/listener/started.py.
"""

import asyncio
import threading
from collections.abc import Callable, Coroutine, Mapping
from concurrent.futures import Future
from contextlib import suppress
from typing import Any

from listener.lane import Lane
from listener.metrics import LaneMetrics, Metrics
from listener.process import Listener
from listener.settings import Settings
from listener.tools import Toolbox
from listener.traces import Traces
from listener.workflow import Workflow
from tests.listener import quiet
from tests.waiting import PATIENCE, wait_until


class Inside:
    """One listener with an event loop of its own."""

    def __init__(
        self,
        url: str,
        workflows: Mapping[str, Workflow[Any, Any]],
        *,
        own: Mapping[str, Any] | None = None,
        toolbox: Toolbox | None = None,
        traces: Traces | None = None,
        **settings: Any,
    ) -> None:
        self._given = (url, workflows, Settings.model_validate({**settings, **quiet.settings()}), own)
        self._toolbox = toolbox
        self._traces = traces
        self._made = threading.Event()
        self.listener: Listener
        self.code: int | None = None
        self.error: BaseException | None = None
        self._thread = threading.Thread(target=self._serve, name="listener", daemon=True)
        self._thread.start()
        assert self._made.wait(PATIENCE)

    @property
    def metrics(self) -> Metrics:
        return self.listener.metrics

    def lane(self, name: str = "job") -> Lane:
        return self.listener.lanes[name]

    def counts(self, name: str = "job") -> LaneMetrics:
        return self.metrics.lane(name)

    def ready(self) -> "Inside":
        """Every lane has asked for work, and the bell can ring."""
        quiet = self._given[2].listener_poll_only

        def is_ready() -> bool:
            if self.error is not None:
                raise self.error
            lanes = self.listener.lanes.values()
            swept = len(lanes) == len(self._given[1]) and all(lane.swept.is_set() for lane in lanes)
            return swept and (quiet or self.metrics.listening)

        wait_until(is_ready, PATIENCE, "a listener that is ready")
        return self

    def wait(self, predicate: Callable[[], object]) -> None:
        wait_until(predicate, PATIENCE)

    def in_loop(self, call: Any) -> None:
        self._loop.call_soon_threadsafe(call)

    def submit(self, coroutine: Coroutine[Any, Any, Any]) -> "Future[Any]":
        return asyncio.run_coroutine_threadsafe(coroutine, self._loop)

    def stop(self, *, twice: bool = False) -> int | None:
        """Drain, and wait for the end; its exit code."""
        with suppress(RuntimeError):  # its loop has ended by itself
            self.in_loop(self.listener.stop)
            if twice:
                self.in_loop(self.listener.stop)
        return self.join()

    def join(self) -> int | None:
        """Wait for the end of a listener that was already told to stop."""
        self._thread.join(PATIENCE)
        assert not self._thread.is_alive(), "the listener does not end"
        if self.error is not None:
            raise self.error
        return self.code

    def _serve(self) -> None:
        try:
            self.code = asyncio.run(self._run())
        except BaseException as error:
            self.error = error

    async def _run(self) -> int:
        url, workflows, settings, own = self._given
        self._loop = asyncio.get_running_loop()
        self.listener = Listener(url, workflows, settings, own, toolbox=self._toolbox, traces=self._traces)
        self._made.set()
        return await self.listener.run()
