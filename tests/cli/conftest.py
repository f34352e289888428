import io
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from listener.cli import main


@dataclass(frozen=True)
class Answer:
    code: int
    out: str
    err: str


Scrapersky = Callable[..., Answer]


@pytest.fixture
def scrapersky(
    database: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> Scrapersky:
    """`scrapersky("status", "--json")` on this test's database, in this process; `typed` is the keyboard."""
    monkeypatch.setenv("DATABASE_URL", database)
    monkeypatch.chdir(tmp_path)  # no .env of ours here

    def run(*arguments: str, typed: str = "") -> Answer:
        monkeypatch.setattr(sys, "argv", ["scrapersky", *arguments])
        monkeypatch.setattr(sys, "stdin", io.StringIO(typed))
        capsys.readouterr()
        with pytest.raises(SystemExit) as ended:
            main()
        shown = capsys.readouterr()
        return Answer(int(ended.value.code or 0), shown.out, shown.err)

    return run
