"""Markdown pages: their headings, links and code."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[2]
_FENCE = re.compile(r"^(?P<fence>`{3,})(?P<kind>[^\n]*)\n(?P<code>.*?)^(?P=fence)\s*$", re.MULTILINE | re.DOTALL)
_LINK = re.compile(r"(?<!!)\[[^\]\n]*\]\(([^)\s]+)\)")


class Block(NamedTuple):
    """A fenced piece of code."""

    page: Path
    kind: str
    code: str


def pages() -> list[Path]:
    """Every page of the project."""
    folders = [
        ROOT.glob("*.md"),
        (ROOT / "docs").rglob("*.md"),
        (ROOT / "alembic").glob("*.md"),
        (ROOT / "benchmarks").glob("*.md"),
    ]
    return sorted(page for folder in folders for page in folder)


def blocks(page: Path) -> list[Block]:
    return [Block(page, found["kind"].strip(), found["code"]) for found in _FENCE.finditer(page.read_text())]


def links(page: Path) -> Iterator[str]:
    """Where its links lead; what stands in code is none."""
    prose = re.sub(r"`[^`\n]*`", "", _FENCE.sub("", page.read_text()))
    yield from (found[1] for found in _LINK.finditer(prose))


def anchors(page: Path) -> set[str]:
    """The names of its headings in a link."""
    text = _FENCE.sub("", page.read_text())
    return {_slug(title) for title in re.findall(r"^#+ (.+)$", text, re.MULTILINE)}


def _slug(title: str) -> str:
    plain = re.sub(r"[^\w\- ]", "", title.replace("`", "").lower())
    return re.sub(r"[ \-]+", "-", plain.strip())
