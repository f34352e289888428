"""Which PostgreSQL to use, and why not the ones before it. The decision is a pure function of what was observed."""

import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import StrEnum

from listener.errors import UserError
from listener.postgres import packages, wheel
from listener.postgres.home import Say
from listener.postgres.server import SEARCH_VARIABLE, Server, best, find

URL_VARIABLE = "DATABASE_URL"


class Way(StrEnum):
    """The ways to a PostgreSQL, the preferred first."""

    URL = f"the database that {URL_VARIABLE} names"
    INSTALLED = "an installed PostgreSQL with pg_cron"
    PACKAGES = "PostgreSQL and pg_cron from the distribution's packages"
    DOCKER = "Docker"
    BARE = "an installed PostgreSQL without pg_cron"
    WHEEL = "PostgreSQL from a Python wheel, without pg_cron"


@dataclass(frozen=True)
class Facts:
    """What was seen on this machine. The `*_obstacle` fields say what is in the way; None means nothing is."""

    database_url: str | None = None
    servers: tuple[Server, ...] = ()
    packages_obstacle: str | None = None
    docker_obstacle: str | None = None
    wheel_obstacle: str | None = None


@dataclass(frozen=True)
class Choice:
    way: Way
    server: Server | None = None
    """The programs for a private cluster; None for a URL and for Docker."""
    passed_over: tuple[tuple[Way, str], ...] = ()

    @property
    def explanation(self) -> str:
        taken = f"Using {self.way}" + (f": {self.server.label} in {self.server.bindir}." if self.server else ".")
        lines = [taken, *(f"  not {way}: {reason}" for way, reason in self.passed_over)]
        if self.way in (Way.BARE, Way.WHEEL):
            lines.append("  Without pg_cron a running listener fires the schedules.")
        return "\n".join(lines)


def decide(facts: Facts, failed: Mapping[Way, str] | None = None) -> Choice:
    """The first way nothing stands against; `failed` adds the ways that were tried in vain."""
    obstacles = _obstacles(facts) | dict(failed or {})
    passed_over: list[tuple[Way, str]] = []
    for way in Way:
        obstacle = obstacles[way]
        if obstacle is None:
            server = best(facts.servers) if way in (Way.INSTALLED, Way.BARE) else None
            return Choice(way, server, tuple(passed_over))
        passed_over.append((way, obstacle))
    reasons = "; ".join(f"{way}: {reason}" for way, reason in passed_over)
    raise UserError(
        f"No PostgreSQL to use. {reasons}.",
        f"Install PostgreSQL 14 or newer with pg_cron, or set {URL_VARIABLE}; if it is installed in an unusual "
        f"place, name its bin directory in {SEARCH_VARIABLE}.",
    )


def _obstacles(facts: Facts) -> dict[Way, str | None]:
    with_cron = any(server.cron for server in facts.servers)
    none_installed = None if facts.servers else "none found"
    lacking = none_installed or f"{facts.servers[0].label} is all there is"
    return {
        Way.URL: None if facts.database_url else f"{URL_VARIABLE} is not set",
        Way.INSTALLED: None if with_cron else lacking,
        Way.PACKAGES: facts.packages_obstacle,
        Way.DOCKER: facts.docker_obstacle,
        Way.BARE: none_installed,
        Way.WHEEL: facts.wheel_obstacle,
    }


def observe(*, ignore_url: bool = False) -> Facts:
    """Look around, changing nothing, and no further than the decision needs."""
    url = os.environ.get(URL_VARIABLE)
    if url and not ignore_url:
        return Facts(database_url=url)
    facts = Facts(servers=tuple(find()))
    if any(server.cron for server in facts.servers):
        return facts
    return replace(
        facts,
        packages_obstacle=_packages_obstacle(),
        docker_obstacle=_docker_obstacle(),
        wheel_obstacle=_wheel_obstacle(),
    )


def settle(say: Say, facts: Facts | None = None) -> Choice:
    """Decide and do what the decision needs; a way that fails is passed over, with the reason."""
    facts = facts or observe()
    failed: dict[Way, str] = {}
    while True:
        choice = decide(facts, failed)
        try:
            if choice.way is Way.PACKAGES:
                return replace(choice, server=_from_packages(say))
            if choice.way is Way.WHEEL:
                return replace(choice, server=wheel.install(say))
        except UserError as error:
            failed[choice.way] = str(error).rstrip(".")
        else:
            return choice


def _from_packages(say: Say) -> Server:
    server = best(packages.install(packages.root_prefix() or (), say))
    if server is None or server.cron is None:
        raise UserError("the packages were installed, but no PostgreSQL with pg_cron was found afterwards")
    return server


def _packages_obstacle() -> str | None:
    if SEARCH_VARIABLE in os.environ:
        return f"{SEARCH_VARIABLE} names the only places to look"
    if not packages.is_debian():
        return "this is not Debian or Ubuntu"
    return None if packages.root_prefix() is not None else "that needs root, or sudo without a password"


def _docker_obstacle() -> str | None:
    if shutil.which("docker") is None:
        return "the docker command is not installed"
    for question, complaint in (
        (["docker", "compose", "version"], "docker has no compose plugin"),
        (["docker", "info", "--format", "{{.ServerVersion}}"], "its engine does not answer"),
    ):
        try:
            asked = subprocess.run(question, capture_output=True, timeout=20, check=False)
        except subprocess.TimeoutExpired:
            return complaint
        if asked.returncode != 0:
            return complaint
    return None


def _wheel_obstacle() -> str | None:
    return None if sys.platform in ("linux", "darwin") else f"no wheel is used on {sys.platform}"
