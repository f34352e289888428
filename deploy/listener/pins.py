"""Writes constraints.txt: the version of every library that the image gets, as installed and tested here.

Run by `make pins` after the dependencies in pyproject.toml have changed.
"""

import re
from importlib.metadata import distribution
from pathlib import Path

from packaging.requirements import Requirement

FILE = Path(__file__).with_name("constraints.txt")


def closure(name: str = "scrapersky") -> dict[str, str]:
    """Everything this package needs at run time, and the installed versions."""
    found: dict[str, str] = {}
    waiting = [Requirement(name)]
    seen: set[tuple[str, frozenset[str]]] = set()
    while waiting:
        wanted = waiting.pop()
        mark = (_plain(wanted.name), frozenset(wanted.extras))
        if mark in seen:
            continue
        seen.add(mark)
        installed = distribution(wanted.name)
        found[_plain(wanted.name)] = installed.version
        extras = wanted.extras or {""}
        for text in installed.requires or ():
            needed = Requirement(text)
            if needed.marker is None or any(needed.marker.evaluate({"extra": extra}) for extra in extras):
                waiting.append(needed)
    del found[_plain(name)]
    return found


def _plain(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def text() -> str:
    lines = [f"{name}=={version}" for name, version in sorted(closure().items())]
    return "\n".join(("# Written by `make pins`; do not edit.", *lines, ""))


if __name__ == "__main__":
    FILE.write_text(text())
