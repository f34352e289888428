"""The examples run, and print what their README says."""

import os
import re
import shutil
import subprocess
import sys
from importlib.metadata import distributions
from pathlib import Path

import psycopg
import pytest

from listener.discover import GROUP
from listener.testing import assert_queued
from tests.docs.pages import blocks

ROOT = Path(__file__).parents[2]
ORDERS = ROOT / "examples" / "orders"


def _run(url: str) -> str:
    done = subprocess.run(
        [sys.executable, ORDERS / "run.py"],
        env={**os.environ, "DATABASE_URL": url, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def _promised(readme: Path) -> str:
    """The indented block after the line that names the command."""
    text = readme.read_text().split("prints\n", 1)[1]
    block = text.split("\n\n## ", 1)[0]
    return "\n".join(line.removeprefix("    ") for line in block.strip("\n").splitlines())


@pytest.mark.slow
def test_an_existing_orders_table_becomes_a_queue_with_one_call_and_prints_what_is_promised(database: str) -> None:
    printed = _run(database)
    assert printed.strip() == _promised(ORDERS / "README.md").strip()
    assert _run(database) == printed


@pytest.mark.slow
def test_the_orders_package_can_be_installed_and_brings_its_workflow(tmp_path: Path) -> None:
    offline = ("--no-deps", "--no-index", "--no-build-isolation", "--disable-pip-version-check")
    installed = subprocess.run(
        [sys.executable, "-m", "pip", "install", *offline, "--target", tmp_path, ORDERS],
        capture_output=True,
        text=True,
        check=False,
    )
    assert installed.returncode == 0, installed.stderr
    (package,) = distributions(path=[str(tmp_path)])
    assert [(e.name, e.value) for e in package.entry_points if e.group == GROUP] == [("invoice", "invoice:invoice")]
    assert sorted(path.name for path in tmp_path.glob("*.py")) == ["invoice.py"], "and not run.py, for everybody"


def test_the_code_of_the_orders_example_stays_about_twenty_lines() -> None:
    lines = (ORDERS / "invoice.py").read_text().split('"""', 2)[2].splitlines()
    code = [line for line in lines if line.strip() and not line.startswith(("from ", "import ", "@"))]
    assert len(code) <= 22


@pytest.mark.slow
def test_the_page_on_testing_is_a_test_file_that_passes(tmp_path: Path) -> None:
    for name in ("invoice.py", "shop.sql", "adopt.sql"):
        shutil.copy(ORDERS / name, tmp_path)
    shown = {
        kind: [b.code for b in blocks(ROOT / "docs" / "testing.md") if b.kind == kind] for kind in ("python", "toml")
    }
    (tmp_path / "test_invoice.py").write_text("\n\n".join(shown["python"]))
    (tmp_path / "pyproject.toml").write_text("\n".join(shown["toml"]))
    run = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"],
        cwd=tmp_path,
        env={**{k: v for k, v in os.environ.items() if not k.startswith("PYTEST")}, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert run.returncode == 0, run.stdout + run.stderr
    assert "5 passed" in run.stdout


def test_what_is_not_queued_is_told_with_the_reason_that_the_page_shows(database: str) -> None:
    with psycopg.connect(database, autocommit=True) as connection:
        for script in ("shop.sql", "adopt.sql"):
            connection.execute((ORDERS / script).read_text().encode())
        with pytest.raises(AssertionError) as refused:
            assert_queued(connection, "invoice", 1, 2, 3, 4)
    page = (ROOT / "docs" / "testing.md").read_text()
    shown = re.findall(r"^    AssertionError: (.*)\n    (  2 is .*) \.\.\.$", page, re.MULTILINE)
    assert str(refused.value).startswith("\n".join(shown[0]))
