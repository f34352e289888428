"""Who may see and do what: people and their tokens, and the signed cookie that remembers one of them."""

import base64
import hashlib
import hmac
import ipaddress
import json
import re
import secrets
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from listener.errors import UserError
from listener.redact import know

SESSION_SECONDS = 12 * 3600
OPERATOR = "operator"
"""The name of whoever signs in with WEB_TOKEN."""

_SHORTEST = 16
_TOKEN = re.compile(rf"[A-Za-z0-9._~+/=-]{{{_SHORTEST},}}")
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._@-]{0,62}")
_MAKE_ONE = "Make one with: python3 -c 'import secrets; print(secrets.token_urlsafe(24))'"


@dataclass(frozen=True)
class Person:
    """Somebody whom the page knows."""

    name: str
    may_act: bool
    session: str = ""
    """What ties a form to the session it was shown in; empty for a bearer token, which no browser sends by itself."""


class Access:
    """The people of this page. Without any, everybody on this machine may look and nobody may act."""

    def __init__(self, people: Sequence[tuple[str, str, bool]] = ()) -> None:
        self._people = [(name, token.encode(), may_act) for name, token, may_act in people]
        for _, token, _ in people:
            know(token)
        # a changed token ends all sessions; a restart does not
        secret = b"\0".join([*(name.encode() + b":" + token for name, token, _ in self._people)])
        self._key = hashlib.sha256(b"scrapersky web session\0" + secret).digest() if people else secrets.token_bytes(32)

    @classmethod
    def read(cls, token: str | None, users: Sequence[str]) -> "Access":
        """From WEB_TOKEN and WEB_USERS; everything wrong with them is an error that never repeats them."""
        people = []
        if token is not None:
            people.append((OPERATOR, _checked(token, "WEB_TOKEN"), True))
        for number, entry in enumerate(users, start=1):
            name, _, rest = entry.partition(":")
            secret, _, rights = rest.partition(":")
            if not _NAME.fullmatch(name) or rights not in ("", "read"):
                raise UserError(
                    f"WEB_USERS: entry {number} is not like name:token or name:token:read.",
                    "Names are letters, digits and . _ @ -; entries are separated by spaces or commas.",
                )
            people.append((name, _checked(secret, f"WEB_USERS: the token of {name}"), not rights))
        if len({secret for _, secret, _ in people}) < len(people):
            raise UserError("WEB_TOKEN, WEB_USERS: two people have the same token.", _MAKE_ONE)
        return cls(people)

    def become(self, other: "Access") -> None:
        """Other people and tokens from now on; sessions of before are over."""
        self._people, self._key = other._people, other._key  # noqa: SLF001 - its own kind

    @property
    def is_open(self) -> bool:
        """Nobody can sign in, so whoever reaches the page may look."""
        return not self._people

    def person_with(self, token: str) -> Person | None:
        found = None
        for name, known, may_act in self._people:
            # all of them, always: how long it takes says nothing
            if hmac.compare_digest(known, token.encode()):
                found = Person(name, may_act)
        return found

    # -- the session cookie --------------------------------------------------------------------------------------------

    def cookie_for(self, person: Person) -> str:
        return self.sign(
            "session", {"name": person.name, "until": time.time() + SESSION_SECONDS, "n": secrets.token_hex(8)}
        )

    def person_of(self, cookie: str) -> Person | None:
        said = self.unsign("session", cookie)
        if said is None or said["until"] < time.time():
            return None
        for name, _, may_act in self._people:
            if name == said["name"]:
                return Person(name, may_act, said["n"])
        return None

    def form_token(self, person: Person) -> str:
        """Proof that a form was shown in this very session."""
        return hmac.new(self._key, b"form\0" + person.session.encode(), hashlib.sha256).hexdigest()

    def is_form_token(self, person: Person, given: str) -> bool:
        return bool(person.session) and hmac.compare_digest(self.form_token(person).encode(), given.encode())

    # -- signed values -------------------------------------------------------------------------------------------------

    def sign(self, purpose: str, value: dict[str, Any]) -> str:
        text = base64.urlsafe_b64encode(json.dumps(value).encode()).decode()
        return f"{text}.{self._seal(purpose, text)}"

    def unsign(self, purpose: str, signed: str) -> dict[str, Any] | None:
        text, _, seal = signed.partition(".")
        if not hmac.compare_digest(self._seal(purpose, text).encode(), seal.encode()):
            return None
        value: dict[str, Any] = json.loads(base64.urlsafe_b64decode(text))
        return value

    def _seal(self, purpose: str, text: str) -> str:
        return hmac.new(self._key, f"{purpose}\0{text}".encode(), hashlib.sha256).hexdigest()


def _checked(token: str, name: str) -> str:
    if not _TOKEN.fullmatch(token):
        raise UserError(
            f"{name} is too short or has unusual characters: {_SHORTEST} or more of A-Z a-z 0-9 . _ ~ + / = -",
            _MAKE_ONE,
        )
    return token


def is_loopback(host: str) -> bool:
    """Whether only this machine itself can reach an address that is bound there."""
    host = host.strip("[]")
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def refuse_exposure(host: str, access: Access) -> None:
    """A page without a token stays on this machine."""
    if access.is_open and not is_loopback(host):
        raise UserError(
            f"WEB_HOST is {host}, which others can reach, and neither WEB_TOKEN nor WEB_USERS is set.",
            f"Set a token, or serve on 127.0.0.1. {_MAKE_ONE}",
        )
