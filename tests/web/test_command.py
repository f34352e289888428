"""`scrapersky web` as a person starts it."""

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import httpx
import pytest

pytestmark = pytest.mark.slow

WEB = [sys.executable, "-c", "from listener.cli import main; main()", "web"]


def environment(**given: str) -> dict[str, str]:
    return {**{name: value for name, value in os.environ.items() if not name.startswith("WEB_")}, **given}


def test_the_page_is_served_until_it_is_told_to_stop(database: str, tmp_path: Path) -> None:
    with subprocess.Popen(
        [*WEB, "--port", "0"],
        stderr=subprocess.PIPE,
        text=True,
        cwd=tmp_path,
        env=environment(DATABASE_URL=database, PYTHONPATH=str(Path(__file__).parents[2])),
    ) as process:
        assert process.stderr is not None
        found = re.search(r"http://\S+", process.stderr.readline())
        assert found is not None
        assert httpx.get(found[0] + "health", timeout=60).json() == {"status": "ok"}
        assert httpx.get(found[0] + "ready", timeout=60).json() == {"status": "ready"}
        assert "No workflow is registered yet" in httpx.get(found[0], timeout=60).text
        process.send_signal(signal.SIGTERM)
        assert process.wait(60) == 0


def test_an_address_that_others_reach_is_refused_without_a_token(tmp_path: Path) -> None:
    refused = subprocess.run(
        [*WEB, "--host", "0.0.0.0"],
        capture_output=True,
        text=True,
        check=False,
        cwd=tmp_path,
        env=environment(DATABASE_URL="postgresql://127.0.0.1:9/none", PYTHONPATH=str(Path(__file__).parents[2])),
    )
    assert refused.returncode == 1
    assert "WEB_TOKEN" in refused.stderr
    assert "Traceback" not in refused.stderr
