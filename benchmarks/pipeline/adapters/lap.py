"""What every adapter does: `ADAPTER.py TASK TOWN.json` does a task once, prints what it found and how long it took.

Tasks: `pages` (these pages → addresses), `sitemaps` (these sites → the addresses of their pages), `domains` (these
sites → e-mail addresses, from the root on), `parse` (these pages, already fetched → addresses; no network).
Imported by scripts in the peers' own environment, so it needs the standard library alone.
"""

import json
import resource
import socket
import sys
import time
import urllib.request
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

Found = dict[str, list[str]]
"""Domain → what was found on it."""
Task = Callable[[dict[str, Any]], Found]


def host_of(url: str) -> str:
    return url.partition("//")[2].partition("/")[0].partition(":")[0].removeprefix("www.")


def by_domain(pairs: Iterable[tuple[str, str]]) -> Found:
    """(address of the page, what was found) → as it is reported."""
    found: dict[str, set[str]] = {}
    for url, what in pairs:
        found.setdefault(host_of(url), set()).add(what)
    return {domain: sorted(values) for domain, values in found.items()}


def sources(town: dict[str, Any]) -> dict[str, bytes]:
    """All pages, fetched before anything is timed."""
    fetched = {}
    for site in town["sites"]:
        for url in site["pages"]:
            with urllib.request.urlopen(url) as answer:
                fetched[url] = answer.read()
    return fetched


def names_lead_to_loopback() -> None:
    """The town's names exist nowhere; every look-up of this process finds this machine."""
    real = socket.getaddrinfo

    def look_up(_: Any, *rest: Any, **more: Any) -> Any:
        return real("127.0.0.1", *rest, **more)

    socket.getaddrinfo = look_up  # type: ignore[assignment]
    socket.gethostbyname = lambda _: "127.0.0.1"


def run(tasks: dict[str, Task], prepare: Callable[[str, dict[str, Any]], None] | None = None) -> None:
    task, path = sys.argv[1], Path(sys.argv[2])
    town = json.loads(path.read_text("utf-8"))
    names_lead_to_loopback()
    if prepare is not None:
        prepare(task, town)
    began, used = time.perf_counter(), time.process_time()
    found = tasks[task](town)
    seconds, processor = time.perf_counter() - began, time.process_time() - used
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    report = {"seconds": seconds, "processor_seconds": processor, "memory_kb": memory, "found": found}
    print(json.dumps(report))
