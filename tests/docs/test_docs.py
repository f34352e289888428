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
from tests.docs.pages import ROOT, Block, anchors, blocks, links, pages
from tests.listener.started import bench_on
from tests.servers import Postgres
from tests.sql.queue import one
from tests.waiting import PATIENCE, wait_until

QUICKSTART = ROOT / "docs" / "quickstart.md"


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
    table = (ROOT / "docs" / "sql.md").read_text().partition("<!-- begin workflow settings -->")[2]
    assert "|  |\n" not in table.partition("<!-- end")[0]


def runnable(page: Path) -> list[Block]:
    """Code below a line `<!-- run -->`."""
    marked = re.findall(r"^<!-- run -->\n```(\w+)\n(.*?)^```$", page.read_text(), re.MULTILINE | re.DOTALL)
    return [Block(page, kind, code) for kind, code in marked]


@pytest.mark.parametrize("page", [page for page in pages() if runnable(page) and page != QUICKSTART], ids=name_of)
def test_its_sql_runs_from_top_to_bottom(page: Path, db: psycopg.Connection) -> None:
    for block in runnable(page):
        assert block.kind == "sql"
        db.execute(block.code.encode())


@pytest.mark.slow
def test_the_quickstart_leads_from_nothing_to_ones_own_table_and_back(
    database: str, db: psycopg.Connection, tmp_path: Path
) -> None:
    register, preview, grants, repair, back = [block.code.encode() for block in runnable(QUICKSTART)]
    (name, code), *_ = re.findall(
        r"^<!-- file (\S+) -->\n```python\n(.*?)^```$", QUICKSTART.read_text(), re.MULTILINE | re.DOTALL
    )
    (entry,) = (tomllib.loads(block.code) for block in blocks(QUICKSTART) if block.kind == "toml")
    ((workflow, target),) = entry["project"]["entry-points"]["scrapersky.workflows"].items()
    db.execute(register)
    assert len(db.execute(preview).fetchall()) == 5
    db.execute(grants)
    with bench_on(database, tmp_path) as bench:
        (tmp_path / name).write_text(code)
        listener = bench.start(entries=(f"{workflow} = {target}",))
        db.execute("SELECT scheduler.dispatch('letters')")
        end = ["Completed", "Completed", "Failed", "Completed", "Completed", None, None, None]
        wait_until(lambda: list(bench.statuses("letter").values()) == end, PATIENCE, listener.log())
        assert one(db, "SELECT count(*) FROM sent") == 4
        assert "dead letter" in one(db, "SELECT scheduler.why('letters', 3)")
        assert listener.stop() == 0
    db.execute(repair)
    assert one(db, "SELECT status FROM letter WHERE id = 3") == "Queued"
    db.execute(back)
    assert one(db, "SELECT count(*) FROM scheduler.workflow") == 0


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
