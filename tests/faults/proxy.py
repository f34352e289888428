"""A TCP proxy between one listener and the server: its network is cut, stalled and slowed, and nobody else's."""

import asyncio
import contextlib
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Literal

Mode = Literal["pass", "slow", "stall", "flap"]
_FLAP_BYTES = 2048
"""After so many bytes a flapping network cuts the connection."""


class Proxy:
    """`stall` forwards nothing and says nothing, as a silent partition does; what was under way arrives later."""

    def __init__(self, target: int) -> None:
        self.target = target
        """The server's port; a new one counts for new connections."""
        self._mode: Mode = "pass"
        self.delay = 0.05
        """How long each packet takes while the network is slow."""
        self.cut = 0
        """How many connections a flapping network has broken."""
        self._flows = asyncio.Event()
        self._flows.set()
        self._loop = asyncio.new_event_loop()
        self._writers: set[asyncio.StreamWriter] = set()
        self._tasks: set[asyncio.Task[None]] = set()
        self._server = self._loop.run_until_complete(asyncio.start_server(self._serve, "127.0.0.1", 0))
        self.port: int = self._server.sockets[0].getsockname()[1]
        self._thread = threading.Thread(target=self._loop.run_forever, name="proxy", daemon=True)
        self._thread.start()

    @property
    def mode(self) -> Mode:
        return self._mode

    @mode.setter
    def mode(self, mode: Mode) -> None:
        self._mode = mode
        self._loop.call_soon_threadsafe(self._flows.clear if mode == "stall" else self._flows.set)

    def reset(self) -> None:
        """Cut every connection at once."""
        self._loop.call_soon_threadsafe(self._abort)

    def close(self) -> None:
        asyncio.run_coroutine_threadsafe(self._shut(), self._loop).result(10)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(10)
        self._loop.close()

    def _abort(self) -> None:
        for writer in list(self._writers):
            writer.transport.abort()

    async def _shut(self) -> None:
        self._server.close()
        self._abort()
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        # the sockets are closed by the loop's next turns
        for _ in range(3):
            await asyncio.sleep(0)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        if task is not None:
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)
        self._writers.add(writer)
        # a task of a stream server that ends as cancelled is reported as an error
        with contextlib.suppress(OSError, asyncio.CancelledError):
            try:
                there, back = await asyncio.open_connection("127.0.0.1", self.target)
                self._writers.add(back)
                try:
                    await asyncio.gather(self._pump(reader, back), self._pump(there, writer))
                finally:
                    self._writers.discard(back)
                    back.transport.abort()
            finally:
                self._writers.discard(writer)
                writer.transport.abort()

    async def _pump(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        passed = 0
        try:
            while data := await reader.read(65536):
                if self.mode == "slow":
                    await asyncio.sleep(self.delay)
                passed = passed + len(data) if self.mode == "flap" else 0
                if passed > _FLAP_BYTES:
                    self.cut += 1
                    writer.transport.abort()
                    return
                await self._flows.wait()
                writer.write(data)
                await writer.drain()
        finally:
            writer.close()


@contextmanager
def proxied(target: int) -> Iterator[Proxy]:
    proxy = Proxy(target)
    try:
        yield proxy
    finally:
        proxy.close()
