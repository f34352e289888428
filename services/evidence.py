"""Why a value is believed: the rule that found it, the place on the page, and the words around it."""

from dataclasses import dataclass
from typing import Generic, TypeVar

Value = TypeVar("Value")

SNIPPET = 160


@dataclass(frozen=True, slots=True)
class Evidence:
    rule: str
    """What found it: `mailto`, `text`, `json-ld`, ..."""
    where: str
    """A CSS path, a path into structured data, or a header's name."""
    snippet: str = ""
    """The words around it, on one line."""


@dataclass(frozen=True, slots=True)
class Found(Generic[Value]):
    value: Value
    evidence: Evidence


@dataclass(frozen=True, slots=True)
class Refused:
    """Something that looked like a value and was not taken."""

    kind: str
    value: str
    reason: str
    evidence: Evidence


def snippet(text: str, start: int, end: int) -> str:
    """The words around text[start:end], on one line, cut at the nearest blanks."""
    room = max(0, SNIPPET - (end - start)) // 2
    left, right = max(0, start - room), min(len(text), end + room)
    words = text[left:right]
    if left and (blank := words.find(" ", 0, room)) >= 0:
        words = words[blank:]
    if right < len(text) and (blank := words.rfind(" ", len(words) - room)) > 0:
        words = words[:blank]
    return " ".join(words.split())[:SNIPPET]


def one_line(text: str | None, limit: int = SNIPPET) -> str:
    """Text as a person would read it out: blanks folded, cut to a length a column can hold."""
    return " ".join((text or "").replace("\x00", " ").split())[:limit].rstrip()
