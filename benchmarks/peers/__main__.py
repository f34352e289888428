"""`python -m benchmarks.peers`: ours and the peers in one run; prints a table, writes JSON."""

import argparse
import json
import sys
import time
from datetime import UTC, datetime
from pathlib import Path

import psycopg

from benchmarks import machine
from benchmarks.peers.contest import FULL, QUICK, Entrant, Scale
from benchmarks.peers.environment import Environment, UnavailableError
from benchmarks.peers.roster import PEERS
from listener.cli.say import complain, say
from listener.cli.table import table
from listener.errors import UserError
from listener.postgres.server import best, find
from listener.postgres.throwaway import Throwaway, throwaway

OUTPUT = Path(__file__).parents[1] / "results" / "peers.json"
COLUMNS = (
    ("enqueue_per_second", "enqueue/s", ",.0f"),
    ("bulk_per_second", "bulk/s", ",.0f"),
    ("drain_1_per_second", "drain/s", ",.0f"),
    ("drain_2_per_second", "drain/s, 2", ",.0f"),
    ("pickup_p50_ms", "p50 ms", ".2f"),
    ("pickup_p99_ms", "p99 ms", ".2f"),
    ("held_per_second", "held/s", ",.0f"),
    ("wal_bytes_per_item", "WAL B/item", ",.0f"),
    ("commits_per_item", "commits/item", ".4f"),
    ("dead_tuples_per_item", "dead/item", ".2f"),
    ("worker_mb", "MB", ",.0f"),
)

Figures = dict[str, dict[str, float]]


def run(scale: Scale, names: list[str]) -> dict[str, object]:
    start = time.perf_counter()
    absent: dict[str, str] = {}
    environment = Environment()
    with throwaway(best(find()), durable=True, settings={"shared_buffers": "1GB", "max_wal_size": "8GB"}) as cluster:
        entrants: list[Entrant] = []
        for peer in PEERS:
            if names and not any(peer.name.startswith(name) for name in names):
                continue
            say(f"Preparing {peer.name} ...")
            try:
                entrants.append(Entrant(peer, environment, cluster))
            except UnavailableError as error:
                absent[peer.name] = str(error)
        for number in range(scale.rounds):
            _round(number, entrants, scale, absent)
        facts = _facts(cluster)
    return {
        "measured_at": datetime.now(UTC).isoformat(timespec="seconds"),
        "seconds": round(time.perf_counter() - start, 1),
        "rounds": scale.rounds,
        "items": scale.bulk,
        **facts,
        "versions": {entrant.peer.name: entrant.score.version for entrant in entrants},
        "figures": {entrant.peer.name: entrant.score.figures() for entrant in entrants},
        "absent": absent,
    }


def _round(number: int, entrants: list[Entrant], scale: Scale, absent: dict[str, str]) -> None:
    """Everyone once; from another place each time, so that nobody always follows the same neighbour."""
    turn = number % max(1, len(entrants))
    for entrant in [*entrants[turn:], *entrants[:turn]]:
        if entrant.score.trouble:
            continue
        say(f"Round {number + 1} of {scale.rounds}: {entrant.peer.name}")
        try:
            entrant.measure(scale)
        except UnavailableError as error:
            entrant.score.trouble = absent[entrant.peer.name] = str(error)


def _facts(cluster: Throwaway) -> dict[str, str | int | float]:
    with psycopg.connect(cluster.url("postgres"), autocommit=True) as db:
        return machine.describe(db)


def render(result: dict[str, object]) -> str:
    figures: Figures = result["figures"]  # type: ignore[assignment]
    versions: dict[str, str] = result["versions"]  # type: ignore[assignment]
    absent: dict[str, str] = result["absent"]  # type: ignore[assignment]
    rows = [
        (f"{name} {versions[name]}", *(format(found[key], how) if key in found else "" for key, _, how in COLUMNS))
        for name, found in sorted(figures.items(), key=lambda pair: -pair[1].get("drain_1_per_second", 0))
    ]
    lines = [table(("", *(title for _, title, _ in COLUMNS)), rows), ""]
    lines += [f"Not measured: {name}, because {reason}." for name, reason in absent.items()]
    return "\n".join(lines)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.peers", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="a tiny run, to see that it works")
    parser.add_argument("--only", default="", help="peers whose names begin so, separated by commas")
    parser.add_argument("--rounds", type=int, help=f"how often everyone is measured (default: {FULL.rounds})")
    parser.add_argument("--output", type=Path, help=f"the JSON file (default: {OUTPUT}; with --quick none)")
    options = parser.parse_args()
    scale = QUICK if options.quick else FULL
    if options.rounds:
        scale = Scale(scale.single, scale.bulk, scale.latency, options.rounds)
    try:
        result = run(scale, [name for name in options.only.split(",") if name])
    except UserError as error:
        complain(error)
        return 1
    print(render(result))
    output: Path | None = options.output or (None if options.quick else OUTPUT)
    if output:
        output.parent.mkdir(parents=True, exist_ok=True)
        output.write_text(json.dumps(result, indent=2) + "\n", "utf-8")
        say(f"Written to {output}.")
    return 0


if __name__ == "__main__":
    sys.exit(main())
