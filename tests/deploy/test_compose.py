"""docker-compose.yml: it is valid, closed to the outside, and starts what it says with no more rights than needed."""

import re
import subprocess
import sys
from typing import Any

import pytest
import typer

from listener.cli import app
from listener.discover import discover
from tests.deploy.files import DEPLOY, ROOT, compose, documents

SERVICES: dict[str, dict[str, Any]] = compose()["services"]
OURS = {name: service for name, service in SERVICES.items() if service["image"].startswith("scrapersky:")}


def test_it_is_a_compose_file() -> None:
    checked = subprocess.run(
        [sys.executable, "-m", "check_jsonschema", "--builtin-schema", "vendor.compose-spec", "docker-compose.yml"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert checked.returncode == 0, checked.stdout


def test_nothing_is_reachable_from_another_machine() -> None:
    published = [port for service in SERVICES.values() for port in service.get("ports", ())]
    assert published
    assert [port for port in published if not port.startswith("127.0.0.1:")] == []


def test_no_password_has_a_default() -> None:
    text = (ROOT / "docker-compose.yml").read_text()
    assert [
        name
        for name in ("POSTGRES_PASSWORD", "LISTENER_PASSWORD", "WEB_PASSWORD", "WEB_TOKEN")
        if f"${{{name}:?" not in text
    ] == []


def test_every_image_has_a_version() -> None:
    images = [service["image"].rpartition(":")[2] for service in SERVICES.values()]
    assert "latest" not in images
    assert all(images)


@pytest.mark.parametrize("name", OURS)
def test_our_processes_cannot_write_or_gain_rights(name: str) -> None:
    service = OURS[name]
    assert service["read_only"] is True
    assert service["cap_drop"] == ["ALL"]
    assert service["security_opt"] == ["no-new-privileges:true"]


def test_a_listener_has_time_to_drain_before_it_is_killed() -> None:
    listener = SERVICES["listener"]
    drain = float(listener["environment"]["LISTENER_DRAIN_SECONDS"])
    assert float(listener["stop_grace_period"].removesuffix("s")) > drain + 10


def test_no_listener_starts_before_the_schema_is_there() -> None:
    waiting = {name: service["depends_on"]["migrate"] for name, service in OURS.items() if name != "migrate"}
    assert set(map(str, waiting.values())) == {"{'condition': 'service_completed_successfully'}"}


def test_every_workflow_has_a_process_in_the_profile_of_one_each() -> None:
    alone = [service["command"][-1] for service in SERVICES.values() if service.get("profiles") == ["per-workflow"]]
    assert len(alone) == len(set(alone)) == 7
    assert set(discover()) - set(alone) == set()


def test_every_command_that_is_started_exists() -> None:
    known = set(getattr(typer.main.get_command(app), "commands", {}))
    image = (DEPLOY / "listener" / "Dockerfile").read_text()
    started = {service["command"][0] for service in OURS.values()} | set(
        re.findall(r'CMD \["(?:scrapersky", ")?(\w+)"', image)
    )
    assert started - known == set()


def test_prometheus_asks_everyone_who_answers() -> None:
    scraped = documents(DEPLOY / "prometheus" / "prometheus.yml")[0]["scrape_configs"][0]["dns_sd_configs"][0]["names"]
    assert sorted(scraped) == sorted(name for name in OURS if name != "migrate")


def test_the_page_does_not_know_the_listeners_password() -> None:
    assert [name for name, value in SERVICES["web"]["environment"].items() if "LISTENER_PASSWORD" in str(value)] == []


def test_listen_goes_past_the_pooler() -> None:
    environment = SERVICES["listener"]["environment"]
    assert "DATABASE_HOST" in environment["DATABASE_URL"]
    assert "@postgres:5432" in environment["DATABASE_LISTEN_URL"]
