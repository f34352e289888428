"""Finding server programs. The programs are little scripts that print what PostgreSQL's would."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from listener.postgres.server import NEEDED, SEARCH_VARIABLE, best, find, inspect, search_path

Install = Callable[..., Path]


@pytest.fixture
def install(tmp_path: Path) -> Install:
    """Puts a PostgreSQL of some version into a folder of its own and returns its bin directory."""

    def install_version(version: str, *, cron: str | None = None, name: str = "") -> Path:
        root = tmp_path / (name or version)
        bindir, extensions, libraries = root / "bin", root / "share" / "extension", root / "lib"
        for folder in (bindir, extensions, libraries):
            folder.mkdir(parents=True)
        for program in NEEDED:
            write(bindir / program, f"echo '{program} (PostgreSQL) {version}'")
        if cron:
            (extensions / "pg_cron.control").write_text(f"default_version = '{cron}'\n")
            (libraries / "pg_cron.so").touch()
        return bindir

    return install_version


def write(program: Path, script: str) -> None:
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(0o755)


def test_a_server_is_known_by_its_version_and_its_pg_cron(install: Install) -> None:
    server = inspect(install("16.3", cron="1.6"))
    assert server is not None
    assert (server.version, server.major, server.cron) == ("16.3", 16, "1.6")
    assert server.label == "PostgreSQL 16.3 with pg_cron 1.6"


@pytest.mark.parametrize("missing", NEEDED)
def test_a_server_with_a_program_missing_is_none(install: Install, missing: str) -> None:
    bindir = install("16.3")
    (bindir / missing).unlink()
    assert inspect(bindir) is None


def test_a_server_that_does_not_run_is_none(install: Install) -> None:
    bindir = install("16.3")
    write(bindir / "postgres", "exit 1")
    assert inspect(bindir) is None


@pytest.mark.parametrize("missing", ["share/extension/pg_cron.control", "lib/pg_cron.so"])
def test_half_a_pg_cron_is_none(install: Install, missing: str) -> None:
    bindir = install("16.3", cron="1.6")
    (bindir.parent / missing).unlink()
    server = inspect(bindir)
    assert server is not None
    assert server.cron is None


def test_pg_config_says_where_the_extensions_are(install: Install, tmp_path: Path) -> None:
    bindir = install("16.3", cron="1.6")
    (bindir.parent / "share").rename(tmp_path / "data")
    write(bindir / "pg_config", f'[ "$1" = --sharedir ] && echo {tmp_path}/data || echo {bindir.parent}/lib')
    server = inspect(bindir)
    assert server is not None
    assert server.cron == "1.6"


def test_the_newest_comes_first_by_number_not_by_letter(install: Install) -> None:
    found = find([install("14.9"), install("16.2"), install("14.12")])
    assert [server.version for server in found] == ["16.2", "14.12", "14.9"]


def test_a_beta_has_a_version_too(install: Install) -> None:
    assert [server.major for server in find([install("19beta1")])] == [19]


def test_a_server_too_old_is_not_found(install: Install) -> None:
    assert [server.version for server in find([install("13.20"), install("14.1")])] == ["14.1"]


def test_a_link_to_a_server_is_not_a_second_one(install: Install, tmp_path: Path) -> None:
    bindir = install("16.3")
    (tmp_path / "link").symlink_to(bindir)
    assert len(find([bindir, tmp_path / "link"])) == 1


def test_pg_cron_counts_for_more_than_a_newer_version(install: Install) -> None:
    chosen = best(find([install("17.1"), install("15.2", cron="1.6")]))
    assert chosen is not None
    assert chosen.version == "15.2"


def test_without_pg_cron_the_newest_is_best(install: Install) -> None:
    chosen = best(find([install("15.2"), install("17.1")]))
    assert chosen is not None
    assert chosen.version == "17.1"


def test_nothing_is_best_of_nothing() -> None:
    assert best([]) is None


def test_the_variable_replaces_every_other_place(install: Install, monkeypatch: pytest.MonkeyPatch) -> None:
    one, other = install("15.2", name="one"), install("16.3", name="other")
    monkeypatch.setenv(SEARCH_VARIABLE, f"{one}{os.pathsep}{other}")
    assert search_path() == [one, other]
    assert [server.bindir for server in find()] == [other, one]


def test_a_server_in_the_path_is_found(install: Install, monkeypatch: pytest.MonkeyPatch) -> None:
    bindir = install("99.1")
    monkeypatch.delenv(SEARCH_VARIABLE, raising=False)
    monkeypatch.setenv("PATH", f"{bindir}{os.pathsep}{os.environ['PATH']}")
    assert find()[0].bindir == bindir
