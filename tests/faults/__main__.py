"""`make faults`: random mixes of faults with many seeds, and the control without the fence; prints a table."""

import argparse
import sys
from collections import Counter

from listener.cli.say import say
from listener.cli.table import table
from listener.postgres.throwaway import throwaway
from tests.faults.mix import LEASE_SECONDS, POLL_SECONDS, Report, run_mix

_HEADINGS = ("seed", "fence", "items", "lost", "twice", "missing", "repeated calls", "refused", "recovery s", "faults")
CONTROL_SEEDS = 3


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.faults", description=__doc__)
    parser.add_argument("--seeds", type=int, default=5, help="how many mixes")
    parser.add_argument("--first", type=int, default=1, help="the first seed")
    parser.add_argument("--items", type=int, default=600)
    options = parser.parse_args()
    reports: list[Report] = []
    with throwaway(durable=True) as cluster:
        for seed in range(options.first, options.first + options.seeds):
            reports.append(run_mix(cluster, seed, items=options.items))
            say(f"seed {seed}: {_line(reports[-1])}")
        controls: list[Report] = []
        while len(controls) < CONTROL_SEEDS and not any(report.duplicates for report in controls):
            controls.append(run_mix(cluster, 1000 + len(controls), items=options.items, fenced=False))
            say(f"control: {_line(controls[-1])}")
    print(table(_HEADINGS, [_row(report) for report in (*reports, *controls)]))
    every = Counter[str]()
    for report in reports:
        every.update(report.faults)
    print(f"\n{sum(every.values())} faults: " + ", ".join(f"{name} {count}" for name, count in every.most_common()))
    failed = [r for r in reports if r.lost or r.duplicates or r.missing]
    slowest = max((report.recovery for report in reports), default=0.0)
    print(f"Longest recovery {slowest:.1f} s; lease + poll interval is {LEASE_SECONDS + POLL_SECONDS:.0f} s.")
    if failed:
        print(f"FAILED: seeds {', '.join(str(report.seed) for report in failed)}")
        return 1
    if not any(report.duplicates for report in controls):
        print("FAILED: the control shows no duplicates, so this could not have seen any")
        return 1
    print("Nothing lost, nothing twice; the control without the fence shows duplicates.")
    return 0


def _row(report: Report) -> tuple[object, ...]:
    return (
        report.seed,
        "on" if report.fenced else "OFF",
        report.items,
        report.lost,
        report.duplicates,
        report.missing,
        report.repeated,
        report.refused,
        round(report.recovery, 2),
        " ".join(f"{name}*{count}" if count > 1 else name for name, count in report.faults.items()),
    )


def _line(report: Report) -> str:
    return (
        f"lost {report.lost}, twice {report.duplicates}, repeated {report.repeated}, refused {report.refused},"
        f" {report.seconds:.0f} s"
    )


if __name__ == "__main__":
    sys.exit(main())
