"""Finding PostgreSQL server programs on this machine, and whether pg_cron is installed beside them."""

import os
import re
import shutil
import subprocess
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

MINIMUM_MAJOR = 14
SEARCH_VARIABLE = "SCRAPERSKY_PG_BIN"
NEEDED = ("postgres", "initdb", "pg_ctl", "psql")

Ask = Callable[[Path, str], str]
"""Runs a program with one option and returns what it prints; empty if it fails."""

_PATTERNS = (
    "/usr/lib/postgresql/*/bin",  # Debian, Ubuntu
    "/usr/pgsql-*/bin",  # PGDG packages on RPM systems
    "/usr/lib64/pgsql/bin",
    "/usr/libexec/postgresql*",  # Alpine
    "/usr/local/pgsql/bin",
    "/usr/local/lib/postgresql/bin",
    "/opt/homebrew/opt/postgresql*/bin",
    "/usr/local/opt/postgresql*/bin",
    "/Applications/Postgres.app/Contents/Versions/*/bin",
)


@dataclass(frozen=True)
class Server:
    """One installed PostgreSQL."""

    bindir: Path
    version: str
    cron: str | None
    """The version of pg_cron that CREATE EXTENSION would give, or None."""
    plpgsql_check: bool = False
    from_wheel: bool = False

    @property
    def major(self) -> int:
        return major_of(self.version)

    @property
    def label(self) -> str:
        return f"PostgreSQL {self.version}" + (f" with pg_cron {self.cron}" if self.cron else " without pg_cron")

    def program(self, name: str) -> Path:
        return self.bindir / name


def search_path() -> list[Path]:
    """Directories that may hold a server. SCRAPERSKY_PG_BIN replaces them all."""
    named = os.environ.get(SEARCH_VARIABLE)
    if named is not None:
        return [Path(entry) for entry in named.split(os.pathsep) if entry]
    found = [path for pattern in _PATTERNS for path in sorted(Path("/").glob(pattern.lstrip("/")))]
    found += [Path(entry) for entry in os.environ.get("PATH", "").split(os.pathsep) if entry]
    pg_config = shutil.which("pg_config")
    if pg_config and (bindir := ask(Path(pg_config), "--bindir")):
        found.append(Path(bindir))
    return found


def find(directories: Iterable[Path] | None = None) -> list[Server]:
    """Every usable server, the newest first."""
    servers: dict[Path, Server] = {}
    for directory in search_path() if directories is None else directories:
        server = inspect(directory)
        if server is not None and server.major >= MINIMUM_MAJOR:
            # /usr/bin/postgres is often a link into the versioned directory
            servers.setdefault(server.program("postgres").resolve(), server)
    return sorted(servers.values(), key=lambda server: _numbers(server.version), reverse=True)


def best(servers: Sequence[Server]) -> Server | None:
    """The newest server that has pg_cron, else the newest."""
    return next((server for server in servers if server.cron), servers[0] if servers else None)


def ask(program: Path, question: str) -> str:
    try:
        result = subprocess.run([program, question], capture_output=True, text=True, timeout=10, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return result.stdout.strip() if result.returncode == 0 else ""


def inspect(bindir: Path, *, from_wheel: bool = False, ask: Ask = ask) -> Server | None:
    """The server in this directory, if it is a whole one that runs."""
    if not all(os.access(bindir / name, os.X_OK) for name in NEEDED):
        return None
    version = re.search(r"\(PostgreSQL\) (\d+\S*)", ask(bindir / "postgres", "--version"))
    if version is None:
        return None
    extensions, libraries = _folders(bindir, major_of(version[1]), ask)
    return Server(
        bindir=bindir,
        version=version[1],
        cron=_extension("pg_cron", extensions, libraries),
        plpgsql_check=_extension("plpgsql_check", extensions, libraries) is not None,
        from_wheel=from_wheel,
    )


def _folders(bindir: Path, major: int, ask: Ask) -> tuple[list[Path], list[Path]]:
    """Where this server looks for extension scripts and for their libraries."""
    pg_config = bindir / "pg_config"
    if os.access(pg_config, os.X_OK):
        shared, libraries = ask(pg_config, "--sharedir"), ask(pg_config, "--pkglibdir")
        if shared and libraries:
            return [Path(shared) / "extension"], [Path(libraries)]
    # Some distributions ship pg_config only with the headers.
    root = bindir.parent
    shares = [root / "share" / "postgresql", root / "share", Path(f"/usr/share/postgresql/{major}")]
    return [path / "extension" for path in shares], [root / "lib", root / "lib" / "postgresql"]


def _extension(name: str, extensions: Sequence[Path], libraries: Sequence[Path]) -> str | None:
    built = any((folder / f"{name}{ending}").exists() for folder in libraries for ending in (".so", ".dylib"))
    for folder in extensions:
        control = folder / f"{name}.control"
        if built and control.is_file():
            version = re.search(r"^default_version\s*=\s*'([^']+)'", control.read_text(), re.MULTILINE)
            return version[1] if version else "unknown"
    return None


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(number) for number in re.findall(r"\d+", version))


def major_of(version: str) -> int:
    return _numbers(version)[0]
