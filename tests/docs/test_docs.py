"""The documentation is true: its links lead somewhere, its code runs, its reference is today's."""

import ast
import json
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import psycopg
import pytest
import yaml

from docs import reference
from tests.conftest import migrated
from tests.docs.pages import LITERAL, ROOT, anchors, blocks, links, pages, runnable
from tests.servers import Postgres


def name_of(page: Path) -> str:
    return str(page.relative_to(ROOT))


@pytest.mark.parametrize("page", pages(), ids=name_of)
def test_its_links_lead_somewhere(page: Path) -> None:
    broken = []
    for link in links(page):
        if re.match(r"[a-z]+:", link):
            continue
        path, _, section = link.partition("#")
        target = (page.parent / path).resolve() if path else page
        if not target.exists() or (section and section not in anchors(target)):
            broken.append(link)
    assert broken == []


@pytest.mark.parametrize("page", pages(), ids=name_of)
def test_its_code_can_at_least_be_read(page: Path) -> None:
    for block in blocks(page):
        match block.kind:
            case "python":
                ast.parse(block.code)
            case "json":
                json.loads(block.code)
            case "toml":
                tomllib.loads(block.code)
            case "yaml":
                list(yaml.safe_load_all(block.code))
            case "sh":
                subprocess.run(["bash", "-n"], input=block.code, text=True, check=True)
            case kind:
                assert kind in {"console", "sql", "text"}, f"say what this is: {block.code[:60]}"


def test_the_reference_is_todays(postgres: Postgres) -> None:
    with migrated(postgres, pipeline=True) as name:
        written = reference.write(postgres.url(name))
    stale = [name_of(path) for path, text in written.items() if path.read_text() != text]
    assert stale == [], "run `make reference`"


def test_every_function_and_setting_has_words_of_its_own(db: psycopg.Connection) -> None:
    silent = db.execute(
        "SELECT oid::regprocedure::text FROM pg_proc WHERE pronamespace = 'scheduler'::regnamespace"
        " AND obj_description(oid, 'pg_proc') IS NULL"
    ).fetchall()
    assert silent == []
    for page in ("sql", "settings"):
        wordless = [line for line in (ROOT / "docs" / f"{page}.md").read_text().splitlines() if line.endswith("|  |")]
        assert wordless == [], page


@pytest.mark.parametrize("page", [page for page in pages() if runnable(page) and page not in LITERAL], ids=name_of)
def test_its_sql_runs_from_top_to_bottom(page: Path, db: psycopg.Connection) -> None:
    for block in runnable(page):
        assert block.kind == "sql"
        db.execute(block.code.encode())


def test_the_runbook_has_what_is_asked_for_at_night() -> None:
    _, *sections = (ROOT / "docs" / "runbook.md").read_text().split("\n## ")
    titles = [section.splitlines()[0] for section in sections]
    assert titles == [
        *(
            "Queue growing",
            "Listener down",
            "Scheduler silent",
            "The doctor finds something",
            "Poison item",
            "Disk full",
            "Failover",
            "Upgrade",
            "Drain",
        )
    ]
    for section in sections:
        for part in ("**Means:**", "<!-- run -->\n```sql", "**Safe:**", "**Unsafe:**"):
            assert part in section, f"{section.splitlines()[0]}: no {part}"


def test_the_site_can_be_built(tmp_path: Path) -> None:
    pytest.importorskip("zensical", reason="the generator is in the optional group `docs`: make docs")
    shutil.copy(ROOT / "mkdocs.yml", tmp_path)
    shutil.copytree(ROOT / "docs", tmp_path / "docs")
    built = subprocess.run(
        [sys.executable, "-m", "zensical", "build", "--strict"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert built.returncode == 0, built.stdout + built.stderr
    site = tmp_path / "build" / "site"
    assert (site / "runbook.html").exists()
    assert not list(site.rglob("*.py"))
