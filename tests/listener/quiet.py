"""Poll-only mode (`pytest --poll-only`): what a test asks of its listener gives way to doing without LISTEN."""

import os
from typing import Any

_VARIABLES = ("LISTENER_POLL_ONLY", "LISTENER_POLL_SECONDS")


def environment() -> dict[str, str]:
    """For a process; empty in the usual mode."""
    return {name: os.environ[name] for name in _VARIABLES} if _VARIABLES[0] in os.environ else {}


def settings() -> dict[str, Any]:
    """The same for a listener in the test's own process."""
    return {name.lower(): value for name, value in environment().items()}
