"""What probes, Prometheus and scripts get."""

import asyncio
import time

import httpx
import psycopg
import pytest
from prometheus_client.parser import text_string_to_metric_families

from listener.metrics import Metrics
from listener.web.machine import Vitals
from tests.listener.started import bench_on
from tests.sql.queue import Queue
from tests.waiting import wait_until
from tests.web.serving import TOKEN, Visitor, serving


def samples(text: str) -> dict[tuple[str, frozenset[tuple[str, str]]], float]:
    """What Prometheus itself would read."""
    return {
        (sample.name, frozenset(sample.labels.items())): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


@pytest.mark.slow
async def test_a_database_that_is_away_neither_restarts_the_process_nor_hides_its_own_metrics() -> None:
    # nobody listens on the discard port
    with serving("postgresql://nobody@127.0.0.1:9/nothing", web_token=None, web_users="") as address:
        async with httpx.AsyncClient(base_url=address, timeout=30) as client:
            health, ready, metrics, page = await asyncio.gather(
                *(client.get(path) for path in ("/health", "/ready", "/metrics", "/"))
            )
    assert health.json() == {"status": "ok"}
    assert ready.status_code == 503
    assert samples(metrics.text)["scrapersky_database_up", frozenset()] == 0
    assert page.status_code == 503
    assert "The database does not answer" in page.text


def test_prometheus_reads_the_fleet_from_any_process(visitor: Visitor, queue: Queue) -> None:
    queue.set("Queued", 1, 2, 3)
    claimed = queue.claim(1)
    queue.fail(claimed.run, *claimed.keys, permanent=True)
    queue.db.execute("UPDATE scheduler.state SET next_slot = now() + interval '1 hour'")  # not due meanwhile
    answer = visitor.get("/metrics", Authorization=f"Bearer {TOKEN}")
    found = samples(answer.text)
    job = ("workflow", "job")
    assert answer.headers["content-type"].startswith("text/plain; version=0.0.4")
    assert found["scrapersky_items", frozenset({job, ("status", "queued")})] == 2
    assert found["scrapersky_dead_items", frozenset({job})] == 1
    assert found["scrapersky_oldest_queued_age_seconds", frozenset({job})] > 3600
    assert found["scrapersky_schedule_late_seconds", frozenset({("schedule", "job")})] == 0
    assert found["scrapersky_database_up", frozenset()] == 1
    # 1 failed for good; 2 and 3 are queued, and nobody listens
    assert found["scrapersky_doctor_findings", frozenset({("severity", "info"), ("code", "dead_letters")})] == 1
    assert found["scrapersky_doctor_findings", frozenset({("severity", "error"), ("code", "no_listener")})] == 1
    names = {name for name, _ in found}
    assert {"scrapersky_notify_queue_usage_ratio", "scrapersky_cron_launcher_up", "scrapersky_build_info"} <= names


def test_the_status_of_every_schedule_is_for_those_with_a_token(visitor: Visitor, queue: Queue) -> None:
    assert visitor.get("/api/scheduler_status").status_code == 401
    assert visitor.get("/api/scheduler_status", Authorization="Bearer not-the-right-token").status_code == 401
    answer = visitor.get("/api/scheduler_status", Authorization=f"Bearer {TOKEN}").json()
    schedules = {schedule["id"]: schedule for schedule in answer["schedules"]}
    assert set(schedules) == {"job", "maintain"}
    assert schedules["job"]["trigger"] == "*/5 * * * *"
    assert schedules["job"]["next_run"] is not None
    assert schedules["job"]["instances"] == {"running": 0, "max": None}


@pytest.mark.slow
@pytest.mark.doorbell
def test_a_listener_serves_its_own_page_without_harm_to_its_lanes(database: str, tmp_path: object) -> None:
    with bench_on(database, tmp_path) as bench:  # type: ignore[arg-type]
        bench.adopt()
        process = bench.start(WEB_PORT="0")
        address = process.wait_line("serving the web page")["at"]
        with httpx.Client(base_url=address, timeout=60) as client:
            wait_until(lambda: client.get("/ready").status_code == 200, what="ready")
            bench.queue(*["ok"] * 20)
            bench.wait_for("Completed")
            wait_until(lambda: "scrapersky_completed_total" in client.get("/metrics").text, what="metrics")
            found = samples(client.get("/metrics").text)
            assert client.get("/").status_code == 200
        job = ("workflow", "job")
        assert found["scrapersky_listen_connected", frozenset()] == 1
        assert found["scrapersky_claimed_total", frozenset({job, ("via", "notify")})] == 20
        assert found["scrapersky_completed_total", frozenset({job, ("outcome", "succeeded")})] == 20
        assert found["scrapersky_run_duration_seconds_count", frozenset({job})] == 20
        assert found["scrapersky_run_duration_seconds_bucket", frozenset({job, ("le", "+Inf")})] == 20
        assert process.stop() == 0


def _vitals(*, poll_only: bool = False) -> Vitals:
    metrics = Metrics(listening=True)
    metrics.lane("job").last_claim = time.time()
    return Vitals(metrics, poll_only, 5)


def test_a_listener_that_hears_and_sweeps_is_ready() -> None:
    assert _vitals().complaints() == []


def test_a_listener_that_is_deaf_is_not_ready_unless_it_only_polls() -> None:
    vitals = _vitals()
    vitals.metrics.listening = False
    assert vitals.complaints() == ["LISTEN is not up"]
    polling = _vitals(poll_only=True)
    polling.metrics.listening = False
    assert polling.complaints() == []


def test_a_lane_that_stopped_asking_is_not_ready_but_a_busy_one_is() -> None:
    vitals = _vitals()
    vitals.metrics.lane("job").last_claim = time.time() - 60
    assert "job has not asked for work" in vitals.complaints()[0]
    vitals.metrics.lane("job").open_runs = 1
    assert vitals.complaints() == []


def test_a_draining_listener_and_one_that_has_not_begun_are_not_ready() -> None:
    vitals = _vitals()
    vitals.metrics.draining = True
    assert vitals.complaints() == ["draining"]
    assert "not started" in Vitals(Metrics(), False, 5).complaints()[0]


def test_a_scrape_reads_with_the_rights_of_a_monitor_only(
    visitor: Visitor, queue: Queue, db: psycopg.Connection
) -> None:
    db.execute("REVOKE SELECT ON scheduler.state FROM scheduler_monitor")
    found = samples(visitor.get("/metrics", Authorization=f"Bearer {TOKEN}").text)
    assert found["scrapersky_database_up", frozenset()] == 0
