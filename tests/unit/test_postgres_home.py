"""The directory of a private cluster: which one it is, whose it is, and what it remembers."""

import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from listener.errors import UserError
from listener.postgres import configuration, port, process
from listener.postgres.account import Account
from listener.postgres.home import LOCAL_VARIABLE, MARKER, Home, Memory, local_directory, write_private

MEMORY = Memory(port=25432, bindir="/some/bin", sockets="/some/sockets", cron=True)


@pytest.fixture
def home(tmp_path: Path) -> Home:
    """A home that belongs to whoever runs the tests."""
    path = tmp_path / "postgres"
    path.mkdir()
    (path / MARKER).write_text("{}")
    return Home(path)


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.delenv(LOCAL_VARIABLE, raising=False)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_the_directory_asked_for_wins(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(LOCAL_VARIABLE, str(here / "named"))
    assert local_directory(Path("asked")) == here / "asked"
    assert local_directory() == here / "named"


def test_a_new_cluster_goes_into_the_current_directory(here: Path) -> None:
    assert local_directory() == here / ".local"


def test_the_projects_cluster_is_found_from_a_folder_below(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cluster, below = here / ".local" / "postgres", here / "some" / "folder"
    cluster.mkdir(parents=True)
    below.mkdir(parents=True)
    monkeypatch.chdir(below)
    assert local_directory() == below / ".local"
    (cluster / MARKER).write_text("{}")
    assert local_directory() == here / ".local"


def test_what_is_remembered_is_recalled(home: Home) -> None:
    home.remember(MEMORY)
    assert Home(home.path).recall() == MEMORY


@pytest.mark.parametrize("text", ["{}", "", "{half", '{"port": 1}', "[]", "null"])
def test_a_home_without_a_whole_memory_recalls_nothing(home: Home, text: str) -> None:
    home.marker.write_text(text)
    assert home.is_ours
    assert home.recall() is None


def test_a_directory_without_the_marker_is_not_ours(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=f"not a cluster.*{MARKER}.*Nothing was deleted"):
        Home(tmp_path).require_ours()


def test_a_directory_that_is_not_ours_is_not_removed(tmp_path: Path) -> None:
    (tmp_path / "thesis.txt").write_text("years of work")
    with pytest.raises(UserError):
        Home(tmp_path).remove()
    assert (tmp_path / "thesis.txt").read_text() == "years of work"


def test_a_directory_with_files_in_it_is_not_taken(tmp_path: Path) -> None:
    (tmp_path / "thesis.txt").touch()
    with pytest.raises(UserError, match=r"holds files, and is not a cluster of ours.*--dir"):
        Home(tmp_path).create(print)
    assert [path.name for path in tmp_path.iterdir()] == ["thesis.txt"]


def test_a_private_file_is_for_its_account_alone(tmp_path: Path) -> None:
    path = tmp_path / "password"
    for text in ("first", "second"):
        write_private(path, text, Account.unprivileged())
    assert path.read_text() == "second"
    assert path.stat().st_mode & 0o777 == 0o600
    assert path.stat().st_uid == Account.unprivileged().uid
    assert list(tmp_path.iterdir()) == [path]


def test_the_account_is_never_root() -> None:
    assert Account.unprivileged().uid != 0


def test_programs_get_none_of_the_callers_secrets(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PGHOST", "elsewhere")
    monkeypatch.setenv("API_TOKEN", "secret")
    shown = Account.unprivileged().run(["/usr/bin/env"]).stdout.splitlines()
    assert "LC_ALL=C" in shown
    assert not [line for line in shown if line.startswith(("PGHOST", "API_TOKEN"))]


def test_a_program_that_is_not_there_fails_and_does_not_raise(tmp_path: Path) -> None:
    account = Account.unprivileged()
    assert not account.can_run(tmp_path / "postgres")
    assert account.ask(tmp_path / "postgres", "--version") == ""


def test_settings_are_quoted() -> None:
    rendered = configuration.render({"unix_socket_directories": "/it's here", "port": "1"})
    assert "unix_socket_directories = '/it''s here'\n" in rendered
    assert rendered.endswith("port = '1'\n")


def test_the_server_is_told_to_listen_to_this_machine_only() -> None:
    chosen = configuration.settings(port=1, sockets="/s", cron=False, extra={})
    assert chosen["listen_addresses"] == "127.0.0.1"
    assert not [name for name in chosen if name.startswith("cron.")]
    assert "shared_preload_libraries" not in chosen


def test_own_settings_win() -> None:
    chosen = configuration.settings(port=1, sockets="/s", cron=True, extra={"jit": "on"})
    assert chosen["jit"] == "on"
    assert chosen["shared_preload_libraries"] == "pg_cron"


def test_a_port_with_a_listener_is_not_free() -> None:
    with socket.create_server((port.ADDRESS, 0)) as listener:
        taken = listener.getsockname()[1]
        assert not port.is_free(taken)
    assert port.is_free(taken)


def test_the_first_free_port_is_the_next_one() -> None:
    with taken_port() as listener:
        taken = listener.getsockname()[1]
        assert taken < port.first_free(taken) <= port.LAST


def test_no_port_left_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    with taken_port() as listener:
        taken = listener.getsockname()[1]
        monkeypatch.setattr(port, "LAST", taken)
        with pytest.raises(UserError, match="No free port"):
            port.first_free(taken)


def taken_port() -> socket.socket:
    """A listener in the range that clusters use."""
    for number in range(port.FIRST + 50, port.LAST):
        try:
            return socket.create_server((port.ADDRESS, number))
        except OSError:
            continue
    raise AssertionError("no free port")


def test_no_pid_file_means_no_server(tmp_path: Path) -> None:
    assert process.recorded_pid(tmp_path) is None
    assert process.postmaster(tmp_path) is None


@pytest.mark.parametrize("text", ["", "half", "\n"])
def test_a_broken_pid_file_means_no_server(tmp_path: Path, text: str) -> None:
    (tmp_path / "postmaster.pid").write_text(text)
    assert process.recorded_pid(tmp_path) is None
    assert process.postmaster(tmp_path) is None


def test_a_reused_pid_means_no_server(tmp_path: Path) -> None:
    (tmp_path / "postmaster.pid").write_text(f"{os.getpid()}\n{tmp_path}\n")
    assert process.is_alive(os.getpid())
    assert process.postmaster(tmp_path) is None


def test_a_dead_pid_is_not_alive() -> None:
    child = subprocess.Popen([sys.executable, "-c", ""])
    child.wait()
    assert not process.is_alive(child.pid)
