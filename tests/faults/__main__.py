"""`make faults`: every fault as a scenario, random mixes with many seeds, and a control without the fence.

python -m tests.faults                 all scenarios, then the mixes and the control
python -m tests.faults --list          what there is
python -m tests.faults --only F9 F10   these scenarios alone
python -m tests.faults --mix           the mixes and the control alone
python -m tests.faults --soak 10       ten minutes of steady load with faults sprinkled in
"""

import argparse
import statistics
import sys
from collections import Counter
from collections.abc import Iterable, Sequence

from listener.cli.say import say
from listener.cli.table import table
from listener.postgres.throwaway import Throwaway, throwaway
from tests import unpacked
from tests.faults import every
from tests.faults.mix import Report, run_mix
from tests.faults.scale import ROOMY, scale
from tests.faults.scenario import Outcome, Scenario, run
from tests.faults.soak import soak
from tests.faults.stage import BOUND
from tests.faults.verdict import Blow, Verdict

CONTROL_SEEDS = 3
_FIGURES = (
    "items",
    "lost",
    "twice",
    "missing",
    "dead",
    "repeated calls",
    "fenced",
    "recovery s",
    "all again s",
    "all done s",
)


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="python -m tests.faults", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--list", action="store_true", help="name the scenarios and end")
    parser.add_argument("--only", nargs="+", metavar="FAULT", help="these scenarios alone")
    parser.add_argument("--mix", action="store_true", help="the mixes alone")
    parser.add_argument("--seeds", type=int, default=5, help="how many mixes")
    parser.add_argument("--first", type=int, default=1, help="the first seed")
    parser.add_argument("--items", type=int, default=300, help="in each mix")
    parser.add_argument("--scale", action="store_true", help="a million items, a thousand workflows, 200 connections")
    parser.add_argument(
        "--soak",
        type=float,
        nargs="?",
        const=5.0,
        metavar="MINUTES",
        help="steady load with faults sprinkled in, alone; 5 minutes if not said otherwise",
    )
    options = parser.parse_args()
    scenarios = every.chosen(options.only)
    if options.list:
        print(table(("fault", "quick", "control", ""), [(s.number, s.quick, s.control, s.title) for s in scenarios]))
        return 0
    unpacked.fetch(say)
    with throwaway(durable=True, settings=ROOMY if options.scale else None) as cluster:
        if options.soak:
            return soak(cluster, options.soak)
        if options.scale:
            return scale(cluster)
        failed: list[str] = []
        if not options.mix:
            failed += _play(cluster, scenarios)
        if not options.only:
            failed += _mix(cluster, range(options.first, options.first + options.seeds), options.items)
    if failed:
        print("\nFAILED: " + "; ".join(failed))
        return 1
    print("\nNothing lost, nothing twice; the controls without the fence show duplicates.")
    return 0


def _play(cluster: Throwaway, scenarios: Sequence[Scenario]) -> list[str]:
    """Every scenario; then, without the fence, those that it is for."""
    outcomes: list[Outcome] = []
    for scenario in scenarios:
        outcomes.append(run(scenario, cluster))
        _tell(outcomes[-1])
    failed = [f"{o.scenario.number}: {o.failed or 'lost or twice'}" for o in outcomes if o.word == "FAILED"]
    failed += _late((o.scenario.number, o.verdict) for o in outcomes)
    controls = [run(s, cluster, fenced=False) for s in scenarios if s.control]
    for outcome in controls:
        _tell(outcome, "without the fence")
    rows = [(o.scenario.number, *_figures(o.verdict), o.word, _notes(o)) for o in outcomes if not o.skipped]
    rows += [(f"{o.scenario.number} no fence", *_figures(o.verdict), "control", "") for o in controls]
    print(table(("fault", *_FIGURES, "", ""), rows))
    for outcome in outcomes:
        if outcome.skipped:
            print(f"{outcome.scenario.number} was not played: {outcome.skipped}")
    failed += [
        f"{o.scenario.number} without the fence shows no duplicates, so with it this could not have seen any"
        for o in controls
        if not o.verdict.duplicates
    ]
    return failed


def _mix(cluster: Throwaway, seeds: range, items: int) -> list[str]:
    reports: list[Report] = []
    for seed in seeds:
        reports.append(run_mix(cluster, seed, items=items))
        say(f"seed {seed}: {_line(reports[-1].verdict)}, {reports[-1].seconds:.0f} s")
    controls: list[Report] = []
    while len(controls) < CONTROL_SEEDS and not any(report.verdict.duplicates for report in controls):
        controls.append(run_mix(cluster, 1000 + len(controls), items=items, fenced=False))
        say(f"control: {_line(controls[-1].verdict)}")
    rows = [
        (r.seed, "on" if r.fenced else "OFF", *_figures(r.verdict), " ".join(_times(r.faults)))
        for r in (*reports, *controls)
    ]
    print(table(("seed", "fence", *_FIGURES, "faults"), rows))
    total = Counter[str]()
    for report in reports:
        total.update(report.faults)
    print(f"\n{total.total()} faults: " + ", ".join(f"{name} {count}" for name, count in total.most_common()))
    blows = [blow for report in reports for blow in report.verdict.blows]
    _by_kind(blows)
    for line in (line for report in reports for line in report.story):
        print(line)
    failed = [f"seed {r.seed}" for r in reports if not r.verdict.is_sound]
    failed += [f"seed {r.seed}: recovered after {r.verdict.again:.1f} s" for r in reports if r.verdict.again > BOUND]
    if not any(report.verdict.duplicates for report in controls):
        failed.append("the control shows no duplicates, so this could not have seen any")
    return failed


def _by_kind(blows: Sequence[Blow]) -> None:
    rows = []
    for name in sorted({blow.name for blow in blows}):
        again = [blow.again for blow in blows if blow.name == name]
        first = [blow.recovery for blow in blows if blow.name == name]
        rows.append((name, len(again), *(round(f(x), 2) for x in (first, again) for f in (statistics.median, max))))
    again = [blow.again for blow in blows]
    print(table(("fault", "times", "next effect, median", "longest", "all run again, median", "longest"), rows))
    print(
        f"All run again after {statistics.median(again):.1f} s in the median, {max(again):.1f} s at the longest;"
        f" lease + poll interval is {BOUND:.0f} s."
    )


def _late(verdicts: Iterable[tuple[str, Verdict]]) -> list[str]:
    return [f"{name}: recovered after {v.recovery:.1f} s" for name, v in verdicts if v.recovery > BOUND]


def _tell(outcome: Outcome, word: str = "") -> None:
    words = outcome.skipped or outcome.failed or _line(outcome.verdict)
    word = word or outcome.word
    say(f"{outcome.scenario.number} {outcome.scenario.title}: {word}: {words}, {outcome.seconds:.0f} s")


def _figures(verdict: Verdict) -> tuple[object, ...]:
    v = verdict
    recovery, again, done = round(v.recovery, 2), round(v.again, 2), round(v.all_done, 1)
    return v.items, v.lost, v.duplicates, v.missing, v.dead, v.repeated, v.fenced, recovery, again, done


def _notes(outcome: Outcome) -> str:
    return "; ".join([outcome.failed] if outcome.failed else outcome.verdict.notes)


def _times(faults: Counter[str]) -> list[str]:
    return [f"{name}*{count}" if count > 1 else name for name, count in faults.items()]


def _line(v: Verdict) -> str:
    return f"{v.items} items, lost {v.lost}, twice {v.duplicates}, repeated {v.repeated}, fenced {v.fenced}"


if __name__ == "__main__":
    sys.exit(main())
