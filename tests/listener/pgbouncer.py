"""A PgBouncer before a test's database, where it is installed."""

import os
import random
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psycopg
import pytest
from psycopg import conninfo

from listener.postgres import port
from listener.postgres.account import Account
from tests import unpacked
from tests.waiting import wait_until

_CONFIG = """
[databases]
pooled = {target}
[pgbouncer]
listen_addr = {address}
listen_port = {port}
unix_socket_dir =
auth_type = any
pool_mode = {mode}
default_pool_size = 10
server_login_retry = 1
ignore_startup_parameters = extra_float_digits
"""


@contextmanager
def pgbouncer(url: str, mode: str = "transaction") -> Iterator[str]:
    """The URL of the same database through the pooler."""
    found = unpacked.find(unpacked.PGBOUNCER) or shutil.which("pgbouncer")
    if found is None:
        pytest.skip("pgbouncer is not here (on Debian and Ubuntu: the package pgbouncer)")
    server = conninfo.conninfo_to_dict(url)
    target = " ".join(f"{name}={value}" for name, value in server.items())
    number = port.first_free(random.randint(port.FIRST, port.LAST - 1000))
    account = Account.unprivileged()  # it refuses to run as root
    with tempfile.TemporaryDirectory() as folder:
        config = Path(folder) / "pgbouncer.ini"
        config.write_text(_CONFIG.format(target=target, address=port.ADDRESS, port=number, mode=mode))
        # its account may not reach into the checkout
        program = shutil.copy(found, folder)
        libraries = [shutil.copy(path, folder) for path in unpacked.libraries()]
        for path in (Path(folder), config, Path(program), *map(Path, libraries)):
            account.give(path)
        process = subprocess.Popen(
            [program, config],
            cwd=folder,
            user=account.uid if os.geteuid() == 0 else None,
            env={**os.environ, "LD_LIBRARY_PATH": folder},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        try:
            pooled = f"postgresql://{server['user']}@{port.ADDRESS}:{number}/pooled"
            wait_until(lambda: _answers(pooled), what="pgbouncer")
            yield pooled
        finally:
            process.terminate()
            process.wait()


def _answers(url: str) -> bool:
    try:
        psycopg.connect(url).close()
    except psycopg.OperationalError:
        return False
    return True
