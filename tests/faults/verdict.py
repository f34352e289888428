"""What came of a scenario, counted from three witnesses: the items, their effects, and who was called outside."""

from dataclasses import dataclass, field
from typing import LiteralString

from tests.faults.sink import Sink
from tests.listener.started import Bench

_FINAL: LiteralString = "('Completed', 'Filtered', 'Failed')"


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
    recoveries: list[float] = field(default_factory=list)
    """Of each fault."""
    all_done: float = 0.0
    """From the end of the last fault until every item had its final word, in seconds."""
    notes: list[str] = field(default_factory=list)

    @property
    def is_sound(self) -> bool:
        return not (self.lost or self.duplicates or self.missing)


def judge(bench: Bench, sink: Sink, ends: list[float]) -> Verdict:
    """`ends`: when each fault was over, by the server's clock, which is this machine's."""
    verdict = Verdict()
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
    for end in ends:
        row = bench.db.execute(
            "SELECT extract(epoch FROM min(at)) FROM effect WHERE at > to_timestamp(%s)", [end]
        ).fetchone()
        if row is not None and row[0] is not None:
            verdict.recoveries.append(round(float(row[0]) - end, 2))
    verdict.recovery = max(verdict.recoveries, default=0.0)
    if ends:
        row = bench.db.execute("SELECT extract(epoch FROM max(at)) FROM effect").fetchone()
        if row is not None and row[0] is not None:
            verdict.all_done = max(0.0, float(row[0]) - ends[-1])
    return verdict


def number(bench: Bench, query: LiteralString) -> int:
    row = bench.db.execute(query).fetchone()
    return int(row[0]) if row else 0
