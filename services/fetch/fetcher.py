"""The fetcher: one hop after the other, each with its manners and checks before anything is connected to."""

import asyncio
import http
import re
import time
from asyncio import Semaphore
from collections.abc import AsyncIterator, Collection
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC
from email.utils import parsedate_to_datetime
from types import TracebackType
from typing import Self

import httpx

from listener import Clock, Tools
from listener.redact import know_url
from services.fetch.dialer import Dialer, body
from services.fetch.errors import (
    ConnectError,
    ConnectTimeoutError,
    DisallowedError,
    FetchError,
    ReadTimeoutError,
    RedirectError,
    ResolveError,
    StatusError,
    TooLargeError,
    TotalTimeoutError,
    UndecodableError,
    UnwantedTypeError,
)
from services.fetch.fetched import Answer, Fetched, media_type_of
from services.fetch.gate import Gate, Gates
from services.fetch.inflate import Unpacking
from services.fetch.resolver import Resolver, SystemResolver
from services.fetch.robots import LIMIT as ROBOTS_LIMIT
from services.fetch.robots import Robots, RobotsCache
from services.fetch.settings import FetchSettings
from services.fetch.target import Target, aim

HTML = ("text/html", "application/xhtml+xml")
_ACCEPT = "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"
_REDIRECTS = frozenset({301, 302, 303, 307, 308})
_ENCODINGS = {"gzip": "gzip", "x-gzip": "gzip", "deflate": "deflate"}
_UNREADABLE = frozenset({"br", "zstd", "compress", "x-compress", "dcb", "dcz", "sdch", "exi", "pack200-gzip"})
"""Never asked for. Other words in that header, such as utf-8 or none, compress nothing, here as in browsers."""
_NO_DOCUMENT = frozenset({202, 204, 205})
"""Successes that bring nothing to read; the page under a 202 is a firewall's, which wants to see a browser."""
_IS_HTML = re.compile(
    rb"(?:\xef\xbb\xbf)?\s*<(?:!doctype html|!--|html|head|body|title|meta|script|style|div|p|h1|table|a|b|br|font"
    rb"|iframe)[\s>-]",
    re.IGNORECASE,
)
"""What browsers take for HTML where the server does not say."""
_MOST_COOKIES = 16_384
_MOST_ENCODINGS = 3
_LONGEST_RETRY_AFTER = 86_400.0


class Fetcher:
    """Fetches from the web for all workflows of one process; every way it can fail is a FetchError.

    `async with Fetcher(FetchSettings()) as fetcher: page = await fetcher.get(url)`
    """

    def __init__(
        self, settings: FetchSettings, *, clock: Clock | None = None, resolver: Resolver | None = None
    ) -> None:
        know_url(settings.proxy_url)
        self.settings = settings
        self._clock = clock or Clock()
        self._resolver = resolver or SystemResolver()
        self._dialer = Dialer(settings, self._resolver)
        self._slots = Semaphore(settings.concurrency)
        self._gates = Gates(settings.host_concurrency, self._clock)
        self._robots = RobotsCache(self._get_robots, settings.robot, settings.robots_hours * 3600, self._clock)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        await self._robots.close()
        await self._dialer.close()
        self._resolver.close()

    async def get(
        self,
        url: str,
        *,
        limit: int | None = None,
        cut: bool = False,
        accept: str = _ACCEPT,
        only: Collection[str] = (),
        ungzip: bool = False,
        patience: float | None = None,
    ) -> Fetched:
        """The whole document. The arguments are those of `stream`."""
        async with self.stream(
            url, limit=limit, cut=cut, accept=accept, only=only, ungzip=ungzip, patience=patience
        ) as answer:
            fetched = await _whole(answer)
        if only and not fetched.media_type and not _IS_HTML.match(fetched.body):
            raise _unwanted("", fetched.final_url)
        return fetched

    @asynccontextmanager
    async def stream(
        self,
        url: str,
        *,
        limit: int | None = None,
        cut: bool = False,
        accept: str = _ACCEPT,
        only: Collection[str] = (),
        ungzip: bool = False,
        patience: float | None = None,
    ) -> AsyncIterator[Answer]:
        """The document as it comes; its host's turn and the deadline last until the block is left.

        `limit`: most bytes after decompression (FETCH_BODY_BYTES). `cut`: end there instead of raising TooLargeError.
        `accept`: the header. `only`: media types; any other raises UnwantedTypeError before the body is read. Where the
        server names none, the beginning of the body decides, in `get`.
        `ungzip`: unpack a document that is a gzip file itself, whatever it is called.
        `patience`: the longest wait for the host's turn, if less than FETCH_PATIENCE_SECONDS.
        """
        headers = {"Accept": accept}
        async with self._follow(url, headers, patience=patience) as arrival:
            found = media_type_of(arrival.response.headers)
            if only and found and found not in only:
                raise _unwanted(found, str(arrival.target.url))
            yield self._answer(arrival, limit, cut=cut, ungzip=ungzip)

    async def robots(self, url: str) -> Robots:
        """The rules of the site this URL is on, and the sitemaps it names."""
        return await self._robots.of(aim(url, self.settings).site)

    async def _get_robots(self, url: str) -> Fetched:
        async with self._follow(url, {"Accept": "text/plain,*/*;q=0.5"}, for_rules=True) as arrival:
            return await _whole(self._answer(arrival, ROBOTS_LIMIT, cut=True, ungzip=False))

    # -- hops -------------------------------------------------------------------------------------------------------

    @asynccontextmanager
    async def _follow(
        self, url: str, headers: dict[str, str], *, for_rules: bool = False, patience: float | None = None
    ) -> AsyncIterator["Arrival"]:
        """The answer at the end of all redirects; anything but a success is an error."""
        target = aim(url, self.settings)
        budget = Budget(self.settings.total_seconds)
        # who is on the way already waits as long as it takes
        longest = self.settings.patience_seconds
        first = longest if patience is None else min(patience, longest)
        passed: list[str] = []
        cookies = Cookies()
        been = {(str(target.url), "")}
        while True:
            pause = 0.0 if for_rules else await self._pause(target)
            if passed and httpx.URL(passed[-1]).host == target.url.host:
                pause = 0.0  # a redirect within one host is part of the same visit
            async with self._hop(
                target, headers | cookies.of(target), budget, pause, longest if passed else first
            ) as response:
                if response.status_code not in _REDIRECTS or "location" not in response.headers:
                    self._check_status(target, response)
                    yield Arrival(target, response, tuple(passed), budget.begun)
                    return
                location = response.headers["location"]
                cookies.take(target, response)
            passed.append(str(target.url))
            target = self._next(target, location, passed)
            step = (str(target.url), cookies.of(target).get("Cookie", ""))
            if step in been:
                raise RedirectError(f"{passed[-1].partition('?')[0]} redirects in a circle", url=passed[-1])
            been.add(step)

    async def _pause(self, target: Target) -> float:
        """How long to keep between requests to this host; DisallowedError if it wants none.

        Asked before any slot is taken, because the look at robots.txt needs one itself.
        """
        if not self.settings.robots:
            return self.settings.host_seconds
        rules = await self._robots.of(target.site)
        if not rules.allows(str(target.url)):
            raise DisallowedError(f"robots.txt of {target.host} disallows {target.url.path[:200]}", url=str(target.url))
        return max(self.settings.host_seconds, min(rules.crawl_delay, self.settings.crawl_delay_seconds))

    @asynccontextmanager
    async def _hop(
        self, target: Target, headers: dict[str, str], budget: "Budget", pause: float, patience: float
    ) -> AsyncIterator[httpx.Response]:
        gate = self._gates.of(target.host)
        async with gate.turn(pause, patience), self._slots, budget.spend(target):
            response = await self._send(target, headers, gate)
            try:
                yield response
            finally:
                await response.aclose()

    async def _send(self, target: Target, headers: dict[str, str], gate: Gate) -> httpx.Response:
        common = {"User-Agent": self.settings.user_agent, "Accept-Encoding": "gzip, deflate"}
        try:
            response = await self._dialer.send(target, {**common, **headers})
        except (ConnectError, ConnectTimeoutError, ReadTimeoutError, ResolveError) as error:
            gate.failed(str(error))
            raise
        gate.answered()
        if response.status_code in (429, 503) and (seconds := _retry_after(response, self._clock)):
            gate.rest(seconds, f"asked for a pause (HTTP {response.status_code})")
        return response

    def _next(self, target: Target, location: str, passed: list[str]) -> Target:
        if len(passed) > self.settings.redirects:
            raise RedirectError(f"more than {self.settings.redirects} redirects, last from {target}", url=passed[-1])
        try:
            url = str(target.url.join(location))
        except httpx.InvalidURL as error:
            raise RedirectError(f"{target} redirects to what is no URL", url=passed[-1]) from error
        try:
            following = aim(url, self.settings)
        except FetchError as error:
            raise type(error)(f"{target} redirects on, but {error}", url=url) from error
        return following

    def _check_status(self, target: Target, response: httpx.Response) -> None:
        status = response.status_code
        if not 200 <= status < 300 or status in _NO_DOCUMENT:
            raise StatusError(
                f"HTTP {status} ({_phrase(status)})",
                status,
                url=str(target.url),
                retry_after=_retry_after(response, self._clock),
            )

    def _answer(self, arrival: "Arrival", limit: int | None, *, cut: bool, ungzip: bool) -> Answer:
        limit = self.settings.body_bytes if limit is None else limit
        final, headers = str(arrival.target.url), arrival.response.headers
        said = headers.get("content-length", "")
        if said.isdecimal() and int(said[:15]) > limit and not cut:
            raise TooLargeError(f"larger than {limit:,} bytes", url=final)
        return Answer(
            url=arrival.redirects[0] if arrival.redirects else final,
            final_url=final,
            status=arrival.response.status_code,
            headers=headers,
            redirects=arrival.redirects,
            limit=limit,
            cut=cut,
            raw=body(arrival.response, arrival.target),
            unpacking=Unpacking(_encodings(headers, final), ungzip=ungzip, ratio=self.settings.ratio),
            started=arrival.started,
        )


@dataclass(frozen=True)
class Arrival:
    """The end of all redirects."""

    target: Target
    response: httpx.Response
    redirects: tuple[str, ...]
    started: float
    """When the last hop began."""


class Cookies:
    """Those of one fetch: many sites send a visitor in a circle who does not bring back what he was given."""

    def __init__(self) -> None:
        self._jar = httpx.Cookies()

    def take(self, target: Target, response: httpx.Response) -> None:
        if sum(map(len, response.headers.get_list("set-cookie"))) > _MOST_COOKIES:
            return
        response.request = httpx.Request("GET", target.url)
        self._jar.extract_cookies(response)

    def of(self, target: Target) -> dict[str, str]:
        request = httpx.Request("GET", target.url)
        self._jar.set_cookie_header(request)
        return {"Cookie": request.headers["cookie"]} if "cookie" in request.headers else {}


class Budget:
    """The time one fetch may take in all; only what is spent on the network counts."""

    def __init__(self, seconds: float) -> None:
        self._left = seconds
        self.begun = 0.0

    @asynccontextmanager
    async def spend(self, target: Target) -> AsyncIterator[None]:
        self.begun = time.monotonic()
        try:
            async with asyncio.timeout(self._left) as timer:
                yield
        except TimeoutError:
            if not timer.expired():
                raise
            raise TotalTimeoutError(f"{target.host} was too slow: not done in time", url=str(target.url)) from None
        finally:
            self._left -= time.monotonic() - self.begun


def fetcher(tools: Tools) -> Fetcher:
    """The one fetcher of this listener: its limits hold for all workflows together."""
    settings = tools.settings if isinstance(tools.settings, FetchSettings) else None
    return tools.shared(Fetcher, lambda: Fetcher(settings or FetchSettings(), clock=tools.clock))


async def _whole(answer: Answer) -> Fetched:
    collected = bytearray()
    async for chunk in answer.chunks():
        collected += chunk
    return Fetched(
        answer.url,
        answer.final_url,
        answer.status,
        answer.headers,
        bytes(collected),
        answer.elapsed_ms,
        answer.redirects,
        answer.gzipped,
        answer.was_cut,
    )


def _encodings(headers: httpx.Headers, url: str) -> list[str]:
    named = [part.strip().lower() for part in headers.get("content-encoding", "").split(",")]
    used = [part for part in named if part in _ENCODINGS or part in _UNREADABLE]
    if len(used) > _MOST_ENCODINGS or not _UNREADABLE.isdisjoint(used):
        raise UndecodableError(f"compressed in a way that was not asked for ({', '.join(used)[:50]})", url=url)
    return [_ENCODINGS[part] for part in used]


def _unwanted(found: str, url: str) -> UnwantedTypeError:
    return UnwantedTypeError(f"not a document of the wanted kind but {found or 'of no kind'}", found, url=url)


def _retry_after(response: httpx.Response, clock: Clock) -> float | None:
    """Seconds, from either form of the header."""
    text = response.headers.get("retry-after", "").strip()
    if text.isdecimal():
        return min(float(text[:9]), _LONGEST_RETRY_AFTER)
    try:
        moment = parsedate_to_datetime(text)
    except ValueError:
        return None
    moment = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    return min(max((moment - clock.now()).total_seconds(), 0.0), _LONGEST_RETRY_AFTER)


def _phrase(status: int) -> str:
    try:
        return http.HTTPStatus(status).phrase
    except ValueError:
        return "no known status"
