"""Threads for `work` functions that are not async.

Not concurrent.futures: its threads are joined when the interpreter exits, so one that hangs would keep a drained
listener from ending. These are daemons, and one whose item has timed out is left behind and replaced.
"""

import asyncio
import contextvars
import queue
import threading
from collections.abc import Callable
from typing import Any


class Threads:
    """As many threads as calls are under way; idle ones are used again."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._idle: list[queue.SimpleQueue[_Call | None]] = []
        self.busy = 0
        """Threads inside a call, those whose caller no longer waits included."""

    async def call(self, function: Callable[..., Any], *arguments: Any) -> Any:
        """What the function returns or raises. If the wait is cancelled the thread runs on; its result is dropped."""
        loop = asyncio.get_running_loop()
        answer: asyncio.Future[Any] = loop.create_future()
        inbox = self._idle.pop() if self._idle else self._start()
        self.busy += 1
        context = contextvars.copy_context()
        inbox.put(_Call(lambda: context.run(function, *arguments), loop, answer, lambda: self._finished(inbox)))
        return await answer

    def close(self) -> None:
        """Let idle threads end; busy ones are daemons and end with the process."""
        while self._idle:
            self._idle.pop().put(None)

    def _start(self) -> "queue.SimpleQueue[_Call | None]":
        inbox: queue.SimpleQueue[_Call | None] = queue.SimpleQueue()
        threading.Thread(target=_serve, args=(inbox,), name=f"work {self._name}", daemon=True).start()
        return inbox

    def _finished(self, inbox: "queue.SimpleQueue[_Call | None]") -> None:
        self.busy -= 1
        self._idle.append(inbox)


class _Call:
    __slots__ = ("answer", "done", "function", "loop")

    def __init__(
        self,
        function: Callable[[], Any],
        loop: asyncio.AbstractEventLoop,
        answer: "asyncio.Future[Any]",
        done: Callable[[], None],
    ) -> None:
        self.function = function
        self.loop = loop
        self.answer = answer
        self.done = done


def _serve(inbox: "queue.SimpleQueue[_Call | None]") -> None:
    while (call := inbox.get()) is not None:
        result: Any = None
        error: BaseException | None = None
        try:
            result = call.function()
        except BaseException as raised:
            # StopIteration cannot be set on a future, and SystemExit there would end the loop
            error = raised if isinstance(raised, Exception) and not isinstance(raised, StopIteration) else _wrap(raised)
        try:
            call.loop.call_soon_threadsafe(_deliver, call, result, error)
        except RuntimeError:
            return  # the loop is closed: nobody waits any more


def _wrap(error: BaseException) -> RuntimeError:
    return RuntimeError(f"work raised {type(error).__name__}: {error}")


def _deliver(call: _Call, result: Any, error: BaseException | None) -> None:
    call.done()
    if call.answer.done():
        return
    if error is not None:
        call.answer.set_exception(error)
    else:
        call.answer.set_result(result)
