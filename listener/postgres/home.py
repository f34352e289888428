"""The directory of a private cluster: which one it is, what is remembered in it, and proof that it is ours."""

import hashlib
import json
import os
import shutil
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path

from listener.errors import UserError
from listener.postgres.account import Account

LOCAL_VARIABLE = "SCRAPERSKY_LOCAL"
MARKER = "scrapersky-cluster.json"
ELSEWHERE = Path("/var/lib/scrapersky")

Say = Callable[[str], None]


def local_directory(chosen: Path | None = None) -> Path:
    """The `.local` of this project: as asked for, the nearest one above that holds a cluster, or a new one here."""
    named = chosen or os.environ.get(LOCAL_VARIABLE)
    if named:
        return Path(named).absolute()
    here = Path.cwd()
    for folder in (here, *here.parents):
        if _is_file(folder / ".local" / "postgres" / MARKER):
            return folder / ".local"
    return here / ".local"


@dataclass(frozen=True)
class Memory:
    """What a cluster must remember between two commands."""

    port: int
    bindir: str
    sockets: str
    cron: bool


class Home:
    """`.local/postgres`, or the place elsewhere that it points to."""

    def __init__(self, path: Path) -> None:
        self.path = path

    @property
    def root(self) -> Path:
        """Where the files really are: the server's account may not be able to follow the link."""
        return self.path.resolve()

    @property
    def data(self) -> Path:
        return self.root / "data"

    @property
    def log(self) -> Path:
        return self.root / "server.log"

    @property
    def password_file(self) -> Path:
        return self.root / "password"

    @property
    def marker(self) -> Path:
        return self.root / MARKER

    @property
    def is_ours(self) -> bool:
        if self.path.exists():
            self._check_owner()
        return _is_file(self.marker)

    @property
    def account(self) -> Account:
        return Account.owner_of(self.path) if self.path.exists() else Account.unprivileged()

    def create(self, say: Say) -> None:
        """Make the directory, elsewhere if the account that runs the server cannot get into this one."""
        if self.is_ours:
            return
        if self.path.is_symlink() and not self.path.exists():
            self.path.unlink()
        if self.path.exists() and any(self.path.iterdir()):
            raise UserError(
                f"{self.path} exists, holds files, and is not a cluster of ours.",
                "Move it away, or name another place with --dir.",
            )
        account = Account.unprivileged()
        account.make_directory(self.path)
        if not account.can_enter(self.path):
            self._move_elsewhere(account, say)
        self._write("{}")

    def _move_elsewhere(self, account: Account, say: Say) -> None:
        digest = hashlib.sha256(str(self.path.resolve()).encode()).hexdigest()[:16]
        ELSEWHERE.mkdir(mode=0o755, exist_ok=True)
        elsewhere = ELSEWHERE / digest
        if elsewhere.exists():
            # The checkout was deleted without `db destroy`, and a new one took its path.
            _require_abandoned(elsewhere)
            shutil.rmtree(elsewhere)
        account.make_directory(elsewhere)
        if not account.can_enter(elsewhere):
            raise UserError(
                f"User {account.name} can write neither {self.path} nor {elsewhere}.",
                "Name a directory that it can reach with --dir.",
            )
        self.path.rmdir()
        self.path.symlink_to(elsewhere)
        say(f"User {account.name} cannot enter {self.path.parent}: the data is in {elsewhere} instead.")

    def _check_owner(self) -> None:
        if os.geteuid() not in (0, self.path.stat().st_uid):
            raise UserError(
                f"The cluster in {self.path} belongs to user {self.account.name}.",
                "Run the command as that user (or root), or use another directory with --dir.",
            )

    def recall(self) -> Memory | None:
        """What was remembered; None until the cluster is complete."""
        if not self.is_ours:
            return None
        try:
            stored = json.loads(self.marker.read_text())
        except ValueError:
            return None
        whole = isinstance(stored, dict) and stored.keys() == Memory.__annotations__.keys()
        return Memory(**stored) if whole else None

    def remember(self, memory: Memory) -> None:
        self._write(json.dumps(asdict(memory), indent=2) + "\n")

    def _write(self, text: str) -> None:
        write_private(self.marker, text, self.account)

    def require_ours(self) -> None:
        if not self.path.exists():
            raise UserError(f"There is no cluster in {self.path}.", "Nothing was deleted.")
        if not self.is_ours:
            raise UserError(
                f"{self.path} is not a cluster that 'scrapersky db start' created: it has no {MARKER}.",
                "Nothing was deleted. Remove it by hand if you are sure.",
            )

    def remove(self) -> None:
        """Delete the directory and what it points to; only ever a cluster of ours."""
        self.require_ours()
        target = self.root
        shutil.rmtree(target)
        if self.path.is_symlink():
            self.path.unlink()
            if target.parent == ELSEWHERE and not any(ELSEWHERE.iterdir()):
                ELSEWHERE.rmdir()


def _is_file(path: Path) -> bool:
    """A file behind a directory that is closed to us counts as absent."""
    try:
        return path.is_file()
    except PermissionError:
        return False


def _require_abandoned(elsewhere: Path) -> None:
    if (elsewhere / "data" / "postmaster.pid").exists():
        raise UserError(
            f"{elsewhere} holds the cluster of an earlier checkout at this path, and it may still be running.",
            f"Stop it and delete that directory: {elsewhere}.",
        )


def write_private(path: Path, text: str, account: Account) -> None:
    """Replace a file that only the account may read, never leaving half of one behind."""
    draft = path.with_name(f".{path.name}.new")
    draft.unlink(missing_ok=True)
    with os.fdopen(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
        file.write(text)
    account.give(draft)
    draft.replace(path)
