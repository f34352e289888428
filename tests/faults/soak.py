"""Steady load for a while with a fault every so often: does anything grow that should not?"""

import random
import statistics
import time
from dataclasses import dataclass
from pathlib import Path

from listener.cli.say import say
from listener.cli.table import table
from listener.postgres.throwaway import Throwaway
from tests.faults.mix import Trouble
from tests.faults.stage import CHAOS, PATIENCE, Stage, staged
from tests.sql.queue import one
from tests.waiting import wait_until

RATE = 40
"""Items a second, of two workflows."""
FAULT_SECONDS = 20.0
SAMPLE_SECONDS = 10.0
MEMORY_MIB = 16
DRIFT = 3
CONNECTIONS = 3 * (2 * 2 + 3 + 2)
"""What may come of it: three listeners, each with its pool for two workflows, a heartbeat and a doorbell."""
_LATER = "later = tests.faults.workflow:later"


@dataclass
class Sample:
    second: int
    memory: float
    """The largest listener, in MiB."""
    connections: int
    bloat: float
    """Dead rows of the engine's own tables and of the two queues for each live one."""
    size: float
    """Of the database, in MiB."""
    p50: float
    p99: float
    """From the commit that queued an item to the commit of its effect, of the last seconds, in milliseconds."""


def soak(cluster: Throwaway, minutes: float, seed: int = 1) -> int:
    chance = random.Random(seed)
    samples: list[Sample] = []
    faults: list[str] = []
    with staged(cluster, listeners=3) as stage:
        stage.bench.adopt("later", table="coming", lease="3 seconds", batch_size=20, max_attempts=50, breaker=False)
        for name in ("item", "coming"):
            stage.bench.db.execute(
                f"ALTER TABLE {name} ADD COLUMN queued_at timestamptz DEFAULT clock_timestamp()".encode()
            )
        stage.cast(entries=(CHAOS, _LATER))
        trouble = Trouble(stage, entries=(CHAOS, _LATER)).kinds
        began = time.monotonic()
        next_fault, next_sample = FAULT_SECONDS, SAMPLE_SECONDS
        second = 0
        while (now := time.monotonic() - began) < minutes * 60:
            while second < now:
                stage.queue(RATE // 2)
                first = second * (RATE // 2) + 1
                stage.bench.queue(*["ok"] * (RATE // 2), first=first, table="coming")
                second += 1
            if now > next_fault:
                faults.append(chance.choice(list(trouble)))
                trouble[faults[-1]](chance.randrange(3))
                next_fault += FAULT_SECONDS
            if now > next_sample:
                samples.append(_sample(stage, int(now)))
                next_sample += SAMPLE_SECONDS
            stage.last(0.2)
        wait_until(lambda: _unfinished(stage) == 0, PATIENCE, "the second workflow")
        # both write into the same table of effects: those of the second are judged apart
        more = second * (RATE // 2)
        done, different = stage.bench.db.execute(
            "WITH gone AS (DELETE FROM effect WHERE result = 'new' RETURNING item)"
            " SELECT count(*), count(DISTINCT item) FROM gone"
        ).fetchone() or (0, 0)
        verdict = stage.finish()
        lost, twice = verdict.lost + verdict.missing + more - different, verdict.duplicates + done - different
    headings = ("second", "memory MiB", "connections", "dead rows a live one", "database MiB", "p50 ms", "p99 ms")
    print(table(headings, [tuple(round(v, 2) for v in vars(sample).values()) for sample in samples]))
    third = max(1, len(samples) // 3)
    drift = _median(samples[-third:], "p50") / max(0.001, _median(samples[:third], "p50"))
    growth = samples[-1].memory - samples[third - 1].memory
    say(f"{verdict.items} and {more} items, {len(faults)} faults: {' '.join(faults)}")
    say(f"lost {lost}, twice {twice}, repeated {verdict.repeated}, fenced {verdict.fenced}")
    say(f"p50 of the last third is {drift:.2f} times that of the first; memory grew by {growth:.1f} MiB since")
    most = max(sample.connections for sample in samples)
    failed = [
        *([f"lost {lost}, twice {twice}"] if lost or twice else []),
        *([f"memory grew by {growth:.0f} MiB"] if growth > MEMORY_MIB else []),
        *([f"{most} connections"] if most > CONNECTIONS else []),
        *([f"p50 is {drift:.1f} times what it was"] if drift > DRIFT else []),
    ]
    if failed:
        print("\nFAILED: " + "; ".join(failed))
    return 1 if failed else 0


def _unfinished(stage: Stage) -> int:
    return int(one(stage.bench.db, "SELECT count(*) FROM coming WHERE status IS DISTINCT FROM 'Completed'"))


def _sample(stage: Stage, second: int) -> Sample:
    memory = 0.0
    for process in stage.listeners:
        if process.running:
            pages = int(Path(f"/proc/{process.pid}/statm").read_text().split()[1])
            memory = max(memory, pages / 256)
    db = stage.bench.db
    waits = [
        row[0]
        for row in db.execute(
            "SELECT extract(epoch FROM e.at - i.queued_at)::float8 * 1000"
            " FROM effect AS e JOIN item AS i ON i.id = e.item WHERE e.result = 'done'"
            " AND e.at > now() - interval '10 seconds'"
        ).fetchall()
    ]
    bloat = (
        "SELECT coalesce(sum(n_dead_tup) / greatest(1, sum(n_live_tup)), 0)::float8 FROM pg_stat_user_tables"
        " WHERE schemaname = 'scheduler' OR relname IN ('item', 'coming')"
    )
    ours = "SELECT count(*) FROM pg_stat_activity WHERE application_name LIKE 'scrapersky%'"
    return Sample(
        second,
        memory,
        one(db, ours),
        one(db, bloat),
        one(db, "SELECT pg_database_size(current_database()) / 1048576.0::float8"),
        statistics.median(waits) if waits else 0.0,
        statistics.quantiles(waits, n=100)[98] if len(waits) > 2 else 0.0,
    )


def _median(samples: list[Sample], name: str) -> float:
    return float(statistics.median(getattr(sample, name) for sample in samples))
