"""Taking over the old system: look without touching, adopt one workflow, drain it, and go back."""

import os
from pathlib import Path
from typing import Any

import psycopg
import pytest
import typer
from psycopg import sql
from typer.testing import CliRunner

from listener.errors import UserError
from services import legacy
from services.legacy_command import adopt_legacy
from tests.conftest import Connect
from tests.listener.started import bench_on
from tests.sql.queue import one
from tests.waiting import PATIENCE, wait_until

NAMES = [old.name for old in legacy.OLD]
TABLES = sorted({old.table for old in legacy.OLD})


@pytest.fixture
def db(connect: Connect) -> psycopg.Connection:
    """A database as the old system left it, with the engine beside it."""
    session = connect()
    session.execute((Path(__file__).parent / "legacy.sql").read_bytes())
    return session


def rows_of(db: psycopg.Connection) -> dict[str, list[Any]]:
    return {
        table: db.execute(sql.SQL("SELECT t::text FROM {} AS t ORDER BY id").format(sql.Identifier(table))).fetchall()
        for table in TABLES
    }


def shape_of(db: psycopg.Connection) -> list[Any]:
    """Everything a way back must restore: indexes, triggers, grants."""
    return db.execute(
        "SELECT c.relname, coalesce(c.relacl, acldefault('r', c.relowner))::text,"
        " (SELECT array_agg(a.attacl::text ORDER BY a.attnum) FROM pg_attribute AS a"
        "  WHERE a.attrelid = c.oid), (SELECT array_agg(i.indexrelid::regclass::text ORDER BY 1) FROM pg_index AS i"
        "  WHERE i.indrelid = c.oid), (SELECT array_agg(t.tgname ORDER BY 1) FROM pg_trigger AS t"
        "  WHERE t.tgrelid = c.oid AND NOT t.tgisinternal)"
        " FROM pg_class AS c WHERE c.relnamespace = 'public'::regnamespace AND c.relkind = 'r' ORDER BY 1"
    ).fetchall()


def counts(db: psycopg.Connection, old: legacy.Old) -> dict[str | None, int]:
    query = sql.SQL("SELECT {}::text, count(*) FROM {} GROUP BY 1")
    return dict(db.execute(query.format(sql.Identifier(old.status), sql.Identifier(old.table))).fetchall())


def drain(db: psycopg.Connection, workflow: str) -> list[str]:
    """The smallest listener: the keys it finished, in order."""
    db.execute("CREATE TABLE IF NOT EXISTS effect (workflow text, key text)")
    finished: list[str] = []
    while True:
        row = db.execute("SELECT run, keys FROM scheduler.claim(%s)", [workflow]).fetchone()
        assert row is not None
        run, keys = row
        if run is None:
            db.execute("SELECT scheduler.dispatch(%s)", [workflow])
            row = db.execute("SELECT run, keys FROM scheduler.claim(%s)", [workflow]).fetchone()
            assert row is not None
            run, keys = row
        if run is None:
            return finished
        with db.transaction():
            db.execute("SELECT scheduler.succeed(%s, %s)", [run, keys])
            db.execute("INSERT INTO effect SELECT %s, unnest(%s::text[])", [workflow, keys])
        finished += keys


def test_looking_changes_nothing_and_needs_no_engine(empty_database: str, connect: Connect) -> None:
    session = connect(url=empty_database)
    session.execute((Path(__file__).parent / "legacy.sql").read_bytes())
    before = rows_of(session), shape_of(session)
    shadows = [legacy.look(empty_database, old) for old in legacy.OLD]
    assert [shadow.problem for shadow in shadows] == [""] * 6
    assert [(s.queued, s.zombies, s.young, s.failed) for s in shadows] == [(4, 2, 1, 1)] * 6
    assert [s.ready for s in shadows] == [3, 3, 0, 3, 3, 3]
    assert (rows_of(session), shape_of(session)) == before


def test_looking_waits_for_nobody_who_writes(database: str, db: psycopg.Connection, connect: Connect) -> None:
    writer = connect(autocommit=False)
    writer.execute("UPDATE places_staging SET name = 'being written'")
    assert legacy.look(database, legacy.named("deep_scan")).queued == 4


def test_shadow_mode_shows_what_the_first_dispatch_then_queues(database: str, db: psycopg.Connection) -> None:
    for old in legacy.OLD:
        shadow = legacy.look(database, old)
        # with zombies not queued yet, the room is the same as in the shadow
        legacy.adopt(database, old, zombie_minutes=10**6)
        preview = db.execute("SELECT key FROM scheduler.preview(%s)", [f"legacy_{old.name}"]).fetchall()
        assert [(key,) for key in shadow.next_keys] == preview


def test_all_six_queues_drain_with_nothing_lost_or_done_twice(database: str, db: psycopg.Connection) -> None:
    for old in legacy.OLD:
        facts = legacy.adopt(database, old)
        assert "2 zombies" in facts[-2]
        assert facts[-1] == "left alone, changed less than 15 minutes ago: 1; adopt once more, later"
        drain(db, f"legacy_{old.name}")
    assert one(db, "SELECT count(*) FROM (SELECT FROM effect GROUP BY workflow, key HAVING count(*) > 1) AS twice") == 0
    done: dict[str, int] = dict(db.execute("SELECT workflow, count(*) FROM effect GROUP BY 1").fetchall())
    # 4 waiting and 2 zombies; 3 selected where selecting is what makes a row ready
    assert done == {f"legacy_{old.name}": 9 if old.ready else 6 for old in legacy.OLD}
    for old in legacy.OLD:
        left = counts(db, old)
        words = {word.lower(): many for word, many in left.items() if word}
        assert words["processing"] == 1, "only what the old system may still be at work on"
        assert not {"queued", "pending"} & set(words) or old.name == "sitemap_analysis"


@pytest.mark.slow
def test_two_real_listeners_drain_all_six_queues_once_and_the_way_back_works(
    database: str, db: psycopg.Connection, tmp_path: Path
) -> None:
    names = [f"legacy_{old.name}" for old in legacy.OLD]
    db.execute("CREATE TABLE did (workflow text NOT NULL, key text NOT NULL)")
    db.execute("GRANT INSERT ON did TO scheduler_listener")
    with bench_on(database, tmp_path) as bench:
        before = shape_of(db)
        for old in legacy.OLD:
            assert "2 zombies" in legacy.adopt(database, old)[-2]
        entries = [f"{name} = tests.legacy.workflows:{name}" for name in names]
        listeners = [bench.start(entries=entries) for _ in range(2)]
        # 4 waiting, 2 zombies, and 3 selected where selecting is what makes a row ready
        expected = {f"legacy_{old.name}": 9 if old.ready else 6 for old in legacy.OLD}

        def drained() -> bool:
            db.execute("SELECT scheduler.dispatch(w.name) FROM scheduler.workflow AS w")
            return dict(db.execute("SELECT workflow, count(*) FROM did GROUP BY 1").fetchall()) == expected

        wait_until(drained, PATIENCE, "all six queues to drain")
        assert [listener.stop() for listener in listeners] == [0, 0]
    assert one(db, "SELECT count(*) - count(DISTINCT (workflow, key)) FROM did") == 0, "something was done twice"
    assert one(db, "SELECT sum(queued + processing + waiting) FROM scheduler.queue_depth") == 0
    for old in legacy.OLD:
        db.execute(legacy.way_back(f"legacy_{old.name}").encode())
    assert shape_of(db) == before


def test_the_one_that_was_still_running_is_found_when_it_turns_out_to_be_a_zombie(
    database: str, db: psycopg.Connection
) -> None:
    old = legacy.named("deep_scan")
    legacy.adopt(database, old)
    drain(db, "legacy_deep_scan")
    again = legacy.adopt(database, old, zombie_minutes=0)
    assert again == ["workflow legacy_deep_scan is adopted already", "1 zombies in 'Processing' queued again"]
    assert len(drain(db, "legacy_deep_scan")) == 1


def test_a_running_item_of_ours_is_no_zombie(database: str, db: psycopg.Connection) -> None:
    old = legacy.named("deep_scan")
    legacy.adopt(database, old)
    keys = one(db, "SELECT keys FROM scheduler.claim('legacy_deep_scan')")
    legacy.adopt(database, old, zombie_minutes=0)
    mine = db.execute(
        "SELECT DISTINCT deep_scan_status::text FROM places_staging WHERE id::text = ANY (%s)", [keys]
    ).fetchall()
    assert mine == [("Processing",)]


@pytest.mark.parametrize("busy", [False, True], ids=["idle", "with a run open"])
def test_one_statement_brings_the_old_tables_back(database: str, db: psycopg.Connection, busy: bool) -> None:
    before = shape_of(db)
    for old in legacy.OLD:
        legacy.adopt(database, old)
    if busy:
        db.execute("SELECT scheduler.claim('legacy_deep_scan')")
    for old in legacy.OLD:
        db.execute(legacy.way_back(f"legacy_{old.name}").encode())
    assert shape_of(db) == before
    assert counts(db, legacy.named("deep_scan"))["Queued"] == 6, "what the old scheduler finds when it starts again"
    assert one(db, "SELECT count(*) FROM scheduler.workflow") == 0


def test_adopted_but_paused_nothing_runs(database: str, db: psycopg.Connection) -> None:
    legacy.adopt(database, legacy.named("page_curation"), paused=True)
    assert one(db, "SELECT run FROM scheduler.claim('legacy_page_curation')") is None
    assert one(db, "SELECT state FROM scheduler.status") == "paused"


@pytest.mark.parametrize(
    ("damage", "said", "hint"),
    [
        ("DROP TABLE pages", "no table pages", "--schema"),
        ("ALTER TABLE pages DROP COLUMN page_processing_error", "no column page_processing_error", "ADD COLUMN"),
        ("ALTER TABLE pages DROP CONSTRAINT pages_pkey", "no primary key", "ADD PRIMARY KEY"),
        ("ALTER TYPE page_processing_status RENAME VALUE 'Complete' TO 'Finito'", "no word for completed", "ADD VALUE"),
        ("ALTER TABLE pages DROP COLUMN page_curation_status", "page_curation_status", ""),
    ],
)
def test_a_table_that_does_not_fit_is_named_and_left_alone(
    database: str, db: psycopg.Connection, damage: str, said: str, hint: str
) -> None:
    db.execute(damage.encode())
    before = shape_of(db)
    shadow = legacy.look(database, legacy.named("page_curation"))
    assert said in shadow.problem
    assert hint in shadow.hint
    with pytest.raises(UserError, match=said):
        legacy.adopt(database, legacy.named("page_curation"))
    assert shape_of(db) == before


def test_a_name_that_is_taken_by_another_table_is_refused(database: str, db: psycopg.Connection) -> None:
    legacy.adopt(database, legacy.named("domain_metadata"), prefix="x_")
    db.execute("UPDATE scheduler.workflow SET relation = 'pages'")
    with pytest.raises(UserError, match="another table") as refusal:
        legacy.adopt(database, legacy.named("domain_metadata"), prefix="x_")
    assert "--prefix" in refusal.value.hint


def test_without_the_engine_adopting_names_the_step_that_is_missing(empty_database: str) -> None:
    with pytest.raises(UserError) as refusal:
        legacy.adopt(empty_database, legacy.named("deep_scan"))
    assert "scrapersky migrate" in refusal.value.hint


def test_nobody_queues_up_behind_us_while_we_wait_for_a_lock(
    database: str, db: psycopg.Connection, connect: Connect, monkeypatch: pytest.MonkeyPatch
) -> None:
    writer = connect(autocommit=False)
    writer.execute("LOCK TABLE pages IN ACCESS EXCLUSIVE MODE")
    monkeypatch.setattr(legacy, "_LOCK_SECONDS", 0.05)
    with pytest.raises(UserError, match="locked"):
        legacy.adopt(database, legacy.named("page_curation"))
    assert one(db, "SELECT count(*) FROM scheduler.workflow") == 0


def test_the_command_shows_adopts_and_prints_the_way_back(
    database: str, db: psycopg.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    app = typer.Typer()
    app.command()(adopt_legacy)
    monkeypatch.setitem(os.environ, "DATABASE_URL", database)
    runner = CliRunner()
    shown = runner.invoke(app, [])
    assert shown.exit_code == 0, shown.output
    assert all(name in shown.output for name in NAMES)
    assert one(db, "SELECT count(*) FROM scheduler.workflow") == 0
    everything = runner.invoke(app, ["--apply"])
    assert isinstance(everything.exception, UserError)
    adopted = runner.invoke(app, ["--workflow", "deep_scan", "--apply"])
    assert adopted.exit_code == 0, adopted.output
    after = runner.invoke(app, []).output
    assert [line.split()[0] for line in after.splitlines() if "legacy_" in line] == ["deep_scan"]
    back = next(line for line in adopted.output.splitlines() if line.startswith("SELECT scheduler.drop_workflow"))
    db.execute(back.encode())
    assert one(db, "SELECT count(*) FROM scheduler.workflow") == 0
