"""What is released: the source archive builds the wheel; the wheel alone, far from the repository, does everything."""

import shutil
import signal
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Callable, Iterator
from email.parser import Parser
from pathlib import Path
from zipfile import ZipFile

import psycopg
import pytest

from listener.postgres.provide import existing
from listener.postgres.server import best, find
from tests.deploy.environment import alone, build, install, pip
from tests.deploy.files import DEPLOY, ROOT
from tests.waiting import wait_until

PATIENCE = 120
Run = Callable[..., str]


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build(tmp_path_factory.mktemp("dist"))


@pytest.fixture(scope="module")
def scrapersky(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The command of an otherwise empty environment."""
    folder = tmp_path_factory.mktemp("empty")
    found = install(wheel, folder) / "scrapersky"
    checked = subprocess.run([*pip(folder), "check"], capture_output=True, text=True, check=False)
    assert checked.returncode == 0, checked.stdout
    return found


@pytest.fixture
def elsewhere() -> Iterator[Path]:
    """A folder outside of the repository, into which the account that runs a private PostgreSQL may go."""
    with tempfile.TemporaryDirectory(prefix="scrapersky-wheel-", ignore_cleanup_errors=True) as folder:
        Path(folder).chmod(0o755)
        yield Path(folder)


@pytest.fixture
def run(scrapersky: Path, elsewhere: Path) -> Run:
    def run(*arguments: str, **more: str) -> str:
        done = subprocess.run(
            [scrapersky, *arguments],
            cwd=elsewhere,
            env=alone(**more),
            capture_output=True,
            text=True,
            timeout=PATIENCE,
            check=False,
        )
        assert done.returncode == 0, f"scrapersky {' '.join(arguments)}\n{done.stdout}\n{done.stderr}"
        return done.stdout

    return run


@pytest.mark.slow
def test_what_is_released_says_under_which_licence(wheel: Path) -> None:
    with ZipFile(wheel) as archive:
        (folder,) = {name.split("/")[0] for name in archive.namelist() if ".dist-info/" in name}
        about = Parser().parsestr(archive.read(f"{folder}/METADATA").decode())
        licence = archive.read(f"{folder}/licenses/LICENSE").decode()
    assert (about["License-Expression"], about["License-File"]) == ("MIT", "LICENSE")
    assert licence == (ROOT / "LICENSE").read_text()
    assert "MIT" in (ROOT / "README.md").read_text()


@pytest.mark.slow
def test_the_wheel_holds_every_file_the_program_reads_and_nothing_of_the_tests(wheel: Path) -> None:
    with ZipFile(wheel) as archive:
        inside = {name for name in archive.namelist() if ".dist-info/" not in name}
    tracked = subprocess.run(
        ["git", "ls-files", "listener", "services", "sql", "alembic", "alembic.ini"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    if tracked.returncode:
        pytest.skip("this is no git checkout, so nobody knows what belongs into the wheel")
    moved = ("sql/", "alembic/", "alembic.ini")
    wanted = {f"listener/_share/{name}" if name.startswith(moved) else name for name in tracked.stdout.split()}
    assert sorted(inside ^ wanted) == []


@pytest.mark.slow
def test_the_source_archive_holds_what_a_packager_needs(wheel: Path) -> None:
    (archive,) = wheel.parent.glob("*.tar.gz")
    with tarfile.open(archive) as tar:
        names = {name.partition("/")[2] for name in tar.getnames()}
    assert {"LICENSE", "README.md", "Makefile", "pyproject.toml", "sql/install.sql", "tests/conftest.py"} <= names
    assert not [name for name in names if name.startswith((".git/", ".venv/", ".local/", "build/"))]


@pytest.mark.slow
def test_the_wheel_alone_migrates_and_goes_back(run: Run, empty_database: str) -> None:
    assert run("migrate", DATABASE_URL=empty_database).startswith("nothing → ")
    with psycopg.connect(empty_database) as db:
        assert db.execute("SELECT count(*) FROM scheduler.workflow").fetchone() == (7,)
    assert run("migrate", "--down", "base", "--yes", DATABASE_URL=empty_database).endswith(" → nothing\n")


@pytest.mark.slow
@pytest.mark.usefixtures("page_port")
def test_the_wheel_alone_runs_everything_and_the_demo(run: Run, scrapersky: Path, elsewhere: Path) -> None:
    if best(find()) is None:
        pytest.skip("there are no PostgreSQL programs on this machine to start a private cluster with")
    folder = elsewhere / "local"
    log = elsewhere / "up.log"
    try:
        with log.open("w") as output:
            up = subprocess.Popen(
                [scrapersky, "up", "--dir", folder], cwd=elsewhere, env=alone(), stdout=output, stderr=output
            )
        try:
            wait_until(lambda: '"ready"' in log.read_text() or up.poll() is not None, PATIENCE, "the listener")
            assert up.poll() is None, log.read_text()
            up.send_signal(signal.SIGTERM)
            assert up.wait(PATIENCE) == 0, log.read_text()
        finally:
            if up.poll() is None:
                up.kill()
                up.wait()
        shown = run("demo", "--dir", str(folder), "--quick", "--businesses", "2")
        assert "none missing, none invented, none twice" in shown
    finally:
        private = existing(folder, say=print)
        if private.status().state != "absent":
            private.destroy()


@pytest.mark.slow
def test_what_the_image_copies_is_enough_to_build_the_wheel(tmp_path: Path) -> None:
    lines = (DEPLOY / "listener" / "Dockerfile").read_text().splitlines()
    sources = [line.split()[1:-1] for line in lines if line.startswith("COPY ") and "--from" not in line]
    context = tmp_path / "context"
    context.mkdir()
    for source in (name for line in sources for name in line):
        if (ROOT / source).is_dir():
            shutil.copytree(ROOT / source, context / source)
        else:
            shutil.copy(ROOT / source, context)
    built = subprocess.run(
        [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", tmp_path, context],
        capture_output=True,
        text=True,
        check=False,
    )
    assert built.returncode == 0, built.stdout + built.stderr
    (made,) = tmp_path.glob("*.whl")
    with ZipFile(made) as archive:
        assert {"listener/_share/alembic.ini", "listener/_share/sql/install.sql"} <= set(archive.namelist())
