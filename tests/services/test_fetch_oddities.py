"""Servers as they are: in the wrong, but not so much that a browser would show nothing."""

import asyncio
import gzip

import pytest

from services.crawl import visit
from services.fetch import BrokenAnswerError, ConnectError, Fetcher, FetchSettings, RedirectError, StatusError
from services.fetch.errors import UnwantedTypeError
from tests.services.site import Script, fetching, page, raw, site

HTML = ("text/html",)
PAGE = "<title>Joe\u2019s</title><p>Gr\u00fc\u00dfe"
OK = b"HTTP/1.1 200 OK\r\nConnection: close\r\n"
HINTS = b"HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n"


@pytest.mark.parametrize(
    "answer",
    [
        page(PAGE, content_encoding="utf-8"),
        page(PAGE, content_encoding="none, UTF-8"),
        raw(OK + b"\r\n\n<!doctype HTML>" + PAGE.encode()),
        raw(OK + b"\r\n\xef\xbb\xbf" + PAGE.encode()),
        raw(OK + b"Content-Type: text/html\r\nContent-Type: text/html; charset=utf-8\r\n\r\n" + PAGE.encode()),
        raw(OK + b"Content-Type: text/plain\r\nContent-Type: text/html\r\n\r\n" + PAGE.encode()),
        raw(b"HTTP/1.0 200\nContent-Type: text/html\n\n" + PAGE.encode()),
        raw(HINTS + OK + b"Content-Type: text/html\r\n\r\n" + PAGE.encode()),
        page(PAGE.encode(), content_type="text/html; charset=iso-8859-1"),
        page(PAGE.replace("\u2019", "'").encode("latin-1"), content_type="text/html; charset=utf-8"),
        page(PAGE.encode(), status=206),
    ],
    ids=["charset as encoding", "none", "no type", "no type but a mark", "type twice", "two types", "bare line ends",
         "early hints", "utf-8 said to be latin-1", "latin-1 said to be utf-8", "partial"],
)  # fmt: skip
async def test_a_page_that_a_browser_shows_is_read(answer: Script) -> None:
    async with site({"/": answer}) as there, fetching(there) as fetcher:
        fetched = await fetcher.get("http://a.test/", only=HTML)
    assert fetched.text().endswith("<p>Gr\u00fc\u00dfe")


@pytest.mark.parametrize("body", [b"%PDF-1.7", b"", b"plain words", b"<rss>", b"{}"])
async def test_what_nobody_calls_html_and_does_not_look_it_is_not_read(body: bytes) -> None:
    async with site({"/": raw(OK + b"\r\n" + body)}) as there, fetching(there) as fetcher:
        with pytest.raises(UnwantedTypeError, match="of no kind"):
            await fetcher.get("http://a.test/", only=HTML)


@pytest.mark.parametrize(("status", "again"), [(202, True), (204, False), (205, False)])
async def test_a_success_without_a_document_is_none(status: int, again: bool) -> None:
    async with site({"/": page("<p>Checking your browser", status)}) as there, fetching(there) as fetcher:
        with pytest.raises(StatusError, match=f"HTTP {status} ") as error:
            await fetcher.get("http://a.test/")
    assert error.value.retryable is again


async def test_one_slip_in_a_page_does_not_change_its_charset() -> None:
    body = "<p>Gr\u00fc\u00dfe".encode() + b"\xff"
    async with site({"/": page(body)}) as there, fetching(there) as fetcher:
        assert (await fetcher.get("http://a.test/")).text() == "<p>Gr\u00fc\u00dfe\ufffd"


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (b"", r"a\.test hung up without an HTTP answer"),
        (b"SSH-2.0-OpenSSH_9.2\r\n", r"a\.test hung up without an HTTP answer"),
        (b"SSH-2.0-OpenSSH_9.2\r\n\r\n", r"what a\.test answers is not HTTP"),
        (OK + b"Bad Name: x\r\n\r\n", r"what a\.test answers is not HTTP"),
        (OK + b"Content-Length: 9\r\n\r\nabc", r"a\.test broke off in the middle of its answer"),
        (OK + b"Transfer-Encoding: chunked\r\n\r\nff\r\nabc", r"a\.test broke off in the middle of its answer"),
    ],
)
async def test_each_way_to_break_off_has_its_own_words(answer: bytes, words: str) -> None:
    async with site({"/": raw(answer)}) as there, fetching(there) as fetcher:
        with pytest.raises(BrokenAnswerError, match=words):
            await fetcher.get("http://a.test/")


async def test_a_host_that_hangs_up_before_tls_is_not_called_by_openssls_numbers() -> None:
    async def hang_up(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.close()

    server = await asyncio.start_server(hang_up, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    settings = FetchSettings.model_validate({"robots": False, "replay": f"a.test=tls:127.0.0.1:{port}"})
    async with server, Fetcher(settings) as fetcher:
        with pytest.raises(ConnectError, match=r"hung up before TLS was agreed on|connection reset by peer"):
            await fetcher.get("https://a.test/")


# -- cookies ----------------------------------------------------------------------------------------------------------


async def test_a_site_that_hands_out_a_cookie_and_looks_for_it_shows_its_page() -> None:
    async def wall(writer: asyncio.StreamWriter) -> None:
        shown = there.requests[-1].headers.get("cookie") == "seen=1"
        answer = page("<p>hello") if shown else page(b"", 302, location="/", set_cookie="seen=1; Path=/; HttpOnly")
        await answer(writer)

    async with site({"/": wall}) as there, fetching(there) as fetcher:
        fetched = await fetcher.get("http://a.test/")
        assert (fetched.text(), fetched.redirects) == ("<p>hello", ("http://a.test/",))
        # of one fetch: the next visitor is a new one
        await fetcher.get("http://a.test/")
    assert [request.headers.get("cookie") for request in there.requests] == [None, "seen=1"] * 2


async def test_a_cookie_goes_to_no_other_host_and_keeps_nobody_in_a_circle() -> None:
    async def counting(writer: asyncio.StreamWriter) -> None:
        await page(b"", 302, location="/", set_cookie=f"n={len(there.requests)}")(writer)

    routes = {"a.test/": page(b"", 302, location="http://b.test/", set_cookie="secret=1"), "b.test/": page("x")}
    async with site(routes) as there, fetching(there) as fetcher:
        await fetcher.get("http://a.test/")
        assert there.requests[-1].headers.get("cookie") is None
        there.routes |= {"c.test/": counting, "d.test/": page(b"", 302, location="/", set_cookie="same=1")}
        with pytest.raises(RedirectError, match="more than 5 redirects"):
            await fetcher.get("http://c.test/")
        with pytest.raises(RedirectError, match="in a circle"):
            await fetcher.get("http://d.test/")
        there.routes["e.test/"] = page(b"", 302, location="/", set_cookie="x=" + "1" * 20_000)
        with pytest.raises(RedirectError, match="in a circle"):
            await fetcher.get("http://e.test/")


# -- pages that send their visitors on --------------------------------------------------------------------------------


def meta(content: str, around: str = "{}") -> Script:
    return page(around.format(f'<META http-equiv="Refresh" content="{content}">'))


@pytest.mark.parametrize(
    "content", ["0;url=/en/", "0; URL='/en/'", "1, /en/", ".5;/en/", "0 ; url = //a.test/en/#top", "5;URL=en/"]
)
async def test_a_page_that_sends_its_visitors_on_is_followed(content: str) -> None:
    async with site({"/": meta(content), "/en/": page("<p>hello")}) as there, fetching(there) as fetcher:
        fetched = await visit(fetcher, "http://a.test/")
    assert (fetched.text(), fetched.url, fetched.final_url) == ("<p>hello", "http://a.test/", "http://a.test/en/")
    assert fetched.redirects == ("http://a.test/",)


@pytest.mark.parametrize(
    "answer",
    [
        meta("300"),
        meta("300;url=/en/"),
        meta("0;url=/"),
        meta("0;url=javascript:alert(1)"),
        meta("0;url=http://[broken/"),
        meta("x;url=/en/"),
        meta("0;url=/en/", "<noscript>{}</noscript>"),
        meta("0;url=/en/", "<!-- {} -->"),
        meta("0;" + " " * 100_000 + "x"),
        page("<p>http-equiv refresh"),
        page("<meta http-equiv=refresh>" + "<div>" * 3000),
    ],
)
async def test_a_page_that_stays_is_not_left(answer: Script) -> None:
    async with site({"/": answer, "/en/": page("no")}) as there, fetching(there) as fetcher:
        assert (await visit(fetcher, "http://a.test/")).final_url == "http://a.test/"
    assert there.paths == ["/"]


async def test_pages_that_send_on_and_on_are_left_alone_in_the_end() -> None:
    routes = {f"/{n}": meta(f"0;url=/{n + 1}") for n in range(9)} | {
        "/round": meta("0;url=/about"),
        "/about": meta("0;url=/round"),
    }
    async with site(routes) as there, fetching(there) as fetcher:
        assert (await visit(fetcher, "http://a.test/0")).final_url == "http://a.test/2"
        assert (await visit(fetcher, "http://a.test/round")).final_url == "http://a.test/about"


async def test_a_page_packed_without_a_word_is_unpacked() -> None:
    async with site({"/": page(gzip.compress(b"<p>hello"))}) as there, fetching(there) as fetcher:
        assert (await visit(fetcher, "http://a.test/")).text() == "<p>hello"
