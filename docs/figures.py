"""Tables of the pages about speed, made of the results that the benchmarks keep: nobody types a figure."""

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

RESULTS = Path(__file__).parents[1] / "benchmarks" / "results"

Figures = Mapping[str, Any]

_PEER_COLUMNS = (
    ("enqueue/s", "enqueue_per_second", ",.0f"),
    ("bulk/s", "bulk_per_second", ",.0f"),
    ("drain/s", "drain_1_per_second", ",.0f"),
    ("2 workers", "drain_2_per_second", ",.0f"),
    ("held/s", "held_per_second", ",.0f"),
    ("p50 ms", "pickup_p50_ms", ".2f"),
    ("p99 ms", "pickup_p99_ms", ".2f"),
    ("WAL B", "wal_bytes_per_item", ",.0f"),
    ("commits", "commits_per_item", ".4f"),
    ("dead", "dead_tuples_per_item", ".2f"),
    ("MB", "worker_mb", ".0f"),
)

# what, and what is said of it; a line whose case was not measured is left out
_ENGINE = (
    (
        "`claim` + `succeed` of 1000 in a plain loop / two bare `UPDATE`s by key",
        "{engine_items_per_second:,.0f} / {bare_items_per_second:,.0f} items/s, {engine_to_bare_ratio:.0%}",
    ),
    (
        "a claim of 100 beside {finished_rows:,} finished rows / without them",
        "{claim_100_beside_finished_ms:.2f} / {claim_100_alone_ms:.2f} ms",
    ),
    (
        "two bare `UPDATE`s of each row, batches of 1000: the limit of what follows",
        "{place_bare_items_per_second:,.0f} items/s",
    ),
    (
        "drain of {place_items:,} items, one process",
        "{place_drain_1_items_per_second:,.0f} items/s, {place_drain_to_bare_ratio:.0%} of the limit",
    ),
    (
        "drain of {place_long_items:,} items",
        "{place_drain_long_items_per_second:,.0f} items/s, {place_long_drain_to_bare_ratio:.0%}",
    ),
    (
        "without a processing word",
        "{place_drain_light_items_per_second:,.0f} items/s, {place_light_to_bare_ratio:.0%}",
    ),
    ("two processes", "{place_drain_2_items_per_second:,.0f} items/s"),
    (
        "while another session holds a snapshot",
        "{place_drain_held_items_per_second:,.0f} items/s, {place_held_ratio:.0%} of without",
    ),
    ("handlers that wait 1 ms, 100 at once", "{place_drain_1ms_items_per_second:,.0f} items/s"),
    ("beside {finished_rows:,} finished rows, keys in order", "{beside_10m_ratio:.0%} of the pace without them"),
    (
        "the same, random keys as `place` has them",
        "{place_beside_10m_ratio:.0%}; two bare `UPDATE`s {bare_beside_10m_ratio:.0%}",
    ),
    ("random keys, beside a tenth of them", "{place_beside_1m_ratio:.0%}"),
    (
        "single enqueue, 32 clients: doorbell `dispatch` / bare `UPDATE`",
        (
            "{enqueue_dispatch_32_per_second:,.0f} / {enqueue_bare_32_per_second:,.0f} a second,"
            " {enqueue_dispatch_to_bare_32_ratio:.0%}"
        ),
    ),
    (
        "bare `UPDATE`s with the index of the queue / without it",
        (
            "{enqueue_bare_32_per_second:,.0f} / {enqueue_unindexed_32_per_second:,.0f} a second,"
            " {enqueue_bare_to_unindexed_32_ratio:.0%}"
        ),
    ),
    ("the same, doorbell `commit`", "{enqueue_commit_32_per_second:,.0f}, {enqueue_commit_to_bare_32_ratio:.0%}"),
    (
        "the same with one client: `dispatch`, `commit`",
        "{enqueue_dispatch_to_bare_1_ratio:.0%}, {enqueue_commit_to_bare_1_ratio:.0%}",
    ),
    (
        "commit → first line of `work`, p50 / p95 / p99",
        "{pickup_p50_ms:.2f} / {pickup_p95_ms:.2f} / {pickup_p99_ms:.2f} ms",
    ),
    ("a bare NOTIFY to the same process, p50 / p99", "{notify_p50_ms:.2f} / {notify_p99_ms:.2f} ms"),
    (
        "both after a rest of 10 ms, in which processors fall asleep, p50",
        "{pickup_rested_p50_ms:.2f}; {notify_rested_p50_ms:.2f} ms",
    ),
    (
        "under a steady load of half the capacity, p50 / p99",
        "{steady_p50_ms:.1f} / {steady_p99_ms:.1f} ms at {steady_items_per_second:,.0f} items/s",
    ),
    (
        "an item costs",
        "{wal_bytes_per_item:,.0f} B of WAL, {transactions_per_item:.4f} commits, {dead_tuples_per_item:.2f} dead rows",
    ),
    (
        "without a processing word",
        "{light_wal_bytes_per_item:,.0f} B, {light_transactions_per_item:.4f}, {light_dead_tuples_per_item:.2f}",
    ),
    (
        "a killed listener's items are done, lease {killed_lease_seconds:.0f} s",
        "{killed_recovered_seconds:.1f} s after",
    ),
    (
        "memory of a listener after {memory_items:,} items / after a tenth",
        "{memory_late_kb:,} / {memory_early_kb:,} kB",
    ),
    (
        "the slowest view or page of the web, beside {looked_at_backlog:,} queued items",
        "{slowest_look_ms:.1f} ms of database time",
    ),
)

_READING = {
    "pages": "pages, fetched and read",
    "sitemaps": "sites' sitemaps",
    "domains": "whole sites",
    "parse": "pages already there",
}


def peers() -> Iterator[str]:
    result = _read("peers.json")
    yield from _conditions(result, f"{result['items']:,} items, medians of {result['rounds']}")
    titles = [title for title, _, _ in _PEER_COLUMNS]
    yield from (f"| | {' | '.join(titles)} |", f"|---|{'---:|' * len(titles)}")
    figures: dict[str, Figures] = result["figures"]
    for name, found in sorted(figures.items(), key=lambda pair: -pair[1].get("drain_1_per_second", 0)):
        cells = (format(found[key], form) if key in found else "" for _, key, form in _PEER_COLUMNS)
        yield f"| {name} {result['versions'][name]} | {' | '.join(cells)} |"
    for name, reason in result["absent"].items():
        yield from ("", f"Not measured: {name}, because {reason}.")


def engine() -> Iterator[str]:
    result = _read("latest.json")
    yield from _conditions(result, "a short run" if result["quick"] else "a full run")
    yield from ("| measured | |", "|---|---|")
    for what, said in _ENGINE:
        try:
            yield f"| {what.format(**result)} | {said.format(**result)} |"
        except KeyError:
            continue
    missed = result["aims_missed"].replace(" ", "").split(",") if result["aims_missed"] else []
    yield from ("", f"Aims that this run missed: {', '.join(f'`{name}`' for name in missed) or 'none'}.")


def reading() -> Iterator[str]:
    result = _read("pipeline.json")
    yield from (
        "| a second | reader | items | found of what is there | invented | found a second |",
        "|---|---|--:|--:|--:|--:|",
    )
    for task, title in _READING.items():
        for name, found in sorted(result["figures"][task].items(), key=lambda pair: -pair[1]["per_second"]):
            yield (
                f"| {title} | {name} {result['versions'][name]} | {found['per_second']:,.1f}"
                f" | {found['found']:,} of {found['expected']:,} | {found['invented']:,}"
                f" | {found['found_per_second']:,.1f} |"
            )


def _conditions(result: Figures, how: str) -> Iterator[str]:
    yield (
        f"*{how[0].upper()}{how[1:]}, {result['measured_at'][:10]}; PostgreSQL {result['server'].split()[0]}, Python"
        f" {result['python']}, {result['cores']} cores; `fsync` {result['setting_fsync']}, `synchronous_commit`"
        f" {result['setting_synchronous_commit']}.*"
    )
    yield ""


def _read(name: str) -> dict[str, Any]:
    read: dict[str, Any] = json.loads((RESULTS / name).read_text("utf-8"))
    return read
