"""A listener that is asked to stop: what runs is finished, the rest given back, and the exit code says how it went."""

import signal

import pytest

from tests.listener.started import Bench
from tests.sql.queue import one
from tests.waiting import wait_until


def _spent(bench: Bench) -> int:
    return int(one(bench.db, "SELECT count(*) FROM scheduler.attempt"))


@pytest.mark.slow
def test_sigterm_finishes_what_runs_gives_back_the_rest_and_exits_0(bench: Bench) -> None:
    bench.adopt(concurrency=2)
    bench.queue("wait", "wait", "wait", "wait")
    process = bench.start()
    bench.wait_begun(1, 2)
    process.signal(signal.SIGTERM)
    process.wait_line("draining")
    wait_until(lambda: list(bench.statuses().values())[2:] == ["Queued", "Queued"], what="those not yet begun")
    # stopping means claiming no more
    bench.queue("ok", first=5)
    bench.open_gate(1, 2)
    assert process.wait() == 0
    assert list(bench.statuses().values()) == ["Completed", "Completed", "Queued", "Queued", "Queued"]
    assert bench.effects() == [1, 2]
    assert _spent(bench) == 0
    assert bench.begun(3) == bench.begun(5) == 0
    assert process.lines("drained")


@pytest.mark.slow
def test_a_second_signal_gives_everything_back_at_once_and_spends_no_attempt(bench: Bench) -> None:
    bench.adopt()
    bench.queue("wait", "wait")
    process = bench.start(LISTENER_DRAIN_SECONDS="3600")
    bench.wait_begun(1, 2)
    process.signal(signal.SIGINT)
    process.wait_line("draining")
    process.signal(signal.SIGTERM)
    assert process.wait() == 0
    assert bench.statuses() == {1: "Queued", 2: "Queued"}
    assert bench.was_cancelled(1)
    assert _spent(bench) == 0
    assert bench.effects() == []


@pytest.mark.slow
def test_work_that_will_not_be_stopped_does_not_keep_the_process_from_ending(bench: Bench) -> None:
    bench.adopt()
    bench.queue("stubborn")
    process = bench.start(LISTENER_DRAIN_SECONDS="0")
    bench.wait_begun(1)
    assert process.stop() == 0
    assert bench.statuses() == {1: "Queued"}
    assert _spent(bench) == 0


def test_when_patience_is_over_running_work_is_given_back(bench: Bench) -> None:
    """Also work that cannot be stopped: a thread."""
    bench.adopt()
    bench.adopt("threaded", "thing")
    listener = bench.inside("job", "threaded", listener_drain_seconds=0)
    bench.queue("wait")
    bench.queue("wait", first=2, table="thing")
    bench.wait_begun(1, 2)
    assert listener.stop() == 0
    assert bench.statuses() == {1: "Queued"}
    assert bench.statuses("thing") == {2: "Queued"}
    assert _spent(bench) == 0
    bench.open_gate(2)


def test_results_are_still_committed_while_draining(bench: Bench) -> None:
    bench.adopt()
    listener = bench.inside(listener_drain_seconds=60)
    bench.queue("wait")
    bench.wait_begun(1)
    listener.in_loop(listener.listener.stop)
    wait_until(lambda: listener.metrics.draining, what="the drain")
    bench.open_gate(1)
    assert listener.join() == 0
    assert bench.statuses() == {1: "Completed"}
    assert bench.effects() == [1]


def test_what_cannot_be_given_back_is_admitted_by_the_exit_code(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("listener.process._RELEASE_SECONDS", 0.3)
    bench.adopt()
    listener = bench.inside()
    bench.queue("wait")
    bench.wait_begun(1)
    bench.db.execute("ALTER FUNCTION scheduler.release(bigint, text[], text, interval) RENAME TO away")
    assert listener.stop() == 75


@pytest.mark.slow
def test_a_listener_stopped_while_it_waits_for_the_database_exits_0(bench: Bench) -> None:
    process = bench.start(ready=False, url="postgresql://127.0.0.1:1/nowhere")
    process.wait_line("waiting for the database")
    assert process.stop() == 0


@pytest.mark.doorbell
@pytest.mark.slow
def test_sighup_reads_the_settings_again_and_sigusr1_tells_what_is_going_on(bench: Bench) -> None:
    bench.adopt(doorbell="off")
    env = bench.folder / ".env"
    env.write_text("LISTENER_POLL_SECONDS=3600\n")
    process = bench.start(LISTENER_POLL_SECONDS=None)
    bench.queue("wait")
    env.write_text("LISTENER_POLL_SECONDS=0.2\nLOG_LEVEL=WARNING\nLISTENER_WORKFLOWS=job\n")
    process.signal(signal.SIGHUP)
    bench.wait_begun(1)
    bench.queue("wait", first=2)
    bench.wait_begun(2)
    process.wait_line("count from the next start")
    env.write_text("LISTENER_POLL_SECONDS=never\nLISTENER_DRAIN_SECONDS=-1\n")
    process.signal(signal.SIGHUP)
    refusal = process.wait_line("not reloaded")["error"]
    assert "LISTENER_POLL_SECONDS" in refusal
    assert "LISTENER_DRAIN_SECONDS" in refusal
    env.write_text("LISTENER_POLL_SECONDS=0.2\nLOG_LEVEL=INFO\n")
    process.signal(signal.SIGHUP)
    process.wait_line("reloaded", count=2)
    process.signal(signal.SIGUSR1)
    shown = process.wait_line("metrics")["metrics"]
    assert shown["lanes"]["job"]["working"] == 2
    assert any(line["task"] == "work job" for line in process.lines("task"))
    bench.open_gate(1, 2)
    bench.wait_for("Completed")


def test_a_rotated_password_is_taken_over_without_losing_a_run(bench: Bench) -> None:
    from listener.settings import Settings

    bench.adopt()
    first, second = bench.as_listener("first"), bench.as_listener("second")
    listener = bench.inside(url=first)
    bench.queue("wait")
    bench.wait_begun(1)
    done = listener.submit(listener.listener.reload(second, Settings()))
    done.result(20)
    bench.db.execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename LIKE 'first%'")
    bench.open_gate(1)
    bench.wait_for("Completed")
    bench.queue("ok", first=2)
    bench.wait_for("Completed", "Completed")
    listener.listener._heartbeat.soon()
    query = "SELECT count(*) FROM pg_stat_activity WHERE application_name LIKE 'scrapersky %%' AND usename LIKE %s"
    wait_until(lambda: one(bench.db, query, "second%") >= 3, what="every part on the new login")
    assert one(bench.db, query, "first%") == 0
