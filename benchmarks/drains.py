"""How fast real listeners drain a table like `place`, in every situation that could slow them down."""

import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager

import psycopg

from benchmarks.listening import child
from benchmarks.queue import Places, Queue
from benchmarks.scale import Figures, Say, Scale
from benchmarks.stopwatch import alternate, timed

BATCH_ITEMS = 1000
_KILLED_ITEMS = 20_000
# the names that workflows of a kind begin with, and whether they have a processing word
_KINDS = ("one", "light", "two", "held", "slow", "long")


def drains(db: psycopg.Connection, scale: Scale, say: Say) -> Figures:
    """20,000 items in each situation, in turn; 200,000 once a round; beside two bare UPDATEs per row."""
    rounds = range(1 + scale.drains)
    queues = {
        kind: [
            Places(
                db,
                f"{kind}_{n}",
                queued=scale.long_drain if kind == "long" else scale.drained,
                paused=True,
                processing=None if kind == "light" else "Processing",
            )
            for n in rounds
        ]
        for kind in _KINDS
    }
    bare = [
        Places(db, f"two_updates_{n}", queued=scale.drained).bare_loops(BATCH_ITEMS, scale.drained)[0] for n in rounds
    ]
    say(f"Draining {scale.drained:,} items in {len(_KINDS)} situations, {len(rounds)} times ...")
    names = [queue.name for kind in _KINDS for queue in queues[kind]]
    second = [queue.name for queue in queues["two"]]
    with child(db, *names), child(db, *second):
        laps = [
            _lap(db, queues[kind], scale.long_drain if kind == "long" else scale.drained, held=kind == "held")
            for kind in _KINDS
        ]
        loops = iter(bare)
        laps.append(lambda: timed(next(loops)))
        times = alternate(*laps, rounds=scale.drains, warmup=1)
    found = dict(zip((*_KINDS, "bare"), times, strict=True))
    rates = {
        kind: (scale.long_drain if kind == "long" else scale.drained) / seconds.median
        for kind, seconds in found.items()
    }
    return {
        "place_items": scale.drained,
        "place_long_items": scale.long_drain,
        "place_bare_items_per_second": rates["bare"],
        "place_drain_1_items_per_second": rates["one"],
        "place_drain_2_items_per_second": rates["two"],
        "place_drain_light_items_per_second": rates["light"],
        "place_drain_long_items_per_second": rates["long"],
        "place_drain_held_items_per_second": rates["held"],
        "place_drain_1ms_items_per_second": rates["slow"],
        "place_drain_to_bare_ratio": rates["one"] / rates["bare"],
        "place_long_drain_to_bare_ratio": rates["long"] / rates["bare"],
        "place_light_to_bare_ratio": rates["light"] / rates["bare"],
        "place_held_ratio": rates["held"] / rates["one"],
    }


def _lap(db: psycopg.Connection, queues: list[Places], items: int, *, held: bool) -> Callable[[], float]:
    waiting = iter(queues)
    return lambda: _drain(db, next(waiting), items, held=held)


def _drain(db: psycopg.Connection, queue: Places, items: int, *, held: bool) -> float:
    """Seconds from the bell until no item is left unfinished."""

    def drain() -> None:
        # The runs tell: looking at the rows every other millisecond took a fifth of the machine.
        queue.resume()
        queue.drained(items)

    with _snapshot(db, held):
        seconds = timed(drain)
    if queue.left():
        raise AssertionError(f"{queue.name}: the runs say that all is done, the rows do not")
    return seconds


@contextmanager
def _snapshot(db: psycopg.Connection, wanted: bool) -> Iterator[None]:
    """A report that runs the whole time: nothing that dies meanwhile can be cleaned away."""
    if not wanted:
        yield
        return
    with psycopg.connect(db.info.dsn, password=db.info.password) as session:
        session.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
        session.execute("SELECT count(*) FROM pg_class")
        yield


def costs(db: psycopg.Connection, scale: Scale, say: Say) -> Figures:
    """Transactions, WAL and dead rows that one item costs, from Queued to Completed."""
    say("Counting what an item costs ...")
    figures: Figures = {}
    for kind, processing in (("", "Processing"), ("light_", None)):
        queue = Places(db, f"costs_{kind}x", queued=scale.drained, paused=True, processing=processing)
        with child(db, queue.name):
            before = _counters(db)
            queue.resume()
            while queue.left():
                time.sleep(0.1)  # each look is a transaction, too
        after = _counters(db)
        for name, value in after.items():
            figures[f"{kind}{name}_per_item"] = (value - before[name]) / scale.drained
    return figures


def _counters(db: psycopg.Connection) -> dict[str, float]:
    db.execute("SELECT pg_stat_force_next_flush()")
    row = db.execute(
        "SELECT pg_current_wal_insert_lsn() - '0/0'::pg_lsn,"
        " (SELECT xact_commit FROM pg_stat_database WHERE datname = current_database()),"
        " (SELECT sum(n_tup_upd + n_tup_del) FROM pg_stat_user_tables)"
    ).fetchall()[0]
    return dict(zip(("wal_bytes", "transactions", "dead_tuples"), map(float, row), strict=True))


def beside(db: psycopg.Connection, scale: Scale, say: Say) -> Figures:
    """The pace of a listener beside many finished items, next to that without them; and what bare UPDATEs lose there.

    With keys in the order of the rows, and with random ones as `place` has them: of those, each update puts an entry
    into another page of a large index, which hurts whoever updates.
    """
    items, rounds = scale.drained, max(1, scale.drains - 2)
    queued = (1 + rounds) * (items + 20 * BATCH_ITEMS)  # a pause comes a few batches late
    some, many = scale.finished // 10, scale.finished
    say(f"Loading {some:,} and {many:,} finished rows of each kind ...")
    serial = [Queue(db, f"serial_{count}", queued=queued, finished=count, paused=True) for count in (0, many)]
    random = [
        Places(db, f"beside_{count}", queued=queued, finished=count, paused=True, fillfactor=90)
        for count in (0, some, many)
    ]
    bare = [iter(queue.bare_loops(BATCH_ITEMS, items)) for queue in (random[0], random[-1])]
    db.execute("CHECKPOINT")
    say("Draining beside them ...")
    queues = [*serial, *random]
    with child(db, *(queue.name for queue in queues)):
        laps = [lambda queue=queue: 1 / queue.pace(items) for queue in queues]
        laps += [lambda loops=loops: timed(next(loops)) / items for loops in bare]
        times = alternate(*laps, rounds=rounds, warmup=1)
    rates = [1 / lap.median for lap in times]
    return {
        "finished_rows": scale.finished,
        "beside_0_items_per_second": rates[0],
        "beside_10m_items_per_second": rates[1],
        "beside_10m_ratio": rates[1] / rates[0],
        "place_beside_0_items_per_second": rates[2],
        "place_beside_1m_items_per_second": rates[3],
        "place_beside_10m_items_per_second": rates[4],
        "place_beside_1m_ratio": rates[3] / rates[2],
        "place_beside_10m_ratio": rates[4] / rates[2],
        "bare_beside_10m_ratio": rates[6] / rates[5],
    }


def killed(db: psycopg.Connection, scale: Scale, say: Say) -> Figures:
    """Two listeners, one is killed in the middle: how long until its items are done, too?"""
    say(f"Killing a listener; the lease is {scale.lease_seconds} s ...")
    queue = Places(
        db, "slow_killed", queued=min(_KILLED_ITEMS, scale.drained), paused=True, lease=f"{scale.lease_seconds} s"
    )
    with ExitStack() as stack:
        victim = stack.enter_context(child(db, queue.name))
        stack.enter_context(child(db, queue.name))
        queue.resume()
        queue.drained(1)
        start = time.perf_counter()
        victim.kill()
        while queue.left():
            time.sleep(0.01)
        seconds = time.perf_counter() - start
    return {"killed_lease_seconds": scale.lease_seconds, "killed_recovered_seconds": seconds}
