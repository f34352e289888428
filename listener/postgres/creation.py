"""Creating a cluster's files: initdb, the password, who may connect, and our database."""

import secrets
import shutil
import subprocess
import sys
from pathlib import Path

from listener.postgres import configuration
from listener.postgres.account import Account
from listener.postgres.configuration import DATABASE, SUPERUSER
from listener.postgres.home import Home, Say, write_private
from listener.postgres.server import Server
from listener.postgres.trouble import explain

_STEP = "create a cluster"


def create(home: Home, server: Server, *, sync: bool, lock: int, say: Say) -> None:
    """Fill `home` with a new cluster. The caller records success; what an interrupted call left is redone.

    initdb holds the caller's lock too: if only the caller is killed, the next one waits until it is done.
    """
    account = home.account
    if home.data.exists():
        say(f"An earlier initdb in {home.path} did not finish: starting it over.")
        shutil.rmtree(home.data)
    say(f"Creating a cluster in {home.path} ...")
    try:
        write_private(home.password_file, secrets.token_urlsafe(24) + "\n", account)
        _initdb(home, server, account, sync=sync, lock=lock)
        _create_database(home, server, account, lock=lock)
        (home.data / "pg_hba.conf").write_text(configuration.HBA)
        with (home.data / "postgresql.conf").open("a") as file:
            file.write(f"\ninclude '{configuration.INCLUDED_FILE}'\n")
    except OSError as error:
        raise explain(_STEP, str(error), home.path) from error


def _initdb(home: Home, server: Server, account: Account, *, sync: bool, lock: int) -> None:
    command: list[str | Path] = [server.program("initdb"), "--pgdata", home.data, "--username", SUPERUSER]
    command += ["--pwfile", home.password_file, "--auth", "scram-sha-256", "--encoding", "UTF8"]
    command += _locale(server.major) if sync else [*_locale(server.major), "--no-sync"]
    result = account.run(command, hold=[lock])
    if result.returncode != 0:
        raise explain(_STEP, result.stdout + result.stderr, home.path)


def _create_database(home: Home, server: Server, account: Account, *, lock: int) -> None:
    """In single-user mode, so that pg_cron finds its database at the very first start."""
    result = account.run(
        # -j: a statement ends at a semicolon and an empty line, so its text may span lines
        [server.program("postgres"), "--single", "-j", "-D", home.data, "postgres"],
        stdin=f"CREATE DATABASE {DATABASE};\n\n",
        hold=[lock],
    )
    if result.returncode != 0 or "ERROR" in result.stderr:
        raise explain(_STEP, result.stdout + result.stderr, home.path)


def _locale(major: int) -> list[str]:
    """UTF-8 character rules, byte order for sorting: the same on every machine."""
    if major >= 17:
        return ["--locale-provider", "builtin", "--locale", "C.UTF-8"]
    known = subprocess.run(["locale", "-a"], capture_output=True, text=True, check=False).stdout.split()
    if {"C.UTF-8", "C.utf8"} & set(known):
        return ["--locale", "C.UTF-8"]
    return ["--locale", "en_US.UTF-8"] if sys.platform == "darwin" else ["--no-locale"]
