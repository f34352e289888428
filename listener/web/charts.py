"""Charts as numbers for SVG: the templates only write them down."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from listener.web.reads import Point

WIDTH, HEIGHT = 600, 120
SPARK_WIDTH, SPARK_HEIGHT = 120, 22


@dataclass(frozen=True)
class Bar:
    """What finished in one stretch of time: the good below, the failed on top of it."""

    x: float
    width: float
    good_y: float
    good_height: float
    bad_y: float
    bad_height: float
    point: Point


@dataclass(frozen=True)
class Bars:
    bars: tuple[Bar, ...]
    top: int
    """The value of the upper edge."""
    points: tuple[Point, ...]

    @property
    def total(self) -> int:
        return sum(point.succeeded for point in self.points)

    @property
    def failed(self) -> int:
        return sum(point.failed for point in self.points)


def bars(points: Sequence[Point]) -> Bars:
    top = _round_up(max((point.succeeded + point.failed for point in points), default=0))
    step = WIDTH / max(len(points), 1)
    drawn = []
    for number, point in enumerate(points):
        good, bad = HEIGHT * point.succeeded / top, HEIGHT * point.failed / top
        drawn.append(
            Bar(
                x=round(number * step + step * 0.12, 1),
                width=round(step * 0.76, 1),
                good_y=round(HEIGHT - good, 1),
                good_height=round(good, 1),
                bad_y=round(HEIGHT - good - bad, 1),
                bad_height=round(bad, 1),
                point=point,
            )
        )
    return Bars(tuple(drawn), top, tuple(points))


def _round_up(value: float) -> int:
    """1, 2, 5, 10, 20, 50 … at least 1."""
    if value <= 1:
        return 1
    power = int(10 ** math.floor(math.log10(value)))
    return next(step * power for step in (1, 2, 5, 10) if step * power >= value)


@dataclass(frozen=True)
class Lines:
    """Durations over time, on a logarithmic scale: half a second and half an hour on one chart."""

    p50: tuple[str, ...]
    p95: tuple[str, ...]
    """Paths, one for each stretch without a gap."""
    marks: tuple[tuple[float, float], ...]
    """(y, seconds) of the lines across."""
    is_empty: bool


def lines(points: Sequence[Point]) -> Lines:
    seen = [value for point in points for value in (point.p50, point.p95) if value]
    if not seen:
        return Lines((), (), (), True)
    low = math.floor(math.log10(min(seen)))
    high = max(math.ceil(math.log10(max(seen))), low + 1)

    def height(value: float) -> float:
        return round(HEIGHT - HEIGHT * (math.log10(value) - low) / (high - low), 1)

    step = WIDTH / max(len(points), 1)

    def paths(values: Sequence[float | None]) -> tuple[str, ...]:
        drawn, pen = [], ""
        for number, value in enumerate(values):
            if value:
                x = round((number + 0.5) * step, 1)
                # a point alone is a short dash
                pen += f"L{x} {height(value)}" if pen else f"M{x - 2} {height(value)}L{x + 2} {height(value)}"
            elif pen:
                drawn.append(pen)
                pen = ""
        return (*drawn, pen) if pen else tuple(drawn)

    marks = tuple((height(10.0**power), 10.0**power) for power in range(low, high + 1))
    return Lines(paths([point.p50 for point in points]), paths([point.p95 for point in points]), marks, False)


def spark(points: Sequence[Point]) -> str:
    """The last hour in the space of a word, as one path; empty if nothing finished."""
    points = points[:-1]  # this minute is not over, and would always look like a fall
    top = max((point.succeeded + point.failed for point in points), default=0)
    if not top:
        return ""
    step = SPARK_WIDTH / max(len(points) - 1, 1)
    return "M" + "L".join(
        f"{number * step:.1f} {(SPARK_HEIGHT - 1) - (SPARK_HEIGHT - 2) * (point.succeeded + point.failed) / top:.1f}"
        for number, point in enumerate(points)
    )
