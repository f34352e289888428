"""What installed packages add to the page, by the entry-point group `scrapersky.web`: each entry names an `Extension`.

The page knows workflows, not what they are about. A pipeline says here what follows what, which tables of results are
worth a page, and how to find the items before and after an item. Tables that are not there are left out.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from importlib.metadata import EntryPoint, entry_points
from typing import LiteralString

from listener.logs import log_of

GROUP = "scrapersky.web"

_log = log_of("web")


@dataclass(frozen=True)
class Table:
    """A table of results with a page of its own: filtered, and exported as CSV and JSON.

    scheduler_monitor needs SELECT on it. Columns that the table does not have are left out.
    """

    name: str
    """In the address, as in /data/contacts."""
    title: str
    relation: str
    columns: tuple[str, ...]
    search: tuple[str, ...] = ()
    """Columns in which the search box looks."""
    choices: tuple[str, ...] = ()
    """Columns with few different values, each with a list to choose from; enum types give theirs."""
    newest: str | None = None
    """The column to order by, the highest first."""
    key: LiteralString | None = None
    """The column that rows are ticked by."""
    decided: str | None = None
    """The column, of an enum type, whose word people give to ticked rows by scheduler.curate(); it needs `key`."""


@dataclass(frozen=True)
class Extension:
    """What one package adds."""

    handovers: tuple[tuple[str, str], ...] = ()
    """(workflow, the one that takes over its results): arrows besides those of scheduler.workflow.downstream."""
    tables: tuple[Table, ...] = ()
    chain: Mapping[str, LiteralString] = field(default_factory=dict)
    """For a workflow, a query with %(key)s for the items before and after one of its items: direction ('up' or
    'down'), workflow, key, label, status; run as scheduler_monitor."""


def discover(found: Iterable[EntryPoint] | None = None) -> list[Extension]:
    """All that can be imported; one that cannot is reported, and the page does without it."""
    extensions = []
    for entry in sorted(entry_points(group=GROUP) if found is None else found, key=lambda entry: entry.name):
        try:
            loaded = entry.load()
            if not isinstance(loaded, Extension):
                raise TypeError(f"{entry.value} is {type(loaded).__name__}, not an Extension")  # noqa: TRY301
        except Exception:
            _log.exception("an extension of the web page cannot be loaded", extra={"entry_point": entry.name})
        else:
            extensions.append(loaded)
    return extensions
