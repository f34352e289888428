"""The project's PostgreSQL, running: what `db start`, `demo` and `up` begin with."""

import os
from dataclasses import dataclass
from pathlib import Path

import psycopg
from dotenv import dotenv_values

from listener.errors import UserError
from listener.postgres import choose
from listener.postgres.choose import URL_VARIABLE, Way
from listener.postgres.cluster import Cluster, quiet
from listener.postgres.compose import Compose
from listener.postgres.home import Say, local_directory


@dataclass(frozen=True)
class Provided:
    url: str
    private: Cluster | Compose | None
    """What `db stop` would stop; None for DATABASE_URL."""


def existing(local: Path | None = None, *, say: Say) -> Cluster | Compose:
    """The private PostgreSQL of this project, whether or not it was ever started."""
    folder = local_directory(local)
    compose = Compose(folder / "docker", say=say)
    return compose if compose.exists else Cluster(folder / "postgres", say=say)


def provide(local: Path | None = None, *, say: Say) -> Provided:
    """Choose a PostgreSQL, say which, install what it lacks, start it, and return its URL."""
    url = os.environ.get(URL_VARIABLE)
    if url:
        _require_reachable(url)
        say(choose.decide(choose.Facts(database_url=url)).explanation)
        return Provided(url, None)
    private = existing(local, say=say)
    if isinstance(private, Cluster) and private.pid is not None:
        private.start(private.server)
        say(f"Already running: {private.server.label}.")
        return Provided(private.url(), private)
    if isinstance(private, Compose):
        private.start()
        say(f"Using {Way.DOCKER}, as before.")
        return Provided(private.url(), private)
    choice = choose.settle(say)
    say(choice.explanation)
    if choice.server is None:
        private = Compose(local_directory(local) / "docker", say=say)
        private.start()
    else:
        private.start(choice.server)
    return Provided(private.url(), private)


def named_url() -> str | None:
    """DATABASE_URL, also in .env; the environment wins."""
    return os.environ.get(URL_VARIABLE) or dotenv_values(".env").get(URL_VARIABLE) or None


def find_url() -> str:
    """The database of this project: the one that is named, else the private PostgreSQL."""
    return named_url() or existing(say=quiet).url()


def _require_reachable(url: str) -> None:
    try:
        psycopg.connect(url, connect_timeout=10).close()
    except psycopg.Error as error:
        raise UserError(
            f"{URL_VARIABLE} is set, but its database does not answer: {str(error).strip()}.",
            f"Correct it, or unset {URL_VARIABLE} to use a private PostgreSQL.",
        ) from error
