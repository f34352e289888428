"""A simulated service on a port of loopback, which can also answer as badly as real ones do."""

import asyncio
import http
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from enum import Enum
from typing import Protocol

_LONGEST_HEAD = 65_536
_DRIP_SECONDS = 0.2
_TLS_HELLO = b"\x16"


class Manner(Enum):
    """How an answer comes."""

    WHOLE = "whole"
    SILENT = "silent"
    """Never: the request is read, and nothing follows."""
    CUT = "cut"
    """It ends before the length it announced."""
    ENDLESS = "endless"
    """The body again and again, as fast as it is taken."""
    DRIP = "drip"
    """The body byte by byte, so slowly that no deadline is met."""
    GARBAGE = "garbage"
    """The body alone, without a head: no HTTP."""


@dataclass(frozen=True)
class Reply:
    status: int
    body: bytes
    kind: str = "application/json; charset=UTF-8"
    headers: tuple[tuple[str, str], ...] = ()
    manner: Manner = Manner.WHOLE
    delay: float = 0.0
    """Seconds before it comes."""


class Service(Protocol):
    def answer(self, method: str, target: str, headers: Mapping[str, str], body: bytes = b"") -> Reply: ...


@contextmanager
def serving(service: Service, port: int = 0) -> Iterator[str]:
    """Answer on loopback while the block lasts; its value is the base URL."""
    server = _Server(service)
    started: threading.Event = threading.Event()
    thread = threading.Thread(target=server.run, args=(port, started), daemon=True)
    thread.start()
    started.wait()
    if server.trouble is not None:
        raise server.trouble
    try:
        yield f"http://127.0.0.1:{server.port}"
    finally:
        server.stop()
        thread.join()


class _Server:
    """One event loop on a thread of its own: hundreds of slow visitors cost nothing."""

    def __init__(self, service: Service) -> None:
        self._service = service
        self._visits: set[asyncio.Task[None]] = set()
        self.port = 0
        self.trouble: OSError | None = None

    def run(self, port: int, started: threading.Event) -> None:
        asyncio.run(self._serve(port, started))

    def stop(self) -> None:
        self._loop.call_soon_threadsafe(self._end.set)

    async def _serve(self, port: int, started: threading.Event) -> None:
        self._loop, self._end = asyncio.get_running_loop(), asyncio.Event()
        try:
            server = await asyncio.start_server(self._visit, "127.0.0.1", port, limit=_LONGEST_HEAD, backlog=1024)
        except OSError as error:
            self.trouble = error
            return
        finally:
            started_port = 0 if self.trouble else server.sockets[0].getsockname()[1]
            self.port = started_port
            started.set()
        await self._end.wait()
        server.close()
        for visit in self._visits:
            visit.cancel()
        await asyncio.gather(*self._visits, return_exceptions=True)

    async def _visit(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None  # noqa: S101 - streams run their callback in one
        self._visits.add(task)
        try:
            # the visitor may go at any moment, and the server may end
            with suppress(OSError, EOFError, asyncio.LimitOverrunError, asyncio.CancelledError):
                while await self._exchange(reader, writer):
                    pass
        finally:
            self._visits.discard(task)
            writer.close()

    async def _exchange(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        """One request and its answer; whether there may be another."""
        first = await reader.readexactly(1)
        if first == _TLS_HELLO:
            writer.write(b"HTTP/1.1 400 Bad Request\r\n\r\nThis port speaks plain HTTP.")
            await writer.drain()
            return False
        request, *lines = (first + await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
        method, target, _ = request.split(" ", 2)
        headers = {name.lower(): value for name, _, value in (line.partition(": ") for line in lines if line)}
        body = await reader.readexactly(int(headers.get("content-length") or 0))
        reply = self._service.answer(method, target, headers, body)
        if reply.delay:
            await asyncio.sleep(reply.delay)
        keep = reply.manner is Manner.WHOLE and headers.get("connection", "").lower() != "close"
        await _write(reply, reader, writer, keep=keep)
        return keep


async def _write(reply: Reply, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, *, keep: bool) -> None:
    length = None if reply.manner in (Manner.ENDLESS, Manner.DRIP) else len(reply.body)
    if reply.manner is Manner.CUT:
        length = len(reply.body) + 1000
    match reply.manner:
        case Manner.SILENT:
            await reader.read()
        case Manner.GARBAGE:
            writer.write(reply.body)
            await writer.drain()
        case Manner.ENDLESS:
            writer.write(_head(reply, length, keep=keep))
            while not writer.is_closing():
                writer.write(reply.body)
                await writer.drain()
        case Manner.DRIP:
            writer.write(_head(reply, length, keep=keep))
            for byte in reply.body:
                writer.write(bytes([byte]))
                await writer.drain()
                await asyncio.sleep(_DRIP_SECONDS)
        case _:
            writer.write(_head(reply, length, keep=keep) + reply.body)
            await writer.drain()


def _head(reply: Reply, length: int | None, *, keep: bool) -> bytes:
    try:
        phrase = http.HTTPStatus(reply.status).phrase
    except ValueError:
        phrase = "Unknown"
    lines = [f"HTTP/1.1 {reply.status} {phrase}"]
    if reply.kind:
        lines.append(f"Content-Type: {reply.kind}")
    lines += [f"{name}: {value}" for name, value in reply.headers]
    if length is not None:
        lines.append(f"Content-Length: {length}")
    lines.append(f"Connection: {'keep-alive' if keep else 'close'}")
    return ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1")
