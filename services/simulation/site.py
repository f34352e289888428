"""What a simulated website is made of: paths, and what is answered there."""

from collections.abc import Callable
from dataclasses import dataclass, field

from services.simulation.server import Manner

HTML = "text/html; charset=utf-8"
XML = "application/xml"
TEXT = "text/plain"

Body = bytes | Callable[[], bytes]
"""A large one is made when it is asked for, so that a town of hundreds fits in memory."""


@dataclass(frozen=True)
class Answer:
    body: Body
    status: int = 200
    kind: str = HTML
    headers: tuple[tuple[str, str], ...] = ()
    manner: Manner = Manner.WHOLE
    delay: float = 0.0

    @property
    def content(self) -> bytes:
        return self.body if isinstance(self.body, bytes) else self.body()


def redirect(to: str, status: int = 301) -> Answer:
    return Answer(b"", status, headers=(("Location", to),))


@dataclass
class Site:
    """Path → answer; what is not here is not found."""

    answers: dict[str, Answer] = field(default_factory=dict)
    stumbles: dict[str, tuple[int, Answer]] = field(default_factory=dict)
    """Path → how often something else is answered first, and what."""
    every: Answer | None = None
    """The answer for every path that has none of its own."""
    moved_to: str | None = None
    """Everything is there instead, under the same path."""

    def get(self, path: str) -> Answer:
        if self.moved_to is not None:
            return redirect(self.moved_to + path)
        times, instead = self.stumbles.get(path, (0, None))
        if times > 0 and instead is not None:
            self.stumbles[path] = (times - 1, instead)
            return instead
        return self.answers.get(path) or self.every or Answer(NOT_FOUND, 404)


NOT_FOUND = b"<!DOCTYPE html><title>Not found</title><h1>404</h1><p>There is nothing here.</p>"
