"""`scrapersky demo` as people run it: everything found, nothing invented, and twice is once."""

import os
import subprocess
import sys
from pathlib import Path

import psycopg
import pytest

from tests.cli.terminal import terminal

_STATE = """
SELECT (SELECT (count(*), max(updated_at)) FROM contact)::text, (SELECT (count(*), max(updated_at)) FROM page)::text,
       (SELECT (count(*), max(updated_at)) FROM domain)::text,
       (SELECT (count(*), max(updated_at)) FROM sitemap_file)::text,
       (SELECT (count(*), max(updated_at)) FROM local_business)::text, (SELECT count(*) FROM place)::text,
       (SELECT array_agg((name, schedule, batch_size, concurrency, max_attempts, breaker)::text ORDER BY name)
        FROM scheduler.workflow)::text
"""


def _demo(**given: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [sys.executable, "-c", "from listener.cli import main; main()", "demo", "--quick", "--businesses", "30"],
        env={**os.environ, **given},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


@pytest.mark.slow
@pytest.mark.usefixtures("page_port")
def test_the_demo_finds_exactly_the_town_and_again_changes_nothing(empty_database: str, tmp_path: Path) -> None:
    given = {"DATABASE_URL": empty_database, "SCRAPERSKY_LOCAL": str(tmp_path)}
    with terminal("demo", "--quick", "--businesses", "30", columns=150, lines=40, **given) as screen:
        screen.read_until("Look around")
        assert screen.wait() == 0
    assert "none missing, none invented, none twice" in screen.shown
    assert "████" in screen.shown  # the view of the queues
    assert "times the 30 of the old system" in screen.shown
    with psycopg.connect(empty_database, autocommit=True) as db:
        before = db.execute(_STATE).fetchone()
        again = _demo(**given)
        assert again.returncode == 0, again.stdout + again.stderr
        assert "nothing is to be done again" in again.stdout
        assert "\x1b[" not in again.stdout  # no drawing into a file
        assert db.execute(_STATE).fetchone() == before
        db.execute("INSERT INTO place (place_id) VALUES ('a real one')")
    refused = _demo(**given)
    assert refused.returncode == 1
    assert "holds real places" in refused.stderr
