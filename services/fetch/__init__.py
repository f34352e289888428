"""The one way to the web: polite, capped, and never to an address inside.

with verdicts():                                  # a FetchError becomes the engine's Retry or Reject
    page = await fetcher(tools).get(url)          # raises for every status from 400 on
page.text(), page.final_url, page.media_type, page.headers

async with fetcher(tools).stream(url, ungzip=True) as answer:
    async for chunk in answer.chunks(): ...
"""

from services.fetch.errors import (
    BrokenAnswerError,
    BusyError,
    ConnectError,
    ConnectTimeoutError,
    DeadHostError,
    DisallowedError,
    FetchError,
    InvalidUrlError,
    ReadTimeoutError,
    RedirectError,
    RefusedAddressError,
    RefusedPortError,
    RefusedSchemeError,
    ResolveError,
    RobotsError,
    StatusError,
    TlsError,
    TooLargeError,
    TotalTimeoutError,
    UndecodableError,
    UnwantedTypeError,
    verdicts,
)
from services.fetch.fetched import Answer, Fetched
from services.fetch.fetcher import Fetcher, fetcher
from services.fetch.inflate import Inflater
from services.fetch.robots import Robots
from services.fetch.settings import FetchSettings

__all__ = [
    "Answer",
    "BrokenAnswerError",
    "BusyError",
    "ConnectError",
    "ConnectTimeoutError",
    "DeadHostError",
    "DisallowedError",
    "FetchError",
    "FetchSettings",
    "Fetched",
    "Fetcher",
    "Inflater",
    "InvalidUrlError",
    "ReadTimeoutError",
    "RedirectError",
    "RefusedAddressError",
    "RefusedPortError",
    "RefusedSchemeError",
    "ResolveError",
    "Robots",
    "RobotsError",
    "StatusError",
    "TlsError",
    "TooLargeError",
    "TotalTimeoutError",
    "UndecodableError",
    "UnwantedTypeError",
    "fetcher",
    "verdicts",
]
