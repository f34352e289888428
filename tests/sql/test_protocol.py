"""The protocol as a model: any order of claims, heartbeats, expiry, rescue, outcomes, cancels and people's writes.

What a listener believes it holds is never taken back from it here, so stale listeners try everything all the time.
"""

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager

import psycopg
import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule, run_state_machine_as_test

from tests.sql.queue import Queue, one

ROWS = 6
ATTEMPTS = 3
ITEMS = st.integers(1, ROWS)
LISTENERS = st.sampled_from(["00000000-0000-0000-0000-000000000001", "00000000-0000-0000-0000-000000000002"])


class Protocol(RuleBasedStateMachine):
    """Several listeners, an impatient operator and a clock, all against one real database."""

    db: psycopg.Connection
    queue: Queue

    @initialize()
    def begin(self) -> None:
        self.held: list[tuple[int, str]] = []
        """Every item of every run that was ever claimed."""
        self.asked: Counter[str] = Counter()
        """How often somebody asked for an item: an effect each at most."""
        self.db.execute("TRUNCATE scheduler.run, scheduler.attempt, scheduler.takeover, item, effect")
        self.db.execute("INSERT INTO item (id) SELECT generate_series(1, %s)", [ROWS])
        self.db.execute("UPDATE scheduler.slot SET run = NULL")

    # -- what people do -------------------------------------------------------------------------------------------

    @rule(key=ITEMS)
    def person_queues(self, key: int) -> None:
        if self.queue.status(key) != "Queued":
            self.asked[str(key)] += 1
        self.queue.set("Queued", key)

    @rule(key=ITEMS)
    def person_takes_back(self, key: int) -> None:
        self.queue.set("New", key)

    @rule(key=ITEMS)
    def person_deletes(self, key: int) -> None:
        # Put back at once, but not while a run may still have it: a key that is used again is not covered.
        if self.queue.status(key) != "Processing" and not self._is_running(key):
            self.db.execute("DELETE FROM item WHERE id = %s", [key])
            self.db.execute("INSERT INTO item (id) VALUES (%s)", [key])

    @rule(key=ITEMS)
    def operator_enqueues(self, key: int) -> None:
        self.asked[str(key)] += one(self.db, "SELECT queued FROM scheduler.enqueue('job', %s::text[])", [str(key)])

    @rule(key=ITEMS)
    def operator_cancels(self, key: int) -> None:
        self.db.execute("SELECT scheduler.cancel('job', %s::text[])", [[str(key)]])

    @rule()
    def operator_requeues(self) -> None:
        self.db.execute("SELECT scheduler.requeue('job')")

    # -- what listeners do ------------------------------------------------------------------------------------------

    @rule(items=st.integers(1, 4), listener=LISTENERS)
    def claim(self, items: int, listener: str) -> None:
        claim = self.queue.claim(items, listener)
        if claim.run is not None:
            assert all(attempt <= ATTEMPTS for attempt in claim.attempts)
            self.held += [(claim.run, key) for key in claim.keys]

    @rule(pick=st.integers(0, 10**6))
    def succeed(self, pick: int) -> None:
        """With its effect in the same transaction, for what was accepted only."""
        for run, key in self._picked(pick):
            with self.db.transaction():
                accepted, refused = self.queue.succeed(run, key)
                assert (accepted, refused) in ((1, []), (0, [key]))
                if accepted:
                    self.db.execute("INSERT INTO effect (item) VALUES (%s)", [key])

    @rule(pick=st.integers(0, 10**6), permanent=st.booleans())
    def fail(self, pick: int, permanent: bool) -> None:
        for run, key in self._picked(pick):
            self.queue.fail(run, key, permanent=permanent)

    @rule(pick=st.integers(0, 10**6))
    def defer(self, pick: int) -> None:
        for run, key in self._picked(pick):
            self.queue.defer(run, key)

    @rule(pick=st.integers(0, 10**6))
    def release(self, pick: int) -> None:
        for run, key in self._picked(pick):
            self.db.execute("SELECT scheduler.release(%s, %s::text[])", [run, [key]])

    @rule(pick=st.integers(0, 10**6), listener=LISTENERS)
    def heartbeat(self, pick: int, listener: str) -> None:
        for run, _ in self._picked(pick):
            self.queue.heartbeat(listener, run)

    # -- what time does ---------------------------------------------------------------------------------------------

    @rule(pick=st.integers(0, 10**6))
    def lease_passes(self, pick: int) -> None:
        for run, _ in self._picked(pick):
            self.queue.expire(run)

    @rule()
    def rescue(self) -> None:
        self.db.execute("SELECT scheduler.rescue()")

    @rule()
    def retries_come_due(self) -> None:
        self.queue.due()
        self.db.execute("SELECT scheduler.dispatch('job')")

    # -- what must always hold --------------------------------------------------------------------------------------

    @invariant()
    def no_item_is_owned_twice(self) -> None:
        # what someone wrote over belongs to its earlier run no more, though the run's row is told a little later
        owners = self.db.execute(
            "SELECT k, count(*) FROM scheduler.run AS r, unnest(r.keys) AS k WHERE r.finished_at IS NULL"
            " AND NOT EXISTS (SELECT FROM scheduler.takeover AS t WHERE t.key = k AND t.upto >= r.id)"
            " GROUP BY k HAVING count(*) > 1"
        ).fetchall()
        assert owners == []

    @invariant()
    def every_running_item_has_a_run(self) -> None:
        stranded = self.db.execute(
            "SELECT id FROM item WHERE status = 'Processing' AND NOT EXISTS (SELECT FROM scheduler.run AS r"
            " WHERE r.finished_at IS NULL AND item.id::text = ANY (r.keys))"
        ).fetchall()
        assert stranded == []

    @invariant()
    def nothing_happens_more_often_than_it_was_asked_for(self) -> None:
        effects = Counter({str(k): n for k, n in self.db.execute("SELECT item, count(*) FROM effect GROUP BY 1")})
        assert effects <= self.asked

    @invariant()
    def attempts_stay_within_their_limit(self) -> None:
        assert one(self.db, "SELECT coalesce(max(attempts), 0) FROM scheduler.attempt") <= ATTEMPTS

    @invariant()
    def a_completed_item_has_its_effect(self) -> None:
        without = self.db.execute(
            "SELECT id FROM item WHERE status = 'Completed' AND NOT EXISTS (SELECT FROM effect WHERE effect.item = id)"
        ).fetchall()
        assert without == []

    def teardown(self) -> None:
        """Nothing is stuck: when every listener is gone, new ones bring every item to an end."""
        if not hasattr(self, "held"):
            return
        self.db.execute("UPDATE scheduler.run SET lease_until = now() - interval '1 s' WHERE finished_at IS NULL")
        for _ in range(ROWS * (ATTEMPTS + 2)):
            self.retries_come_due()
            claim = self.queue.claim()
            if claim.run is None and claim.reason == "empty":
                break
            if claim.run is not None:
                self.queue.succeed(claim.run)
        unfinished = one(self.db, "SELECT count(*) FROM item WHERE status IN ('Queued', 'Processing')")
        assert unfinished == 0
        assert one(self.db, "SELECT count(*) FROM scheduler.run WHERE finished_at IS NULL") == 0

    def _picked(self, pick: int) -> list[tuple[int, str]]:
        """One of the items that some listener holds or believes to hold; none before the first claim."""
        return [self.held[pick % len(self.held)]] if self.held else []

    def _is_running(self, key: int) -> bool:
        query = "SELECT EXISTS (SELECT FROM scheduler.run WHERE finished_at IS NULL AND %s = ANY (keys))"
        return bool(one(self.db, query, str(key)))


@contextmanager
def _machine(db: psycopg.Connection) -> Iterator[type[Protocol]]:
    queue = Queue(db, max_attempts=ATTEMPTS, batch_size=10, max_instances=3, breaker=False)
    db.execute("CREATE TABLE effect (item integer NOT NULL)")
    yield type("Bound", (Protocol,), {"db": db, "queue": queue})


@pytest.mark.slow
def test_in_any_order_of_events_nothing_is_owned_twice_done_twice_or_stuck(db: psycopg.Connection) -> None:
    with _machine(db) as machine:
        run_state_machine_as_test(
            machine,
            settings=settings(
                max_examples=40,
                stateful_step_count=40,
                deadline=None,
                derandomize=True,
                suppress_health_check=list(HealthCheck),
            ),
        )
