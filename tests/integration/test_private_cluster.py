"""`scrapersky db`: a real private cluster, from half an initdb to nothing left."""

import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest
from typer.testing import CliRunner

from listener import cli
from listener.cli.db import STOPPED
from listener.errors import UserError
from listener.postgres import choose, port, process
from listener.postgres.cluster import Cluster
from listener.postgres.server import best, find
from tests.waiting import wait_until


class Commands:
    """`scrapersky db …` on a directory of its own."""

    def __init__(self, local: Path) -> None:
        self._local = local
        self.cluster = Cluster(local / "postgres")

    def __call__(self, *arguments: str, answer: str = "") -> str:
        """What it printed, progress included; the exit code must be 0."""
        code, output = self.try_to(*arguments, answer=answer)
        assert code == 0, output
        return output

    def try_to(self, *arguments: str, answer: str = "") -> tuple[int, str]:
        result = CliRunner().invoke(cli.app, ["db", *arguments, "--dir", str(self._local)], input=answer)
        if isinstance(result.exception, UserError):
            raise result.exception
        return result.exit_code, result.output

    def state(self) -> dict[str, object]:
        shown: dict[str, object] = json.loads(self.try_to("status", "--json")[1])
        return shown


@pytest.fixture
def db(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Commands]:
    if best(find()) is None:
        pytest.skip("there are no PostgreSQL programs on this machine to start a private cluster with")
    monkeypatch.delenv(choose.URL_VARIABLE, raising=False)
    commands = Commands(tmp_path / "a folder" / ".local")
    yield commands
    if commands.cluster.home.is_ours:
        commands.cluster.destroy()


@pytest.mark.slow
def test_a_private_cluster_lives_through_every_mishap_and_leaves_nothing(db: Commands) -> None:
    # before anything was started
    assert db.try_to("status") == (STOPPED, f"state      absent\ndirectory  {db.cluster.home.path}\n")
    with pytest.raises(UserError, match="scrapersky db start"):
        db("url")
    assert "not running" in db("stop")

    # what an interrupted first start left behind
    db.cluster.home.create(print)
    db.cluster.home.data.mkdir()
    (db.cluster.home.data / "half").touch()
    said = db("start")
    assert "did not finish: starting it over" in said
    assert f"Using {choose.Way.INSTALLED}" in said or f"Using {choose.Way.BARE}" in said
    first = db.state()
    assert first["state"] == "running"

    # never as root, never reachable from elsewhere
    server = db.cluster.pid
    assert server is not None
    assert db.cluster.home.data.stat().st_uid != 0
    url = db("url").strip()
    with psycopg.connect(url) as session:
        assert session.execute("SHOW listen_addresses").fetchone() == (port.ADDRESS,)
        session.execute("CREATE TABLE kept ()")
    assert url not in db("status")

    # twice is harmless
    assert "Already running" in db("start") or db.state() == first
    assert db.state() == first
    # psql writes past Python's own output, so in a process of its own
    psql = [sys.executable, "-c", "from listener.cli import main; main()", "db", "psql"]
    done = subprocess.run(
        [*psql, "--dir", str(db.cluster.home.path.parent), "-Atc", "SELECT 6 * 7"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.stdout.strip(), done.returncode) == ("42", 0), done.stderr

    # killed: the pid file is stale
    os.kill(server, signal.SIGKILL)
    wait_until(lambda: not process.is_alive(server) or db.cluster.pid is None, what="the server's end")
    assert db.try_to("status")[0] == STOPPED
    assert "was not stopped properly" in db("start")

    # its pid is now another program's
    db("stop")
    assert "not running" in db("stop")
    memory = db.cluster.memory
    for leftover in (db.cluster.home.data / "postmaster.pid", Path(memory.sockets, f".s.PGSQL.{memory.port}.lock")):
        leftover.write_text(f"{os.getpid()}\n")
    assert "was not stopped properly" in db("start")

    # its port is
    db("stop")
    with socket.create_server((port.ADDRESS, int(str(first["port"])))):
        said = db("start")
    assert f"Port {first['port']} is in use by another program" in said
    moved = db.state()
    assert moved["state"] == "running"
    assert moved["port"] != first["port"]
    with psycopg.connect(db("url").strip()) as session:
        assert session.execute("SELECT count(*) FROM kept").fetchone() == (0,)

    # gone only when asked for
    assert db.try_to("destroy", answer="n\n")[0] == 1
    assert db.state() == moved
    db("destroy", "--yes")
    assert list(db.cluster.home.path.parent.iterdir()) == []
    with pytest.raises(UserError, match="Nothing was deleted"):
        db("destroy", "--yes")


def test_make_help_lists_every_target() -> None:
    root = Path(__file__).parents[2]
    shown = subprocess.run(["make", "help"], cwd=root, capture_output=True, text=True, check=True).stdout
    for target in ("demo", "test", "test-fast", "lint", "bench", "clean"):
        assert f"make {target} " in shown
