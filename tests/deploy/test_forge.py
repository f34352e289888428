"""What a public forge and a contributor's machine run: the same checks as `.ci/run`, by files that can be read."""

import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.deploy.files import ROOT, documents

WORKFLOW = ROOT / ".github" / "workflows" / "ci.yml"
HOOKS = ROOT / ".pre-commit-config.yaml"
MAKEFILE = (ROOT / "Makefile").read_text()


def jobs() -> dict[str, Any]:
    found: dict[str, Any] = documents(WORKFLOW)[0]["jobs"]
    return found


def commands(job: dict[str, Any]) -> str:
    return "\n".join(step.get("run", "") for step in job["steps"])


def test_the_forge_can_read_the_workflow() -> None:
    checked = subprocess.run(
        [sys.executable, "-m", "check_jsonschema", "--builtin-schema", "vendor.github-workflows", WORKFLOW],
        capture_output=True,
        text=True,
        check=False,
    )
    assert checked.returncode == 0, checked.stdout


def test_the_forge_checks_what_ci_checks_here() -> None:
    assert commands(jobs()["test"]).strip() == ".ci/run"


def test_every_supported_postgresql_is_tested() -> None:
    assert jobs()["postgresql"]["strategy"]["matrix"]["postgresql"] == ["14", "15", "16", "17", "18"]


def test_a_pull_request_gets_no_rights_on_the_repository() -> None:
    assert documents(WORKFLOW)[0]["permissions"] == {"contents": "read"}
    assert "secrets." not in WORKFLOW.read_text()


@pytest.mark.parametrize("path", [WORKFLOW, ROOT / "CONTRIBUTING.md", ROOT / "README.md"], ids=lambda path: path.name)
def test_every_target_that_is_named_exists(path: Path) -> None:
    named = set(re.findall(r"\bmake ([a-z][a-z-]+)\b", "\n".join(_code(path))))
    assert named
    assert named - set(re.findall(r"^([a-z-]+):", MAKEFILE, re.MULTILINE)) == set()


def _code(path: Path) -> list[str]:
    """Commands, not prose: `make` is a common verb."""
    text = path.read_text()
    return [text] if path == WORKFLOW else re.findall(r"^(?:    )?make .*$|`make [^`]*`", text, re.MULTILINE)


def test_the_hooks_are_the_checks_of_make_lint() -> None:
    hooks = [hook for repo in yaml.safe_load(HOOKS.read_text())["repos"] for hook in repo["hooks"]]
    programs = {hook["entry"].split()[0].removeprefix(".venv/bin/") for hook in hooks}
    (recipe,) = re.findall(r"^lint:.*\n((?:\t.*\n)+)", MAKEFILE, re.MULTILINE)
    assert set(re.findall(r"\$\(VENV\)/bin/([\w-]+)", recipe)) - programs == set()
    assert {hook["language"] for hook in hooks} == {"system"}, "another version of a tool than that of CI"
