"""The images: clean by the linter, run as nobody, get signals, and hold exactly the versions that were tested."""

import json
import re
import runpy
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest
from packaging.requirements import Requirement

from tests.deploy.files import DEPLOY, ROOT

DOCKERFILES = sorted(DEPLOY.glob("*/Dockerfile"))


def test_the_linter_has_nothing_to_say() -> None:
    linter = Path(sys.executable).with_name("hadolint")
    linted = subprocess.run([linter, "--format", "json", *DOCKERFILES], capture_output=True, text=True, check=False)
    assert json.loads(linted.stdout) == []


@pytest.mark.parametrize("path", [p for p in DOCKERFILES if p.parent.name != "postgres"], ids=lambda p: p.parent.name)
def test_it_does_not_run_as_root_and_gets_its_signals(path: Path) -> None:
    text = path.read_text()
    assert re.search(r"^USER [1-9]\d+:[1-9]\d+$", text, re.MULTILINE)
    assert not re.search(r"^(?:CMD|ENTRYPOINT) [^\[]", text, re.MULTILINE), "a shell would keep SIGTERM for itself"


def test_what_the_image_copies_reaches_the_builder_and_nothing_else_does() -> None:
    copied = re.findall(r"^COPY (?!--from)(.+) \S+$", (DEPLOY / "listener" / "Dockerfile").read_text(), re.MULTILINE)
    sources = sorted(source for line in copied for source in line.split())
    ignore = (ROOT / ".dockerignore").read_text().splitlines()
    assert ignore[1] == "*"
    assert sorted(line[1:] for line in ignore if line.startswith("!")) == sources
    assert [source for source in sources if not (ROOT / source).exists()] == []


def test_every_library_of_the_image_is_pinned() -> None:
    pins: dict[str, Any] = runpy.run_path(str(DEPLOY / "listener" / "pins.py"))
    pinned = re.findall(r"^([a-z0-9-]+)==", pins["FILE"].read_text(), re.MULTILINE)
    assert sorted(set(pins["closure"]()) ^ set(pinned)) == [], "dependencies have changed: run `make pins`"


def test_the_pinned_versions_are_those_the_project_asks_for() -> None:
    """An old pin would bring back what a raised minimum was to get rid of."""
    text = (DEPLOY / "listener" / "constraints.txt").read_text()
    pins = dict(re.findall(r"^([a-z0-9-]+)==(\S+)$", text, re.MULTILINE))
    asked = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["dependencies"]
    wanted = [Requirement(line) for line in asked]
    assert [str(one) for one in wanted if not one.specifier.contains(pins[one.name.lower()])] == []
