"""One start, stop or destroy of a private cluster at a time."""

import fcntl
import os
import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from listener.errors import UserError
from listener.postgres.lock import lock_file, locked
from tests.waiting import wait_until


def is_held(directory: Path) -> bool:
    with lock_file(directory).open("w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
    return False


def test_the_lock_lasts_as_long_as_a_child_that_goes_on_alone(tmp_path: Path) -> None:
    """initdb, when the command that called it was killed."""
    directory = tmp_path / "postgres"
    with locked(directory) as lock:
        child = subprocess.Popen(["cat"], stdin=subprocess.PIPE, pass_fds=[lock])
    try:
        assert is_held(directory)
    finally:
        child.communicate()
    assert not is_held(directory)


def test_who_waited_for_a_destroyed_cluster_locks_the_new_one(tmp_path: Path) -> None:
    directory = tmp_path / "postgres"

    def wait_for_it() -> bool:
        with locked(directory) as lock:
            return os.path.samestat(os.fstat(lock), lock_file(directory).stat())

    with ThreadPoolExecutor(1) as thread:
        with locked(directory):
            waiting = thread.submit(wait_for_it)
            wait_until(lambda: _waiters(lock_file(directory)), what="the second one to wait")
            lock_file(directory).unlink()
        assert waiting.result()


def _waiters(path: Path) -> bool:
    """The kernel marks who waits for a lock with an arrow."""
    inode = f":{path.stat().st_ino} "
    locks = Path("/proc/locks")
    if not locks.exists():
        pytest.skip("this system does not tell who waits for a lock")
    return any("->" in line and inode in line for line in locks.read_text().splitlines())


def test_a_place_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(UserError, match="--dir"), locked(tmp_path / "file" / "postgres"):
        pass
