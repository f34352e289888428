"""What came of a scenario, counted from three witnesses: the items, their effects, and who was called outside."""

from collections import defaultdict
from dataclasses import dataclass, field
from typing import LiteralString

from tests.faults.sink import Sink
from tests.listener.started import Bench

_FINAL: LiteralString = "('Completed', 'Filtered', 'Failed')"


@dataclass
class Blow:
    """One fault and what it left behind. Times are this machine's, whose clock is the server's too."""

    began: float
    ended: float
    name: str = ""
    left: list[int] = field(default_factory=list)
    """Items that were queued or running when it ended, and the few queued right after."""
    recovery: float = 0.0
    """From its end to the next effect of any item, in seconds."""
    again: float = 0.0
    """From its end until the last of what it left was run again or done, in seconds."""


@dataclass
class Verdict:
    items: int = 0
    lost: int = 0
    """Items without a final word in the end."""
    duplicates: int = 0
    """Effects that exist more than once."""
    missing: int = 0
    """Completed items without an effect, and effects of items that are not completed."""
    dead: int = 0
    """Items in the dead letter: failed for good, and said so."""
    repeated: int = 0
    """Items for which the outside was called more than once; allowed, and counted."""
    fenced: int = 0
    """Results that came too late and were kept out."""
    recovery: float = 0.0
    """The longest time from the end of a fault to the next committed effect, in seconds."""
    again: float = 0.0
    """The longest time from the end of a fault until all that it left unfinished was run again, in seconds."""
    blows: list[Blow] = field(default_factory=list)
    all_done: float = 0.0
    """From the end of the last fault until every item had its final word, in seconds."""
    notes: list[str] = field(default_factory=list)

    @property
    def is_sound(self) -> bool:
        return not (self.lost or self.duplicates or self.missing)


def judge(bench: Bench, sink: Sink, blows: list[Blow]) -> Verdict:
    verdict = Verdict(blows=blows)
    verdict.items = number(bench, "SELECT count(*) FROM item WHERE status IS NOT NULL")
    verdict.lost = number(bench, f"SELECT count(*) FROM item WHERE status IS NOT NULL AND status NOT IN {_FINAL}")
    verdict.duplicates = number(bench, "SELECT count(*) - count(DISTINCT item) FROM effect")
    verdict.missing = number(
        bench,
        "SELECT count(*) FROM item AS i WHERE (i.status IN ('Completed', 'Filtered'))"
        " <> EXISTS (SELECT FROM effect AS e WHERE e.item = i.id)",
    )
    verdict.dead = number(bench, "SELECT count(*) FROM scheduler.dead_letter")
    verdict.repeated = sink.repeated
    verdict.fenced = sum(
        int(line.get("items", 0)) for process in bench.processes for line in process.lines("results refused")
    )
    _time(verdict, bench, sink)
    return verdict


def _time(verdict: Verdict, bench: Bench, sink: Sink) -> None:
    """How soon work went on after each fault, and how soon everything that it left was in work again."""
    effects = bench.db.execute(
        "SELECT item, extract(epoch FROM at)::float8 FROM effect WHERE at IS NOT NULL"
    ).fetchall()
    signs: dict[str, list[float]] = defaultdict(list)
    for item, at in effects:
        signs[str(item)].append(at)
    for name, moments in list(sink.calls.items()):
        signs[name.partition(":")[2]] += moments
    for number, blow in enumerate(verdict.blows):
        following = verdict.blows[number + 1].began if number + 1 < len(verdict.blows) else float("inf")
        blow.recovery = min((at - blow.ended for _, at in effects if blow.ended < at < following), default=0.0)
        nexts = (min((at for at in signs[str(item)] if at > blow.ended), default=0.0) for item in blow.left)
        # what was not reached before the next fault is counted there
        blow.again = max((at - blow.ended for at in nexts if at < following), default=0.0)
    verdict.recovery = max((blow.recovery for blow in verdict.blows), default=0.0)
    verdict.again = max((blow.again for blow in verdict.blows), default=0.0)
    if verdict.blows and effects:
        verdict.all_done = max(0.0, max(at for _, at in effects) - verdict.blows[-1].ended)


def number(bench: Bench, query: LiteralString) -> int:
    row = bench.db.execute(query).fetchone()
    return int(row[0]) if row else 0
