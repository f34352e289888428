"""All scenarios, in the order of their numbers."""

import re
from collections.abc import Sequence

from tests.faults import clocks, connections, disks, failover, outside, processes, schedules, server
from tests.faults.scenario import SCENARIOS, Scenario

MODULES = (clocks, connections, disks, failover, outside, processes, schedules, server)
"""Importing them registers their scenarios."""


def chosen(names: Sequence[str] | None = None) -> list[Scenario]:
    if unknown := set(names or ()) - set(SCENARIOS):
        raise SystemExit(f"there is no fault {', '.join(sorted(unknown))}; --list names them")
    found = [SCENARIOS[name] for name in names] if names else list(SCENARIOS.values())
    return sorted(found, key=lambda scenario: (int(re.findall(r"\d+", scenario.number)[0]), scenario.number))
