"""What came back: whole, or as it comes."""

import time
from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import dataclass, field
from functools import cached_property

import httpx

from services.fetch.charset import charset_of, decode
from services.fetch.errors import TooLargeError
from services.fetch.inflate import Unpacking


def media_type_of(headers: httpx.Headers) -> str:
    """`text/html` of `Text/HTML; charset=utf-8`; empty if the server does not say."""
    said: str = headers.get("content-type", "")
    # said twice, by the application and by its server, the last one counts
    kinds = [part.partition(";")[0].strip().lower() for part in said.split(",")]
    return next((kind for kind in reversed(kinds) if "/" in kind), kinds[0])


@dataclass(frozen=True)
class Fetched:
    """One document, whole."""

    url: str
    """As asked for, without credentials and fragment."""
    final_url: str
    """Where it was found in the end."""
    status: int
    headers: httpx.Headers
    body: bytes
    elapsed_ms: float
    """Of the last hop, from the look-up of its name to the last byte."""
    redirects: tuple[str, ...] = ()
    """The URLs that led on, in order; empty if there were none."""
    gzipped: bool = False
    """Whether the document itself was a gzip file (only with `ungzip`)."""
    cut: bool = False
    """Whether there was more (only with `cut`)."""

    @property
    def media_type(self) -> str:
        return media_type_of(self.headers)

    @cached_property
    def charset(self) -> str:
        return charset_of(self.headers.get("content-type", ""), self.body)

    def text(self) -> str:
        return decode(self.body, self.charset)


@dataclass
class Answer:
    """One document as it comes, while the block of `Fetcher.stream` lasts: read it with `chunks`."""

    url: str
    final_url: str
    status: int
    headers: httpx.Headers
    redirects: tuple[str, ...]
    limit: int
    """Most bytes after all decompression."""
    cut: bool
    """Whether to end there; else one byte more raises TooLargeError."""
    raw: AsyncGenerator[bytes, None] = field(repr=False)
    unpacking: Unpacking = field(repr=False)
    started: float = field(repr=False)
    size: int = 0
    """Bytes given out so far."""
    wire_size: int = 0
    """Bytes that came over the network so far."""
    was_cut: bool = False

    @property
    def media_type(self) -> str:
        return media_type_of(self.headers)

    @property
    def gzipped(self) -> bool:
        """Whether the document itself is a gzip file; known from the first chunk on, if it was asked to `ungzip`."""
        return self.unpacking.gzipped

    @property
    def elapsed_ms(self) -> float:
        """Since the last hop began."""
        return (time.monotonic() - self.started) * 1000

    async def chunks(self) -> AsyncGenerator[bytes, None]:
        """The body, decompressed, in pieces of at most 64 KiB."""
        async with aclosing(self._pieces()) as pieces:
            async for piece in pieces:
                room = self.limit - self.size
                self.was_cut = len(piece) > room
                if self.was_cut and not self.cut:
                    raise self._too_large()
                self.size += min(len(piece), room)
                yield piece[:room]
                if self.was_cut:
                    return

    async def _pieces(self) -> AsyncGenerator[bytes, None]:
        async with aclosing(self.raw) as received:
            async for raw in received:
                self.wire_size += len(raw)
                for piece in self.unpacking.feed(raw):
                    yield piece
                if self.wire_size > self.limit:
                    # it unpacks to nothing and never ends
                    raise self._too_large()
        for piece in self.unpacking.finish():
            yield piece

    def _too_large(self) -> TooLargeError:
        return TooLargeError(f"larger than {self.limit:,} bytes", url=self.final_url)
