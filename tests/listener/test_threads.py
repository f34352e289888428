"""Threads for plain functions: used again, left behind when they hang, and never in the way of the end."""

import asyncio
import threading

import pytest

from listener.threads import Threads
from tests.waiting import wait_until


async def test_an_idle_thread_is_used_again() -> None:
    threads = Threads("job")
    first = await threads.call(threading.get_ident)
    assert await threads.call(threading.get_ident) == first
    threads.close()


async def test_a_thread_that_hangs_is_left_behind_and_does_not_hold_up_the_next_call() -> None:
    threads = Threads("job")
    gate = threading.Event()
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.05):
            await threads.call(gate.wait)
    assert threads.busy == 1
    assert await threads.call(lambda: "next") == "next"
    gate.set()
    await asyncio.to_thread(wait_until, lambda: threads.busy == 0, what="the thread to come back")
    threads.close()


@pytest.mark.parametrize("error", [StopIteration("odd"), SystemExit(3), KeyboardInterrupt()])
async def test_an_exception_that_would_end_the_loop_becomes_an_ordinary_one(error: BaseException) -> None:
    def work() -> None:
        raise error

    threads = Threads("job")
    with pytest.raises(RuntimeError, match=type(error).__name__):
        await threads.call(work)
    threads.close()
