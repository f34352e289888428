"""The daily budget of paid calls: exact under races, and it says when it goes on."""

import threading
from datetime import UTC, datetime

import psycopg
import pytest

from tests.conftest import Connect
from tests.pipeline.rows import row
from tests.sql.queue import call


def reserve(db: psycopg.Connection, calls: int = 1, first_limit: int | None = None) -> tuple[object, ...]:
    found = db.execute(
        "SELECT granted, remaining, resumes_at, reason FROM scheduler.reserve('places', %s, %s)", [calls, first_limit]
    ).fetchone()
    assert found is not None
    return found


def test_a_budget_grants_its_calls_and_then_says_when_it_goes_on(db: psycopg.Connection) -> None:
    assert reserve(db, 2, first_limit=3) == (True, 1, None, None)
    assert reserve(db, 1, first_limit=99) == (True, 0, None, None), "the first limit only seeds it"
    granted, remaining, resumes_at, reason = reserve(db)
    assert (granted, remaining) == (False, 0)
    assert isinstance(resumes_at, datetime)
    assert resumes_at > datetime.now(UTC)
    assert row(db, "SELECT used_today, remaining, refused_today, resets_at FROM scheduler.budgets") == (
        3,
        0,
        1,
        resumes_at,
    )
    assert "used up until" in str(reason)


def test_the_day_ends_at_midnight_where_the_budget_lives(db: psycopg.Connection) -> None:
    call(db, "set_budget", budget="places", daily_limit=1, time_zone="Asia/Tokyo")
    reserve(db)
    _, _, resumes_at, _ = reserve(db)
    expected = "SELECT ((now() AT TIME ZONE 'Asia/Tokyo')::date + 1)::timestamp AT TIME ZONE 'Asia/Tokyo'"
    assert row(db, expected) == (resumes_at,)


def test_a_new_day_begins_with_the_whole_budget(db: psycopg.Connection) -> None:
    reserve(db, 5, first_limit=5)
    db.execute("UPDATE scheduler.budget SET day = day - 1")
    assert row(db, "SELECT used_today, remaining FROM scheduler.budgets") == (0, 5)
    assert reserve(db, 4) == (True, 1, None, None)


def test_a_transaction_from_before_midnight_does_not_bring_yesterday_back(db: psycopg.Connection) -> None:
    reserve(db, 5, first_limit=5)
    db.execute("UPDATE scheduler.budget SET day = day + 1")
    assert reserve(db)[0] is False
    assert row(db, "SELECT used FROM scheduler.budget") == (5,)


def test_without_a_limit_calls_are_only_counted(db: psycopg.Connection) -> None:
    assert reserve(db, 1000) == (True, None, None, None)
    assert row(db, "SELECT used_today FROM scheduler.budgets") == (1000,)


def test_a_limit_of_nothing_never_resumes_by_itself(db: psycopg.Connection) -> None:
    call(db, "set_budget", budget="places", daily_limit=0)
    granted, _, resumes_at, reason = reserve(db)
    assert (granted, resumes_at) == (False, None)
    assert "scheduler.set_budget" in str(reason)


def test_a_raised_limit_holds_from_the_next_call_on(db: psycopg.Connection) -> None:
    reserve(db, 1, first_limit=1)
    assert call(db, "set_budget", budget="places", daily_limit=2) == (
        "budget places: 2 calls a day, by the clock of America/Los_Angeles"
    )
    assert reserve(db)[0] is True
    assert row(db, "SELECT count(*) FROM scheduler.audit WHERE action = 'set_budget'") == (1,)


NONSENSE: list[tuple[str, dict[str, object]]] = [
    ("reserve", {"budget": "places", "calls": 0}),
    ("set_budget", {"budget": "Places!", "daily_limit": 1}),
    ("set_budget", {"budget": "places", "daily_limit": -1}),
    ("set_budget", {"budget": "places", "daily_limit": 1, "time_zone": "Mars/Olympus"}),
]


def test_nonsense_is_refused_with_the_way_out(db: psycopg.Connection) -> None:
    for function, arguments in NONSENSE:
        with pytest.raises(psycopg.errors.InvalidParameterValue) as caught:
            call(db, function, **arguments)
        assert caught.value.diag.message_hint


def test_a_listener_may_spend_but_not_raise_the_limit(db: psycopg.Connection, connect: Connect) -> None:
    listener = connect("scheduler_listener")
    assert reserve(listener, 1, first_limit=1)[0] is True
    with pytest.raises(psycopg.errors.InsufficientPrivilege):
        call(listener, "set_budget", budget="places", daily_limit=99)


def test_many_callers_at_once_never_spend_more_than_the_budget(db: psycopg.Connection, connect: Connect) -> None:
    granted: list[int] = []
    barrier = threading.Barrier(4)

    def spend(session: psycopg.Connection) -> None:
        barrier.wait()
        granted.extend(2 if reserve(session, 2, first_limit=61)[0] else 0 for _ in range(25))

    threads = [threading.Thread(target=spend, args=[connect()]) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert len(granted) == 100
    assert sum(granted) == 60
    assert row(db, "SELECT used, refused FROM scheduler.budget") == (60, 140)
