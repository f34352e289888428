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


def test_the_slot_of_this_very_moment_is_the_last_one_not_the_next(db: psycopg.Connection) -> None:
    slot = _moment("2024-02-28 22:55")
    assert one(db, "SELECT scheduler.cron_previous('*/5 * * * *', %s)", slot) == slot
    assert one(db, "SELECT scheduler.cron_next('*/5 * * * *', %s)", slot) == _moment("2024-02-28 23:00")
