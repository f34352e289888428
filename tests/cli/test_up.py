"""`scrapersky up`: all of it starts with one command and ends with one Ctrl-C."""

import re
import tempfile
from collections.abc import Iterator
from pathlib import Path

import httpx
import psycopg
import pytest

from listener.postgres.cluster import Cluster
from listener.postgres.provide import existing
from listener.postgres.server import best, find
from tests.cli.terminal import terminal
from tests.waiting import wait_until


@pytest.fixture
def local(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder for a private PostgreSQL, where the account it runs as may go."""
    if best(find()) is None:
        pytest.skip("there are no PostgreSQL programs on this machine to start a private cluster with")
    monkeypatch.delenv("DATABASE_URL", raising=False)
    with tempfile.TemporaryDirectory(prefix="scrapersky-up-", ignore_cleanup_errors=True) as folder:
        Path(folder).chmod(0o755)
        yield Path(folder)
        private = existing(Path(folder), say=print)
        if private.status().state != "absent":
            private.destroy()


@pytest.mark.slow
@pytest.mark.usefixtures("page_port")
def test_up_runs_a_database_and_a_listener_and_ctrl_c_ends_both(local: Path) -> None:
    with terminal("up", "--dir", str(local), columns=200) as screen:
        screen.read_until("Up: listener")
        private = existing(local, say=print)
        assert isinstance(private, Cluster)
        with psycopg.connect(private.url(), autocommit=True) as db:
            alive = "SELECT count(*) FROM scheduler.listeners WHERE state = 'alive'"
            wait_until(lambda: db.execute(alive).fetchone() == (1,), what="the listener")
        page = re.search(r"The web page: (http://127\.0\.0\.1:\d+)/", screen.read_until("In another terminal"))
        assert page is not None
        assert httpx.get(f"{page[1]}/health").status_code == 200
        screen.interrupt()
        screen.read_until("PostgreSQL is stopped")
        assert screen.wait() == 0
    assert private.status().state == "stopped"


@pytest.mark.slow
def test_a_listener_that_cannot_start_ends_up_with_its_exit_code(
    database: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The database is the one that .env names: not a private one beside it, with half of that file's settings."""
    monkeypatch.delenv("DATABASE_URL", raising=False)
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parents[2]))
    monkeypatch.chdir(tmp_path)
    (tmp_path / ".env").write_text(f"DATABASE_URL='{database}'\n")
    with terminal("up", columns=200, LISTENER_POLL_SECONDS="soon") as screen:
        assert screen.wait() == 1
        assert "LISTENER_POLL_SECONDS" in screen.shown
        assert "Using the database that DATABASE_URL names" in screen.shown
    assert not (tmp_path / ".local").exists()
    psycopg.connect(database).close()  # what was running before goes on
