"""Somebody follows docs/ to the letter, with the released wheel and a shell.

From nothing to a table of their own that is worked on, to a paused workflow, to an upgrade and the way back, and to
the table as it was before.
"""

import os
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from tests.conftest import Connect
from tests.deploy.environment import alone, build, install, pip
from tests.docs.pages import LITERAL, Step, steps
from tests.servers import Postgres
from tests.sql.queue import one
from tests.waiting import PATIENCE, wait_until

QUICKSTART, UPGRADE = LITERAL
END = ["Completed", "Completed", "Failed", "Completed", "Completed", None, None, None]


class Newcomer:
    """Two terminals and an editor."""

    def __init__(self, folder: Path, bin_: Path, variables: dict[str, str]) -> None:
        self.folder = folder
        self._log = folder / "terminal.log"
        self._listener_log = folder / "listener.log"
        environment = {**variables, "PATH": f"{bin_}{os.pathsep}{variables['PATH']}"}
        # where the page says pip, it installs into the environment of the newcomer, with what is there already
        install_here = " ".join(f"'{word}'" for word in pip(bin_.parent))
        with self._log.open("wb") as log:
            self._shell = subprocess.Popen(
                ["bash", "--norc", "-e"], cwd=folder, env=environment, stdin=subprocess.PIPE, stdout=log, stderr=log
            )
        self._type(f'pip() {{ {install_here} "$1" -q --no-index --no-deps --no-build-isolation "${{@:2}}"; }}')

    def take(self, step: Step) -> None:
        if step.what.startswith("file "):
            path = self.folder / step.what.removeprefix("file ")
            path.parent.mkdir(exist_ok=True)
            path.write_text(step.code)
        elif step.what == "run in another terminal":
            # the subshell becomes the listener, so that a signal reaches it and nothing else
            self._type(f"( exec {step.code.strip()} ) >'{self._listener_log}' 2>&1 & echo $! > listener.pid")
            wait_until(lambda: '"ready"' in self._listener_log.read_text(), PATIENCE, "the listener")
        elif step.kind == "sql":
            self._type(f"psql -X -q -v ON_ERROR_STOP=1 \"$DATABASE_URL\" <<'END OF SQL'\n{step.code}END OF SQL")
        else:
            assert (step.what, step.kind) == ("run", "sh")
            self._type(step.code)

    def _type(self, command: str) -> None:
        """Returns when the shell is through with it."""
        assert self._shell.stdin is not None
        done = self.folder / "done"
        done.unlink(missing_ok=True)
        self._shell.stdin.write(f"{command}\ntouch '{done}'\n".encode())
        self._shell.stdin.flush()
        wait_until(lambda: done.exists() or self._shell.poll() is not None, PATIENCE, command)
        assert done.exists(), f"{command}\n{self.shown()}"

    def shown(self) -> str:
        listening = self._listener_log.read_text() if self._listener_log.exists() else ""
        return f"{self._log.read_text()}\n{listening}"

    def leave(self) -> None:
        pid = self.folder / "listener.pid"
        if pid.exists():
            os.kill(int(pid.read_text()), signal.SIGTERM)
        self._shell.communicate(b"wait\n", PATIENCE)


@pytest.fixture
def newcomer(empty_database: str, postgres: Postgres, tmp_path: Path) -> Iterator[Newcomer]:
    if postgres.server.programs is None:
        pytest.skip("psql is not on this machine")
    variables = alone(DATABASE_URL=empty_database)
    variables["PATH"] = f"{postgres.server.programs.bindir}{os.pathsep}{variables['PATH']}"
    dist = tmp_path / "dist"
    dist.mkdir()
    bin_ = install(build(dist), tmp_path / "venv", "hatchling")
    folder = tmp_path / "home"
    folder.mkdir()
    person = Newcomer(folder, bin_, variables)
    try:
        yield person
    finally:
        person.leave()


@pytest.mark.slow
def test_whoever_follows_the_pages_gets_their_own_table_a_pause_and_the_way_back(
    newcomer: Newcomer, empty_database: str, connect: Connect
) -> None:
    db = connect(url=empty_database)
    *forward, pause, drop = steps(QUICKSTART)
    for step in forward:
        newcomer.take(step)
        if "scheduler.dispatch" in step.code:
            wait_until(lambda: statuses(db) == END, PATIENCE, newcomer.shown())
    assert one(db, "SELECT count(*) FROM sent") == 4
    assert "no such address" in newcomer.shown()
    newcomer.take(pause)
    assert "paused by" in newcomer.shown()
    assert [row[0] for row in db.execute("SELECT action FROM scheduler.audit ORDER BY id DESC LIMIT 3")] == [
        "resume",
        "requeue",
        "pause",
    ]
    wait_until(lambda: statuses(db)[2] == "Failed", PATIENCE, "letter 3 to be tried again")
    wait_until(lambda: one(db, "SELECT maintained_at IS NOT NULL FROM scheduler.control"), PATIENCE, "maintenance")
    for step in steps(UPGRADE):
        newcomer.take(step)
    assert one(db, "SELECT count(*) FROM scheduler.workflow WHERE paused_at IS NOT NULL") == 0
    newcomer.take(drop)
    assert one(db, "SELECT count(*) FROM scheduler.workflow") == 0
    assert one(db, "SELECT count(*) FROM pg_trigger WHERE tgrelid = 'letter'::regclass AND NOT tgisinternal") == 0


def statuses(db: psycopg.Connection) -> list[str | None]:
    return [row[0] for row in db.execute("SELECT status FROM letter ORDER BY id").fetchall()]
