"""What every Python adapter shares. It runs in the peers' own environment, so it imports nothing of this project.

Called as `python adapter.py VERB N` with DATABASE_URL set. What it measured goes to standard output as JSON lines;
times are CLOCK_MONOTONIC, which all processes of a machine share.
"""

import asyncio
import json
import os
import signal
import sys
import time
from collections.abc import Awaitable, Callable

URL = os.environ.get("DATABASE_URL", "")


def say(**figures: object) -> None:
    print(json.dumps(figures), flush=True)


class Gate:
    """What the no-op handler does: say when the first item came, and for latencies when each one did."""

    def __init__(self) -> None:
        self.first: float | None = None
        self.came = asyncio.Event()
        self.at = 0.0

    def hit(self) -> None:
        if self.first is None:
            self.first = time.monotonic()
            say(first=self.first)

    def ring(self) -> None:
        self.at = time.monotonic()
        self.came.set()

    async def latencies(self, items: int, enqueue: Callable[[], Awaitable[object]]) -> None:
        """From the moment the enqueuing commit has returned to the first line of the handler, in milliseconds."""
        taken = []
        for _ in range(items):
            self.came.clear()
            await enqueue()
            sent = time.monotonic()
            async with asyncio.timeout(30):
                await self.came.wait()
            taken.append(max(0.0, self.at - sent) * 1000)
        say(milliseconds=taken)


def timed_sync(work: Callable[[], object]) -> None:
    start = time.monotonic()
    work()
    say(seconds=time.monotonic() - start)


async def timed(work: Callable[[], Awaitable[None]]) -> None:
    start = time.monotonic()
    await work()
    say(seconds=time.monotonic() - start)


async def until_terminated() -> None:
    stop = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stop.set)
    await stop.wait()


def arguments() -> tuple[str, int]:
    return sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 0
