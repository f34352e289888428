"""`python -m benchmarks.plots`: the results as plots for docs/performance.md; plain SVG that follows light and dark."""

import json
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import Any

RESULTS = Path(__file__).parent / "results"
IMAGES = Path(__file__).parents[1] / "docs" / "images"

_WIDTH = 760
_LABELS = 230
_RIGHT = 110
_ROW = 26
_TOP = 62
_STYLE = """
  text { font: 13px system-ui, sans-serif; fill: #1f2328; stroke: #ffffff; stroke-width: 4px; paint-order: stroke; }
  .title { font-weight: 600; font-size: 15px; }
  .note { fill: #59636e; font-size: 12px; }
  .grid { stroke: #d1d9e0; }
  .ours { fill: #0969da; }
  .peer { fill: #8c959f; }
  .limit { fill: #bf8700; }
  .tail { opacity: 0.45; }
  .page { fill: #ffffff; }
  @media (prefers-color-scheme: dark) {
    text { fill: #f0f6fc; stroke: #0d1117; }
    .note { fill: #9198a1; }
    .grid { stroke: #3d444d; }
    .ours { fill: #4493f8; }
    .peer { fill: #7d8590; }
    .limit { fill: #d29922; }
    .page { fill: #0d1117; }
  }
"""


@dataclass(frozen=True)
class Bar:
    label: str
    value: float
    kind: str = "peer"
    tail: float | None = None
    """A second, paler bar behind it, such as p99 behind p50."""


def chart(title: str, note: str, bars: Sequence[Bar], form: str) -> str:
    """Horizontal bars from zero on one linear axis."""
    most = max(max(bar.value, bar.tail or 0) for bar in bars)
    room = _WIDTH - _LABELS - _RIGHT
    height = _TOP + _ROW * len(bars) + 34
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {height}" width="{_WIDTH}"',
        f'height="{height}" role="img" aria-label="{escape(title)}">',
        f"<style>{_STYLE}</style>",
        f'<rect class="page" width="{_WIDTH}" height="{height}"/>',
        f'<text class="title" x="12" y="24">{escape(title)}</text>',
        f'<text class="note" x="12" y="44">{escape(note)}</text>',
    ]
    bottom = _TOP + _ROW * len(bars)
    for tick in _ticks(most):
        x = _LABELS + room * tick / most
        parts.append(f'<line class="grid" x1="{x:.1f}" x2="{x:.1f}" y1="{_TOP - 4}" y2="{bottom}"/>')
        shown = f"{tick:,g}"
        parts.append(f'<text class="note" x="{x:.1f}" y="{bottom + 18}" text-anchor="middle">{shown}</text>')
    for place, bar in enumerate(bars):
        y = _TOP + _ROW * place
        middle = y + _ROW / 2 + 4
        parts.append(f'<text x="{_LABELS - 10}" y="{middle:.1f}" text-anchor="end">{escape(bar.label)}</text>')
        for value, extra in ((bar.tail, " tail"), (bar.value, "")):
            if value is not None:
                size = f'width="{max(1.0, room * value / most):.1f}" height="{_ROW - 8}"'
                parts.append(f'<rect class="{bar.kind}{extra}" x="{_LABELS}" y="{y + 4}" {size} rx="2"/>')
        text = format(bar.value, form) + (f" / {format(bar.tail, form)}" if bar.tail is not None else "")
        end = _LABELS + room * max(bar.value, bar.tail or 0) / most
        parts.append(f'<text x="{end + 6:.1f}" y="{middle:.1f}">{text}</text>')
    return "\n".join((*parts, "</svg>", ""))


def _ticks(most: float) -> list[float]:
    step = 10.0 ** (len(str(int(most))) - 1) if most >= 1 else 0.1
    while most / step > 6:
        step *= 2
    while most / step < 3:
        step /= 2
    return [step * n for n in range(int(most / step) + 1)]


def peers(result: dict[str, Any]) -> dict[str, str]:
    figures: dict[str, dict[str, float]] = result["figures"]
    rounds = "one round" if result["rounds"] == 1 else f"medians of {result['rounds']} interleaved rounds"
    where = f"{rounds}, PostgreSQL {result['server']}, fsync on"

    def bars(figure: str, tail: str | None = None, *, lowest_first: bool = False) -> list[Bar]:
        found = [
            Bar(
                name,
                values[figure],
                "ours" if name.startswith("scrapersky") else "peer",
                values.get(tail) if tail else None,
            )
            for name, values in figures.items()
            if figure in values
        ]
        return sorted(found, key=lambda bar: bar.value if lowest_first else -bar.value)

    return {
        "drain": chart("Drain: no-op items per second, one worker process", where, bars("drain_1_per_second"), ",.0f"),
        "held": chart("The same while another session holds a snapshot", where, bars("held_per_second"), ",.0f"),
        "bulk": chart("Bulk enqueue: items per second", where, bars("bulk_per_second"), ",.0f"),
        "pickup": chart(
            "Commit to first line of the handler, ms: p50, and p99 in pale",
            where,
            bars("pickup_p50_ms", "pickup_p99_ms", lowest_first=True),
            ".2f",
        ),
        "wal": chart("WAL bytes per item, one worker", where, bars("wal_bytes_per_item", lowest_first=True), ",.0f"),
    }


def own(result: dict[str, Any]) -> dict[str, str]:
    rows = (
        ("two bare UPDATEs per row", "place_bare_items_per_second", "limit"),
        ("one process", "place_drain_1_items_per_second", "ours"),
        (f"{result.get('place_long_items', 0):,} items", "place_drain_long_items_per_second", "ours"),
        ("two processes", "place_drain_2_items_per_second", "ours"),
        ("no processing word", "place_drain_light_items_per_second", "ours"),
        ("a snapshot held all the time", "place_drain_held_items_per_second", "ours"),
        ("handlers of 1 ms, 100 at once", "place_drain_1ms_items_per_second", "ours"),
    )
    flat = (
        ("keys in order, no finished rows", "beside_0_items_per_second", "ours"),
        (f"keys in order, {result['finished_rows']:,}", "beside_10m_items_per_second", "ours"),
        ("random keys, none", "place_beside_0_items_per_second", "ours"),
        (f"random keys, {result['finished_rows'] // 10:,}", "place_beside_1m_items_per_second", "ours"),
        (f"random keys, {result['finished_rows']:,}", "place_beside_10m_items_per_second", "ours"),
    )
    where = f"items per second, PostgreSQL {result['server']}, fsync {result['setting_fsync']}"
    charts = {}
    for name, title, wanted in (
        ("situations", "One listener over a table like place", rows),
        ("flat", "One listener beside finished rows in the table", flat),
    ):
        if bars := [Bar(label, result[figure], kind) for label, figure, kind in wanted if figure in result]:
            charts[name] = chart(title, where, bars, ",.0f")
    return charts


def main() -> int:
    for source, draw in (("peers.json", peers), ("latest.json", own)):
        path = RESULTS / source
        if not path.exists():
            continue
        for name, picture in draw(json.loads(path.read_text("utf-8"))).items():
            target = IMAGES / f"performance-{name}.svg"
            target.write_text(picture, "utf-8")
            print(f"Written to {target}.")
    return 0


if __name__ == "__main__":
    sys.exit(main())
