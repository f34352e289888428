"""docs/tour.md is executed as it stands: what it promises a newcomer is what they get."""

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from listener.cli import main
from tests.servers import Postgres

TOUR = Path(__file__).parents[2] / "docs" / "tour.md"
ELLIPSIS = "…"

Step = tuple[str, list[str]]
"""A command, and the lines it is said to print."""


def steps(text: str) -> list[Step]:
    found: list[Step] = []
    for block in re.findall(r"^```console\n(.*?)^```", text, re.MULTILINE | re.DOTALL):
        for line in block.splitlines():
            if line.startswith("$ "):
                found.append((line[2:], []))
            elif line.startswith("> "):
                found[-1] = (f"{found[-1][0]}\n{line[2:]}", [])
            else:
                found[-1][1].append(line)
    return found


def agrees(said: list[str], printed: str) -> bool:
    """Whether the output is what the page shows, up to how blanks fall; … stands for anything."""
    wanted = " ".join(" ".join(said).split())
    pattern = ".*".join(re.escape(part.strip()) for part in wanted.split(ELLIPSIS))
    return re.fullmatch(pattern.replace(r"\ ", r"\s+").replace(".*", r"\s*.*"), " ".join(printed.split())) is not None


def test_the_comparison_sees_a_difference() -> None:
    assert agrees(["a  b …", "…", "d"], "a b c\nx\nd\n")
    assert not agrees(["a b"], "a b c")
    assert not agrees(["a", "…", "d"], "a b c")
    assert not agrees([], "unexpected")


class Shell:
    """What a newcomer sits at. Plain calls of `scrapersky` run in this process, which saves a minute of imports."""

    def __init__(self, environment: dict[str, str], folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
        self._environment = environment
        self._folder = folder
        self._capsys = capsys

    def run(self, command: str) -> str:
        """What it prints, its exit code included if that is not 0."""
        if re.fullmatch(r"scrapersky [^|<>$]*", command):
            code, out, err = self._scrapersky(shlex.split(command)[1:])
        else:
            me = f"'{sys.executable}' -c 'from listener.cli import main; main()'"
            done = subprocess.run(
                ["bash", "-c", f'scrapersky() {{ {me} "$@"; }}\n{command}'],
                env=self._environment,
                cwd=self._folder,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                timeout=60,
                check=False,
            )
            code, out, err = done.returncode, done.stdout, done.stderr
        self.err = err
        return out if code == 0 else f"{out}\n[exit code {code}]"

    def _scrapersky(self, arguments: list[str]) -> tuple[int, str, str]:
        sys.argv = ["scrapersky", *arguments]
        self._capsys.readouterr()
        with pytest.raises(SystemExit) as ended:
            main()
        shown = self._capsys.readouterr()
        return int(ended.value.code or 0), shown.out, shown.err


@pytest.mark.slow
def test_every_command_of_the_tour_does_what_the_page_says(
    empty_database: str,
    postgres: Postgres,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    if postgres.server.programs is None:
        pytest.skip("psql is not on this machine")
    found = steps(TOUR.read_text("utf-8"))
    assert len(found) > 20
    monkeypatch.setenv("DATABASE_URL", empty_database)
    monkeypatch.setenv("PATH", f"{postgres.server.programs.bindir}:{os.environ['PATH']}")
    monkeypatch.setenv("PYTHONPATH", str(TOUR.parents[1]))
    monkeypatch.setattr(sys, "argv", sys.argv)
    monkeypatch.chdir(tmp_path)
    shell = Shell(dict(os.environ), tmp_path, capsys)
    for command, said in found:
        printed = shell.run(command)
        page = "\n".join(said)
        assert agrees(said, printed), f"$ {command}\n{printed}\n--- the page says\n{page}\n--- errors\n{shell.err}"
