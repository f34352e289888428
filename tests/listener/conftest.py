from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.listener.started import Bench, bench_on


@pytest.fixture
def bench(database: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Bench]:
    """This test's database with a table for results, and listeners that end with the test."""
    monkeypatch.setenv("GATES", str(tmp_path / "gates"))
    with bench_on(database, tmp_path) as made:
        yield made
