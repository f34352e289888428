"""Whatever listeners, clocks and people do, and in whatever order: nothing is done twice, lost, or tried for ever.

Then each guard of the engine is taken away, and the same machine must find what it was for.
"""

from typing import LiteralString

import psycopg
import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis.stateful import run_state_machine_as_test

from tests.conftest import Connect
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
    Queue(db, 0, batch_size=4, max_instances=3, max_attempts=MAX_ATTEMPTS, breaker=False)
    db.execute(PREPARE)
    return on(db, connect(autocommit=False), connect(autocommit=False))


def test_no_order_of_events_breaks_the_protocol(machine: type[Protocol]) -> None:
    run_state_machine_as_test(machine, settings=_settings(40))  # type: ignore[no-untyped-call]


GUARDS: dict[str, tuple[str, str, str]] = {
    "the fence does not look whether the run is over": (
        "scheduler._fence",
        "IF NOT FOUND OR r.finished_at IS NOT NULL THEN",
        "IF NOT FOUND THEN",
    ),
    "the fence takes the caller's word for what it owns": (
        "scheduler._fence",
        "JOIN unnest(r.keys) AS k (key) ON k.key = a.key",
        "",
    ),
    "a person's write is not noted": ("scheduler.taken_over", "INSERT INTO scheduler.takeover", "INSERT INTO ignored"),
    "a rescue does not count": ("scheduler._rescue", "attempts = a.attempts + 1", "attempts = a.attempts"),
    "a rescue has no end": ("scheduler._rescue", "a.attempts + 1 >= w.max_attempts", "false"),
    "a failure does not count": ("scheduler.fail", "coalesce(a.attempts, 0) + 1 AS attempts", "1 AS attempts"),
    "a rescue forgets the items": (
        "scheduler._rescue",
        "saved := scheduler._put_back",
        "saved := '{}'; PERFORM scheduler._put_back",
    ),
    "a cancelled item stays with its run": ("scheduler.cancel", "x.keys && wanted ORDER", "false ORDER"),
    "a closed run keeps its slot": (
        "scheduler._close_run",
        "SET run = NULL WHERE s.run = _close_run.run",
        "SET run = s.run WHERE s.run = _close_run.run",
    ),
}


@pytest.mark.parametrize("guard", GUARDS)
def test_the_machine_sees_what_happens_without(guard: str, machine: type[Protocol], db: psycopg.Connection) -> None:
    function, there, instead = GUARDS[guard]
    _weaken(db, function, there, instead)
    with pytest.raises((AssertionError, psycopg.Error)):
        run_state_machine_as_test(machine, settings=_settings(60))  # type: ignore[no-untyped-call]


def _weaken(db: psycopg.Connection, function: str, there: str, instead: str) -> None:
    query: LiteralString = "SELECT pg_get_functiondef(%s::regproc)"
    source = str(one(db, query, function))
    assert there in source, f"{function} no longer says {there!r}"
    db.execute("CREATE TABLE IF NOT EXISTS public.ignored (workflow text, key text, upto bigint)")
    db.execute("GRANT ALL ON public.ignored TO PUBLIC")
    db.execute(source.replace(there, instead).replace("INTO ignored", "INTO public.ignored").encode())
