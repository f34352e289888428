"""Finding workflows: those of this package and of others, by the entry-point group `scrapersky.workflows`."""

from collections.abc import Iterable
from importlib.metadata import EntryPoint, entry_points
from typing import Any

from listener.errors import UserError
from listener.logs import log_of
from listener.workflow import Workflow

GROUP = "scrapersky.workflows"
"""Each entry names a `Workflow`, or a list or tuple of them."""

_log = log_of("discover")


def discover(found: Iterable[EntryPoint] | None = None) -> dict[str, Workflow[Any, Any]]:
    """All workflows that can be imported, by name. One that cannot is reported, and the rest run."""
    workflows: dict[str, Workflow[Any, Any]] = {}
    for entry in sorted(entry_points(group=GROUP) if found is None else found, key=lambda entry: entry.name):
        try:
            loaded = _workflows_of(entry)
        except (Exception, SystemExit) as error:
            _log.exception(
                "a workflow cannot be loaded; its items stay Queued",
                extra={"entry_point": f"{entry.name} = {entry.value}", "error": f"{type(error).__name__}: {error}"},
            )
            continue
        for workflow in loaded:
            if workflow.name in workflows:
                _log.error(
                    "two packages bring the same workflow; the first is used",
                    extra={"workflow": workflow.name, "entry_point": f"{entry.name} = {entry.value}"},
                )
            workflows.setdefault(workflow.name, workflow)
    return workflows


def choose(workflows: dict[str, Workflow[Any, Any]], wanted: Iterable[str]) -> dict[str, Workflow[Any, Any]]:
    """Those that were asked for; all, if none was."""
    names = list(dict.fromkeys(wanted))
    unknown = [name for name in names if name not in workflows]
    if unknown:
        raise UserError(
            f"There is no workflow {', '.join(unknown)} here.",
            f"Installed: {', '.join(workflows)}." if workflows else "No installed package brings any workflow.",
        )
    return {name: workflows[name] for name in names} if names else workflows


def _workflows_of(entry: EntryPoint) -> list[Workflow[Any, Any]]:
    loaded = entry.load()
    workflows = list(loaded) if isinstance(loaded, list | tuple) else [loaded]
    for workflow in workflows:
        if not isinstance(workflow, Workflow):
            raise TypeError(f"{entry.value} is {type(workflow).__name__}, not a Workflow")
    return workflows
