"""Turning what PostgreSQL's programs print when they fail into one clear paragraph."""

from pathlib import Path

from listener.errors import UserError

_LAST_LINES = 8
_DAMAGED_PID_FILE = (
    "invalid data in pid file",
    "bogus data in lock file",
    "the pid file",
    'lock file "postmaster.pid" is empty',
)


def explain(step: str, output: str, where: Path) -> UserError:
    """The error for a failed step, from its output and the end of the server's log."""
    lowered = output.lower()
    if "no space left on device" in lowered or "disk quota exceeded" in lowered:
        return UserError(
            f"PostgreSQL could not {step}: the disk that holds {where} is full.",
            "Free some space (a new cluster needs about 60 MB), or use another place with --dir, and start again.",
        )
    if "could not create shared memory segment" in lowered or "could not resize shared memory" in lowered:
        return UserError(
            f"PostgreSQL could not {step}: the system gives it no shared memory.",
            "In a container, raise --shm-size; else raise kernel.shmmax or stop other servers.",
        )
    if "read-only file system" in lowered:
        return UserError(
            f"PostgreSQL could not {step}: {where} is on a read-only file system.",
            "Use another place with --dir.",
        )
    if any(sign in lowered for sign in _DAMAGED_PID_FILE):
        return UserError(
            f"PostgreSQL could not {step} in {where}: its postmaster.pid is damaged, as after a full disk or a crash.",
            f"Make sure that no server runs there (ps -ef | grep {where}), then: rm {where}/data/postmaster.pid",
        )
    if "permission denied" in lowered:
        return UserError(
            f"PostgreSQL could not {step} in {where}: permission denied. {last_line(output)}",
            "Use another place with --dir, or 'scrapersky db destroy' and start again.",
        )
    tail = "\n  ".join(line for line in output.strip().splitlines()[-_LAST_LINES:])
    return UserError(f"PostgreSQL could not {step} in {where}:\n  {tail}\n", "The whole log is in server.log there.")


def last_line(output: str) -> str:
    lines = [line.strip() for line in output.splitlines() if line.strip()]
    return lines[-1] if lines else ""


def is_winding_down(output: str) -> bool:
    """The postmaster was killed, and its last child processes have not noticed yet."""
    return "pre-existing shared memory block" in output and "still in use" in output


def is_taken_port(output: str) -> bool:
    return "could not bind" in output and "Address already in use" in output
