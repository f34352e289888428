"""Decompression that cannot be made to blow up: output in small pieces, counted, with a cap on size and ratio."""

import zlib
from collections.abc import Iterable, Iterator

from services.fetch.errors import BrokenAnswerError, TooLargeError, UndecodableError

_PIECE = 65_536
_RATIO_COUNTS_FROM = 1024 * 1024
"""Small bodies may compress as well as they like."""
GZIP_MAGIC = b"\x1f\x8b"


class Inflater:
    """One layer of gzip or deflate, fed as the bytes come."""

    def __init__(self, encoding: str = "gzip", *, ratio: int = 200) -> None:
        self._encoding = encoding
        self._ratio = ratio
        self._engine = zlib.decompressobj(_window(encoding))
        self._started = False
        self._taken = self._given = 0

    def feed(self, data: bytes) -> Iterator[bytes]:
        """What these bytes become, in pieces of at most 64 KiB."""
        self._taken += len(data)
        while data:
            piece, data = self._step(data)
            if piece:
                self._given += len(piece)
                if self._given > max(_RATIO_COUNTS_FROM, self._taken * self._ratio):
                    raise TooLargeError(f"a decompression bomb: more than {self._ratio} times its size when unpacked")
                yield piece

    def finish(self) -> Iterator[bytes]:
        """All bytes are there: it must have ended as well. (Nothing is ever left, but each layer is asked alike.)"""
        if self._started and not self._engine.eof:
            raise BrokenAnswerError(f"the {self._encoding} body ends too early")
        return iter(())

    def _step(self, data: bytes) -> tuple[bytes, bytes]:
        if self._engine.eof:
            if not data.startswith(GZIP_MAGIC[:1]):
                return b"", b""  # padding after the end
            self._engine = zlib.decompressobj(_window(self._encoding))
        try:
            piece = self._engine.decompress(data, _PIECE)
        except zlib.error as error:
            if self._encoding == "deflate" and not self._started:
                # half of the servers send deflate without its zlib header
                self._started = True
                self._engine = zlib.decompressobj(-zlib.MAX_WBITS)
                return b"", data
            raise UndecodableError(f"the {self._encoding} body is damaged ({error})") from error
        self._started = True
        rest = self._engine.unused_data if self._engine.eof else self._engine.unconsumed_tail
        return piece, rest


class MaybeGzip:
    """A layer that unpacks gzip where it finds its first bytes; names and headers lie both ways."""

    def __init__(self, *, ratio: int) -> None:
        self._ratio = ratio
        self._head: bytes | None = b""
        self._inflater: Inflater | None = None

    @property
    def found(self) -> bool:
        return self._inflater is not None

    def feed(self, data: bytes) -> Iterator[bytes]:
        if self._head is not None:
            data = self._head + data
            if len(data) < len(GZIP_MAGIC):
                self._head = data
                return
            self._head = None
            if data.startswith(GZIP_MAGIC):
                self._inflater = Inflater(ratio=self._ratio)
        yield from self._inflater.feed(data) if self._inflater else (data,)

    def finish(self) -> Iterator[bytes]:
        if self._inflater:
            yield from self._inflater.finish()
        elif self._head:
            yield self._head


class Unpacking:
    """All layers of one body: those its header names, and gzip found inside if asked to look."""

    def __init__(self, encodings: Iterable[str], *, ungzip: bool, ratio: int) -> None:
        # the header lists them in the order they were put on
        layers: list[Inflater | MaybeGzip] = [Inflater(name, ratio=ratio) for name in reversed(list(encodings))]
        # twice, because servers compress what is compressed
        self._inside = [MaybeGzip(ratio=ratio) for _ in range(2 if ungzip else 0)]
        self._layers = [*layers, *self._inside]

    @property
    def gzipped(self) -> bool:
        """Whether the document itself was a gzip file."""
        return any(layer.found for layer in self._inside)

    def feed(self, data: bytes) -> Iterator[bytes]:
        return _through(self._layers, (data,))

    def finish(self) -> Iterator[bytes]:
        """All bytes are there: what is left, or an error if a layer has not ended."""
        for depth, layer in enumerate(self._layers):
            yield from _through(self._layers[depth + 1 :], layer.finish())


def _through(layers: Iterable[Inflater | MaybeGzip], pieces: Iterable[bytes]) -> Iterator[bytes]:
    for layer in layers:
        pieces = _each(layer, pieces)
    return iter(pieces)


def _each(layer: Inflater | MaybeGzip, pieces: Iterable[bytes]) -> Iterator[bytes]:
    for piece in pieces:
        yield from layer.feed(piece)


def _window(encoding: str) -> int:
    return zlib.MAX_WBITS | 16 if encoding == "gzip" else zlib.MAX_WBITS
