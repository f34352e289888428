"""Bodies, redirects and servers that would never end, and each failure in its own words."""

import asyncio
import gc
import gzip
import socket
import zlib
from collections.abc import Iterator
from typing import Any

import pytest

from listener import Reject, Retry
from services.fetch import (
    BrokenAnswerError,
    ConnectError,
    ConnectTimeoutError,
    DeadHostError,
    FetchError,
    Inflater,
    ReadTimeoutError,
    RedirectError,
    ResolveError,
    StatusError,
    TooLargeError,
    TotalTimeoutError,
    UndecodableError,
    UnwantedTypeError,
    verdicts,
)
from services.fetch.address import Address
from tests.services.site import FakeClock, FakeResolver, endless, fetching, page, raw, redirect, silence, site

MEBIBYTE = 1024 * 1024


def packed(data: bytes) -> bytes:
    return gzip.compress(data, mtime=0)


def bomb(mebibytes: int) -> bytes:
    """That much nothing, a thousand times smaller."""
    packer = zlib.compressobj(9, wbits=31)
    return b"".join(packer.compress(bytes(MEBIBYTE)) for _ in range(mebibytes)) + packer.flush()


BOMB = bomb(64)


@pytest.mark.parametrize(
    ("body", "encoding", "ungzip"),
    [
        (BOMB, "gzip", False),
        (BOMB, "identity", True),
        (packed(BOMB), "gzip, gzip", False),
        (packed(BOMB), "gzip", True),
    ],
    ids=["header", "file", "header twice", "header and file"],
)
async def test_a_decompression_bomb_stops_at_the_cap(body: bytes, encoding: str, ungzip: bool) -> None:
    async with site({"/": page(body, content_encoding=encoding)}) as there, fetching(there) as fetcher:
        with pytest.raises(TooLargeError, match="a decompression bomb"):
            await fetcher.get("http://a.test/", ungzip=ungzip, limit=100 * MEBIBYTE)
        async with fetcher.stream("http://a.test/", ungzip=ungzip, limit=MEBIBYTE // 2) as answer:
            with pytest.raises(TooLargeError, match="larger than 524,288 bytes"):
                async for _ in answer.chunks():
                    pass
        assert answer.size <= MEBIBYTE // 2


def test_a_bomb_is_unpacked_in_small_pieces() -> None:
    pieces: Iterator[bytes] = Inflater(ratio=2000).feed(BOMB)
    assert max(len(piece) for piece in pieces) <= 65_536


@pytest.mark.parametrize("more", [b"", b"Content-Encoding: gzip\r\n"], ids=["plain", "empty gzip"])
async def test_an_endless_body_stops_at_the_cap(more: bytes) -> None:
    head = b"HTTP/1.1 200 X\r\n" + more + b"\r\n"
    # members that unpack to nothing are counted as they come
    piece = packed(b"") * 1000 if more else b"x" * 65_536
    async with site({"/": endless(piece, head)}) as there, fetching(there) as fetcher:
        with pytest.raises(TooLargeError, match="larger than 1,048,576 bytes"):
            await fetcher.get("http://a.test/", limit=MEBIBYTE)


async def test_a_body_announced_as_too_large_is_not_even_read() -> None:
    only_a_head = raw(b"HTTP/1.1 200 X\r\nContent-Length: 99999999\r\n\r\n")
    async with site({"/": only_a_head}) as there, fetching(there) as fetcher:
        with pytest.raises(TooLargeError):
            await fetcher.get("http://a.test/", limit=1000)


async def test_a_long_document_can_be_cut_instead() -> None:
    async with site({"/": page(b"x" * 5000)}) as there, fetching(there) as fetcher:
        fetched = await fetcher.get("http://a.test/", limit=1000, cut=True)
        whole = await fetcher.get("http://a.test/", limit=5000, cut=True)
    assert (len(fetched.body), fetched.cut) == (1000, True)
    assert (len(whole.body), whole.cut) == (5000, False)


async def test_a_body_that_drips_ends_at_the_deadline_although_it_never_falls_silent() -> None:
    drip = endless(b"x", pause=0.02)
    async with site({"/": drip}) as there, fetching(there, total_seconds=0.3, read_seconds=10) as fetcher:
        with pytest.raises(TotalTimeoutError, match="too slow"):
            await fetcher.get("http://a.test/")


async def test_redirects_share_one_deadline() -> None:
    routes = {"/": redirect("/slow"), "/slow": silence}
    async with site(routes) as there, fetching(there, total_seconds=0.3, read_seconds=10) as fetcher:
        with pytest.raises(TotalTimeoutError):
            await fetcher.get("http://a.test/")


async def test_a_server_that_falls_silent_is_left() -> None:
    beginning = raw(b"HTTP/1.1 200 X\r\nContent-Length: 10\r\n\r\nabc")

    async def then_silence(writer: asyncio.StreamWriter) -> None:
        await beginning(writer)
        await silence(writer)

    routes = {"/head": silence, "/body": then_silence}
    async with site(routes) as there, fetching(there, read_seconds=0.2) as fetcher:
        for path in ("/head", "/body"):
            with pytest.raises(ReadTimeoutError, match=r"a\.test fell silent"):
                await fetcher.get(f"http://a.test{path}")


async def test_a_host_that_takes_no_connection_is_told_apart_from_one_that_refuses_it() -> None:
    with socket.socket() as full:
        full.bind(("127.0.0.1", 0))
        port = full.getsockname()[1]
        async with fetching(replay=f"a.test=127.0.0.1:{port}", connect_seconds=0.3) as fetcher:
            with pytest.raises(ConnectError, match="connection refused"):
                await fetcher.get("http://a.test/")
            full.listen(0)
            # the one place there is
            with socket.create_connection(("127.0.0.1", port)), pytest.raises(ConnectTimeoutError, match="in time"):
                await fetcher.get("http://a.test/")


class DeafResolver(FakeResolver):
    async def resolve(self, host: str) -> list[Address]:
        raise socket.gaierror(socket.EAI_AGAIN, "try again")


async def test_a_dead_host_is_given_up_and_a_deaf_name_server_is_asked_again() -> None:
    async with fetching(resolver=FakeResolver()) as fetcher:
        with pytest.raises(DeadHostError, match=r"there is no host gone\.example") as dead:
            await fetcher.get("http://gone.example/")
    async with fetching(resolver=DeafResolver()) as fetcher:
        with pytest.raises(ResolveError, match="DNS cannot say") as deaf:
            await fetcher.get("http://gone.example/")
    assert (dead.value.retryable, deaf.value.retryable) == (False, True)


@pytest.mark.parametrize(
    "answer",
    [
        b"",
        b"SSH-2.0-x\r\n",
        b"HTTP/1.1 200 X\r\nContent-Length: 9\r\n\r\nabc",
        b"HTTP/1.1 200 X\r\nA: " + b"a" * 200_000,
    ],
    ids=["nothing", "no http", "cut short", "endless head"],
)
async def test_an_answer_that_is_none_is_tried_again(answer: bytes) -> None:
    async with site({"/": raw(answer)}) as there, fetching(there) as fetcher:
        with pytest.raises(BrokenAnswerError) as broken:
            await fetcher.get("http://a.test/")
    assert broken.value.retryable


async def test_redirects_are_followed_to_a_cap_and_never_in_a_circle() -> None:
    chain = {f"/{n}": redirect(f"/{n + 1}") for n in range(10)}
    routes = {**chain, "/round": redirect("/about"), "/about": redirect("/round"), "/self": redirect("/self")}
    routes |= {"/4/": page(), "/ok": redirect("http://b.test/x?a=b"), "/x?a=b": page("found")}
    async with site(routes) as there, fetching(there) as fetcher:
        with pytest.raises(RedirectError, match="more than 5 redirects"):
            await fetcher.get("http://a.test/0")
        assert there.paths == ["/0", "/1", "/2", "/3", "/4", "/5"]
        for path in ("/round", "/self"):
            with pytest.raises(RedirectError, match="in a circle"):
                await fetcher.get(f"http://a.test{path}")
        assert there.connections == 6 + 2 + 1
        fetched = await fetcher.get("http://a.test/ok")
    assert (fetched.url, fetched.final_url) == ("http://a.test/ok", "http://b.test/x?a=b")
    assert fetched.redirects == ("http://a.test/ok",)


@pytest.mark.parametrize(
    ("status", "retry_after", "verdict", "after"),
    [
        (404, "", Reject, None),
        (410, "", Reject, None),
        (403, "", Reject, None),
        (304, "", Reject, None),
        (500, "", Retry, None),
        (503, "17", Retry, 17.0),
        (429, "Wed, 18 Nov 2026 12:02:00 GMT", Retry, 120.0),
        (429, "soon", Retry, None),
        (503, "99999999999999", Retry, 86_400.0),
    ],
)
async def test_each_status_becomes_the_right_verdict(
    status: int, retry_after: str, verdict: type[Exception], after: float | None
) -> None:
    headers: dict[str, Any] = {"retry_after": retry_after} if retry_after else {}
    answer = page(b"oops", status, **headers)
    async with site({"/": answer}) as there, fetching(there, clock=FakeClock()) as fetcher:
        with pytest.raises(verdict, match=f"HTTP {status} ") as caught, verdicts():
            await fetcher.get("http://a.test/")
    assert isinstance(caught.value.__cause__, StatusError)
    assert caught.value.__cause__.status == status
    assert getattr(caught.value, "after", None) == after


async def test_the_unwanted_kind_of_document_is_not_downloaded() -> None:
    head = b"HTTP/1.1 200 X\r\nContent-Type: Application/PDF; x=y\r\n\r\n"
    async with site({"/": endless(b"%PDF", head)}) as there, fetching(there) as fetcher:
        with pytest.raises(UnwantedTypeError) as refused:
            await fetcher.get("http://a.test/", only=("text/html",))
    assert refused.value.media_type == "application/pdf"


TEXT = b"<p>hello " * 500
RAW_DEFLATE = zlib.compressobj(wbits=-15)


@pytest.mark.parametrize(
    ("encoding", "body"),
    [
        ("gzip", packed(TEXT)),
        ("x-gzip", packed(TEXT[:100]) + packed(TEXT[100:])),
        ("gzip", packed(TEXT) + b"\0" * 50),
        ("deflate", zlib.compress(TEXT)),
        ("deflate", RAW_DEFLATE.compress(TEXT) + RAW_DEFLATE.flush()),
        ("deflate, gzip", packed(zlib.compress(TEXT))),
        ("identity", TEXT),
        ("gzip", b""),
    ],
    ids=["gzip", "two members", "padded", "deflate", "bare deflate", "both", "none", "empty"],
)
async def test_compressed_bodies_are_read(encoding: str, body: bytes) -> None:
    async with site({"/": page(body, content_encoding=encoding)}) as there, fetching(there) as fetcher:
        assert (await fetcher.get("http://a.test/")).body == (TEXT if body else b"")


@pytest.mark.parametrize(
    "body",
    [TEXT, packed(TEXT), packed(packed(TEXT)), b"x", b""],
    ids=["plain", "gzip", "twice", "one byte", "empty"],
)
async def test_a_gzip_file_is_known_by_its_first_bytes_whatever_its_name(body: bytes) -> None:
    plain = TEXT if len(body) > 1 else body
    async with site({"/s.xml": page(body, content_type="text/xml")}) as there, fetching(there) as fetcher:
        fetched = await fetcher.get("http://a.test/s.xml", ungzip=True)
        untouched = await fetcher.get("http://a.test/s.xml")
    assert (fetched.body, fetched.gzipped) == (plain, body != plain)
    assert untouched.body == body


@pytest.mark.parametrize(
    ("encoding", "body", "error"),
    [
        ("br", b"xxx", UndecodableError),
        ("gzip", b"not gzip at all", UndecodableError),
        ("gzip, gzip, gzip, gzip", b"", UndecodableError),
        ("gzip", packed(TEXT)[:-20], BrokenAnswerError),
    ],
    ids=["brotli", "a lie", "four layers", "cut short"],
)
async def test_a_body_that_cannot_be_unpacked_is_told(encoding: str, body: bytes, error: type[FetchError]) -> None:
    async with site({"/": page(body, content_encoding=encoding)}) as there, fetching(there) as fetcher:
        with pytest.raises(error):
            await fetcher.get("http://a.test/")


async def test_a_reader_may_leave_early() -> None:
    async with site({"/": endless(b"x" * 1000)}) as there, fetching(there, concurrency=1) as fetcher:
        for _ in range(3):
            async with fetcher.stream("http://a.test/") as answer:
                async for _chunk in answer.chunks():
                    break
        gc.collect()
        assert there.connections == 3
