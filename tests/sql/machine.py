"""The protocol as a state machine: hypothesis chooses who acts next, the real database answers, invariants are checked.

Actors: listeners that claim, beat, finish, fail, give back, fall asleep past their lease and try again for ever; one
whose transaction stays open while others act; a person who writes, cancels and queues again; the database's clock.
The invariants are read from the database alone, so a mistake in the engine cannot hide in a mistake of the model.
"""

from collections import Counter
from collections.abc import Callable
from typing import Any, LiteralString

import psycopg
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule
from psycopg import errors

from tests.sql.queue import Claim, Queue, call, one

ITEMS = 3
MAX_ATTEMPTS = 2
"""Few, so that actors meet at the same item and limits are reached within a game."""
_LISTENERS = tuple(f"00000000-0000-0000-0000-00000000000{number}" for number in range(2))
_BLOCKED = (errors.LockNotAvailable, errors.DeadlockDetected)
_keys = st.integers(min_value=1, max_value=ITEMS)
_choice = st.integers(min_value=-4, max_value=-1)
"""Which of the youngest runs; the older ones are tried again by `zombie`."""


PREPARE: LiteralString = """
CREATE TABLE effect (item integer, asked integer, run bigint);
ALTER TABLE item ADD COLUMN asked integer NOT NULL DEFAULT 0;
CREATE TABLE change (n bigserial, item integer, asked integer, old text, new text, engine boolean);
CREATE FUNCTION note() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER AS $$ BEGIN
    INSERT INTO public.change (item, asked, old, new, engine)
    VALUES (NEW.id, NEW.asked, OLD.status, NEW.status,
            current_setting('scheduler.engine', true) IS NOT DISTINCT FROM 'on');
    RETURN NULL; END $$;
CREATE TRIGGER note AFTER UPDATE ON item FOR EACH ROW WHEN (OLD.status IS DISTINCT FROM NEW.status)
    EXECUTE FUNCTION note()
"""
_RESET: LiteralString = """
TRUNCATE effect, change, item, scheduler.run, scheduler.attempt, scheduler.takeover;
UPDATE scheduler.slot SET run = NULL;
UPDATE scheduler.workflow SET paused_at = NULL;
INSERT INTO item (id, status) SELECT n, 'Queued' FROM generate_series(1, 3) AS n
"""


_EXPIRE: LiteralString = "UPDATE scheduler.run SET lease_until = now() - interval '1 second' WHERE listener = %s"
_WRONG: LiteralString = """
SELECT 'owned by two runs' AS what, k AS item FROM scheduler.run, unnest(keys) AS k JOIN item ON item.id::text = k
WHERE finished_at IS NULL AND item.status = 'Processing'
  AND NOT EXISTS (SELECT FROM scheduler.takeover AS t WHERE t.key = k AND t.upto >= run.id)
GROUP BY k HAVING count(*) > 1
UNION ALL
SELECT 'Processing, and in nobody''s hands', id::text FROM item
WHERE status = 'Processing'
  AND NOT EXISTS (SELECT FROM scheduler.run WHERE finished_at IS NULL AND item.id::text = ANY (keys))
UNION ALL
SELECT 'its final word written twice', item::text FROM change WHERE engine AND new = 'Completed'
GROUP BY item, asked HAVING count(*) > 1
UNION ALL
SELECT 'its final word written over', item::text FROM change WHERE engine AND old IN ('Completed', 'Filtered')
UNION ALL
SELECT 'two effects', item::text FROM effect GROUP BY item, asked HAVING count(*) > 1
UNION ALL
SELECT 'final word without effect', c.item::text FROM change AS c
WHERE c.engine AND c.new = 'Completed'
  AND NOT EXISTS (SELECT FROM effect AS e WHERE e.item = c.item AND e.asked = c.asked)
UNION ALL
SELECT 'effect without final word', e.item::text FROM effect AS e
WHERE NOT EXISTS (
    SELECT FROM change AS c WHERE c.item = e.item AND c.asked = e.asked AND c.engine AND c.new = 'Completed')
UNION ALL
SELECT 'tried too often', key FROM scheduler.attempt WHERE attempts > %(most)s
UNION ALL
SELECT 'in the dead letter with attempts left', key FROM scheduler.attempt
WHERE state = 'dead' AND attempts < %(most)s AND reason IS DISTINCT FROM 'permanent'
UNION ALL
SELECT 'a slot of no open run', s.n::text FROM scheduler.slot AS s
WHERE s.run IS NOT NULL AND NOT EXISTS (SELECT FROM scheduler.run AS r WHERE r.id = s.run AND r.finished_at IS NULL)
"""


class Protocol(RuleBasedStateMachine):
    """Subclassed by `on()` with the sessions it plays on."""

    db: psycopg.Connection
    """Sees what is committed, and moves the clock."""
    other: psycopg.Connection
    """The listeners and the person, one statement after the other; waits for nobody's lock for long."""
    slow: psycopg.Connection
    """The listener whose transaction stays open."""

    @initialize()
    def begin(self) -> None:
        for session in (self.slow, self.other):
            session.rollback()
        self.db.execute(_RESET)
        self.runs: list[tuple[int, str, list[str]]] = []
        self.pending: tuple[Claim, str] | None = None
        self.handed = Counter[tuple[str, int]]()
        """How often an item was handed to a run since a person last asked for it."""
        self.returned = Counter[tuple[str, int]]()
        """How often it came back with no attempt spent."""

    # -- listeners -----------------------------------------------------------------------------------------------------

    @rule(who=st.sampled_from(_LISTENERS), items=st.integers(1, 4), dies=st.booleans())
    def claim(self, who: str, items: int, dies: bool) -> None:
        asked = self._asked()
        try:
            claim = Queue.of(self.other).claim(items=items, listener=who)
        except _BLOCKED:
            return self.other.rollback()
        if dies and items == 1:
            return self.other.rollback()  # killed before the commit
        self.other.commit()
        self._hand_over(claim, who, asked)
        return None

    @rule(choice=_choice, part=st.integers(0, 3), dies=st.booleans())
    def finish(self, choice: int, part: int, dies: bool) -> None:
        """Also of runs that were lost long ago: nothing is forgotten, a zombie tries again and again."""
        if self.runs:
            run, _, keys = self._run(choice)
            self._finish(self.other, run, keys[part:] or keys, commit=not (dies and part == 0))

    @rule(who=st.sampled_from(_LISTENERS))
    def claim_slowly(self, who: str) -> None:
        """Everything but the commit."""
        if not self._is_open(self.slow):
            try:
                claim = Queue.of(self.slow).claim(listener=who)
            except _BLOCKED:
                return self.slow.rollback()
            self.pending = (claim, who)
        return None

    @rule(who=st.sampled_from(_LISTENERS))
    def claim_and_die(self, who: str) -> None:
        self.claim(who, 4, dies=False)
        self._try(lambda queue: queue.db.execute(_EXPIRE, [who]))
        self._try(lambda queue: call(queue.db, "rescue"))

    @rule()
    def zombie(self) -> None:
        """A run from long ago."""
        if self.runs:
            run, _, keys = self.runs[0]
            self._finish(self.other, run, keys, commit=True)

    @rule(choice=_choice)
    def finish_slowly(self, choice: int) -> None:
        """Everything but the commit."""
        if self.runs and not self._is_open(self.slow):
            run, _, keys = self._run(choice)
            self._finish(self.slow, run, keys, commit=None)

    @rule(commits=st.booleans())
    def end_slowly(self, commits: bool) -> None:
        pending, self.pending = self.pending, None
        if not commits:
            self.slow.rollback()
            return
        asked = self._asked()
        self.slow.commit()
        if pending is not None:
            self._hand_over(*pending, asked)

    @rule(choice=_choice, permanent=st.booleans())
    def fail(self, choice: int, permanent: bool) -> None:
        if not self.runs:
            return
        run, _, keys = self._run(choice)
        self._try(lambda queue: queue.fail(run, keys[0], permanent=permanent))

    @rule(choice=_choice)
    def release(self, choice: int) -> None:
        if not self.runs:
            return
        run, _, _ = self._run(choice)
        asked = self._asked()
        held = one(self.db, "SELECT keys FROM scheduler.run WHERE id = %s AND finished_at IS NULL", run) or []
        if self._try(lambda queue: one(queue.db, "SELECT scheduler.release(%s)", run)):
            self.returned.update((key, asked[key]) for key in held if key in asked)

    @rule(who=st.sampled_from(_LISTENERS))
    def beat(self, who: str) -> None:
        mine = [run for run, owner, _ in self.runs if owner == who]
        self._try(lambda queue: queue.heartbeat(who, *mine))

    # -- the clock -----------------------------------------------------------------------------------------------------

    @rule(choice=_choice)
    def lease_ends(self, choice: int) -> None:
        """Of all runs of one listener: it is dead, or believed to be."""
        if self.runs:
            who = self._run(choice)[1]
            self._try(lambda queue: queue.db.execute(_EXPIRE, [who]))

    @rule()
    def rescue(self) -> None:
        self._try(lambda queue: call(queue.db, "rescue"))

    @rule()
    def retries_are_due(self) -> None:
        self._try(lambda queue: queue.due())

    # -- people --------------------------------------------------------------------------------------------------------

    @rule(key=_keys, word=st.sampled_from(["Queued", "Filtered", None]))
    def person_writes(self, key: int, word: str | None) -> None:
        """Only over what is running; whoever queues a finished item again asks for it anew."""
        self._returning(
            key,
            "UPDATE item SET status = %s, asked = asked + (%s::text IS NOT DISTINCT FROM 'Queued')::integer"
            " WHERE id = %s AND status = 'Processing'",
            [word, word, key],
        )

    @rule(key=_keys)
    def person_asks_again(self, key: int) -> None:
        query = (
            "UPDATE item SET status = 'Queued', asked = asked + 1 WHERE id = %s AND status IN ('Completed', 'Filtered')"
        )
        self._returning(key, query, [key])

    @rule(key=_keys)
    def person_cancels(self, key: int) -> None:
        if self._returning(key, "SELECT scheduler.cancel('job', %s)", [[key]]):
            left = one(self.db, "SELECT status IN ('Queued', 'Processing') FROM item WHERE id = %s", key)
            assert not left, f"item {key} was cancelled and is not"

    @rule()
    def person_requeues_what_failed(self) -> None:
        with_new = (
            "UPDATE item SET asked = asked + 1 FROM scheduler.attempt AS a WHERE a.key = item.id::text"
            " AND a.state <> 'active'"
        )
        self._try(lambda queue: (queue.db.execute(with_new), call(queue.db, "requeue", name="job")))

    # -- what must always hold -----------------------------------------------------------------------------------------

    @invariant()
    def nothing_is_wrong(self) -> None:
        found = self.db.execute(_WRONG, {"most": MAX_ATTEMPTS}).fetchall()
        assert not found, found

    @invariant()
    def attempts_stay_within_their_limit(self) -> None:
        for (key, asked), times in self.handed.items():
            allowed = MAX_ATTEMPTS + self.returned[key, asked]
            assert times <= allowed, f"item {key} was handed out {times} times, {allowed} allowed"

    def teardown(self) -> None:
        """Every listener is dead; a new one must be able to bring everything to its end."""
        if not hasattr(self, "runs"):
            return
        for session in (self.slow, self.other):
            session.rollback()
        self.db.execute("UPDATE scheduler.run SET lease_until = now() - interval '1 second' WHERE finished_at IS NULL")
        queue = Queue.of(self.other)
        for _ in range(20 * ITEMS):
            queue.due()
            claim = queue.claim()
            self.other.commit()
            if claim.run is None:
                break
            self._finish(self.other, claim.run, claim.keys, commit=True)
        left = "SELECT id FROM item WHERE status IN ('Queued', 'Processing')"
        assert not self.db.execute(left).fetchall(), "lost or stuck in the end"
        assert not self.db.execute("SELECT id FROM scheduler.run WHERE finished_at IS NULL").fetchall(), "left open"
        self.nothing_is_wrong()

    # -- how -----------------------------------------------------------------------------------------------------------

    def _finish(self, session: psycopg.Connection, run: int, keys: list[str], *, commit: bool | None) -> None:
        """As a listener does: the fence first, then the effects of what it accepted, in one transaction."""
        held = one(self.db, "SELECT keys FROM scheduler.run WHERE id = %s AND finished_at IS NULL", run) or []
        try:
            _, refused = Queue.of(session).succeed(run, *keys)
            done = [int(key) for key in keys if key not in refused]
            assert {str(key) for key in done} <= set(held), f"run {run} finished {done}, and has only {held}"
            session.execute(
                "INSERT INTO effect SELECT id, asked, %s FROM item WHERE id = ANY (%s)",
                [run, done],
            )
        except _BLOCKED:
            return session.rollback()
        if commit is not None:
            session.commit() if commit else session.rollback()
        return None

    def _hand_over(self, claim: Claim, who: str, asked: dict[str, int]) -> None:
        if claim.run is None:
            return
        self.runs.append((claim.run, who, claim.keys))
        for key, attempt in zip(claim.keys, claim.attempts, strict=True):
            assert 1 <= attempt <= MAX_ATTEMPTS, f"item {key} was handed out for the {attempt}th time"
            self.handed[key, asked[key]] += 1

    def _run(self, choice: int) -> tuple[int, str, list[str]]:
        return self.runs[choice % len(self.runs)]

    def _try(self, act: Callable[[Queue], Any]) -> Any:
        try:
            answer = act(Queue.of(self.other))
        except _BLOCKED:
            self.other.rollback()
            return None
        self.other.commit()
        return answer

    def _returning(self, key: int, query: LiteralString, values: list[object]) -> bool:
        """A person's act, which spends no attempt; False if a lock was in its way."""
        asked = self._asked()
        running = one(self.db, "SELECT status = 'Processing' FROM item WHERE id = %s", key)
        acted = self._try(lambda queue: queue.db.execute(query, values)) is not None
        if acted and running:
            self.returned[str(key), asked[str(key)]] += 1
        return acted

    def _asked(self) -> dict[str, int]:
        return dict(self.db.execute("SELECT id::text, asked FROM item").fetchall())

    @staticmethod
    def _is_open(session: psycopg.Connection) -> bool:
        return session.info.transaction_status is psycopg.pq.TransactionStatus.INTRANS


def on(db: psycopg.Connection, other: psycopg.Connection, slow: psycopg.Connection) -> type[Protocol]:
    """The machine over the workflow `job` in these sessions' database."""
    for session in (other, slow):
        session.execute("SET lock_timeout = '20ms'")
        session.commit()
    return type("ProtocolHere", (Protocol,), {"db": db, "other": other, "slow": slow})
