"""A URL as it is fetched: checked against the rules that need no look-up, and cleaned of what is not sent."""

from dataclasses import dataclass

import httpx

from services.fetch.address import is_disguised
from services.fetch.errors import InvalidUrlError, RefusedAddressError, RefusedPortError, RefusedSchemeError
from services.fetch.replay import Replay
from services.fetch.settings import FetchSettings

_DEFAULT_PORTS = {"http": 80, "https": 443}
_LONGEST_URL = 8192


@dataclass(frozen=True)
class Target:
    """Where one hop goes."""

    url: httpx.URL
    """Without credentials and fragment."""
    host: str
    """In ASCII, lower case, without a dot at its end."""
    port: int
    replay: Replay | None

    @property
    def authority(self) -> str:
        """What stands in the Host header."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port == _DEFAULT_PORTS[self.url.scheme] else f"{host}:{self.port}"

    @property
    def site(self) -> str:
        """The URL whose robots.txt rules here."""
        return f"{self.url.scheme}://{self.authority}"

    def __str__(self) -> str:
        """For error texts: no query, it may hold what nobody should read."""
        return f"{self.site}{self.url.path}"[:300]


def aim(url: str, settings: FetchSettings) -> Target:
    """The target of a URL, or the FetchError that says why it is none."""
    if len(url) > _LONGEST_URL:
        raise InvalidUrlError(f"the URL is longer than {_LONGEST_URL:,} characters")
    try:
        parsed = httpx.URL(url.strip())
        host = parsed.raw_host.decode("ascii").lower().rstrip(".")
    except (httpx.InvalidURL, UnicodeError, ValueError, TypeError) as error:
        raise InvalidUrlError(f"not a URL: {_plain(str(error))}") from error
    if parsed.scheme not in _DEFAULT_PORTS:
        raise RefusedSchemeError(
            f"only http and https are fetched, not {_plain(parsed.scheme) or 'a URL without a scheme'}"
        )
    if not host:
        raise InvalidUrlError("the URL names no host")
    port = parsed.port or _DEFAULT_PORTS[parsed.scheme]
    clean = parsed.copy_with(host=host, userinfo=b"", fragment=None)
    replay = next((rule for rule in settings.replay if rule.fits(host, port)), None)
    target = Target(clean, host, port, replay)
    if replay is None:
        _check(target, settings)
    return target


def _check(target: Target, settings: FetchSettings) -> None:
    if target.port not in settings.ports:
        allowed = ", ".join(str(port) for port in settings.ports)
        raise RefusedPortError(f"port {target.port} is not fetched from (allowed: {allowed})", url=str(target.url))
    if is_disguised(target.host):
        raise RefusedAddressError(f"{target.host} is an address in disguise", url=str(target.url))


def _plain(text: str) -> str:
    return "".join(letter if letter.isprintable() else "?" for letter in text)[:100]
