"""The doorbell wakes a lane at once; without it work is found all the same."""

import pytest
from psycopg import conninfo

from listener.settings import Settings
from tests.listener.started import Bench
from tests.sql.queue import one
from tests.waiting import wait_until


@pytest.mark.doorbell
def test_rows_queued_before_and_after_the_start_are_found_without_a_poll(bench: Bench) -> None:
    bench.adopt()
    bench.queue("ok", "ok")
    listener = bench.inside()
    bench.wait_for("Completed", "Completed")
    bench.queue("ok", first=3)
    bench.wait_for("Completed", "Completed", "Completed")
    assert bench.effects() == [1, 2, 3]
    assert "poll" not in listener.counts().claims


@pytest.mark.doorbell
@pytest.mark.parametrize("role", ["doorbell", "listener", "heartbeat"])
@pytest.mark.slow
def test_a_connection_cut_by_the_server_is_made_anew_and_no_row_is_missed(bench: Bench, role: str) -> None:
    bench.adopt()
    listener = bench.inside()
    wait_until(lambda: bench.backends(role), what=f"the connection of the {role}")
    assert bench.terminate_backends(role) >= 1
    # queued in the gap, so perhaps nobody hears it: the sweep after LISTEN finds it
    bench.queue("ok")
    bench.wait_for("Completed")
    listener.listener._heartbeat.soon()  # else it is its turn only after some seconds
    wait_until(lambda: bench.backends(role), what=f"a new connection of the {role}")
    if role == "doorbell":
        wait_until(lambda: listener.metrics.reconnects == 1, what="the doorbell to listen again")
        # one may be found by the look that follows a batch which was not full, and needs no bell
        for number in range(2, 100):
            bench.queue("ok", first=number)
            bench.wait_for(*["Completed"] * number)
            if listener.counts().claims.get("bell"):
                break
        else:
            pytest.fail("no item was found by the bell")


@pytest.mark.doorbell
def test_a_lost_notification_costs_one_poll_and_no_work(bench: Bench) -> None:
    bench.adopt(doorbell="off")
    listener = bench.inside(listener_poll_seconds=0.2)
    bench.queue("ok")
    bench.wait_for("Completed")
    assert listener.counts().claims == {"poll": 1}


@pytest.mark.doorbell
def test_poll_only_opens_no_connection_for_listening_and_works(bench: Bench) -> None:
    bench.adopt()
    listener = bench.inside(listener_poll_only=True, listener_poll_seconds=0.2)
    bench.queue("ok")
    bench.wait_for("Completed")
    assert bench.backends("doorbell") == 0
    assert listener.counts().claims == {"poll": 1}
    assert listener.metrics.notifications == 0


@pytest.mark.doorbell
def test_a_connection_that_no_longer_listens_is_noticed_without_a_word_from_the_server(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("listener.doorbell.PROBE_SECONDS", 0.1)
    # as after a failover of a pooler: the session is there, its LISTEN is not
    monkeypatch.setattr("listener.doorbell.CHANNEL", "elsewhere")
    bench.adopt()
    listener = bench.inside()
    monkeypatch.setattr("listener.doorbell.CHANNEL", "scrapersky")
    wait_until(lambda: listener.metrics.reconnects >= 1 and listener.metrics.listening, what="a new LISTEN")
    bench.queue("ok")
    bench.wait_for("Completed")
    assert "poll" not in listener.counts().claims


@pytest.mark.doorbell
def test_a_new_address_for_listening_counts_at_once(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("listener.doorbell.PROBE_SECONDS", 3600)
    bench.adopt()
    listener = bench.inside()
    there = conninfo.make_conninfo(bench.url, application_name="scrapersky elsewhere")
    settings = Settings.model_validate({"listener_poll_seconds": 60, "database_listen_url": there})
    listener.submit(listener.listener.reload(bench.url, settings)).result(20)
    wait_until(lambda: bench.backends("elsewhere") and not bench.backends("doorbell"), what="the new connection")
    wait_until(lambda: listener.metrics.listening, what="LISTEN")
    bench.queue("ok")
    bench.wait_for("Completed")


def test_a_resumed_workflow_goes_on_at_once(bench: Bench) -> None:
    bench.adopt()
    bench.db.execute("SELECT scheduler.pause('job', 'for the test')")
    bench.queue("ok")
    bench.inside()
    assert bench.statuses() == {1: "Queued"}
    bench.db.execute("SELECT scheduler.resume('job')")
    bench.wait_for("Completed")


@pytest.mark.doorbell
def test_bells_for_work_that_others_take_do_not_make_a_lane_hammer_the_database(bench: Bench) -> None:
    bench.adopt()
    listener = bench.inside()
    for _ in range(10):
        asked = listener.counts().asked
        bench.db.execute("SELECT pg_notify('scrapersky', 'job')")
        wait_until(lambda asked=asked: listener.counts().asked > asked, what="an answer to the bell")  # type: ignore[misc]
    # ever longer, up to a twentieth of a second
    wait_until(lambda: listener.lane()._held_until > 0, what="the lane to take its time")
    bench.queue("ok")
    bench.wait_for("Completed")


@pytest.mark.doorbell
def test_bells_of_other_workflows_and_nonsense_are_passed_over(bench: Bench) -> None:
    bench.adopt()
    listener = bench.inside()
    asked = listener.counts().asked
    for payload in ("nobody", "", "!", "x" * 7000):
        bench.db.execute("SELECT pg_notify('scrapersky', %s)", [payload])
    wait_until(lambda: listener.metrics.notifications >= 4, what="the bells")
    assert listener.counts().asked == asked


@pytest.mark.doorbell
def test_the_views_show_whether_a_listener_hears_the_bell(bench: Bench) -> None:
    bench.adopt()
    listener = bench.inside()
    query = "SELECT detail ->> 'listening' FROM scheduler.listener WHERE id = %s"
    listener.listener._heartbeat.soon()
    wait_until(lambda: one(bench.db, query, listener.listener.id) == "true", what="the heartbeat's detail")
