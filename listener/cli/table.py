"""Query results as text, the way psql shows them, but never wider than the terminal."""

import shutil
import sys
import textwrap
import unicodedata
from collections.abc import Callable, Collection, Sequence
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any
from uuid import UUID

GAP = "  "
NARROWEST = 10
"""A text column is not cut below this; columns at the right are left out instead."""
NARROWEST_PROSE = 32
"""Nor those that are read as sentences below this."""
PROSE = ("error", "what")
LONGEST_NAME = 24
ID_LENGTH = 36
WIDEST_PROSE = 120

Paint = Callable[[str, str, Any], str]
"""Column, padded text, value: the text as it is shown."""


def table(
    names: Sequence[str],
    rows: Sequence[Sequence[Any]],
    *,
    width: int | None = None,
    paint: Paint | None = None,
    whole: Collection[str] = (),
) -> str:
    """Columns as wide as their widest value, numbers to the right.

    With `width`, long texts are cut to fit it, but never those of columns in `whole`.
    """
    cells = [[show(value) for value in row] for row in rows]
    numeric = [_is_numeric([row[i] for row in rows]) for i in range(len(names))]
    widths = [max(columns_of(text) for text in [name, *(row[i] for row in cells)]) for i, name in enumerate(names)]
    kept = len(names)
    if width is not None:
        fixed = [numeric[i] or name in whole for i, name in enumerate(names)]
        ids = [all(_is_id(row[i]) for row in cells if row[i]) for i in range(len(names))]
        widths, kept = _fit(names, widths, fixed, ids, width)
    lines = [GAP.join(_pad(name, widths[i], numeric[i]) for i, name in enumerate(names[:kept])).rstrip()]
    lines.append(GAP.join("-" * widths[i] for i in range(kept)))
    for row, values in zip(cells, rows, strict=True):
        padded = [_pad(cut(row[i], widths[i]), widths[i], numeric[i]) for i in range(kept)]
        if paint is not None:
            padded = [paint(names[i], padded[i], values[i]) for i in range(kept)]
        lines.append(GAP.join(padded).rstrip())
    if kept < len(names):
        lines.append(cut(f"(no room for {', '.join(names[kept:])})", width or 0))
    return "\n".join(lines)


class Estimate(int):
    """A number that is not exact, and shown so."""

    def __str__(self) -> str:
        return f"~{int(self)}"


def terminal_width() -> int | None:
    """None where the output goes to a file or a pipe: there nothing is cut."""
    return shutil.get_terminal_size().columns if sys.stdout.isatty() else None


def wrap(text: str, indent: str = "", first: str = "") -> str:
    """Prose in lines that can be read. A key or a query too long for one is left for the terminal to break."""
    lines = textwrap.wrap(
        printable(text),
        min(terminal_width() or WIDEST_PROSE, WIDEST_PROSE),
        initial_indent=first,
        subsequent_indent=indent,
        break_long_words=False,
        break_on_hyphens=False,
    )
    return "\n".join(lines)


def show(value: Any) -> str:
    """A value as a person reads it: ages instead of times, units instead of seconds."""
    match value:
        case None:
            return ""
        case bool():
            return "yes" if value else "no"
        case timedelta():
            return duration(value) if value else ""  # nothing to wait for
        case datetime():
            return moment(value)
        case list() | tuple():
            return ", ".join(show(part) for part in value)
        case _:
            return printable(str(value))


def plain(value: Any) -> Any:
    """A value as a program reads it; durations are seconds."""
    match value:
        case timedelta():
            return value.total_seconds()
        case datetime():
            return value.isoformat()
        case Decimal():
            return int(value) if value == value.to_integral_value() else float(value)
        case UUID():
            return str(value)
        case _:
            return value


def printable(text: str) -> str:
    """Scraped text is hostile: no control character of it reaches the terminal."""
    return "".join(" " if unicodedata.category(c).startswith(("Cc", "Zl", "Zp", "Cf")) else c for c in text)


def duration(span: timedelta) -> str:
    """Two units at most: 85ms, 4.2s, 3m 12s, 2h 05m, 4d 3h."""
    seconds = abs(span.total_seconds())
    sign = "-" if span < timedelta() else ""
    whole = round(seconds)
    if seconds < 1:
        return f"{sign}{max(1, round(seconds * 1000))}ms"
    if whole < 10:
        return f"{sign}{seconds:.1f}s"
    if whole < 60:
        return f"{sign}{whole}s"
    minutes, rest = divmod(whole, 60)
    if minutes < 60:
        return f"{sign}{minutes}m {rest:02}s"
    hours, minutes = divmod(minutes, 60)
    if hours < 48:
        return f"{sign}{hours}h {minutes:02}m"
    return f"{sign}{hours // 24}d {hours % 24}h"


def moment(at: datetime) -> str:
    """How long ago, or in how long."""
    span = at - datetime.now(UTC) if at.tzinfo else at - datetime.now(UTC).replace(tzinfo=None)
    if abs(span) < timedelta(seconds=1):
        return "now"
    return f"in {duration(span)}" if span > timedelta() else f"{duration(-span)} ago"


def columns_of(text: str) -> int:
    """How many columns of a terminal it takes: Chinese and emoji take two, accents none."""
    return sum(0 if unicodedata.combining(c) else 2 if unicodedata.east_asian_width(c) in "WF" else 1 for c in text)


def cut(text: str, width: int) -> str:
    """The beginning tells what an error is; of an id its end is needed too."""
    if columns_of(text) <= width:
        return text
    if _is_id(text) and width >= NARROWEST:
        half = (width - 1) // 2
        return f"{text[: width - 1 - half]}…{text[-half:]}"
    kept = ""
    for character in text:
        if columns_of(kept + character) > width - 1:
            break
        kept += character
    return kept.rstrip() + "…"


def _is_id(text: str) -> bool:
    return len(text) == ID_LENGTH and text.count("-") == 4


def _pad(text: str, width: int, to_right: bool) -> str:
    blanks = " " * (width - columns_of(text))
    return blanks + text if to_right else text + blanks


def _is_numeric(values: Sequence[Any]) -> bool:
    present = [value for value in values if value is not None]
    return bool(present) and all(
        isinstance(value, int | float | Decimal | timedelta) and not isinstance(value, bool) for value in present
    )


def _fit(
    names: Sequence[str], widths: list[int], fixed: Sequence[bool], ids: Sequence[bool], width: int
) -> tuple[list[int], int]:
    """Cut ids first, then the widest texts; if that is not enough, leave out columns, the last first."""
    widths = list(widths)
    for kept in range(len(names), 0, -1):
        fitted = widths[:kept]
        # the first column says what the line is about; an id does so with its two ends
        floors = [w if fixed[i] else min(w, _floor(i, names[i], is_id=ids[i])) for i, w in enumerate(fitted)]
        while _total(fitted) > width:
            widest = max(range(kept), key=lambda i: (ids[i] and fitted[i] > floors[i], fitted[i] - floors[i]))
            if fitted[widest] == floors[widest]:
                break
            fitted[widest] -= 1
        if _total(fitted) <= width or kept == 1:
            return fitted, kept
    return widths, len(names)


def _floor(place: int, name: str, *, is_id: bool) -> int:
    if place == 0 and not is_id:
        return LONGEST_NAME
    return max(NARROWEST_PROSE if name in PROSE else NARROWEST, columns_of(name))


def _total(widths: Sequence[int]) -> int:
    return sum(widths) + len(GAP) * (len(widths) - 1)
