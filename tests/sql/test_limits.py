"""Limits are exact: fifty listeners grab at the same moment, and no limit gives way."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier
from typing import TypeVar

import psycopg
import pytest

from tests.conftest import Connect
from tests.sql.queue import Claim, Queue, one

CLAIMERS = 50
T = TypeVar("T")


@pytest.fixture
def crowd(connect: Connect) -> list[psycopg.Connection]:
    return [connect() for _ in range(CLAIMERS)]


def at_once(crowd: list[psycopg.Connection], act: Callable[[Queue], T]) -> list[T]:
    """Every session does it, starting together."""
    start = Barrier(len(crowd))

    def run(session: psycopg.Connection) -> T:
        start.wait()
        return act(Queue.of(session))

    with ThreadPoolExecutor(len(crowd)) as threads:
        return list(threads.map(run, crowd))


def open_runs(db: psycopg.Connection) -> int:
    return int(one(db, "SELECT count(*) FROM scheduler.run WHERE finished_at IS NULL"))


@pytest.mark.slow
def test_max_instances_holds_against_fifty_claimers(db: psycopg.Connection, crowd: list[psycopg.Connection]) -> None:
    queue = Queue(db, 400, batch_size=1, max_instances=7)
    queue.set("Queued")

    def work(mine: Queue) -> int:
        """Claims and finishes a few times; returns the most runs it ever saw open."""
        most = 0
        for _ in range(4):
            claim = mine.claim()
            most = max(most, open_runs(mine.db))
            if claim.run is not None:
                mine.succeed(claim.run)
        return most

    assert max(at_once(crowd, work)) <= 7
    assert open_runs(db) == 0
    claims = at_once(crowd, lambda mine: mine.claim())
    assert 1 <= len([claim for claim in claims if claim.run is not None]) <= 7
    # those that gave way to a claim in the making would ask again
    while queue.claim().run is not None:
        pass
    assert open_runs(db) == 7
    assert one(db, "SELECT count(DISTINCT run) FROM scheduler.slot") == 7


@pytest.mark.slow
def test_the_rate_limit_is_exact_against_fifty_claimers(
    db: psycopg.Connection, crowd: list[psycopg.Connection]
) -> None:
    queue = Queue(db, 400, batch_size=3, rate_limit=100, rate_period="1 hour")
    queue.set("Queued")

    def drain(mine: Queue) -> list[Claim]:
        claims = [mine.claim()]
        while claims[-1].run is not None:
            claims.append(mine.claim())
        return claims

    claims = [claim for mine in at_once(crowd, drain) for claim in mine]
    assert sum(len(claim.keys) for claim in claims) == 100
    assert {claim.reason for claim in claims if claim.run is None} == {"rate_limit"}
    # in every window: the oldest three leave it, and three more may come
    db.execute(
        "UPDATE scheduler.run SET started_at = started_at - interval '1 hour'"
        " WHERE id = (SELECT min(id) FROM scheduler.run WHERE claimed = 3)"
    )
    assert sum(len(claim.keys) for claim in at_once(crowd, lambda mine: mine.claim())) == 3


@pytest.mark.slow
@pytest.mark.parametrize("processing", ["Processing", None])
def test_no_item_is_claimed_twice_by_fifty_claimers(
    db: psycopg.Connection, crowd: list[psycopg.Connection], processing: str | None
) -> None:
    queue = Queue(db, 300, batch_size=4, processing=processing)
    queue.set("Queued")
    claims = at_once(crowd, lambda mine: [mine.claim() for _ in range(2)])
    keys = [key for pair in claims for claim in pair for key in claim.keys]
    assert len(keys) == len(set(keys))
    while (claim := queue.claim()).run is not None:
        keys += claim.keys
    assert sorted(map(int, keys)) == list(range(1, 301))
