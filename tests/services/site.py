"""A website on loopback that does exactly what a test says, byte by byte, and remembers who came."""

import asyncio
import socket
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from ipaddress import ip_address
from typing import Any

from listener import Clock
from services.fetch import Fetcher, FetchSettings
from services.fetch.address import Address


@dataclass(frozen=True)
class Request:
    path: str
    host: str
    headers: dict[str, str]


Script = Callable[[asyncio.StreamWriter], Awaitable[None]]


def page(body: bytes | str = b"<p>hello", status: int = 200, length: bool = True, **headers: str) -> Script:
    """An answer; `content_type` becomes Content-Type."""
    sent = body.encode() if isinstance(body, str) else body
    named = {"content_type": "text/html; charset=utf-8", **headers}
    if length:
        named["content_length"] = str(len(sent))
    head = "".join(f"{name.replace('_', '-')}: {value}\r\n" for name, value in named.items())
    return raw(f"HTTP/1.1 {status} X\r\n{head}\r\n".encode() + sent)


def redirect(to: str, status: int = 302) -> Script:
    return page(b"", status, location=to)


def raw(answer: bytes) -> Script:
    async def write(writer: asyncio.StreamWriter) -> None:
        writer.write(answer)
        await writer.drain()

    return write


def endless(piece: bytes, head: bytes = b"HTTP/1.1 200 X\r\n\r\n", pause: float = 0) -> Script:
    async def write(writer: asyncio.StreamWriter) -> None:
        writer.write(head)
        while True:
            writer.write(piece)
            await writer.drain()
            await asyncio.sleep(pause)

    return write


async def silence(_writer: asyncio.StreamWriter) -> None:
    await asyncio.Event().wait()


@dataclass
class Site:
    routes: dict[str, Script] = field(default_factory=dict)
    """By path, or by host and path; everything else is 404."""
    greeting: bytes = b""
    """Sent before anything is asked."""
    port: int = 0
    connections: int = 0
    requests: list[Request] = field(default_factory=list)
    busy: int = 0
    busiest: int = 0
    server_names: list[str | None] = field(default_factory=list)

    @property
    def paths(self) -> list[str]:
        return [request.path for request in self.requests]

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        writer.write(self.greeting)
        self.busy += 1
        self.busiest = max(self.busiest, self.busy)
        try:
            await self._answer(reader, writer)
        except (ConnectionError, asyncio.IncompleteReadError):
            pass  # the fetcher has seen enough
        finally:
            self.busy -= 1
            writer.close()

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
        headers = {name.lower(): value for name, _, value in (line.partition(": ") for line in head[1:] if line)}
        request = Request(head[0].split(" ")[1], headers.get("host", ""), headers)
        self.requests.append(request)
        script = self.routes.get(request.host + request.path) or self.routes.get(request.path)
        await (script or page(b"", 404))(writer)


@asynccontextmanager
async def site(
    routes: Mapping[str, Script] | None = None, tls: ssl.SSLContext | None = None, host: str = "127.0.0.1"
) -> AsyncIterator[Site]:
    made = Site(dict(routes or {}))
    if tls is not None:
        tls.sni_callback = lambda _socket, name, _context: made.server_names.append(name)
    tasks: set[asyncio.Task[Any]] = set()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        tasks.add(task)
        try:
            await made.serve(reader, writer)
        except asyncio.CancelledError:
            pass  # the test is over
        finally:
            tasks.discard(task)

    server = await asyncio.start_server(serve, host, 0, ssl=tls)
    made.port = server.sockets[0].getsockname()[1]
    try:
        yield made
    finally:
        server.close()
        for task in list(tasks):
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


class FakeClock(Clock):
    """Sleeping moves the clock and takes no time."""

    def __init__(self) -> None:
        self.moment = 1000.0
        self.slept: list[float] = []

    def now(self) -> datetime:
        return datetime(2026, 11, 18, 12, tzinfo=UTC)

    def monotonic(self) -> float:
        return self.moment

    async def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.moment += seconds
        await asyncio.sleep(0)


class FakeResolver:
    """Each name's answers, one after the other; the last one stays. No answers: no such name."""

    def __init__(self, **names: Sequence[str]) -> None:
        self._names = {name.replace("_", "."): list(answers) for name, answers in names.items()}
        self.asked: list[str] = []

    async def resolve(self, host: str) -> list[Address]:
        self.asked.append(host)
        answers = self._names.get(host)
        if not answers:
            raise socket.gaierror(socket.EAI_NONAME, "no such name")
        found = answers.pop(0) if len(answers) > 1 else answers[0]
        return [ip_address(text) for text in found.split()]

    def close(self) -> None:
        """Nothing is open."""


@asynccontextmanager
async def fetching(
    at: Site | None = None, *, clock: Clock | None = None, resolver: FakeResolver | None = None, **given: Any
) -> AsyncIterator[Fetcher]:
    """A fetcher for which every host under .test is this site; its manners are off unless given."""
    replay = {"replay": f"*.test=127.0.0.1:{at.port}"} if at is not None else {}
    everything = {"robots": False, "host_seconds": 0.0, **replay, **given}
    async with Fetcher(FetchSettings(**everything), clock=clock, resolver=resolver) as fetcher:
        yield fetcher
