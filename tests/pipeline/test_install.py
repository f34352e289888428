"""Setting up: with the pipeline or without, the first registration, and the schedules the environment asks for."""

import json
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any
from uuid import UUID

import psycopg
import pytest
from alembic import command
from dotenv import dotenv_values
from typer.testing import CliRunner

from listener import Workflow, cli, schema
from listener.discover import discover
from listener.errors import UserError
from listener.postgres.choose import URL_VARIABLE
from listener.seeds import Seed
from listener.settings import read
from listener.share import share
from services.settings import PipelineSettings
from tests.conftest import Connect
from tests.pipeline.rows import column, row
from tests.servers import Postgres

Run = Callable[..., str]

DEFAULTS = {
    "place_search": ("* * * * *", 10, 1),
    "deep_scan": ("*/5 * * * *", 10, 1),
    "domain_extraction": ("*/2 * * * *", 20, 1),
    "domain_metadata": ("* * * * *", 50, 3),
    "sitemap_analysis": ("* * * * *", 10, 1),
    "sitemap_import": ("* * * * *", 20, 1),
    "page_curation": ("* * * * *", 10, 1),
}
STORED = "SELECT name, schedule, batch_size, max_instances FROM scheduler.workflow"


def stored(db: psycopg.Connection) -> dict[str, tuple[Any, ...]]:
    return {name: settings for name, *rest in db.execute(STORED).fetchall() for settings in [tuple(rest)]}


PREFIXES = {"domain_metadata": "DOMAIN_SCHEDULER_", "sitemap_analysis": "DOMAIN_SITEMAP_SCHEDULER_"}
"""Where it is not the name of the workflow."""


def test_the_example_file_has_the_schedules_of_a_new_database(db: psycopg.Connection) -> None:
    example = {name: value for name, value in dotenv_values(share(".env.example")).items() if value}
    listed = {name: Seed.read(PREFIXES.get(name, f"{name.upper()}_SCHEDULER_"), example) for name in stored(db)}
    assert {n: (seed.schedule, seed.batch_size, seed.max_instances) for n, seed in listed.items()} == stored(db)
    user = PipelineSettings.model_fields["scheduler_system_user_id"].default
    assert user == UUID(example["SCHEDULER_SYSTEM_USER_ID"])


def test_the_retired_names_are_refused_with_both_of_their_successors(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SITEMAP_SCHEDULER_BATCH_SIZE", "5")
    with pytest.raises(UserError) as refused:
        read(discover(), env_file=None)
    successors = "DOMAIN_SITEMAP_SCHEDULER_BATCH_SIZE or SITEMAP_IMPORT_SCHEDULER_BATCH_SIZE"
    assert f"SITEMAP_SCHEDULER_BATCH_SIZE: is no longer used; set {successors}" in str(refused.value)


def test_a_system_user_that_is_no_uuid_is_refused_at_start(monkeypatch: pytest.MonkeyPatch) -> None:
    workflow = Workflow("deep_scan", dict, lambda _item, _tools: None, settings=PipelineSettings)
    monkeypatch.setenv("SCHEDULER_SYSTEM_USER_ID", "the scheduler")
    with pytest.raises(UserError, match="SCHEDULER_SYSTEM_USER_ID"):
        read({"deep_scan": workflow}, env_file=None)
    monkeypatch.setenv("SCHEDULER_SYSTEM_USER_ID", "0b62fd57-3b45-4f67-9f6c-0c1f7f0c7a11")
    own = read({"deep_scan": workflow}, env_file=None).own["deep_scan"]
    assert str(own.scheduler_system_user_id) == "0b62fd57-3b45-4f67-9f6c-0c1f7f0c7a11"


@pytest.fixture
def installed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Workflows as installed packages would bring them."""
    workflows = [
        Workflow("deep_scan", dict, lambda _item, _tools: None),
        Workflow("domain_metadata", dict, lambda _item, _tools: None, env_prefix="DOMAIN_SCHEDULER_"),
        Workflow("sitemap_import", dict, lambda _item, _tools: None, retired_env_prefixes=("SITEMAP_SCHEDULER_",)),
    ]
    monkeypatch.setattr("listener.discover.find", lambda: ({workflow.name: workflow for workflow in workflows}, []))


@pytest.fixture
def run(installed: None) -> Run:
    def invoke(url: str, *arguments: str, **environment: str) -> str:
        result = CliRunner().invoke(cli.app, list(arguments), env={URL_VARIABLE: url, **environment})
        if result.exception:
            raise result.exception
        return result.stdout

    return invoke


def test_a_new_database_has_the_seven_workflows_with_their_defaults(db: psycopg.Connection) -> None:
    assert stored(db) == DEFAULTS


def test_the_workflows_are_registered_in_an_order_that_no_planner_decides(db: psycopg.Connection) -> None:
    """PostgreSQL 18 joins them in another order than 14 did; here, a merge join brings them by name."""
    db.execute("SELECT scheduler.drop_workflow(name) FROM scheduler.workflow")
    db.execute("SET enable_hashjoin = off")
    db.execute("SET enable_nestloop = off")
    db.execute("SELECT scheduler.create_pipeline()")
    assert stored(db) == DEFAULTS


def test_the_words_of_the_workflows_are_those_of_their_columns(db: psycopg.Connection) -> None:
    words = "SELECT name, queued, processing, completed, failed FROM scheduler.workflow ORDER BY name"
    assert db.execute(words).fetchall() == [
        ("deep_scan", "Queued", "Processing", "Completed", "Error"),
        ("domain_extraction", "Queued", "Processing", "Completed", "Error"),
        ("domain_metadata", "pending", "processing", "completed", "error"),
        ("page_curation", "Queued", "Processing", "Complete", "Error"),
        ("place_search", "pending", "processing", "complete", "failed"),
        ("sitemap_analysis", "queued", "processing", "submitted", "failed"),
        ("sitemap_import", "Queued", "Processing", "Complete", "Error"),
    ]


def test_the_doctor_finds_nothing_wrong_with_a_new_pipeline(db: psycopg.Connection) -> None:
    found = db.execute("SELECT * FROM scheduler.doctor()").fetchall()
    assert [finding for finding in found if any(name in map(str, finding) for name in DEFAULTS)] == []


def test_a_workflow_that_was_dropped_stays_away_until_it_is_asked_for(database: str, db: psycopg.Connection) -> None:
    db.execute("SELECT scheduler.drop_workflow('deep_scan')")
    schema.migrate(database)
    assert "deep_scan" not in stored(db)
    assert column(db, "SELECT workflow FROM scheduler.create_pipeline()") == ["deep_scan"]
    assert stored(db) == DEFAULTS


def test_a_new_database_takes_its_schedules_from_the_environment(
    empty_database: str, connect: Connect, run: Run
) -> None:
    run(
        empty_database,
        "migrate",
        DEEP_SCAN_SCHEDULER_INTERVAL_MINUTES="10",
        DOMAIN_SCHEDULER_BATCH_SIZE="7",
        SITEMAP_IMPORT_SCHEDULER_MAX_INSTANCES="2",
    )
    now = stored(connect(url=empty_database))
    assert now == {
        **DEFAULTS,
        "deep_scan": ("*/10 * * * *", 10, 1),
        "domain_metadata": ("* * * * *", 7, 3),
        "sitemap_import": ("* * * * *", 20, 2),
    }


def test_after_that_the_database_is_the_truth_until_schedules_apply(
    database: str, db: psycopg.Connection, run: Run
) -> None:
    wanted = {"DEEP_SCAN_SCHEDULER_BATCH_SIZE": "33"}
    run(database, "migrate", **wanted)
    assert stored(db) == DEFAULTS
    shown = json.loads(run(database, "schedules", "show", "--json", **wanted))
    assert {line["name"]: line["environment_differs"] for line in shown if line["environment_differs"]} == {
        "deep_scan": "DEEP_SCAN_SCHEDULER_BATCH_SIZE=33"
    }
    run(database, "schedules", "apply", "--dry-run", **wanted)
    run(database, "schedules", "apply", "domain_metadata", **wanted)
    assert stored(db) == DEFAULTS
    applied = json.loads(run(database, "schedules", "apply", "--json", **wanted))
    assert [(line["setting"], line["before"], line["after"]) for line in applied] == [("batch_size", 10, 33)]
    assert stored(db)["deep_scan"] == ("*/5 * * * *", 33, 1)
    assert "has what the environment says" in run(database, "schedules", "apply", **wanted)
    with pytest.raises(UserError, match="no workflow no_such"):
        run(database, "schedules", "apply", "no_such")


IMPOSSIBLE = [
    ("DEEP_SCAN_SCHEDULER_INTERVAL_MINUTES", "7", "cannot be kept evenly"),
    ("DEEP_SCAN_SCHEDULER_BATCH_SIZE", "0", "DEEP_SCAN_SCHEDULER_BATCH_SIZE"),
    ("DOMAIN_SCHEDULER_MAX_INSTANCES", "many", "DOMAIN_SCHEDULER_MAX_INSTANCES"),
    ("SITEMAP_SCHEDULER_BATCH_SIZE", "5", "no longer used; set SITEMAP_IMPORT_SCHEDULER_BATCH_SIZE"),
]


def test_a_schedule_that_cannot_be_kept_stops_the_set_up_before_it_begins(
    empty_database: str, connect: Connect, run: Run
) -> None:
    for name, value, message in IMPOSSIBLE:
        with pytest.raises(UserError, match=message):
            run(empty_database, "migrate", **{name: value})
    assert row(connect(url=empty_database), "SELECT to_regnamespace('scheduler')") == (None,)


def tables(db: psycopg.Connection) -> int:
    return int(column(db, "SELECT count(*) FROM pg_tables WHERE schemaname = 'public'")[0])


def test_the_engine_can_be_had_alone_and_the_pipeline_later(empty_database: str, connect: Connect, run: Run) -> None:
    session = connect(url=empty_database)
    run(empty_database, "migrate", "--engine-only")
    assert tables(session) == 0
    assert schema.current(empty_database) == schema.head()
    assert stored(session) == {}
    run(empty_database, "migrate")
    assert tables(session) == 0, "a migration leaves the choice as it is"
    command.check(schema._config(empty_database))
    run(empty_database, "migrate", "--pipeline", DEEP_SCAN_SCHEDULER_BATCH_SIZE="5")
    assert tables(session) == 8
    assert stored(session)["deep_scan"] == ("*/5 * * * *", 5, 1)
    run(empty_database, "migrate", "--engine-only")
    assert tables(session) == 8, "nothing takes tables away by the way"
    command.check(schema._config(empty_database))


def test_psql_installs_the_engine_alone_too(
    empty_database: str, connect: Connect, postgres: Postgres, tmp_path: Path
) -> None:
    programs = postgres.server.programs
    psql = programs.program("psql") if programs else shutil.which("psql")
    if psql is None or not Path(psql).exists():
        pytest.skip("psql is not on this machine")
    script = str(share("sql", "install.sql"))
    done = subprocess.run(
        [psql, "-X", "-v", "pipeline=off", "-f", script, "-d", empty_database],
        capture_output=True,
        text=True,
        check=False,
        cwd=tmp_path,
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert tables(connect(url=empty_database)) == 0
    schema.migrate(empty_database)
    assert tables(connect(url=empty_database)) == 0
    schema.downgrade(empty_database, "base")
    schema.migrate(empty_database)
    assert tables(connect(url=empty_database)) == 8


def test_tables_of_someone_else_stop_the_pipeline_and_stay(empty_database: str, connect: Connect, run: Run) -> None:
    session = connect(url=empty_database)
    session.execute("CREATE TABLE contact (name text)")
    with pytest.raises(psycopg.errors.DuplicateTable, match="has contact already") as caught:
        run(empty_database, "migrate")
    assert "--engine-only" in str(caught.value.diag.message_hint)
    assert row(session, "SELECT to_regnamespace('scheduler')") == (None,)
    run(empty_database, "migrate", "--engine-only")
    assert tables(session) == 1


def test_taking_the_pipeline_away_takes_its_workflows_and_leaves_others(database: str, db: psycopg.Connection) -> None:
    db.execute("CREATE TABLE parcel (id bigint PRIMARY KEY, status text)")
    db.execute("SELECT scheduler.create_workflow('sorting', 'parcel', 'status')")
    schema.downgrade(database, "0001")
    assert column(db, "SELECT name FROM scheduler.workflow") == ["sorting"]
    assert tables(db) == 1
    left = (
        "SELECT proname FROM pg_proc WHERE pronamespace = 'scheduler'::regnamespace AND proname ~ '^(touch|sel|keep)'"
    )
    assert column(db, left) == []
