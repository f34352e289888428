"""Where the figures come from: without it nobody can compare them."""

import os
import platform
from pathlib import Path

import psycopg

SETTINGS = ("fsync", "synchronous_commit", "full_page_writes", "wal_level", "shared_buffers", "autovacuum", "jit")


def describe(db: psycopg.Connection) -> dict[str, str | int | float]:
    facts: dict[str, str | int | float] = {
        "server": db.execute("SELECT current_setting('server_version')").fetchall()[0][0],
        "system": f"{platform.system()} {platform.release()} {platform.machine()}",
        "processor": _processor(),
        "cores": os.cpu_count() or 0,
        "memory_gb": round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30, 1),
        "python": platform.python_version(),
        "psycopg": psycopg.__version__,
    }
    for name in SETTINGS:
        facts[f"setting_{name}"] = db.execute("SELECT current_setting(%s)", [name]).fetchall()[0][0]
    return facts


def _processor() -> str:
    """On Linux platform.processor() is empty or only repeats the architecture."""
    source = Path("/proc/cpuinfo")
    lines = source.read_text("utf-8").splitlines() if source.exists() else []
    names = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(names, platform.processor() or "unknown")
