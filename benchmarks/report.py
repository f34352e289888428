"""The figures against their aims, for a reader; the JSON file has them all."""

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import zip_longest

from benchmarks.machine import SETTINGS
from listener.cli.table import table

Result = Mapping[str, str | int | float | bool]


@dataclass(frozen=True)
class Aim:
    figure: str
    below: bool
    """Whether the figure is to stay below the limit, or to reach it."""
    limit: float

    def met(self, result: Result) -> bool:
        value = float(result[self.figure])
        return value < self.limit if self.below else value >= self.limit

    def __str__(self) -> str:
        return f"{'<' if self.below else '>='} {self.limit}"


AIMS = (
    Aim("claim_beside_finished_ratio", below=True, limit=1.2),
    Aim("engine_to_bare_ratio", below=False, limit=0.6),
    Aim("pickup_p50_ms", below=True, limit=1.5),
    Aim("pickup_p99_ms", below=True, limit=5),
    Aim("listener_to_loop_ratio", below=False, limit=0.5),
    Aim("memory_growth_ratio", below=True, limit=1.2),
    Aim("slowest_look_ms", below=True, limit=50),
)
_AIMS = {aim.figure: aim for aim in AIMS}


def missed(result: Result) -> list[str]:
    return [aim.figure for aim in AIMS if not aim.met(result)]


def render(result: Result) -> str:
    lines = (
        (
            f"claim of 100 beside {result['finished_rows']:,} finished rows / without them",
            "claim_beside_finished_ratio",
            f"{result['claim_100_beside_finished_ms']:.2f} / {result['claim_100_alone_ms']:.2f} ms",
        ),
        (
            "claim + succeed in batches of 1000 / two bare UPDATEs by key",
            "engine_to_bare_ratio",
            f"{result['engine_items_per_second']:,.0f} / {result['bare_items_per_second']:,.0f} items/s",
        ),
        (
            "the same / two bare UPDATEs of a key range, the floor",
            "engine_to_bare_range_ratio",
            f"{result['engine_items_per_second']:,.0f} / {result['bare_range_items_per_second']:,.0f} items/s",
        ),
        (
            "two claimers / one, claim + succeed in batches of 100",
            "two_claimers_ratio",
            f"{result['two_claimers_items_per_second']:,.0f} / {result['one_claimer_items_per_second']:,.0f} items/s",
        ),
        (
            "COMMIT to the first line of work, p50 / a bare NOTIFY to the same process",
            "pickup_p50_ms",
            f"{result['pickup_p50_ms']:.2f} / {result['notify_p50_ms']:.2f} ms",
        ),
        (
            "the same, p99",
            "pickup_p99_ms",
            f"{result['pickup_p99_ms']:.2f} / {result['notify_p99_ms']:.2f} ms",
        ),
        (
            f"{result['drained_items']:,} no-op items by one listener / by a plain loop of claim + succeed",
            "listener_to_loop_ratio",
            f"{result['listener_items_per_second']:,.0f} / {result['plain_loop_items_per_second']:,.0f} items/s",
        ),
        (
            f"memory of a listener after {result['memory_items']:,} items / after a tenth of them",
            "memory_growth_ratio",
            f"{result['memory_late_kb']:,} / {result['memory_early_kb']:,} kB",
        ),
        (
            f"the slowest view or page, beside {result['looked_at_backlog']:,} queued items",
            "slowest_look_ms",
            f"{result['slowest_look_ms']:.2f} ms",
        ),
    )
    rows = [
        (what, f"{result[name]:.2f}" if name else "", *_verdict(name, result), figures) for what, name, figures in lines
    ]
    settings = ", ".join(f"{name} {result[f'setting_{name}']}" for name in SETTINGS)
    failures = missed(result)
    return "\n".join(
        (
            f"PostgreSQL {result['server']}: {settings}",
            "{system}, {processor}, {cores} cores, {memory_gb} GB; Python {python}, psycopg {psycopg}".format(**result),
            f"Medians of {result['rounds']} interleaved rounds; {result['seconds']:.0f} s in all.",
            *(["A quick run: it shows that the benchmarks work, its figures mean nothing."] if result["quick"] else []),
            "",
            table(("what", "ratio", "aim", "", "measured"), rows),
            "",
            "Milliseconds in the database, of each view and function, and of all the queries of each page:",
            table(("view", "ms", "page", "ms"), _looks(result)),
            "",
            f"AIM MISSED: {', '.join(failures)}" if failures else "Every aim is met.",
        )
    )


def _looks(result: Result) -> list[tuple[str, str, str, str]]:
    views, pages = (
        [
            (name.removeprefix(kind).removesuffix("_ms"), f"{value:.1f}")
            for name, value in result.items()
            if name.startswith(kind)
        ]
        for kind in ("view_", "page_")
    )
    return [(*view, *page) for view, page in zip_longest(views, pages, fillvalue=("", ""))]


def _verdict(name: str | None, result: Result) -> tuple[str, str]:
    aim = _AIMS.get(name or "")
    return (str(aim), "pass" if aim.met(result) else "FAIL") if aim else ("", "")
