"""robots.txt: fetched once a day for each site, read with protego, believed."""

import asyncio
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Coroutine
from dataclasses import dataclass, field
from typing import Any

from protego import Protego

from listener import Clock
from services.fetch.errors import (
    DeadHostError,
    FetchError,
    InvalidUrlError,
    RedirectError,
    RefusedAddressError,
    RefusedPortError,
    RefusedSchemeError,
    RobotsError,
    StatusError,
    TlsError,
)
from services.fetch.fetched import Fetched

LIMIT = 500 * 1024
"""RFC 9309: at least so much must be read; the rest is cut off."""
_MOST_SITES = 10_000
_FAILURE_SECONDS = 60.0
"""How long a site that did not answer is not asked again."""
_NOWHERE = (RefusedAddressError, RefusedPortError, RefusedSchemeError, InvalidUrlError, DeadHostError, TlsError)
_BEGINNINGS_OF_HTML = ("<!doctype", "<html", "<head", "<body", "<?xml", "<!--")


@dataclass(frozen=True)
class Robots:
    """The rules of one site for us."""

    sitemaps: tuple[str, ...] = ()
    crawl_delay: float = 0.0
    agent: str = ""
    found: bool = False
    """Whether the site has a robots.txt at all."""
    _rules: Any = field(default=None, repr=False)

    @classmethod
    def read(cls, text: str, agent: str) -> "Robots":
        """From its text; an HTML page served in its place says nothing."""
        if text.lstrip("\ufeff \t\r\n")[:16].lower().startswith(_BEGINNINGS_OF_HTML):
            return cls(agent=agent)
        rules = Protego.parse(text.replace("\x00", ""))  # an address of a sitemap may end up in a note
        return cls(
            sitemaps=tuple(dict.fromkeys(rules.sitemaps)),
            crawl_delay=_delay(rules, agent),
            agent=agent,
            found=True,
            _rules=rules,
        )

    def allows(self, url: str) -> bool:
        return self._rules is None or bool(self._rules.can_fetch(url, self.agent))


def _delay(rules: Protego, agent: str) -> float:
    """The pause it asks for, as Crawl-delay or as Request-rate."""
    delay = float(rules.crawl_delay(agent) or 0)
    rate = rules.request_rate(agent)
    return max(delay, rate.seconds / rate.requests if rate and rate.requests else 0.0, 0.0)


@dataclass
class _Known:
    answer: "asyncio.Task[Robots]"
    until: float = float("inf")


Fetch = Callable[[str], Awaitable[Fetched]]


class RobotsCache:
    """The rules of all sites seen lately. Many who ask at once cause one fetch."""

    def __init__(self, fetch: Fetch, agent: str, seconds: float, clock: Clock) -> None:
        self._fetch = fetch
        self._agent = agent
        self._seconds = seconds
        self._clock = clock
        self._sites: OrderedDict[str, _Known] = OrderedDict()

    async def of(self, site: str) -> Robots:
        """The rules of `https://host[:port]`. Raises what kept us from asking, or RobotsError."""
        known = self._sites.get(site)
        if known is None or known.until <= self._clock.monotonic():
            known = self._sites[site] = _Known(_started(self._ask(site)))
            if len(self._sites) > _MOST_SITES:
                self._sites.popitem(last=False)
        self._sites.move_to_end(site)
        try:
            # one who gives up must not take it from the others
            rules = await asyncio.shield(known.answer)
        except FetchError:
            self._keep(known, _FAILURE_SECONDS)
            raise
        self._keep(known, self._seconds)
        return rules

    def _keep(self, known: _Known, seconds: float) -> None:
        if known.until == float("inf"):
            known.until = self._clock.monotonic() + seconds

    async def _ask(self, site: str) -> Robots:
        url = f"{site}/robots.txt"
        try:
            fetched = await self._fetch(url)
        except StatusError as error:
            if error.status < 500 and error.status != 429:
                return Robots(agent=self._agent)
            raise RobotsError(
                f"robots.txt answers HTTP {error.status}, so nothing is fetched for now",
                url=url,
                retry_after=error.retry_after,
            ) from error
        except (RedirectError, *_NOWHERE) as error:
            if isinstance(error, _NOWHERE) and error.url == url:
                raise  # the site itself
            # RFC 9309: one that leads nowhere is none; each page is checked for itself
            return Robots(agent=self._agent)
        text = fetched.text()
        if fetched.cut:
            # half a line is another rule: "Disallow: /archive/1" may end as "Disallow: /"
            text = text[: text.rfind("\n") + 1]
        return Robots.read(text, self._agent)

    async def close(self) -> None:
        tasks = [known.answer for known in self._sites.values()]
        self._sites.clear()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


def _started(asking: Coroutine[Any, Any, Robots]) -> "asyncio.Task[Robots]":
    task = asyncio.create_task(asking)
    # an error nobody waited for is no news
    task.add_done_callback(lambda done: done.cancelled() or done.exception())
    return task
