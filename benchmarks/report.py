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
    Aim("place_drain_to_bare_ratio", below=False, limit=0.65),
    Aim("enqueue_dispatch_to_bare_32_ratio", below=False, limit=0.9),
    Aim("beside_10m_ratio", below=False, limit=0.9),
    Aim("memory_growth_ratio", below=True, limit=1.2),
    Aim("slowest_look_ms", below=True, limit=50),
)
_AIMS = {aim.figure: aim for aim in AIMS}


def missed(result: Result) -> list[str]:
    return [aim.figure for aim in AIMS if aim.figure in result and not aim.met(result)]


# what, the ratio to look at, and the figures it was made of
_LINES = (
    (
        "claim of 100 beside {finished_rows:,} finished rows / without them",
        "claim_beside_finished_ratio",
        "{claim_100_beside_finished_ms:.2f} / {claim_100_alone_ms:.2f} ms",
    ),
    (
        "claim + succeed in batches of 1000 / two bare UPDATEs by key",
        "engine_to_bare_ratio",
        "{engine_items_per_second:,.0f} / {bare_items_per_second:,.0f} items/s",
    ),
    (
        "the same / two bare UPDATEs of a key range, the floor",
        "engine_to_bare_range_ratio",
        "{engine_items_per_second:,.0f} / {bare_range_items_per_second:,.0f} items/s",
    ),
    (
        "two claimers / one, claim + succeed in batches of 100",
        "two_claimers_ratio",
        "{two_claimers_items_per_second:,.0f} / {one_claimer_items_per_second:,.0f} items/s",
    ),
    (
        "COMMIT to the first line of work, p50 / a bare NOTIFY to the same process",
        "pickup_p50_ms",
        "{pickup_p50_ms:.2f} / {notify_p50_ms:.2f} ms; rested {pickup_rested_p50_ms:.2f} / {notify_rested_p50_ms:.2f}",
    ),
    ("the same, p99", "pickup_p99_ms", "{pickup_p99_ms:.2f} / {notify_p99_ms:.2f} ms"),
    (
        "the same under a steady load of half the capacity, p50 / p99",
        "steady_p50_ms",
        "{steady_p50_ms:.2f} / {steady_p99_ms:.2f} ms at {steady_items_per_second:,.0f} items/s",
    ),
    (
        "one enqueue a transaction, 32 clients: doorbell dispatch / bare UPDATE",
        "enqueue_dispatch_to_bare_32_ratio",
        "{enqueue_dispatch_32_per_second:,.0f} / {enqueue_bare_32_per_second:,.0f} a second",
    ),
    (
        "the same with doorbell commit",
        "enqueue_commit_to_bare_32_ratio",
        "{enqueue_commit_32_per_second:,.0f} / {enqueue_bare_32_per_second:,.0f} a second",
    ),
    (
        "{drained_items:,} no-op items by one listener / by a plain loop of claim + succeed",
        "listener_to_loop_ratio",
        "{listener_items_per_second:,.0f} / {plain_loop_items_per_second:,.0f} items/s",
    ),
    (
        "{place_items:,} rows like place by one listener / two bare UPDATEs of each",
        "place_drain_to_bare_ratio",
        "{place_drain_1_items_per_second:,.0f} / {place_bare_items_per_second:,.0f} items/s",
    ),
    (
        "{place_long_items:,} of them / two bare UPDATEs of each",
        "place_long_drain_to_bare_ratio",
        "{place_drain_long_items_per_second:,.0f} / {place_bare_items_per_second:,.0f} items/s",
    ),
    (
        "without a processing word / two bare UPDATEs",
        "place_light_to_bare_ratio",
        "{place_drain_light_items_per_second:,.0f} / {place_bare_items_per_second:,.0f} items/s",
    ),
    (
        "while another session holds a snapshot / without it",
        "place_held_ratio",
        "{place_drain_held_items_per_second:,.0f} / {place_drain_1_items_per_second:,.0f} items/s",
    ),
    (
        "a listener beside {finished_rows:,} finished rows / beside none",
        "beside_10m_ratio",
        "{beside_10m_items_per_second:,.0f} / {beside_0_items_per_second:,.0f} items/s",
    ),
    (
        "the same with random keys, as place has them; two bare UPDATEs: {bare_beside_10m_ratio:.2f}",
        "place_beside_10m_ratio",
        "{place_beside_10m_items_per_second:,.0f} / {place_beside_0_items_per_second:,.0f} items/s",
    ),
    (
        "random keys, beside a tenth of them / beside none",
        "place_beside_1m_ratio",
        "{place_beside_1m_items_per_second:,.0f} / {place_beside_0_items_per_second:,.0f} items/s",
    ),
    (
        "two processes; handlers of 1 ms",
        None,
        "{place_drain_2_items_per_second:,.0f}; {place_drain_1ms_items_per_second:,.0f} items/s",
    ),
    (
        "an item costs",
        None,
        "{wal_bytes_per_item:,.0f} B of WAL, {transactions_per_item:.4f} commits, {dead_tuples_per_item:.2f} dead rows",
    ),
    (
        "the same without a processing word",
        None,
        "{light_wal_bytes_per_item:,.0f} B, {light_transactions_per_item:.4f}, {light_dead_tuples_per_item:.2f}",
    ),
    (
        "a killed listener's items are done",
        None,
        "{killed_recovered_seconds:.1f} s after, with a lease of {killed_lease_seconds} s",
    ),
    (
        "memory of a listener after {memory_items:,} items / after a tenth of them",
        "memory_growth_ratio",
        "{memory_late_kb:,} / {memory_early_kb:,} kB",
    ),
    ("SELECT * FROM scheduler.status", None, "{status_ms:.2f} ms"),
    (
        "the slowest view or page, beside {looked_at_backlog:,} queued items",
        "slowest_look_ms",
        "{slowest_look_ms:.2f} ms",
    ),
)


def render(result: Result) -> str:
    rows = []
    for what, name, figures in _LINES:
        try:
            shown = what.format(**result), figures.format(**result)
        except KeyError:
            continue  # a case that was not measured
        rows.append((shown[0], f"{result[name]:.2f}" if name else "", *_verdict(name, result), shown[1]))
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
