"""Schedules: the moments a cron text stands for."""

from datetime import UTC, datetime

import psycopg

from tests.sql.queue import one

# 2024-02-28 was a Wednesday
NOW = datetime(2024, 2, 28, 22, 58, 30, tzinfo=UTC)

CASES = [
    ("* * * * *", "2024-02-28 22:58", "2024-02-28 22:59"),
    ("*/5 * * * *", "2024-02-28 22:55", "2024-02-28 23:00"),
    ("1,58 22 * * *", "2024-02-28 22:58", "2024-02-29 22:01"),
    ("0 9-17/4 * * *", "2024-02-28 17:00", "2024-02-29 09:00"),
    ("30 2 29 2 *", "2020-02-29 02:30", "2024-02-29 02:30"),
    ("0 0 * * mon", "2024-02-26 00:00", "2024-03-04 00:00"),
    ("0 0 * * 7", "2024-02-25 00:00", "2024-03-03 00:00"),
    ("0 0 * * 0", "2024-02-25 00:00", "2024-03-03 00:00"),
    ("0 12 1 jan,jul *", "2024-01-01 12:00", "2024-07-01 12:00"),
    # both day fields restricted: either is enough
    ("0 0 1 * fri", "2024-02-23 00:00", "2024-03-01 00:00"),
    ("0 0 13 * fri", "2024-02-23 00:00", "2024-03-01 00:00"),
    ("@daily", "2024-02-28 00:00", "2024-02-29 00:00"),
    ("@hourly", "2024-02-28 22:00", "2024-02-28 23:00"),
    ("@yearly", "2024-01-01 00:00", "2025-01-01 00:00"),
    ("  0   0 * *\t* ", "2024-02-28 00:00", "2024-02-29 00:00"),
    ("20 seconds", "2024-02-28 22:58:20", "2024-02-28 22:58:40"),
]


def test_a_schedule_fires_when_cron_would(db: psycopg.Connection) -> None:
    for schedule, last, following in CASES:
        shown = db.execute(
            "SELECT scheduler.cron_previous(%(s)s, %(at)s), scheduler.cron_next(%(s)s, %(at)s)",
            {"s": schedule, "at": NOW},
        ).fetchone()
        assert (schedule, shown) == (schedule, (_moment(last), _moment(following)))


def _moment(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


# New York: 2024-03-10 07:00 UTC the clocks go from 02:00 to 03:00, 2024-11-03 06:00 UTC from 02:00 to 01:00
CHANGES = [
    # the hour that comes twice: what fires all day long goes on through both
    ("*/5 * * * *", "2024-11-03 05:02", "2024-11-03 05:00", "2024-11-03 05:05"),
    ("*/5 * * * *", "2024-11-03 05:57", "2024-11-03 05:55", "2024-11-03 06:00"),
    ("*/5 * * * *", "2024-11-03 06:02", "2024-11-03 06:00", "2024-11-03 06:05"),
    ("0 * * * *", "2024-11-03 04:30", "2024-11-03 04:00", "2024-11-03 05:00"),
    # and what has its hour fires once
    ("30 1 * * *", "2024-11-03 05:00", "2024-11-02 05:30", "2024-11-03 06:30"),
    ("30 1 * * *", "2024-11-03 07:00", "2024-11-03 06:30", "2024-11-04 06:30"),
    # the hour that is left out: what was due in it fires after it, once
    ("30 2 * * *", "2024-03-10 06:59", "2024-03-09 07:30", "2024-03-10 07:30"),
    ("30 2 * * *", "2024-03-10 08:00", "2024-03-10 07:30", "2024-03-11 06:30"),
    ("*/5 * * * *", "2024-03-10 06:57", "2024-03-10 06:55", "2024-03-10 07:00"),
]


def test_clocks_that_change_leave_no_gap(db: psycopg.Connection) -> None:
    for schedule, at, last, following in CHANGES:
        shown = db.execute(
            "SELECT scheduler._cron_nearest(%(s)s, %(at)s, 'America/New_York', -1),"
            " scheduler._cron_nearest(%(s)s, %(at)s, 'America/New_York', 1)",
            {"s": schedule, "at": _moment(at)},
        ).fetchone()
        assert (schedule, at, shown) == (schedule, at, (_moment(last), _moment(following)))


def test_the_slot_of_this_very_moment_is_the_last_one_not_the_next(db: psycopg.Connection) -> None:
    slot = _moment("2024-02-28 22:55")
    assert one(db, "SELECT scheduler.cron_previous('*/5 * * * *', %s)", slot) == slot
    assert one(db, "SELECT scheduler.cron_next('*/5 * * * *', %s)", slot) == _moment("2024-02-28 23:00")
