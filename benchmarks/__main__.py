"""`python -m benchmarks`: measure on a throw-away cluster, print a table, write JSON."""

import argparse
import json
import sys
import time
from collections.abc import Callable, Collection
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import psycopg

from benchmarks import machine, report
from benchmarks.cases import CASES
from benchmarks.scale import FULL, QUICK
from listener import schema
from listener.cli.say import complain, say
from listener.errors import UserError
from listener.postgres import wheel
from listener.postgres.server import best, find
from listener.postgres.throwaway import throwaway

Result = dict[str, str | int | float | bool]

OUTPUT = Path(__file__).parent / "results" / "latest.json"
# Autovacuum would strike one side of a comparison and not the other; tables are vacuumed when they are loaded.
SETTINGS = {"autovacuum": "off", "shared_buffers": "1GB", "max_wal_size": "8GB"}


def run(
    *, quick: bool, many: int | None = None, only: Collection[str] = (), keep: Callable[[Result], None] | None = None
) -> Result:
    """All figures; `keep` is told of them after each case, so that an hour's work is not lost at its end."""
    scale = QUICK if quick else FULL
    if many is not None:
        scale = replace(scale, many=many)
    start = time.perf_counter()
    # what a commit costs belongs to every figure here
    with throwaway(best(find()) or wheel.installed(), durable=True, settings=SETTINGS) as cluster:
        say(f"Measuring on a throw-away cluster of {cluster.server.label}.")
        url = cluster.create_database("benchmarks")
        schema.migrate(url)
        with psycopg.connect(url, autocommit=True) as db:
            db.execute("SET maintenance_work_mem = '256MB'")
            result: Result = {
                "measured_at": datetime.now(UTC).isoformat(timespec="seconds"),
                "quick": quick,
                "rounds": scale.rounds,
                **machine.describe(db),
            }
            for case in CASES:
                if only and case.__name__ not in only:
                    continue
                result |= {name: round(value, 4) for name, value in case(db, scale, say).items()}
                if keep:
                    keep(result)
    return result | {"seconds": round(time.perf_counter() - start, 1)}


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument(
        "--quick", action="store_true", help="a tiny run, to see that it works; its figures mean nothing"
    )
    parser.add_argument("--output", type=Path, help=f"the JSON file (default: {OUTPUT}; with --quick none)")
    parser.add_argument(
        "--memory-items",
        type=int,
        metavar="N",
        help=f"how many items a listener drains while its memory is watched (default: {FULL.many:,})",
    )
    parser.add_argument("--only", default="", help="cases, separated by commas; the other figures of the file stay")
    options = parser.parse_args()
    only = [name for name in options.only.split(",") if name]
    output: Path | None = options.output or (None if options.quick else OUTPUT)
    try:
        before = json.loads(output.read_text("utf-8")) if only and output and output.exists() else {}
        result = before | run(
            quick=options.quick,
            many=options.memory_items,
            only=only,
            keep=lambda found: _write(output, before | found),
        )
    except UserError as error:
        complain(error)
        return 1
    result |= {"aims_missed": ", ".join(report.missed(result))}
    print(report.render(result))
    _write(output, result)
    if output:
        say(f"Written to {output}.")
    return 0


def _write(output: Path | None, result: Result) -> None:
    if output:
        output.parent.mkdir(parents=True, exist_ok=True)
        output.write_text(json.dumps(result, indent=2) + "\n", "utf-8")


if __name__ == "__main__":
    sys.exit(main())
