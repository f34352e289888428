"""Finding workflows: those of this package and of others, by the entry-point group `scrapersky.workflows`."""

from collections.abc import Iterable
from dataclasses import dataclass
from importlib.metadata import EntryPoint, entry_points
from types import TracebackType
from typing import Any

from listener.errors import UserError
from listener.logs import log_of
from listener.workflow import Workflow

GROUP = "scrapersky.workflows"
"""Each entry names a `Workflow`, or a list or tuple of them."""

_log = log_of("discover")


@dataclass(frozen=True)
class Broken:
    """An entry point that brings no workflow."""

    entry: EntryPoint
    error: BaseException

    def __str__(self) -> str:
        return f"{self.entry.name} = {self.entry.value}: {type(self.error).__name__}: {self.error}"

    def log(self) -> None:
        """With the way to the line that failed, but for the steps that every import takes."""
        _log.error(
            "a workflow cannot be loaded; its items stay Queued",
            extra={
                "entry_point": f"{self.entry.name} = {self.entry.value}",
                "error": f"{type(self.error).__name__}: {self.error}",
            },
            exc_info=(type(self.error), self.error, at) if (at := _below_import(self.error.__traceback__)) else None,
        )


def find(found: Iterable[EntryPoint] | None = None) -> tuple[dict[str, Workflow[Any, Any]], list[Broken]]:
    """All workflows that can be imported, by name, and what cannot: that must not keep the rest from running."""
    workflows: dict[str, Workflow[Any, Any]] = {}
    broken: list[Broken] = []
    for entry in sorted(entry_points(group=GROUP) if found is None else found, key=lambda entry: entry.name):
        try:
            loaded = _workflows_of(entry)
        except (Exception, SystemExit) as error:
            broken.append(Broken(entry, error))
            continue
        for workflow in loaded:
            if workflow.name in workflows:
                _log.error(
                    f"two packages bring the workflow {workflow.name}; the first is used",
                    extra={"entry_point": f"{entry.name} = {entry.value}"},
                )
            workflows.setdefault(workflow.name, workflow)
    return workflows, broken


def discover(found: Iterable[EntryPoint] | None = None) -> dict[str, Workflow[Any, Any]]:
    """All workflows that can be imported, by name. One that cannot is reported, and the rest run."""
    workflows, broken = find(found)
    for one in broken:
        one.log()
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


def _below_import(at: TracebackType | None) -> TracebackType | None:
    """The traceback from the first line that is neither ours nor Python's own machinery of imports."""
    while at is not None and (
        (file := at.tb_frame.f_code.co_filename) == __file__ or "importlib" in file  # <frozen importlib._bootstrap> too
    ):
        at = at.tb_next
    return at
