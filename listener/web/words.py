"""Numbers and times as people read them: the filters of the templates."""

import json
import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any
from urllib.parse import quote

_NONE = "\N{EN DASH}"


def number(value: Any) -> str:
    """1234567 → 1 234 567, with spaces that do not break."""
    if value is None:
        return _NONE
    if isinstance(value, float | Decimal) and value != int(value):
        return f"{value:,.1f}".replace(",", "\N{NARROW NO-BREAK SPACE}")
    return f"{int(value):,}".replace(",", "\N{NARROW NO-BREAK SPACE}")


def short(value: Any) -> str:
    """1234567 → 1.2M, for places where width is scarce."""
    if value is None:
        return _NONE
    for limit, unit in ((1_000_000_000, "G"), (1_000_000, "M"), (10_000, "k")):
        if abs(value) >= limit:
            scale = 1000 if unit == "k" else limit
            return f"{float(value) / scale:.3g}{unit}"
    return number(value)


def percent(value: Any) -> str:
    return _NONE if value is None else f"{float(value) * 100:.3g}\N{NARROW NO-BREAK SPACE}%"


def duration(value: timedelta | float | None) -> str:
    """The two largest units: 2 h 5 min, 3.2 s, 120 ms."""
    if value is None:
        return _NONE
    seconds = value.total_seconds() if isinstance(value, timedelta) else float(value)
    if seconds < 0:
        return "-" + duration(-seconds)
    if seconds < 0.9995:
        return f"{seconds * 1000:.3g} ms" if seconds else "0 s"
    if seconds < 60:
        return f"{seconds:.2g} s" if seconds < 9.95 else f"{seconds:.3g} s"
    for size, unit, smaller_size, smaller in (
        (86400, "d", 3600, "h"),
        (3600, "h", 60, "min"),
        (60, "min", 1, "s"),
    ):
        if seconds >= size:
            whole, rest = divmod(seconds, size)
            part = int(rest // smaller_size)
            return f"{whole:.0f} {unit}" + (f" {part} {smaller}" if part and whole < 100 else "")
    raise AssertionError(seconds)


def ago(moment: datetime | None) -> str:
    """3 min ago; in 12 s."""
    if moment is None:
        return "never"
    seconds = (datetime.now(UTC) - moment).total_seconds()
    if abs(seconds) < 1:
        return "now"
    return f"{duration(float(round(seconds)))} ago" if seconds > 0 else f"in {duration(float(round(-seconds)))}"


def moment(value: datetime | None) -> str:
    return _NONE if value is None else value.astimezone(UTC).strftime("%Y-%m-%d %H:%M:%S UTC")


def clock(value: datetime | None) -> str:
    """Only the time, with the day if it is not today."""
    if value is None:
        return _NONE
    at = value.astimezone(UTC)
    return at.strftime("%H:%M:%S" if at.date() == datetime.now(UTC).date() else "%b %d %H:%M")


def title(name: str) -> str:
    """sitemap_import → sitemap import."""
    return name.replace("_", " ")


def plain(value: Any) -> str:
    """Any value of any column."""
    if value is None:
        return _NONE
    if isinstance(value, datetime):
        return moment(value)
    if isinstance(value, timedelta):
        return duration(value)
    if isinstance(value, dict | list):
        return json.dumps(value, ensure_ascii=False, default=str)
    if isinstance(value, bool):
        return "yes" if value else "no"
    return str(value)


def facts(detail: dict[str, Any] | None) -> str:
    """What the audit notes, as name = value."""
    return ", ".join(f"{name} = {plain(value)}" for name, value in (detail or {}).items())


def passages(text: str) -> list[tuple[bool, str]]:
    """The pieces of a sentence, each with whether it is SQL to be copied."""
    pieces = re.split(
        r"((?:SELECT|UPDATE|GRANT) .+?(?=; (?:SELECT|UPDATE)\b|\. (?=[A-Z])|\.?$| queues (?:it|such)))", text
    )
    return [(place % 2 == 1, piece) for place, piece in enumerate(pieces) if piece]


def like(shape: str) -> str:
    """The folded text of an error as a pattern that finds all of its kind."""
    return re.sub(r"(<url>|<uuid>|<text>|#|%)+", "%", shape) + "%"


def item_path(workflow: str, key: str) -> str:
    """The address of an item's page, whatever its key is made of."""
    return f"/workflows/{quote(workflow)}/items/{quote(str(key), safe='')}"


FILTERS: dict[str, Callable[..., Any]] = {
    "ago": ago,
    "clock": clock,
    "duration": duration,
    "facts": facts,
    "like": like,
    "moment": moment,
    "number": number,
    "passages": passages,
    "percent": percent,
    "plain": plain,
    "short": short,
    "title": title,
}
