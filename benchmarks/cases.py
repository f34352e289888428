"""What is measured: each case returns the figures it adds to the result."""

import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack

import psycopg

from benchmarks.drains import beside, costs, drains, killed
from benchmarks.enqueue import enqueue
from benchmarks.listening import drain, memory, pickup, steady
from benchmarks.looking import looking
from benchmarks.queue import BY_KEYS, BY_RANGE, Queue
from benchmarks.scale import Figures, Say, Scale
from benchmarks.stopwatch import alternate, timed

WARMUP = 3
CLAIM_ITEMS = 100
BATCH_ITEMS = 1000
CLAIMER_BATCHES = 20


def history(db: psycopg.Connection, scale: Scale, say: Say) -> Figures:
    """Does a claim notice the finished rows beside it? And what does looking at everything cost then?"""
    queued = 2 * CLAIM_ITEMS * (WARMUP + scale.rounds)  # half of them stay, so that no claim sees the end of the queue
    small = Queue(db, "small", queued=queued)
    say(f"Loading {scale.finished:,} finished rows ...")
    start = time.perf_counter()
    large = Queue(db, "large", queued=queued, finished=scale.finished)
    seconds = time.perf_counter() - start
    size = db.execute("SELECT pg_database_size(current_database())").fetchall()[0][0]
    say(f"Loaded in {seconds:.0f} s, the database has {size / 2**30:.1f} GB. Claiming beside them ...")
    alone, beside = alternate(
        small.claim_lap(CLAIM_ITEMS), large.claim_lap(CLAIM_ITEMS), rounds=scale.rounds, warmup=WARMUP
    )
    (status,) = alternate(
        lambda: timed(lambda: db.execute("SELECT * FROM scheduler.status").fetchall()),
        rounds=scale.rounds,
        warmup=WARMUP,
    )
    return {
        "finished_rows": scale.finished,
        "database_bytes": size,
        "load_seconds": seconds,
        "claim_100_alone_ms": alone.ms,
        "claim_100_beside_finished_ms": beside.ms,
        "claim_beside_finished_ratio": beside.median / alone.median,
        "status_ms": status.ms,
    }


def overhead(db: psycopg.Connection, scale: Scale, say: Say) -> Figures:
    """What is left of the speed of two bare UPDATEs, the least that two status changes can cost."""
    say(f"Claiming and finishing batches of {BATCH_ITEMS:,}, beside two bare UPDATEs ...")
    queue = Queue(db, "batch", queued=BATCH_ITEMS * (WARMUP + scale.rounds))
    by_keys, by_range = queue.bare(BY_KEYS), queue.bare(BY_RANGE)
    engine, keys, span = alternate(
        lambda: timed(lambda: queue.work(BATCH_ITEMS)),
        lambda: timed(lambda: by_keys.work(BATCH_ITEMS)),
        lambda: timed(lambda: by_range.work(BATCH_ITEMS)),
        rounds=scale.rounds,
        warmup=WARMUP,
    )
    return {
        "engine_items_per_second": BATCH_ITEMS / engine.median,
        "bare_items_per_second": BATCH_ITEMS / keys.median,
        "engine_to_bare_ratio": keys.median / engine.median,
        "bare_range_items_per_second": BATCH_ITEMS / span.median,
        "engine_to_bare_range_ratio": span.median / engine.median,
    }


def claimers(db: psycopg.Connection, scale: Scale, say: Say) -> Figures:
    """Do two sessions get in each other's way? Bounded by the cores, which the clients share."""
    say(f"Claiming and finishing batches of {CLAIM_ITEMS} in one session, and in two at once ...")
    rounds = max(3, scale.rounds // 10)
    queue = Queue(db, "crowd", queued=2 * CLAIM_ITEMS * CLAIMER_BATCHES * (WARMUP + rounds))
    with ExitStack() as stack:
        sessions = [
            stack.enter_context(psycopg.connect(db.info.dsn, password=db.info.password, autocommit=True))
            for _ in range(2)
        ]
        queues = [queue.through(session) for session in sessions]
        pool = stack.enter_context(ThreadPoolExecutor(2))

        def drain(one: Queue, batches: int) -> None:
            for _ in range(batches):
                one.work(CLAIM_ITEMS)

        def together() -> None:
            list(pool.map(drain, queues, [CLAIMER_BATCHES // 2] * 2))

        one, two = alternate(
            lambda: timed(lambda: drain(queues[0], CLAIMER_BATCHES)),
            lambda: timed(together),
            rounds=rounds,
            warmup=WARMUP,
        )
    items = CLAIM_ITEMS * CLAIMER_BATCHES
    return {
        "one_claimer_items_per_second": items / one.median,
        "two_claimers_items_per_second": items / two.median,
        "two_claimers_ratio": one.median / two.median,
    }


CASES = (history, overhead, claimers, enqueue, pickup, steady, drain, drains, costs, beside, killed, memory, looking)
