"""The unprivileged account that owns a cluster. PostgreSQL refuses to run as root, so root steps down first."""

import os
import pwd
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from listener.errors import UserError

CANDIDATES = ("postgres", "nobody")
_KEPT = ("PATH", "TMPDIR", "LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH", "ICU_DATA", "TZDIR")


@dataclass(frozen=True)
class Account:
    name: str
    uid: int
    gid: int

    @classmethod
    def _of(cls, entry: pwd.struct_passwd) -> "Account":
        return cls(entry.pw_name, entry.pw_uid, entry.pw_gid)

    @classmethod
    def with_id(cls, uid: int) -> "Account":
        try:
            return cls._of(pwd.getpwuid(uid))
        except KeyError:
            # Containers often run under a number that has no name.
            return cls(str(uid), uid, os.getegid())

    @classmethod
    def unprivileged(cls) -> "Account":
        """The current user, or for root the first of CANDIDATES that exists."""
        if os.geteuid() != 0:
            return cls.with_id(os.geteuid())
        for name in CANDIDATES:
            try:
                return cls._of(pwd.getpwnam(name))
            except KeyError:
                continue
        raise UserError(
            "PostgreSQL must not run as root, and this machine has neither a 'postgres' nor a 'nobody' user.",
            "Create one (useradd --system postgres), or run the command as an ordinary user.",
        )

    @classmethod
    def owner_of(cls, path: Path) -> "Account":
        """The account a cluster was created with; it may differ from what `unprivileged` would pick today."""
        return cls.with_id(path.stat().st_uid)

    def run(
        self, command: Sequence[str | Path], *, stdin: str = "", hold: Sequence[int] = ()
    ) -> subprocess.CompletedProcess[str]:
        """Run a program as this account, away from the caller's directory and environment.

        It inherits the file descriptors in `hold`: locks that must last as long as it runs.
        """
        steps_down = os.geteuid() == 0
        try:
            return subprocess.run(
                [str(part) for part in command],
                input=stdin,
                capture_output=True,
                text=True,
                check=False,
                # The caller's directory may be closed to this account; pg_ctl insists on reading it.
                cwd="/",
                env=_environment(),
                pass_fds=hold,
                user=self.uid if steps_down else None,
                group=self.gid if steps_down else None,
                extra_groups=[] if steps_down else None,
            )
        except PermissionError as error:
            return subprocess.CompletedProcess(list(map(str, command)), 126, "", str(error))
        except subprocess.SubprocessError as error:
            raise UserError(
                f"Cannot run {command[0]} as user {self.name}: {error}.",
                "Run the command as an ordinary user instead of root.",
            ) from error

    def can_enter(self, directory: Path) -> bool:
        """Whether this account reaches and may write the directory; asked of the kernel, so ACLs count."""
        script = 'cd "$1" 2>/dev/null && [ -w . ]'
        return self.run(["/bin/sh", "-c", script, "sh", directory]).returncode == 0

    def ask(self, program: Path, question: str) -> str:
        """As `server.ask`, but as this account: what its own files name is not run by root."""
        result = self.run([program, question])
        return result.stdout.strip() if result.returncode == 0 else ""

    def can_run(self, program: Path) -> bool:
        return self.run([program, "--version"]).returncode == 0

    def make_directory(self, path: Path) -> Path:
        """A directory only this account may read."""
        path.mkdir(mode=0o700, parents=True, exist_ok=True)
        self.give(path)
        path.chmod(0o700)
        return path

    def give(self, path: Path) -> None:
        if os.geteuid() == 0:
            os.chown(path, self.uid, self.gid)

    def give_tree(self, path: Path) -> None:
        if os.geteuid() == 0:
            for entry in (path, *path.rglob("*")):
                os.chown(entry, self.uid, self.gid, follow_symlinks=False)


def _environment() -> dict[str, str]:
    """No PGHOST or PGDATA of the caller, nor their secrets: the server outlives the shell that started it.

    English messages, because we read them.
    """
    kept = {name: value for name, value in os.environ.items() if name in _KEPT}
    return kept | {"LC_ALL": "C", "HOME": "/"}
