"""Markdown pages: their headings, links and code."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[2]
LITERAL = [ROOT / "docs" / "quickstart.md", ROOT / "docs" / "howto" / "upgrade-and-roll-back.md"]
"""Pages that are followed to the letter, shell commands included, by tests/docs/test_newcomer.py."""
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


class Step(NamedTuple):
    """A piece of code that a comment above it, such as `<!-- run -->`, tells what to do with."""

    what: str
    kind: str
    code: str


def steps(page: Path) -> list[Step]:
    """What a reader of this page does, in order."""
    found = re.findall(
        r"^<!-- (run|file)([^\n]*) -->\n```(\w+)\n(.*?)^```$", page.read_text(), re.MULTILINE | re.DOTALL
    )
    return [Step(f"{what}{more}", kind, code) for what, more, kind, code in found]


def runnable(page: Path) -> list[Block]:
    """Code below a line `<!-- run -->`."""
    return [Block(page, step.kind, step.code) for step in steps(page) if step.what == "run"]


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
