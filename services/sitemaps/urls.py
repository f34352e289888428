"""One spelling for each address, so that a page is one row however its sitemaps write it."""

import re
from urllib.parse import parse_qsl, quote, urlencode, urljoin, urlsplit

from services.websites import InvalidHostError, normal_host, registrable_domain

_LONGEST = 2048
_TRACKING = re.compile(
    r"utm_[a-z]+|fbclid|gclid|msclkid|mc_[ce]id|_ga|sessionid|phpsessid|jsessionid|sid", re.IGNORECASE
)
_TRACKING_MARKS = ("utm_", "clid", "mc_", "_ga", "sid", "session")
_SAFE = "/%:@!$&'()*+,;=~-._[]"
_PORTS = {"http": 80, "https": 443}


# An address that needs no work, as most in a sitemap: to take one apart and put it together costs many times more.
_PLAIN = re.compile(r"(https?://)([a-z0-9.-]+)(/[A-Za-z0-9/%:@!$&'()*+,;=~._-]*)?")


class UnusableUrlError(ValueError):
    """Not the address of a page of this site; the text says why."""


def normal_url(written: str, base: str = "") -> str:
    """Absolute, host in lower case, no fragment, no credentials, no default port, no tracking; or raises."""
    written = written.strip()
    if (plain := _PLAIN.fullmatch(written)) and len(written) <= _LONGEST:
        return f"{plain[1]}{_host(plain[2])}{plain[3] or '/'}"
    try:
        written.encode()  # half a character has no spelling in a URL
        parts = urlsplit(urljoin(base, written))
        port = parts.port
    except ValueError:
        raise UnusableUrlError("not a URL") from None
    if parts.scheme not in _PORTS or not parts.hostname:
        raise UnusableUrlError("neither http nor https")
    host = _host(parts.hostname)
    place = host if port in (None, _PORTS[parts.scheme]) else f"{host}:{port}"
    url = f"{parts.scheme}://{place}{quote(parts.path, safe=_SAFE) or '/'}"
    if parts.query:
        url += f"?{_query(parts.query)}".rstrip("?")
    if len(url) > _LONGEST:
        raise UnusableUrlError(f"longer than {_LONGEST:,} characters")
    return url


def _host(name: str) -> str:
    try:
        return normal_host(name)
    except InvalidHostError as error:
        raise UnusableUrlError(str(error)) from None


def of_site(written: str, base: str, site: str) -> str:
    """The same, and on this site; its subdomains count, a neighbour's pages do not."""
    url = normal_url(written, base)
    host = url.split("/", 3)[2].partition(":")[0]
    if host != site and not host.endswith(f".{site}") and registrable_domain(host) != site:
        raise UnusableUrlError(f"on another site ({host})")
    return url


def _query(query: str) -> str:
    lowered = query.lower()
    if not any(mark in lowered for mark in _TRACKING_MARKS):
        return quote(query, safe=_SAFE + "?")
    try:
        kept = [
            pair
            for pair in parse_qsl(query, keep_blank_values=True, max_num_fields=100)
            if not _TRACKING.fullmatch(pair[0])
        ]
    except ValueError:
        return quote(query, safe=_SAFE + "?")
    return urlencode(kept)
