"""Hosts served from elsewhere under their own names, as curl's --connect-to does it.

`FETCH_REPLAY="*.example.test=127.0.0.1:8123, broken.example.test:443=tls:127.0.0.1:8443"`: what is asked of a host on
the left (`*` stands for any text, the port is optional) goes to the address on the right, with Host unchanged. The
first rule that fits counts. Only for these hosts, and only to that address, the checks of ports and addresses are off.

A replayed host is spoken to in plain HTTP, also for https URLs, so that a recording needs no certificates; the header
X-Forwarded-Proto tells the two apart. With `tls:` there is TLS, verified as always (FETCH_CA_FILE can add a CA).
`gone.example.test=nowhere` makes it a name that DNS does not know.
"""

import re
from dataclasses import dataclass
from fnmatch import fnmatchcase
from ipaddress import ip_address

_RULE = re.compile(
    r"(?P<host>[^\s:=/]+)(?::(?P<port>\d{1,5}))?="
    r"(?:(?P<nowhere>nowhere)|(?P<tls>tls:)?(?P<address>\[[0-9a-fA-F:]+\]|[\d.]+):(?P<to>\d{1,5}))"
)


@dataclass(frozen=True)
class Replay:
    """One rule."""

    host: str
    port: int | None
    address: str
    """Empty: there is no such host."""
    to_port: int
    tls: bool

    def fits(self, host: str, port: int) -> bool:
        return self.port in (None, port) and fnmatchcase(host, self.host)


def parse(text: str) -> tuple[Replay, ...]:
    return tuple(_rule(part.strip()) for part in text.split(",") if part.strip())


def _rule(text: str) -> Replay:
    found = _RULE.fullmatch(text)
    try:
        if found is None:
            raise ValueError(text)  # noqa: TRY301 - one message for both
        address = "" if found["nowhere"] else str(ip_address(found["address"].strip("[]")))
    except ValueError:
        raise ValueError(f"{text!r} is no rule; write it like *.example.test:443=127.0.0.1:8123") from None
    port = int(found["port"]) if found["port"] else None
    return Replay(found["host"].lower(), port, address, int(found["to"] or 0), bool(found["tls"]))
