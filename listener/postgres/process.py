"""Which process, if any, serves a data directory. A pid file alone proves nothing: pids are reused."""

import os
import subprocess
from pathlib import Path


def recorded_pid(data: Path) -> int | None:
    """The pid that postmaster.pid names, alive or not."""
    try:
        return int((data / "postmaster.pid").read_text().split("\n", 1)[0])
    except (OSError, ValueError):
        return None


def postmaster(data: Path) -> int | None:
    """The pid of the live postmaster of this directory."""
    pid = recorded_pid(data)
    if pid is None:
        return None
    command = _command_line(pid)
    is_server = any(Path(word).name in ("postgres", "postmaster") for word in command[:1])
    return pid if is_server and str(data) in command else None


def is_alive(pid: int) -> bool:
    """Whether any process has this pid, ours or not."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


def _command_line(pid: int) -> list[str]:
    proc = Path(f"/proc/{pid}")
    if Path("/proc/self").exists():
        try:
            # A process that has died but was not reaped yet has an empty command line.
            return (proc / "cmdline").read_text(errors="replace").rstrip("\0").split("\0")
        except OSError:
            return []
    result = subprocess.run(["ps", "-o", "args=", "-p", str(pid)], capture_output=True, text=True, check=False)
    # macOS has no /proc; `ps` cannot tell spaces in a path from spaces between words.
    program, _, directory = result.stdout.strip().partition(" -D ")
    return [program, directory] if directory else []
