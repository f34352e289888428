"""Installing, upgrading and removing the engine: with Alembic, with psql, and with the command line."""

import importlib.machinery
import io
import logging
import os
import re
import shutil
import subprocess
import sys
import types
from collections.abc import Callable, Iterator
from pathlib import Path

import psycopg
import pytest
from alembic import command
from alembic.script import ScriptDirectory
from alembic.util import CommandError
from psycopg import conninfo, sql
from sqlalchemy import Column, Integer, MetaData, Table, Text
from typer.testing import CliRunner

from listener import cli, schema
from listener.errors import UserError
from listener.postgres.choose import URL_VARIABLE
from listener.share import share
from tests.conftest import Connect, migrated
from tests.servers import Postgres, program_of
from tests.waiting import PATIENCE, wait_until

REVISIONS = [script.revision for script in ScriptDirectory.from_config(schema._config()).walk_revisions()]
TURN = "SELECT pg_advisory_xact_lock(hashtext('scrapersky migrate'))"

Program = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture(scope="module")
def template(postgres: Postgres) -> Iterator[str]:
    """Everything there is, not the engine alone."""
    with migrated(postgres, pipeline=True) as name:
        yield name


@pytest.fixture
def program(postgres: Postgres, tmp_path: Path) -> Program:
    """Runs psql or pg_dump of the server under test, from another directory than the project's."""

    def run(name: str, *arguments: str | Path) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [program_of(postgres.server, name), *arguments], capture_output=True, text=True, check=False, cwd=tmp_path
        )

    return run


@pytest.fixture
def dump(program: Program) -> Callable[[str], str]:
    """The schema as pg_dump sees it: owners, rights and comments included."""

    def take(url: str) -> str:
        done = program("pg_dump", "--schema-only", "--schema=scheduler", "--schema=public", "-d", url)
        assert done.returncode == 0, done.stderr
        # a random word in each dump, against injection into psql
        return re.sub(r"^\\(un)?restrict .*$", "", done.stdout, flags=re.MULTILINE)

    return take


@pytest.fixture
def install(program: Program) -> Callable[[str], subprocess.CompletedProcess[str]]:
    return lambda url: program("psql", "-X", "-f", share("sql", "install.sql"), "-d", url)


@pytest.fixture
def fresh(database: str, dump: Callable[[str], str]) -> str:
    """The dump of a database that was migrated from nothing to head."""
    return dump(database)


class Project:
    """A copy of sql/ and alembic/ that a test can change and that takes the place of ours."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        for name in ("sql", "alembic"):
            shutil.copytree(share(name), folder / name)
        shutil.copy(share("alembic.ini"), folder)

    def add_file(self, text: str) -> None:
        """One more repeatable file."""
        (self.folder / "sql" / "extra.sql").write_text(text)
        install = self.folder / "sql" / "install.sql"
        install.write_text(install.read_text().replace("COMMIT;", "\\ir extra.sql\nCOMMIT;"))

    def add_revision(self, up: str, down: str = "", after: str = REVISIONS[0]) -> str:
        revision = f"after_{after}"
        (self.folder / "alembic" / "versions" / f"{revision}.py").write_text(
            f"from alembic import op\nrevision = {revision!r}\ndown_revision = {after!r}\n"
            f"def upgrade():\n    op.execute({up!r})\ndef downgrade():\n    op.execute({down!r})\n"
        )
        return revision


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Project:
    copy = Project(tmp_path)
    monkeypatch.setattr("listener.share._PACKAGE", tmp_path / "listener")
    return copy


def exists(session: psycopg.Connection, function: str) -> bool:
    row = session.execute("SELECT to_regproc(%s) IS NOT NULL", [f"scheduler.{function}"]).fetchone()
    return row == (True,)


def leftovers(session: psycopg.Connection) -> set[str]:
    """Everything in the schema but the version table and what belongs to it."""
    rows = session.execute(
        """
        SELECT relname FROM pg_class WHERE relnamespace = 'scheduler'::regnamespace
        UNION SELECT proname FROM pg_proc WHERE pronamespace = 'scheduler'::regnamespace
        UNION SELECT typname FROM pg_type WHERE typnamespace = 'scheduler'::regnamespace
        """
    ).fetchall()
    return {str(name) for (name,) in rows} - {"schema_version", "_schema_version", "schema_version_pkc"}


def test_a_new_database_gets_the_newest_revision(empty_database: str, connect: Connect) -> None:
    assert schema.current(empty_database) is None
    schema.migrate(empty_database)
    assert schema.current(empty_database) == schema.head() == REVISIONS[0]
    assert exists(connect(url=empty_database), "doorbell")


def test_alembic_and_psql_give_the_same_schema(
    empty_database: str, fresh: str, install: Program, dump: Callable[[str], str]
) -> None:
    done = install(empty_database)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert dump(empty_database) == fresh
    assert schema.current(empty_database) == schema.head(), "sql/install.sql stamps an old revision"


def test_what_psql_installed_can_be_migrated(
    empty_database: str, fresh: str, install: Program, dump: Callable[[str], str]
) -> None:
    install(empty_database)
    schema.migrate(empty_database)
    assert dump(empty_database) == fresh


def test_installing_twice_with_psql_says_how_to_upgrade(database: str, install: Program) -> None:
    done = install(database)
    assert done.returncode != 0
    assert "installed" in done.stderr
    assert "scrapersky migrate" in done.stderr
    assert "alembic upgrade head" in done.stderr


def test_every_repeatable_file_is_listed_in_install_sql() -> None:
    once = {"install.sql", "roles.sql"} | {f"engine/{n}.sql" for n in ("schema", "version", "tables", "leave", "drop")}
    once |= {f"pipeline/{n}.sql" for n in ("tables", "leave", "drop")}
    folder = share("sql")
    written = {
        str(path.relative_to(folder))
        for part in (".", "engine", "monitoring", "pipeline")
        for path in folder.glob(f"{part}/*.sql")
    }
    assert written == once | set(schema.repeatables())


@pytest.mark.parametrize("revision", REVISIONS)
def test_a_database_of_any_age_ends_up_like_a_new_one(
    revision: str, empty_database: str, fresh: str, dump: Callable[[str], str]
) -> None:
    schema.migrate(empty_database, revision)
    assert schema.current(empty_database) == revision
    schema.migrate(empty_database)
    assert dump(empty_database) == fresh


@pytest.mark.parametrize("steps", ["-1", "base"])
@pytest.mark.slow
def test_down_and_up_again_changes_nothing(
    steps: str, empty_database: str, fresh: str, dump: Callable[[str], str]
) -> None:
    schema.migrate(empty_database)
    schema.downgrade(empty_database, steps)
    schema.migrate(empty_database)
    assert dump(empty_database) == fresh


def test_base_leaves_only_the_empty_version_table(database: str, connect: Connect) -> None:
    schema.downgrade(database, "base")
    session = connect(url=database)
    assert leftovers(session) == set()
    assert session.execute("SELECT count(*) FROM scheduler.schema_version").fetchone() == (0,)
    assert schema.current(database) is None


def test_psql_installs_again_after_base(
    database: str, fresh: str, install: Program, dump: Callable[[str], str]
) -> None:
    schema.downgrade(database, "base")
    assert install(database).returncode == 0
    assert dump(database) == fresh


def test_migrating_again_undoes_what_was_changed_by_hand(
    database: str, db: psycopg.Connection, fresh: str, dump: Callable[[str], str]
) -> None:
    db.execute(
        "CREATE OR REPLACE FUNCTION scheduler.redact(message text) RETURNS text LANGUAGE sql AS 'SELECT 1::text'"
    )
    db.execute("CREATE FUNCTION scheduler.obsolete() RETURNS void LANGUAGE sql AS ''")
    db.execute("CREATE PROCEDURE scheduler.obsolete(integer) LANGUAGE sql AS ''")
    db.execute("CREATE AGGREGATE scheduler.obsolete(text) (SFUNC = textcat, STYPE = text)")
    db.execute("CREATE TYPE scheduler.obsolete_word AS ENUM ('a')")
    db.execute(
        "CREATE DOMAIN scheduler.obsolete_domain AS scheduler.obsolete_word CHECK (scheduler.redact(VALUE::text) > '')"
    )
    db.execute("CREATE TYPE scheduler.obsolete_range AS RANGE (SUBTYPE = integer)")
    db.execute(
        "CREATE VIEW scheduler.obsolete_view AS SELECT 'a'::scheduler.obsolete_word AS word, scheduler.obsolete('x')"
    )
    db.execute(
        "CREATE FUNCTION scheduler.obsolete_rows() RETURNS SETOF scheduler.obsolete_view LANGUAGE sql"
        " AS 'TABLE scheduler.obsolete_view'"
    )
    db.execute("CREATE MATERIALIZED VIEW scheduler.obsolete_copy AS SELECT * FROM scheduler.obsolete_rows()")
    schema.migrate(database)
    assert dump(database) == fresh


def test_rows_survive_a_migration(database: str, db: psycopg.Connection) -> None:
    db.execute("INSERT INTO scheduler.audit (who, action) VALUES ('alice', 'pause')")
    schema.migrate(database)
    assert db.execute("SELECT who FROM scheduler.audit WHERE who = 'alice'").fetchall() == [("alice",)]


def test_what_tables_use_survives_a_migration(database: str, db: psycopg.Connection) -> None:
    """A trigger, a column's type, a default, a check: dropping any of them would break or lose someone's table."""
    db.execute("CREATE TYPE scheduler.mine AS ENUM ('a')")
    db.execute(
        "CREATE FUNCTION scheduler.mine() RETURNS scheduler.mine LANGUAGE sql AS $$ SELECT 'a'::scheduler.mine $$"
    )
    db.execute(
        "CREATE TABLE parcel (word scheduler.mine DEFAULT scheduler.mine(), words scheduler.mine[],"
        " error text CHECK (scheduler.redact(error) = error))"
    )
    db.execute("CREATE TRIGGER ring AFTER INSERT ON parcel FOR EACH ROW EXECUTE FUNCTION scheduler.doorbell('sorting')")
    schema.migrate(database)
    db.execute("LISTEN scrapersky")
    db.execute("INSERT INTO parcel (error) VALUES ('fine')")
    assert [note.payload for note in db.notifies(timeout=PATIENCE, stop_after=1)] == ["sorting"]
    with pytest.raises(psycopg.errors.CheckViolation):
        db.execute("INSERT INTO parcel (error) VALUES ('token=secret')")


def test_a_view_of_someone_else_is_named_not_dropped(database: str, db: psycopg.Connection) -> None:
    db.execute("CREATE VIEW public.dashboard AS SELECT scheduler.redact('x')")
    with pytest.raises(psycopg.errors.DependentObjectsStillExist, match="redact") as caught:
        schema.migrate(database)
    assert "dashboard" in str(caught.value.diag.message_detail)
    assert db.execute("SELECT * FROM dashboard").fetchall() == [("x",)]


def test_a_schema_of_someone_else_is_left_alone(empty_database: str, connect: Connect, install: Program) -> None:
    session = connect(url=empty_database)
    session.execute("CREATE SCHEMA scheduler")
    session.execute("CREATE FUNCTION scheduler.theirs() RETURNS void LANGUAGE sql AS ''")
    with pytest.raises(psycopg.errors.DuplicateSchema, match="belongs to something else"):
        schema.migrate(empty_database)
    assert "belongs to something else" in install(empty_database).stderr
    assert leftovers(session) == {"theirs"}


def test_an_empty_schema_made_beforehand_is_used(empty_database: str, connect: Connect) -> None:
    connect(url=empty_database).execute("CREATE SCHEMA scheduler")
    schema.migrate(empty_database)
    assert schema.current(empty_database) == schema.head()


def test_a_file_that_fails_leaves_the_database_as_it_was(
    database: str, project: Project, fresh: str, dump: Callable[[str], str]
) -> None:
    project.add_revision("ALTER TABLE scheduler.audit ADD COLUMN extra text")
    project.add_file("CREATE FUNCTION scheduler.fine() RETURNS void LANGUAGE sql AS '';\nSELECT 1/0;")
    with pytest.raises(psycopg.errors.DivisionByZero) as caught:
        schema.migrate(database)
    assert caught.value.__notes__ == ["in sql/extra.sql"]
    assert dump(database) == fresh
    assert schema.current(database) == REVISIONS[0]


def test_a_new_installation_that_fails_leaves_nothing(
    empty_database: str, project: Project, connect: Connect, install: Program
) -> None:
    project.add_file("SELECT 1;\nSELECT mistake;")
    with pytest.raises(psycopg.errors.UndefinedColumn) as caught:
        schema.migrate(empty_database)
    assert caught.value.__notes__ == ["in sql/extra.sql, line 2"]
    assert install(empty_database).returncode != 0
    assert connect(url=empty_database).execute("SELECT to_regnamespace('scheduler')").fetchone() == (None,)


def test_a_revision_can_change_a_column_that_views_show(
    database: str, project: Project, db: psycopg.Connection, caplog: pytest.LogCaptureFixture
) -> None:
    project.add_file("CREATE VIEW scheduler.who AS SELECT who FROM scheduler.audit;")
    schema.migrate(database)
    newest = project.add_revision(
        "ALTER TABLE scheduler.audit ALTER COLUMN who TYPE varchar",
        "ALTER TABLE scheduler.audit ALTER COLUMN who TYPE text",
    )
    schema.migrate(database)
    assert schema.current(database) == newest
    assert db.execute("SELECT DISTINCT pg_typeof(who)::text FROM scheduler.who").fetchall() == [("character varying",)]

    with caplog.at_level(logging.WARNING):
        schema.downgrade(database, "-1")
    assert schema.current(database) == REVISIONS[0]
    assert "no functions and views" in caplog.text
    assert not exists(db, "redact"), "functions of head were left beside older tables"


def test_stopping_below_head_installs_no_functions_that_may_not_fit(
    empty_database: str, project: Project, connect: Connect, caplog: pytest.LogCaptureFixture
) -> None:
    project.add_revision("SELECT 1")
    schema.migrate(empty_database, REVISIONS[0])
    assert "no functions and views" in caplog.text
    assert not exists(connect(url=empty_database), "redact")


def test_an_older_version_refuses_a_newer_database(database: str, project: Project) -> None:
    revision = project.add_revision("SELECT 1")
    schema.migrate(database)
    (project.folder / "alembic" / "versions" / f"{revision}.py").unlink()
    with pytest.raises(UserError, match=f"{revision}.*newer version"):
        schema.migrate(database)


@pytest.mark.slow
def test_two_migrations_at_once_take_turns(
    empty_database: str, connect: Connect, dump: Callable[[str], str], fresh: str
) -> None:
    holder = connect(url=empty_database, autocommit=False)
    watcher = connect(url=empty_database)
    holder.execute(TURN)
    code = "import sys; from listener.schema import migrate; migrate(sys.argv[1])"
    started = [subprocess.Popen([sys.executable, "-c", code, empty_database]) for _ in range(2)]
    waiting = (
        "SELECT count(*) = 2 FROM pg_locks JOIN pg_database AS d ON d.oid = database"
        " WHERE locktype = 'advisory' AND NOT granted AND datname = current_database()"
    )
    try:
        wait_until(lambda: watcher.execute(waiting).fetchone() == (True,), what="both to wait for their turn")
        holder.rollback()
        assert [process.wait(60) for process in started] == [0, 0]
    finally:
        for process in started:
            process.kill()
            process.wait()
    assert dump(empty_database) == fresh


def test_a_migration_waits_for_its_turn_under_any_isolation_level(empty_database: str, connect: Connect) -> None:
    name = conninfo.conninfo_to_dict(empty_database)["dbname"]
    connect(url=empty_database).execute(
        sql.SQL("ALTER DATABASE {} SET default_transaction_isolation = 'serializable'").format(
            sql.Identifier(str(name))
        )
    )
    with schema.transaction(empty_database) as connection:
        assert connection.exec_driver_sql("SHOW transaction_isolation").scalar() == "read committed"


@pytest.fixture
def workflow(db: psycopg.Connection) -> psycopg.Connection:
    if not exists(db, "create_workflow"):
        pytest.skip("scheduler.create_workflow() is not there yet")
    register(db)
    return db


def register(session: psycopg.Connection) -> None:
    session.execute("CREATE TABLE public.parcel (id bigint PRIMARY KEY, status text, error text)")
    session.execute("CREATE INDEX parcel_status ON public.parcel (status)")
    session.execute(
        "SELECT scheduler.create_workflow('scan', 'public.parcel', status_column => 'status', error_column => 'error',"
        " ready => $$status = 'New'$$, queued => 'Queued', processing => 'Processing', completed => 'Completed',"
        " failed => 'Error', schedule => '*/5 * * * *')"
    )


def on_parcel(session: psycopg.Connection) -> set[str]:
    """The triggers and indexes of the business table."""
    rows = session.execute(
        "SELECT tgname FROM pg_trigger WHERE tgrelid = 'public.parcel'::regclass"
        " UNION SELECT indexrelid::regclass::text FROM pg_index WHERE indrelid = 'public.parcel'::regclass"
    ).fetchall()
    return {str(name) for (name,) in rows}


def test_base_takes_the_workflows_off_their_tables(database: str, workflow: psycopg.Connection) -> None:
    assert len(on_parcel(workflow)) > 2
    workflow.execute("INSERT INTO parcel VALUES (1, 'Queued')")
    schema.downgrade(database, "base")
    assert on_parcel(workflow) == {"parcel_pkey", "parcel_status"}
    assert workflow.execute("SELECT status FROM parcel").fetchall() == [("Queued",)]
    assert leftovers(workflow) == set()


def test_workflows_survive_a_migration(database: str, workflow: psycopg.Connection) -> None:
    before = on_parcel(workflow)
    schema.migrate(database)
    assert on_parcel(workflow) == before
    workflow.execute("LISTEN scrapersky")
    workflow.execute("INSERT INTO parcel VALUES (1, 'Queued')")
    assert len(list(workflow.notifies(timeout=PATIENCE, stop_after=1))) == 1


def test_base_is_refused_while_the_functions_that_clean_up_are_missing(
    database: str, project: Project, workflow: psycopg.Connection
) -> None:
    project.add_revision("SELECT 1", "SELECT 1")
    schema.migrate(database)
    schema.downgrade(database, REVISIONS[0])
    before = on_parcel(workflow)
    with pytest.raises(psycopg.errors.ObjectNotInPrerequisiteState, match="scan"):
        schema.downgrade(database, "base")
    assert on_parcel(workflow) == before


@pytest.mark.cron
def test_base_takes_the_jobs_out_of_pg_cron(cron_database: str, connect: Connect) -> None:
    if "grants.sql" not in schema.repeatables():
        pytest.skip("sql/grants.sql is not there yet")
    session = connect(url=cron_database)
    register(session)
    jobs = "SELECT count(*) FROM cron.job WHERE command LIKE '%scheduler.%'"
    assert session.execute(jobs).fetchone() != (0,)
    schema.downgrade(cron_database, "base")
    assert session.execute(jobs).fetchone() == (0,)


def test_autogenerate_finds_nothing_to_do(database: str, db: psycopg.Connection) -> None:
    db.execute("CREATE TABLE alembic_version (version_num text)")
    db.execute("CREATE TABLE another_applications_table ()")
    command.check(schema._config(database))


def test_autogenerate_on_an_empty_database_only_looks(empty_database: str, connect: Connect) -> None:
    with pytest.raises(CommandError, match="not up to date"):
        command.check(schema._config(empty_database))
    assert connect(url=empty_database).execute("SELECT to_regnamespace('scheduler')").fetchone() == (None,)


@pytest.fixture
def models(monkeypatch: pytest.MonkeyPatch) -> MetaData:
    """A module services.models that describes one table, parcel."""
    module = types.ModuleType("services.models")
    module.__spec__ = importlib.machinery.ModuleSpec("services.models", None)
    metadata = MetaData()
    Table("parcel", metadata, Column("id", Integer, primary_key=True), Column("status", Text))
    module.metadata = metadata  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "services.models", module)
    return metadata


def test_autogenerate_compares_the_models_and_overlooks_the_engines_indexes(
    database: str, db: psycopg.Connection, models: MetaData
) -> None:
    db.execute("CREATE TABLE parcel (id integer PRIMARY KEY, status text)")
    db.execute("CREATE INDEX scheduler_scan_queued ON parcel (id) WHERE status = 'Queued'")
    db.execute("CREATE TABLE another_applications_table ()")
    command.check(schema._config(database))
    db.execute("ALTER TABLE parcel DROP COLUMN status")
    with pytest.raises(CommandError, match="add_column"):
        command.check(schema._config(database))


def test_migrating_leaves_the_programs_logging_alone(empty_database: str) -> None:
    root = logging.getLogger()
    before = (list(root.handlers), root.level, logging.getLogger("listener").disabled)
    schema.migrate(empty_database)
    assert (list(root.handlers), root.level, logging.getLogger("listener").disabled) == before


@pytest.mark.slow
def test_the_command_alembic_works_from_any_directory(empty_database: str, tmp_path: Path) -> None:
    alembic = [sys.executable, "-m", "alembic", "-c", str(share("alembic.ini"))]
    environment = {**os.environ, URL_VARIABLE: empty_database}

    def run(*arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [*alembic, *arguments], capture_output=True, text=True, check=False, cwd=tmp_path, env=environment
        )

    assert run("upgrade", "head").returncode == 0
    assert schema.current(empty_database) == schema.head()
    assert schema.head() in run("-x", f"url={empty_database}", "current").stdout
    wrong = run("-x", "url=postgresql://nobody@127.0.0.1:1/nothing", "upgrade", "head")
    assert wrong.returncode != 0
    assert "No connection to the database" in wrong.stderr + wrong.stdout
    assert "Traceback" not in wrong.stderr


def scrapersky(*arguments: str, url: str) -> str:
    result = CliRunner().invoke(cli.app, list(arguments), env={URL_VARIABLE: url})
    if result.exception:
        raise result.exception
    return result.stdout


def test_the_command_line_says_from_where_to_where(empty_database: str) -> None:
    head = schema.head()
    assert scrapersky("migrate", url=empty_database) == f"nothing → {head}\n"
    assert scrapersky("migrate", url=empty_database) == f"{head} → {head}\n"


def test_the_command_line_goes_down_only_after_a_yes(database: str) -> None:
    head = schema.head()
    asked = CliRunner().invoke(cli.app, ["migrate", "--down", "base"], env={URL_VARIABLE: database})
    assert (asked.exit_code, schema.current(database)) == (1, head)
    assert scrapersky("migrate", "--down", "base", "--yes", url=database) == f"{head} → nothing\n"


def test_the_printed_sql_gives_the_same_schema(
    empty_database: str, fresh: str, program: Program, dump: Callable[[str], str], tmp_path: Path
) -> None:
    script = tmp_path / "script.sql"
    script.write_text(scrapersky("migrate", "--sql", url="postgresql://nobody@127.0.0.1:1/nothing"))
    done = program("psql", "-X", "-q", "-v", "ON_ERROR_STOP=1", "-f", script, "-d", empty_database)
    assert done.returncode == 0, done.stderr
    assert dump(empty_database) == fresh


def test_the_printed_way_down_ends_at_base(database: str, program: Program, connect: Connect, tmp_path: Path) -> None:
    config = schema._config()
    config.output_buffer = io.StringIO()
    command.downgrade(config, f"{schema.head()}:base", sql=True)
    script = tmp_path / "script.sql"
    script.write_text(config.output_buffer.getvalue())
    done = program("psql", "-X", "-q", "-v", "ON_ERROR_STOP=1", "-f", script, "-d", database)
    assert done.returncode == 0, done.stderr
    assert leftovers(connect(url=database)) == set()
    assert schema.current(database) is None


def test_a_database_that_does_not_answer_is_reported_with_the_way_out() -> None:
    with pytest.raises(UserError, match=r"No connection.*scrapersky db start"):
        scrapersky("migrate", url="postgresql://nobody@127.0.0.1:1/nothing")


def test_a_malformed_url_is_reported_without_its_password() -> None:
    with pytest.raises(UserError, match="understands") as caught:
        schema.migrate("postgresql//someone:hunter2@host/base")
    assert "hunter2" not in str(caught.value)


@pytest.fixture
def powerless(postgres: Postgres, empty_database: str) -> Iterator[str]:
    """The URL of the empty database for a role that may only connect."""
    name = "powerless_" + str(conninfo.conninfo_to_dict(empty_database)["dbname"])
    with psycopg.connect(empty_database, autocommit=True) as session:
        session.execute(sql.SQL("CREATE ROLE {}").format(sql.Identifier(name)))
        yield conninfo.make_conninfo(empty_database, options=f"-c role={name}")
        session.execute(sql.SQL("DROP ROLE {}").format(sql.Identifier(name)))


def test_missing_rights_are_reported_with_the_way_out(powerless: str) -> None:
    with pytest.raises(UserError, match=r"permission denied for database .* as the owner of the database"):
        scrapersky("migrate", url=powerless)


def test_urls_of_sqlalchemy_work_too(empty_database: str) -> None:
    if not empty_database.startswith("postgresql:"):
        pytest.skip("this server's URL is a connection string")
    schema.migrate(empty_database.replace("postgresql:", "postgresql+psycopg:", 1))
    assert schema.current(empty_database) == schema.head()
