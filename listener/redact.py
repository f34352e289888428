"""Secrets taken out of text before it is logged. The database does the same for what it stores (scheduler.redact)."""

import re
from urllib.parse import unquote

from psycopg import ProgrammingError, conninfo

# Names that smell of a secret, up to the = or : behind them
_NAMED = r"(?:api[_-]?key|key|token|secret|passw(?:or)?d|pwd|signature|sig|auth|credential)[\"']?\s*[=:]\s*"

_RULES = (
    # user:password@ in a URL
    (re.compile(r"(://)[^/@\s]+@"), r"\1***@"),
    # "key": "a value" and key='a value', to the closing quote; then key=value
    (re.compile(rf"({_NAMED}\")[^\"\n]+\"", re.IGNORECASE), r'\1***"'),
    (re.compile(rf"({_NAMED}')[^'\n]+'", re.IGNORECASE), r"\1***'"),
    (re.compile(rf"({_NAMED}[\"']?)[^\s&\"',;)]+", re.IGNORECASE), r"\1***"),
    # Authorization headers of any scheme, and cookies
    (
        re.compile(
            r"(authorization[\"']?\s*[:=]\s*[\"']?(?:\w+\s+)?|\b(?:bearer|basic)\s+)[A-Za-z0-9._~+/=-]{6,}",
            re.IGNORECASE,
        ),
        r"\1***",
    ),
    (re.compile(r"((?:set-)?cookie[\"']?\s*[:=]\s*[\"']?)[^\"'\r\n]+", re.IGNORECASE), r"\1***"),
    # Google API keys wherever they stand
    (re.compile(r"AIza[0-9A-Za-z_-]{20,}"), "***"),
)
_SHORTEST_SECRET = 4
_known: set[str] = set()


def know(secret: str | None) -> None:
    """This very text never appears in a log line, wherever it stands."""
    if secret and len(secret) >= _SHORTEST_SECRET:
        _known.add(secret)


def know_url(url: str | None) -> None:
    """The password of a connection string, as written and as sent."""
    if not url:
        return
    try:
        password = conninfo.conninfo_to_dict(url).get("password")
    except ProgrammingError:
        return
    know(str(password) if password else None)
    for part in re.findall(r"://[^/@\s:]*:([^/@\s]+)@", url):
        know(part)
        know(unquote(part))


def redact(text: str) -> str:
    for secret in _known:
        text = text.replace(secret, "***")
    for pattern, replacement in _RULES:
        text = pattern.sub(replacement, text)
    return text
