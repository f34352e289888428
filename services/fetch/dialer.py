"""One request over the wire: the name looked up once, every address checked, and that very address connected to."""

import asyncio
import os
import socket
import ssl
from collections.abc import AsyncGenerator, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path

import httpx

from services.fetch.address import Address, is_public, literal
from services.fetch.errors import (
    BrokenAnswerError,
    ConnectError,
    ConnectTimeoutError,
    DeadHostError,
    FetchError,
    ReadTimeoutError,
    RefusedAddressError,
    ResolveError,
    TlsError,
)
from services.fetch.resolver import Resolver
from services.fetch.settings import FetchSettings
from services.fetch.target import Target

_MOST_ADDRESSES = 3
"""Of one host that are tried."""
# httpx's pool collapses under concurrency when it keeps connections, and a crawler hardly ever comes back to one.
_LIMITS = httpx.Limits(max_connections=None, max_keepalive_connections=0)
_NO_SUCH_NAME = (socket.EAI_NONAME, getattr(socket, "EAI_NODATA", socket.EAI_NONAME))


@dataclass(frozen=True)
class Route:
    """What is really connected to."""

    host: str
    port: int
    tls: bool
    transport: httpx.AsyncBaseTransport


class Dialer:
    """Speaks HTTP through httpx's transport alone: no cookies, no redirects, no environment."""

    def __init__(self, settings: FetchSettings, resolver: Resolver) -> None:
        self._settings = settings
        self._resolver = resolver
        context = _trusting(settings.ca_file)
        transport = partial(httpx.AsyncHTTPTransport, verify=context, trust_env=False, limits=_LIMITS)
        self._direct = transport()
        self._proxied = transport(proxy=httpx.Proxy(settings.proxy_url)) if settings.proxy_url else None

    async def send(self, target: Target, headers: Mapping[str, str]) -> httpx.Response:
        """The answer's head; its body is read with `body` and must be closed. Raises a FetchError."""
        trouble: FetchError | None = None
        for route in (await self._routes(target))[:_MOST_ADDRESSES]:
            try:
                return await route.transport.handle_async_request(self._request(target, route, headers))
            except (httpx.TransportError, httpx.InvalidURL) as error:
                trouble = told(error, target)
                if not isinstance(trouble, ConnectError | ConnectTimeoutError):
                    break
        assert trouble is not None  # noqa: S101 - there is always a route
        raise trouble

    async def close(self) -> None:
        await self._direct.aclose()
        if self._proxied is not None:
            await self._proxied.aclose()

    async def _routes(self, target: Target) -> list[Route]:
        tls = target.url.scheme == "https"
        if (rule := target.replay) is not None:
            if not rule.address:
                raise _dead(target)
            return [Route(rule.address, rule.to_port, tls and rule.tls, self._direct)]
        addresses = [str(address) for address in await self._addresses(target)]
        if self._proxied is not None:
            return [Route(target.host, target.port, tls, self._proxied)]
        return [Route(address, target.port, tls, self._direct) for address in addresses]

    async def _addresses(self, target: Target) -> Sequence[Address]:
        written = literal(target.host)
        found = [written] if written is not None else await self._look_up(target)
        inside = [address for address in found if not is_public(address)]
        if inside and not self._settings.allow_private:
            # one is enough: which of them would be connected to is not ours to guess
            raise RefusedAddressError(f"{target.host} is not on the public internet ({inside[0]})", url=str(target.url))
        return found

    async def _look_up(self, target: Target) -> Sequence[Address]:
        try:
            async with asyncio.timeout(self._settings.connect_seconds) as timer:
                found = await self._resolver.resolve(target.host)
        except TimeoutError:
            if not timer.expired():
                raise
            raise ResolveError(f"DNS did not answer for {target.host} in time", url=str(target.url)) from None
        except socket.gaierror as error:
            if error.errno in _NO_SUCH_NAME:
                raise _dead(target) from error
            raise ResolveError(f"DNS cannot say where {target.host} is", url=str(target.url)) from error
        except (UnicodeError, ValueError) as error:
            raise _dead(target) from error  # a name no name server takes
        if not found:
            raise _dead(target)
        return found

    def _request(self, target: Target, route: Route, headers: Mapping[str, str]) -> httpx.Request:
        settings = self._settings
        url = target.url.copy_with(scheme="https" if route.tls else "http", host=route.host, port=route.port)
        told = {"X-Forwarded-Proto": target.url.scheme} if target.replay is not None else {}
        return httpx.Request(
            "GET",
            url,
            headers={"Host": target.authority, **headers, **told, "Connection": "close"},
            extensions={
                "sni_hostname": target.host,
                "timeout": {
                    "connect": settings.connect_seconds,
                    "read": settings.read_seconds,
                    "write": settings.read_seconds,
                },
            },
        )


@cache
def _trusting(more: Path | None) -> ssl.SSLContext:
    """The usual authorities, and those of this file. Reading them takes longer than many a fetch."""
    context = httpx.create_ssl_context(trust_env=False)
    if more is not None:
        context.load_verify_locations(more)
    return context


async def body(response: httpx.Response, target: Target) -> AsyncGenerator[bytes, None]:
    """The bytes as they were sent."""
    try:
        async for chunk in response.aiter_raw():
            yield chunk
    except httpx.TransportError as error:
        raise told(error, target, begun=True) from error


def told(error: Exception, target: Target, *, begun: bool = False) -> FetchError:
    """httpx's error in our words; `begun` if its head had come."""
    url, host = str(target.url), target.host
    causes = list(_causes(error))
    # others say that the connection ended or that there is more to come, not that TLS failed
    tls = next((cause for cause in causes if type(cause) in (ssl.SSLError, ssl.SSLCertVerificationError)), None)
    match error:
        case httpx.ConnectError() if isinstance(tls, ssl.SSLError):
            return TlsError(f"TLS with {host} failed: {_tls_words(tls)}", url=url)
        case httpx.ConnectTimeout():
            return ConnectTimeoutError(f"no connection to {host} in time", url=url)
        case httpx.TimeoutException():
            return ReadTimeoutError(f"{host} fell silent", url=url)
        case httpx.ConnectError() if any(isinstance(cause, ssl.SSLError) for cause in causes):
            return ConnectError(f"no connection to {host}: it hung up before TLS was agreed on", url=url)
        case httpx.ConnectError() | httpx.ProxyError():
            return ConnectError(f"no connection to {host}: {_os_words(causes)}", url=url)
        case httpx.ReadError() | httpx.WriteError() | httpx.CloseError():
            return BrokenAnswerError(f"{host} broke off: {_os_words(causes)}", url=url)
        case _ if begun:
            return BrokenAnswerError(f"{host} broke off in the middle of its answer", url=url)
        case _ if "disconnected" in str(error):
            return BrokenAnswerError(f"{host} hung up without an HTTP answer", url=url)
        case _:
            return BrokenAnswerError(f"what {host} answers is not HTTP", url=url)


def _dead(target: Target) -> DeadHostError:
    return DeadHostError(f"there is no host {target.host}", url=str(target.url))


def _tls_words(error: ssl.SSLError) -> str:
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"its certificate is not valid ({error.verify_message.rstrip('.')})"
    return (error.reason or "no common ground").replace("_", " ").lower()


def _os_words(causes: list[BaseException]) -> str:
    # the numbers of an SSLError are OpenSSL's own
    system = (cause for cause in causes if isinstance(cause, OSError) and not isinstance(cause, ssl.SSLError))
    number = next((cause.errno for cause in system if cause.errno), None)
    return os.strerror(number).lower() if number else "refused or unreachable"


def _causes(error: BaseException | None) -> Iterator[BaseException]:
    while error is not None:
        yield error
        if isinstance(error, BaseExceptionGroup):
            yield from error.exceptions
        error = error.__cause__ or error.__context__
