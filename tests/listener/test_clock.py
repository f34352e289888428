"""A listener is the clock where pg_cron is missing or silent, and only there."""

import pytest

from tests.listener.started import Bench
from tests.sql.queue import one
from tests.waiting import wait_until


def _make_due(bench: Bench) -> None:
    bench.db.execute("INSERT INTO item (id) VALUES (1)")
    bench.db.execute("UPDATE scheduler.state SET next_slot = now() - interval '1 second'")


def test_without_pg_cron_overdue_slots_are_dispatched_and_the_log_and_the_views_say_by_whom(
    bench: Bench, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO", "scrapersky")
    bench.adopt(schedule="* * * * *", ready="status IS NULL")
    _make_due(bench)
    listener = bench.inside()
    bench.wait_for("Completed")
    assert one(bench.db, "SELECT last_clock FROM scheduler.state") == "listener"
    wait_until(lambda: listener.metrics.dispatched == 1, what="the count")
    assert "dispatched in place of pg_cron" in caplog.text


def test_while_pg_cron_is_heard_a_listener_keeps_out_of_it(bench: Bench) -> None:
    bench.adopt(schedule="* * * * *", ready="status IS NULL")
    bench.db.execute("UPDATE scheduler.control SET pg_cron_seen_at = now()")
    _make_due(bench)
    listener = bench.inside(listener_poll_seconds=0.1)
    wait_until(lambda: listener.metrics.ticks >= 3, what="three ticks")
    assert bench.statuses() == {1: None}
    assert listener.metrics.dispatched == 0
    bench.db.execute("UPDATE scheduler.control SET pg_cron_seen_at = now() - interval '5 minutes'")
    bench.wait_for("Completed")


def test_a_tick_that_fails_is_told_once_and_tried_again(bench: Bench, caplog: pytest.LogCaptureFixture) -> None:
    bench.adopt()
    bench.db.execute("ALTER FUNCTION scheduler.tick(text) RENAME TO away")
    listener = bench.inside(listener_poll_seconds=0.1)
    wait_until(lambda: "cannot tick" in caplog.text, what="the complaint")
    bench.db.execute("ALTER FUNCTION scheduler.away(text) RENAME TO tick")
    wait_until(lambda: listener.metrics.ticks >= 2, what="two ticks")
    assert caplog.text.count("cannot tick") == 1
