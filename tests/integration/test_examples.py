"""The examples run, and print what their README says."""

import os
import subprocess
import sys
import tomllib
from decimal import Decimal
from pathlib import Path

import psycopg
import pytest

from listener import Reject
from listener.discover import GROUP
from listener.testing import Drained, assert_queued, drain, run_item

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


def test_an_existing_orders_table_becomes_a_queue_with_one_call_and_prints_what_is_promised(database: str) -> None:
    printed = _run(database)
    assert printed.strip() == _promised(ORDERS / "README.md").strip()
    assert _run(database) == printed


def test_the_orders_package_brings_its_workflow_by_the_documented_entry_point() -> None:
    project = tomllib.loads((ORDERS / "pyproject.toml").read_text())["project"]
    assert project["entry-points"][GROUP] == {"invoice": "invoice:invoice"}


def test_the_code_of_the_orders_example_stays_about_twenty_lines() -> None:
    lines = (ORDERS / "invoice.py").read_text().split('"""', 2)[2].splitlines()
    code = [line for line in lines if line.strip() and not line.startswith(("from ", "import ", "@"))]
    assert len(code) <= 22


async def test_what_the_page_on_testing_shows_holds(database: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(ORDERS))
    from invoice import Order, invoice

    assert (await run_item(invoice, Order(1, "AT", Decimal(100)))).result == Decimal("120.00")
    assert (await run_item(invoice, Order(1, "NZ", Decimal(20)))).word == "by hand"
    with pytest.raises(Reject, match="cannot be invoiced"):
        await run_item(invoice, Order(1, "AT", Decimal(0)))
    with psycopg.connect(database, autocommit=True) as connection:
        for script in ("shop.sql", "adopt.sql"):
            connection.execute((ORDERS / script).read_text().encode())
        assert await drain(database, invoice) == {"invoice": Drained(succeeded=2, rejected=1)}
        with connection.transaction(force_rollback=True):
            connection.execute("UPDATE shop.orders SET state = 'paid' WHERE id = 2")
            assert_queued(connection, "invoice", 2)
        with pytest.raises(AssertionError, match="workflow invoice:\n  2 is not Queued: "):
            assert_queued(connection, "invoice", 2)
