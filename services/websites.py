"""A website as people write it -> the registrable domain behind it, or the reason there is none."""

import ipaddress
import re
from dataclasses import dataclass
from enum import Enum
from functools import lru_cache
from urllib.parse import parse_qs, unquote, urlsplit

import idna
from publicsuffixlist import PublicSuffixList

from services.platforms import BUILDERS, platform

SUFFIXES = PublicSuffixList(accept_unknown=False)
"""The list as baked into the package, private part included: shop.myshopify.com is a domain of its own."""
_PUBLIC = PublicSuffixList(accept_unknown=False, only_icann=True)

LONGEST = 2048
RESERVED = frozenset({"test", "example"})
"""Names nobody can own (RFC 2606): not in the list, but a simulated internet lives there."""

_INVISIBLE = re.compile("[\x00-\x1f\x7f\u00ad\u200b-\u200f\u202a-\u202e\u2060-\u2064\ufeff]")
_WEB = re.compile(r"(?:https?(?:[:;]/*|/{2,})|//)", re.IGNORECASE)
_OTHER_SCHEME = re.compile(r"([a-z][a-z0-9+-]{1,15}):(?![0-9])", re.IGNORECASE)
_FOREIGN = re.compile(r"([a-z][a-z0-9+.-]{0,15}):/", re.IGNORECASE)
_MAILBOX = re.compile(r"[^/:@\s]+@[^/:@\s]+")
_LABEL = re.compile(r"(?!-)[a-z0-9_-]{1,63}(?<!-)")
_NUMBER = re.compile(r"[0-9]+|0x[0-9a-f]*")
_NOTHING = frozenset({"", "-", "--", "n/a", "na", "none", "null", "nil", "no website", "no", "http://", "https://"})
_WRAPPERS = {
    "/url": ("q", "url"),
    "/l.php": ("u",),
    "/": ("u",),
    "/aclk": ("adurl",),
    "/pagead/aclk": ("adurl",),
    "/imgres": ("imgrefurl",),
    "/redirect": ("q",),
}
_WRAPPING = frozenset({"google", "facebook", "instagram", "googleadservices", "youtube"})
_DEPTH = 4


class Kind(Enum):
    """What a website text turned out to be."""

    DOMAIN = "domain"
    NONE = "none"
    PLATFORM = "platform"
    INVALID = "invalid"


@dataclass(frozen=True, slots=True)
class Website:
    kind: Kind
    domain: str | None = None
    """The registrable domain in lower-case ASCII, as DNS has it."""
    host: str | None = None
    """The host that was written, normalised."""
    reason: str = ""
    """Why there is no domain."""
    rule: str = ""
    """What was done to get there."""

    @property
    def shown(self) -> str:
        """The domain as people read it: müller.de, not xn--mller-kva.de."""
        return unicode_host(self.domain) if self.domain else ""


class InvalidHostError(ValueError):
    """Not the name of a host; the text says why."""


def website(text: str | None) -> Website:
    """The registrable domain of a website, or the reason there is none. Never raises."""
    return _read(text or "", 0)


def _read(text: str, depth: int) -> Website:
    cleaned = _INVISIBLE.sub("", text).strip().strip("<>\"'")
    if cleaned.lower() in _NOTHING:
        return Website(Kind.NONE, reason="there is no website")
    if len(cleaned) > LONGEST:
        return _invalid(f"longer than {LONGEST} characters")
    try:
        authority, rest = _split(cleaned)
        host = host_name(authority)
        return _of_host(host, rest, depth)
    except InvalidHostError as error:
        return _invalid(str(error))


def _of_host(host: str, rest: str, depth: int) -> Website:
    bare = host.removeprefix("www.")
    if bare != host and _PUBLIC.is_public(bare):
        bare = host  # www.com is somebody's domain
    registrable = registrable_domain(bare)
    if registrable is None:
        if SUFFIXES.is_public(bare):
            if _PUBLIC.is_public(bare):
                return _none(Kind.INVALID, host, f"{bare} is a public suffix: nobody's own domain")
            return _none(Kind.PLATFORM, host, f"{bare} is a hosting platform, not the business's own domain")
        if "_" in bare:
            return _none(Kind.INVALID, host, f"{bare!r} is no host name")
        top = bare.rpartition(".")[2]
        return _none(Kind.INVALID, host, f".{unicode_host(top)} is no top-level domain")
    if bare in BUILDERS:
        return _none(Kind.PLATFORM, host, f"{bare} is a hosting platform, not the business's own domain")
    inner = _unwrapped(registrable, rest)
    if inner and depth < _DEPTH:
        found = _read(inner, depth + 1)
        return Website(found.kind, found.domain, found.host, found.reason, f"unwrapped from {host}; {found.rule}")
    if kind := platform(host, registrable):
        return _none(Kind.PLATFORM, host, f"{host} is {kind}, not the business's own domain")
    return Website(Kind.DOMAIN, registrable, host, rule="public suffix list")


def _split(text: str) -> tuple[str, str]:
    """(authority, the rest from the first / ? or # on)."""
    address = text.replace("\\", "/")
    had_scheme = False
    while match := _WEB.match(address):
        address, had_scheme = address[match.end() :], True
    if not had_scheme:
        if match := _FOREIGN.match(address):
            raise InvalidHostError(f"{match[1]}: is not a web address")
        if match := _OTHER_SCHEME.match(address):
            if "@" not in address or match[1].lower() in ("mailto", "sip", "skype"):
                raise InvalidHostError(f"{match[1]}: is not a web address")
        elif _MAILBOX.fullmatch(address):
            raise InvalidHostError("it is an e-mail address, not a website")
    end = min((at for at in map(address.find, "/?#") if at >= 0), default=len(address))
    return address[:end], address[end:]


def host_name(authority: str) -> str:
    """The host of `user:password@host:port`, normalised; raises InvalidHostError for what no DNS name can be."""
    place = authority.rpartition("@")[2]
    if place.startswith("["):
        raise InvalidHostError(f"{place.partition(']')[0]}] is an IP address, not a domain")
    if place.count(":") > 1:
        try:
            ipaddress.ip_address(place)
        except ValueError:
            raise InvalidHostError(f"{place!r} is no host name") from None
        raise InvalidHostError(f"{place} is an IP address, not a domain")
    name, colon, port = place.partition(":")
    if colon and port and not (port.isascii() and port.isdigit() and int(port[:6]) <= 65535):
        raise InvalidHostError(f"{port!r} is no port")
    return normal_host(unquote(name))


@lru_cache(4096)
def normal_host(name: str) -> str:
    """A host name as DNS has it: lower case, ASCII, no dot at the end."""
    host = name.strip().rstrip(".。．").lower()  # noqa: RUF001
    if not host:
        raise InvalidHostError("there is no host name in it")
    if not host.isascii():
        try:
            host = idna.encode(host, uts46=True).decode().lower()
        except (idna.IDNAError, UnicodeError):
            raise InvalidHostError(f"{name!r} is no host name") from None
    labels = host.split(".")
    if _NUMBER.fullmatch(labels[-1]):
        raise InvalidHostError(f"{host} is an IP address, not a domain")
    if len(host) > 253 or not all(map(_LABEL.fullmatch, labels)) or not all(map(_is_decodable, labels)):
        raise InvalidHostError(f"{name!r} is no host name")
    if len(labels) == 1:
        raise InvalidHostError(f"{host!r} has no dot: it is not a public host name")
    return host


@lru_cache(4096)
def registrable_domain(host: str) -> str | None:
    """The part of a normalised host that somebody registered; None for public suffixes and unknown ones."""
    labels = host.split(".")
    if labels[-1] in RESERVED:
        return ".".join(labels[-2:]) if len(labels) > 1 else None
    domain = SUFFIXES.privatesuffix(host)
    if domain in BUILDERS and host != domain:
        # a customer's own name, as with the suffixes of the list
        return ".".join(labels[-domain.count(".") - 2 :])
    return domain if domain and "_" not in domain.partition(".")[0] else None


def site_of(url: str) -> str | None:
    """The registrable domain of a URL's host; None where it has none."""
    try:
        return registrable_domain(host_name(_split(url)[0]))
    except InvalidHostError:
        return None


def is_of(url: str, domain: str) -> bool:
    """Whether a URL is on this domain's website: its own host, one below it, or a neighbour under the same name."""
    host = (urlsplit(url).hostname or "").rstrip(".")
    return host == domain or host.endswith(f".{domain}") or site_of(url) == (registrable_domain(domain) or domain)


def unicode_host(host: str) -> str:
    try:
        return idna.decode(host) if "xn--" in host else host
    except (idna.IDNAError, UnicodeError):
        return host


def _is_decodable(label: str) -> bool:
    if not label.startswith("xn--"):
        return True
    try:
        idna.decode(label)
    except (idna.IDNAError, UnicodeError):
        return False
    return True


def _unwrapped(registrable: str, rest: str) -> str | None:
    """The real address inside a link that a platform wrapped around it."""
    if registrable.partition(".")[0] not in _WRAPPING:
        return None
    path, _, query = rest.partition("#")[0].partition("?")
    if path.startswith("/amp/"):
        return path.removeprefix("/amp/").removeprefix("s/") or None
    names = _WRAPPERS.get(path.rstrip("/") or "/", ())
    try:
        fields = parse_qs(query, max_num_fields=50)
    except ValueError:
        return None
    for name in names:
        for value in fields.get(name, ()):
            if "." in value:
                return value
    return None


def _invalid(reason: str) -> Website:
    return Website(Kind.INVALID, reason=reason)


def _none(kind: Kind, host: str, reason: str) -> Website:
    return Website(kind, host=host, reason=reason)
