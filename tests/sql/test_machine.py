"""Whatever listeners, clocks and people do, and in whatever order: nothing is done twice, lost, or tried for ever.

Then each guard of the engine is taken away, and the same machine must find what it was for.
"""

import psycopg
import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis.stateful import run_state_machine_as_test

from tests.conftest import Connect
from tests.listener.unfenced import NO_FENCE
from tests.sql.machine import MAX_ATTEMPTS, PREPARE, Protocol, on
from tests.sql.queue import Queue, one

pytestmark = pytest.mark.slow


def _settings(examples: int) -> settings:
    return settings(
        max_examples=examples,
        stateful_step_count=40,
        derandomize=True,
        database=None,
        deadline=None,
        # shrinking plays hundreds of games more; the first one that fails says enough
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
        report_multiple_bugs=False,
    )


@pytest.fixture
def machine(db: psycopg.Connection, connect: Connect) -> type[Protocol]:
    Queue(db, 0, batch_size=2, max_instances=3, max_attempts=MAX_ATTEMPTS, breaker=False)
    db.execute(PREPARE)
    return on(db, connect(autocommit=False), connect(autocommit=False))


def test_no_order_of_events_breaks_the_protocol(machine: type[Protocol]) -> None:
    run_state_machine_as_test(machine, settings=_settings(40))


GUARDS: dict[str, tuple[str, str, str]] = {
    "the fence takes the caller's word for what it owns": (
        "_fence(bigint,text[])",
        "JOIN unnest(r.keys) AS k (key) ON k.key = a.key",
        "",
    ),
    "a rescue does not count": ("_rescue(scheduler.workflow)", "END, 1, 1, lost", "END, 0, 1, lost"),
    "a rescue has no end": ("_rescue(scheduler.workflow)", "a.attempts + 1 >= w.max_attempts", "false"),
    "a failure does not count": (
        "fail(bigint,text[],text[],boolean[],interval[],integer[])",
        "coalesce(a.attempts, 0) + 1 AS attempts",
        "1 AS attempts",
    ),
    "a rescue forgets the rows": (
        "_rescue(scheduler.workflow)",
        "scheduler._without_taken(w, r, scheduler._put_back(w, r.keys, wait => false))",
        "r.keys",
    ),
    "a cancelled item stays with its run": ("cancel(text,text[])", "x.keys && wanted", "false"),
    "a closed run keeps its slot": ("_close_run(bigint)", "SET run = NULL", "SET run = s.run"),
}


@pytest.mark.parametrize("guard", GUARDS)
def test_the_machine_sees_what_happens_without(guard: str, machine: type[Protocol], db: psycopg.Connection) -> None:
    function, there, instead = GUARDS[guard]
    source = str(one(db, "SELECT pg_get_functiondef(%s::regprocedure)", f"scheduler.{function}"))
    assert there in source, f"{function} no longer says {there!r}"
    db.execute(source.replace(there, instead).encode())
    with pytest.raises(AssertionError):
        run_state_machine_as_test(machine, settings=_settings(100))


def test_the_machine_sees_what_happens_without_a_fence(machine: type[Protocol], db: psycopg.Connection) -> None:
    db.execute(NO_FENCE)
    with pytest.raises(AssertionError):
        run_state_machine_as_test(machine, settings=_settings(100))
