"""Workflows of other packages are found by their entry points; a broken one is reported and the rest run."""

from importlib.metadata import EntryPoint

import pytest

from listener.discover import GROUP, choose, discover
from listener.errors import UserError
from tests.listener import workflows

both = [workflows.job, workflows.other]


def _entry(name: str, value: str) -> EntryPoint:
    return EntryPoint(name, value, GROUP)


def test_an_entry_point_may_bring_one_workflow_or_several() -> None:
    found = discover([_entry("a", f"{__name__}:both"), _entry("b", "tests.listener.workflows:threaded")])
    assert list(found) == ["job", "other", "threaded"]


@pytest.mark.parametrize(
    "value",
    ["tests.nowhere:x", "tests.listener.workflows:nowhere", "tests.listener.workflows:Item", "tests.listener.exits:x"],
)
def test_one_that_cannot_be_loaded_is_reported_and_the_rest_run(value: str, caplog: pytest.LogCaptureFixture) -> None:
    found = discover([_entry("broken", value), _entry("good", "tests.listener.workflows:job")])
    assert list(found) == ["job"]
    (record,) = caplog.records
    assert record.__dict__["entry_point"] == f"broken = {value}"


def test_of_two_packages_with_one_workflow_the_first_is_used_and_it_is_said(caplog: pytest.LogCaptureFixture) -> None:
    found = discover([_entry("b", "tests.listener.workflows:job"), _entry("a", f"{__name__}:both")])
    assert found["job"] is workflows.job
    assert "the workflow job; the first is used" in caplog.text


def test_asking_for_a_workflow_that_is_not_installed_names_those_that_are() -> None:
    with pytest.raises(UserError, match=r"Installed: job"):
        choose({"job": workflows.job}, ["jobb"])
    with pytest.raises(UserError, match="No installed package"):
        choose({}, ["job"])
