"""The queues as they move: one table that is drawn over itself on a terminal, a line now and then elsewhere."""

import shutil
import sys
import time
from collections.abc import Mapping
from typing import Any, LiteralString

import psycopg
import typer

from listener.cli.say import paint
from listener.cli.table import cut, table
from listener.cli.top import Frame, look

ORDER = (
    "place_search", "deep_scan", "domain_extraction", "domain_metadata", "sitemap_analysis", "sitemap_import",
    "page_curation",
)  # fmt: skip
MADE: Mapping[str, tuple[str, LiteralString]] = {
    "place_search": ("places", "place"),
    "deep_scan": ("businesses", "local_business"),
    "domain_extraction": ("domains", "domain"),
    "sitemap_analysis": ("sitemaps", "sitemap_file"),
    "sitemap_import": ("pages", "page"),
    "page_curation": ("contacts", "contact"),
}
"""Whose rows a workflow makes, for people and for the database."""
_COUNTS: LiteralString = "SELECT {}".format(
    ", ".join(f"(SELECT count(*) FROM {relation})" for _, relation in MADE.values())  # noqa: S608
)
WIDE = 100
BAR, SHORT_BAR = 24, 8
_QUIET_SECONDS = 5.0
"""From one line to the next where nothing can be drawn over."""
_UP = "\x1b[{}A\r"
_REST_OF_LINE = "\x1b[K"
_REST_OF_SCREEN = "\x1b[J"


class Live:
    """`note` says something for good; `show` draws how things stand below it."""

    def __init__(self, db: psycopg.Connection) -> None:
        self._db = db
        self._drawn = 0
        self._frame: Frame | None = None
        self._begun = time.monotonic()
        self._base: dict[str, int] = {}
        self._said = ("", 0.0)
        self._draws = sys.stdout.isatty()

    def note(self, text: str, *, bold: bool = False) -> None:
        self._erase()
        typer.echo(paint(text, None, bold=bold))
        sys.stdout.flush()

    def show(self, waits_for: str = "") -> None:
        self._frame = frame = look(self._db, self._frame)
        rows = sorted(frame.rows, key=lambda row: _place(row["workflow"]))
        if not self._base:
            self._base = {row["workflow"]: int(row["finished"]) for row in rows}
        if self._draws:
            self._draw(frame, rows, waits_for)
        else:
            self._say(rows, waits_for)

    def _draw(self, frame: Frame, rows: list[dict[str, Any]], waits_for: str) -> None:
        width = shutil.get_terminal_size().columns
        counts = self._counts()
        wide = width >= WIDE
        names = ["workflow", "queued", "running", "retry", "dead", "done", *(["    /s"] if wide else []), "", "made"]
        cells = [self._cells(row, frame, counts, wide=wide) for row in rows]
        seconds = time.monotonic() - self._begun
        head = f"{seconds:3.0f} s" + (f" · {waits_for}" if waits_for else "")
        lines = [*table(names, cells, width=width, paint=_painted).splitlines(), cut(head, width)]
        # over the old one instead of after clearing it, so that nothing flickers
        up = _UP.format(self._drawn) if self._drawn else ""
        sys.stdout.write(up + "".join(f"{line}{_REST_OF_LINE}\n" for line in lines) + _REST_OF_SCREEN)
        sys.stdout.flush()
        self._drawn = len(lines)

    def _cells(self, row: dict[str, Any], frame: Frame, counts: Mapping[str, int], *, wide: bool) -> list[Any]:
        name = row["workflow"]
        done = int(row["finished"]) - self._base.get(name, 0)
        rate = frame.rates[name]
        made = f"{counts[name]:,} {MADE[name][0]}" if name in MADE else ""
        return [
            *(name, row["queued"], row["running"], row["retry"], row["dead"], done),
            # of one width, or the table would jump
            *([f"{rate:6.1f}" if rate else " " * 6] if wide else []),
            bar(done, row["running"], row["queued"] + row["retry"], BAR if wide else SHORT_BAR),
            made,
        ]

    def _say(self, rows: list[dict[str, Any]], waits_for: str) -> None:
        moving = [
            f"{row['workflow']} {row['queued'] + row['retry']} waiting, {row['running']} running"
            for row in rows
            if row["queued"] or row["running"] or row["retry"]
        ]
        text = "; ".join(moving) or waits_for
        said, at = self._said
        if text and text != said and time.monotonic() - at >= _QUIET_SECONDS:
            self._said = (text, time.monotonic())
            counts = self._counts()
            made = ", ".join(f"{counts[name]:,} {word}" for name, (word, _) in MADE.items())
            typer.echo(f"{time.monotonic() - self._begun:3.0f} s  {made} · {text}")
            sys.stdout.flush()

    def _counts(self) -> dict[str, int]:
        row = self._db.execute(_COUNTS).fetchone() or ()
        return dict(zip(MADE, row, strict=True))

    def _erase(self) -> None:
        if self._drawn:
            sys.stdout.write(_UP.format(self._drawn) + _REST_OF_SCREEN)
            self._drawn = 0


def bar(done: int, running: int, waiting: int, width: int) -> str:
    """What is done, what runs, and what waits, in proportion."""
    whole = done + running + waiting
    if not whole:
        return " " * width
    full = width * done // whole
    busy = min(width - full, -(-width * running // whole))
    return "█" * full + "▒" * busy + "·" * (width - full - busy)


def _place(workflow: str) -> int:
    return ORDER.index(workflow) if workflow in ORDER else len(ORDER)


def _painted(column: str, text: str, value: Any) -> str:
    if column == "dead" and value:
        return paint(text, "red")
    if column == "" and value:
        return paint(text, "green" if "▒" not in text and "·" not in text else "yellow")
    return paint(text, None, bold=True) if column in ("queued", "running", "retry") and value else text
