"""The pipeline as a picture: workflows in columns, from where items enter to where they end."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

CELL = 100
"""The side of a cell in the units of the drawing; the page stretches it to its own width."""
MARGIN = 8
"""What a card leaves free of its cell on the left and on the right."""
WRAP = 7
"""Cards in a row of workflows that follow nothing."""

Handover = tuple[str, str]


@dataclass(frozen=True)
class Edge:
    source: str
    target: str
    path: str
    tip: str


@dataclass(frozen=True)
class Picture:
    rows: tuple[tuple[str | None, ...], ...]
    """What stands in each cell."""
    edges: tuple[Edge, ...]

    @property
    def columns(self) -> int:
        return max((len(row) for row in self.rows), default=0)

    @property
    def box(self) -> str:
        return f"0 0 {CELL * self.columns} {CELL * len(self.rows)}"


def draw(names: Sequence[str], handovers: Iterable[Handover]) -> Picture:
    """Place each workflow one column after the last that hands over to it, and the others below."""
    edges = _known(names, handovers)
    columns = _columns(names, edges)
    joined = {name for edge in edges for name in edge}
    cells: dict[str, tuple[int, int]] = {}
    free: dict[int, int] = {}
    for name in sorted((name for name in names if name in joined), key=lambda name: columns[name]):
        # beside the one it follows if that is free, else below
        beside = max((cells[source][0] for source, target in edges if target == name), default=0)
        row = max(beside, free.get(columns[name], 0))
        cells[name] = (row, columns[name])
        free[columns[name]] = row + 1
    below = max(free.values(), default=0)
    for number, name in enumerate(name for name in names if name not in joined):
        cells[name] = (below + number // WRAP, number % WRAP)
    return Picture(_rows(cells), tuple(_edge(source, target, cells) for source, target in edges))


def inferred(rows: Iterable[Mapping[str, Any]]) -> list[Handover]:
    """Workflows of one table: who waits for another's status word takes over from it."""
    rows = list(rows)
    return [
        (source["workflow"], target["workflow"])
        for target in rows
        for source in rows
        if source["relation"] == target["relation"]
        and source["status_column"] != target["status_column"]
        and re.search(rf"\b{re.escape(source['status_column'])}\b", target["ready"] or "")
    ]


def _known(names: Sequence[str], handovers: Iterable[Handover]) -> list[Handover]:
    """Each once, between workflows that exist, never in a circle."""
    edges: list[Handover] = []
    for source, target in dict.fromkeys(handovers):
        if source in names and target in names and not _reaches(edges, target, source):
            edges.append((source, target))
    return edges


def _reaches(edges: Sequence[Handover], start: str, end: str) -> bool:
    return start == end or any(_reaches(edges, target, end) for source, target in edges if source == start)


def _columns(names: Sequence[str], edges: Sequence[Handover]) -> dict[str, int]:
    """The longest way from a beginning to each."""
    columns = dict.fromkeys(names, 0)
    for _ in names:
        for source, target in edges:
            columns[target] = max(columns[target], columns[source] + 1)
    return columns


def _rows(cells: dict[str, tuple[int, int]]) -> tuple[tuple[str | None, ...], ...]:
    at = {cell: name for name, cell in cells.items()}
    rows = 1 + max((row for row, _ in at), default=-1)
    columns = 1 + max((column for _, column in at), default=-1)
    return tuple(tuple(at.get((row, column)) for column in range(columns)) for row in range(rows))


def _edge(source: str, target: str, cells: dict[str, tuple[int, int]]) -> Edge:
    (row1, column1), (row2, column2) = cells[source], cells[target]
    x1, y1 = CELL * (column1 + 1) - MARGIN, CELL * row1 + CELL // 2
    x2, y2 = CELL * column2 + MARGIN, CELL * row2 + CELL // 2
    middle = (x1 + x2) / 2
    path = f"M{x1} {y1}C{middle:g} {y1} {middle:g} {y2} {x2} {y2}"
    return Edge(source, target, path, f"M{x2 - 4} {y2 - 4}L{x2 - 1} {y2}L{x2 - 4} {y2 + 4}")
