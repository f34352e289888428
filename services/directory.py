"""Contacts for people: finding them, checking what a person writes, and which of them an export holds."""

import re
from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any, Final
from uuid import UUID

import psycopg
from psycopg import sql

from listener.errors import UserError
from services.models.words import CurationStatus, EmailType

Session = psycopg.Connection[tuple[Any, ...]]

FILTERS: Final[dict[str, sql.SQL]] = {
    "domain": sql.SQL("d.domain = lower(%(domain)s)"),
    "curation": sql.SQL("c.contact_curation_status = %(curation)s"),
    "email_type": sql.SQL("c.email_type = %(email_type)s"),
    "since": sql.SQL("c.created_at >= %(since)s"),
    "with_email": sql.SQL("(c.email IS NOT NULL) = %(with_email)s"),
    "with_phone": sql.SQL("(c.phone IS NOT NULL) = %(with_phone)s"),
    "search": sql.SQL(
        "EXISTS (SELECT FROM public.local_business AS b JOIN public.place AS p ON p.place_id = b.place_id"
        " WHERE b.domain_id = c.domain_id AND p.place_search_id = %(search)s)"
    ),
    "text": sql.SQL("concat_ws(' ', c.email, c.phone, c.name, c.role, d.domain) ILIKE %(text)s"),
}
"""What contacts can be chosen by → the condition, with c for contact and d for domain."""


def chosen(**filters: Any) -> tuple[sql.Composable, dict[str, Any]]:
    """The condition for those of the filters that are set, and its values; an error for one that means nothing."""
    values = {name: _READ[name](value) for name, value in filters.items() if value is not None}
    conditions = [FILTERS[name] for name in values]
    return sql.SQL(" AND ").join(conditions) if conditions else sql.SQL("true"), values


def find_contact(session: Session, named: str) -> UUID:
    """The contact with this id or this email; an error if there is none, or more than one."""
    try:
        found = session.execute("SELECT id FROM public.contact WHERE id = %s", [UUID(named)]).fetchall()
    except ValueError:
        found = session.execute(
            "SELECT id FROM public.contact WHERE email = lower(%s) ORDER BY created_at", [named.replace("\0", "")]
        ).fetchall()
    if not found:
        raise UserError(f"There is no contact {named!r}.", "'scrapersky contact list --text …' finds contacts.")
    if len(found) > 1:
        keys = ", ".join(str(key) for (key,) in found[:5])
        raise UserError(f"{len(found)} domains have a contact {named}.", f"Name it by its id: {keys}.")
    return UUID(str(found[0][0]))


def check_contact(given: Mapping[str, str | None]) -> dict[str, str | None]:
    """What a person has written, as it is stored: an empty text clears a field. Errors name the field and its form."""
    return {name: _checked(name, value.strip()) for name, value in given.items() if value is not None}


def _checked(name: str, value: str) -> str | None:
    if not value:
        return None
    if "\0" in value:
        raise UserError(f"--{name} has a NUL character in it.", "Leave it out.")
    if name == "email":
        value = value.lower()
        if not re.fullmatch(r"[^@\s]{1,64}@[^@\s]{1,253}", value):
            raise UserError(f"{value!r} is no email address.", "Write it as in info@example.com")
    elif name == "phone":
        value = re.sub(r"[\s().\-/]", "", value)
        if not re.fullmatch(r"\+[1-9][0-9]{5,14}", value):
            raise UserError(f"{value!r} is no international phone number.", "Begin with + and the country's code.")
    elif name == "curation":
        return _one_of(CurationStatus, "--curation", value)
    elif name == "email_type":
        return _one_of(EmailType, "--email-type", value)
    return value


def _one_of(kind: type[CurationStatus] | type[EmailType], option: str, value: str) -> str:
    for word in kind:
        if word.lower() == value.lower():
            return word.value
    raise UserError(f"{option} cannot be {value!r}.", f"It is one of: {', '.join(kind)}.")


def _moment(text: str) -> datetime:
    try:
        return datetime.fromisoformat(text).astimezone()
    except ValueError:
        raise UserError(
            f"--since cannot be {text!r}.", "Write a date, such as 2026-11-01 or 2026-11-01T12:00Z"
        ) from None


def _key(text: str) -> UUID:
    try:
        return UUID(text)
    except ValueError:
        raise UserError(f"--search cannot be {text!r}.", "It is the id that 'scrapersky search' printed.") from None


def _contained(text: str) -> str:
    return "%" + re.sub(r"([\\%_])", r"\\\1", text.replace("\0", "")) + "%"


def _as_it_is(value: Any) -> Any:
    return value.replace("\0", "") if isinstance(value, str) else value


_READ: Final[dict[str, Callable[[Any], Any]]] = {
    **dict.fromkeys(FILTERS, _as_it_is),
    "curation": lambda text: _one_of(CurationStatus, "--curation", text),
    "email_type": lambda text: _one_of(EmailType, "--email-type", text),
    "since": _moment,
    "search": _key,
    "text": _contained,
}
