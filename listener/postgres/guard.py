"""Removes a throw-away cluster when the process that made it is gone, even by kill -9.

    python -m listener.postgres.guard DIRECTORY

It holds the reading end of a pipe; the kernel closes the other end however the maker dies.
"""

import shutil
import sys
from pathlib import Path

from listener.postgres.cluster import Cluster
from listener.postgres.home import Home

CLUSTER = "postgres"


def remove(directory: Path) -> None:
    if Home(directory / CLUSTER).is_ours:
        Cluster(directory / CLUSTER).destroy()
    shutil.rmtree(directory, ignore_errors=True)


if __name__ == "__main__":
    sys.stdin.buffer.read()
    remove(Path(sys.argv[1]))
