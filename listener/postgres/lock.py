"""One start, stop or destroy of a directory at a time; a second one waits."""

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from listener.errors import UserError


def lock_file(directory: Path) -> Path:
    """Beside the directory, not inside: the directory itself comes and goes."""
    return directory.with_name(f"{directory.name}.lock")


@contextmanager
def locked(directory: Path) -> Iterator[int]:
    """Yields the lock's file descriptor. A child that inherits it keeps the lock even if this process is killed."""
    path = lock_file(directory)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        descriptor = _acquire(path)
    except OSError as error:
        raise UserError(
            f"Cannot write to {path.parent}: {error.strerror}.", "Name another place with --dir."
        ) from error
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def _acquire(path: Path) -> int:
    while True:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            # `destroy` deletes the file while it holds the lock: who waited then holds a lock on nothing.
            if path.exists() and os.path.samestat(os.fstat(descriptor), path.stat()):
                return descriptor
        except BaseException:
            os.close(descriptor)
            raise
        os.close(descriptor)
