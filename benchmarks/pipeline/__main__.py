"""`python -m benchmarks.pipeline`: reading websites, ours and the usual open tools in one run; a table, and JSON."""

import argparse
import json
import os
import platform
import statistics
import subprocess
import sys
import tempfile
import time
import venv
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from listener import __version__
from listener.cli.say import say
from listener.cli.table import table

HERE = Path(__file__).parent
ROOT = Path(__file__).parents[2]
OUTPUT = HERE.parent / "results" / "pipeline.json"
PEERS_PYTHON = ROOT / ".local" / "peers" / "pipeline" / "bin" / "python"
SITES, ROUNDS = 30, 3
PATIENCE = 300


@dataclass(frozen=True)
class Reader:
    name: str
    script: str
    package: str
    """What pip installs; empty for ours."""
    tasks: tuple[str, ...]


READERS = (
    Reader("scrapersky", "ours.py", "", ("pages", "sitemaps", "domains", "parse")),
    Reader("scrapy", "peer_scrapy.py", "scrapy", ("pages", "sitemaps", "domains")),
    Reader("extract-emails", "peer_extract_emails.py", "extract-emails[httpx]", ("pages", "domains", "parse")),
    Reader("ultimate-sitemap-parser", "peer_usp.py", "ultimate-sitemap-parser", ("sitemaps",)),
    Reader("extruct", "peer_extruct.py", "extruct", ("parse",)),
)
TASKS = {
    "pages": "pages a second: fetched, addresses taken",
    "sitemaps": "sites a second: sitemaps found and read, pages listed",
    "domains": "sites a second: from the root to the addresses on its pages",
    "parse": "pages a second: addresses taken from pages already there",
}


@dataclass
class Score:
    seconds: list[float] = field(default_factory=list)
    processor: list[float] = field(default_factory=list)
    memory_kb: int = 0
    found: int = 0
    invented: int = 0
    expected: int = 0

    def figures(self, count: int) -> dict[str, float | int]:
        return {
            "per_second": round(count / statistics.median(self.seconds), 2),
            "found_per_second": round(self.found / statistics.median(self.seconds), 1),
            "processor_ms_each": round(1000 * statistics.median(self.processor) / count, 2),
            "memory_mb": round(self.memory_kb / 1024),
            "found": self.found,
            "expected": self.expected,
            "invented": self.invented,
        }


@contextmanager
def served(sites: int) -> Iterator[Path]:
    """A process of its own for the town, so that no reader pays for it."""
    with tempfile.TemporaryDirectory(prefix="scrapersky-town-") as folder:
        path = Path(folder) / "town.json"
        town = subprocess.Popen(
            [sys.executable, "-m", "benchmarks.pipeline.town", str(sites), str(path)],
            cwd=ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        try:
            assert town.stdout is not None
            town.stdout.readline()
            yield path
        finally:
            town.communicate(timeout=10)


def install() -> dict[str, str]:
    """The peers' own environment, made by this command; name → version."""
    packages = [reader.package for reader in READERS if reader.package]
    if not PEERS_PYTHON.exists():
        say("Installing the peers (once) ...")
        venv.create(PEERS_PYTHON.parents[1], with_pip=True)
    _output([str(PEERS_PYTHON), "-m", "pip", "install", "-q", "--disable-pip-version-check", *packages])
    names = [package.partition("[")[0] for package in packages]
    script = "import importlib.metadata as m, json, sys; print(json.dumps({n: m.version(n) for n in sys.argv[1:]}))"
    versions: dict[str, str] = json.loads(_output([str(PEERS_PYTHON), "-c", script, *names]))
    return {"scrapersky": __version__, **versions}


def measure(reader: Reader, task: str, town: Path) -> dict[str, Any]:
    script = HERE / "adapters" / reader.script
    if not reader.package:
        command = [sys.executable, "-m", f"benchmarks.pipeline.adapters.{script.stem}"]
    else:
        command = [str(PEERS_PYTHON), str(script)]
    environment = {**os.environ, "NO_PROXY": "*", "no_proxy": "*"}
    report: dict[str, Any] = json.loads(_output([*command, task, str(town)], environment).splitlines()[-1])
    return report


def run(sites: int, rounds: int, tasks: list[str]) -> dict[str, Any]:
    versions = install()
    scores: dict[tuple[str, str], Score] = {}
    began = time.perf_counter()
    with served(sites) as path:
        town = json.loads(path.read_text("utf-8"))
        for number in range(rounds):
            for task in tasks:
                takers = [reader for reader in READERS if task in reader.tasks]
                turn = number % len(takers)  # nobody always follows the same neighbour
                for reader in [*takers[turn:], *takers[:turn]]:
                    say(f"Round {number + 1} of {rounds}: {task}, {reader.name}")
                    _add(scores.setdefault((task, reader.name), Score()), measure(reader, task, path), town, task)
    pages = sum(len(site["pages"]) for site in town["sites"])
    counts = {"pages": pages, "parse": pages, "sitemaps": sites, "domains": sites}
    return {
        "measured_at": datetime.now(UTC).isoformat(timespec="seconds"),
        "seconds": round(time.perf_counter() - began, 1),
        "sites": sites,
        "pages": pages,
        "rounds": rounds,
        "system": f"{platform.system()} {platform.machine()}",
        "cores": os.cpu_count(),
        "python": platform.python_version(),
        "versions": versions,
        "figures": {
            task: {name: score.figures(counts[task]) for (other, name), score in scores.items() if other == task}
            for task in tasks
        },
    }


def _add(score: Score, report: dict[str, Any], town: dict[str, Any], task: str) -> None:
    score.seconds.append(report["seconds"])
    score.processor.append(report["processor_seconds"])
    score.memory_kb = max(score.memory_kb, report["memory_kb"])
    expected = {site["domain"]: set(site["listed_pages" if task == "sitemaps" else "emails"]) for site in town["sites"]}
    found = {domain: set(values) for domain, values in report["found"].items()}
    score.expected = sum(map(len, expected.values()))
    score.found = sum(len(values & found.get(domain, set())) for domain, values in expected.items())
    score.invented = sum(len(values - expected.get(domain, set())) for domain, values in found.items())


def render(result: dict[str, Any]) -> str:
    lines: list[str] = []
    for task, readers in result["figures"].items():
        ours = readers["scrapersky"]["per_second"]
        rows = [
            (
                f"{name} {result['versions'][name]}",
                f"{one['per_second']:,.1f}",
                f"{ours / one['per_second']:.1f}",
                f"{one['found_per_second']:,.1f}",
                f"{one['processor_ms_each']:,.1f}",
                f"{one['memory_mb']}",
                f"{one['found']:,} of {one['expected']:,}",
                f"{one['invented']:,}",
            )
            for name, one in sorted(readers.items(), key=lambda pair: -pair[1]["per_second"])
        ]
        names = (TASKS[task], "/s", "ours is x", "right finds/s", "CPU ms each", "MB", "found", "invented")
        lines += [table(names, rows), ""]
    return "\n".join(lines)


def _output(command: list[str], environment: dict[str, str] | None = None) -> str:
    done = subprocess.run(
        command, capture_output=True, text=True, check=False, timeout=PATIENCE, env=environment, cwd=ROOT
    )
    if done.returncode:
        raise SystemExit(f"{' '.join(command[:4])} failed:\n{(done.stderr or done.stdout)[-2000:]}")
    return done.stdout


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.pipeline", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="a tiny run, to see that it works")
    parser.add_argument("--sites", type=int, default=SITES)
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    parser.add_argument("--tasks", default=",".join(TASKS), help="some of them, separated by commas")
    parser.add_argument("--output", type=Path, help=f"the JSON file (default: {OUTPUT}; with --quick none)")
    options = parser.parse_args()
    sites, rounds = (6, 1) if options.quick else (options.sites, options.rounds)
    result = run(sites, rounds, options.tasks.split(","))
    print(render(result))
    output: Path | None = options.output or (None if options.quick else OUTPUT)
    if output:
        output.parent.mkdir(parents=True, exist_ok=True)
        output.write_text(json.dumps(result, indent=2) + "\n", "utf-8")
        say(f"Written to {output}.")
    return 0


if __name__ == "__main__":
    sys.exit(main())
