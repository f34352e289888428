"""Starting: what cannot work is refused at once with the fix, what only takes time is waited for."""

import psycopg
import pytest
from psycopg import conninfo

from listener.errors import UserError
from tests.listener.inside import Inside
from tests.listener.started import Bench
from tests.listener.workflows import job
from tests.sql.queue import one
from tests.waiting import wait_until


@pytest.mark.slow
def test_a_listener_runs_the_named_workflows_only_and_one_that_cannot_be_imported_does_not_stop_it(
    bench: Bench,
) -> None:
    bench.adopt()
    bench.adopt("other", "thing")
    bench.queue("ok")
    bench.queue("ok", table="thing")
    entries = ("job", "other", "broken = tests.nowhere:workflow", "wrong = tests.listener.workflows:Item")
    process = bench.start("--workflows", "other", entries=entries)
    bench.wait_for("Completed", table="thing")
    assert bench.statuses() == {1: "Queued"}
    reported = process.lines("cannot be loaded")
    assert [line["entry_point"].split()[0] for line in reported] == ["broken", "wrong"]
    assert "serving other (no schedule, batch 100, instances unlimited)" in process.lines("serving")[0]["event"]
    assert process.stop() == 0


@pytest.mark.slow
def test_what_cannot_be_imported_is_told_to_the_dba_with_the_line_that_fails(bench: Bench) -> None:
    """Not "start a listener": there is one, and its package is broken."""
    bench.adopt()
    bench.queue("ok")
    process = bench.start(entries=("job = tests.listener.exits:x",))
    reason = "cannot be loaded: job = tests.listener.exits:x: SystemExit: not to be imported"
    why = "SELECT scheduler.why('job', 1)"
    wait_until(lambda: reason in str(one(bench.db, why)), what="the reason to be told")
    found = bench.db.execute("SELECT code, meaning FROM scheduler.doctor() WHERE workflow = 'job'").fetchall()
    assert ("listener_problem", reason) in found
    assert "no_function" not in [code for code, _ in found], "the same once more, and less"
    (line,) = process.lines("cannot be loaded")
    assert "exits.py" in line["traceback"]
    assert "importlib" not in line["traceback"]


def test_a_database_that_lacks_what_this_version_calls_is_refused_with_what_to_do_about_it(bench: Bench) -> None:
    bench.adopt()
    bench.db.execute("UPDATE scheduler.schema_version SET version_num = '0000'")
    with pytest.raises(UserError, match="scrapersky migrate"):
        bench.inside()
    bench.insiders.clear()


@pytest.mark.parametrize("revision", ["9999", "0001"])
def test_listeners_of_the_version_before_and_after_go_on(bench: Bench, revision: str) -> None:
    bench.adopt()
    bench.db.execute("UPDATE scheduler.schema_version SET version_num = %s", [revision])
    bench.inside()
    bench.queue("ok")
    bench.wait_for("Completed")


def test_a_migration_by_a_newer_version_leaves_running_listeners_alone(bench: Bench) -> None:
    bench.adopt()
    bench.inside()
    bench.db.execute("UPDATE scheduler.schema_version SET version_num = '9999'")
    bench.queue("ok")
    bench.wait_for("Completed")


@pytest.mark.doorbell
@pytest.mark.slow
def test_bad_settings_are_refused_all_at_once_with_exit_code_1(bench: Bench) -> None:
    process = bench.start(
        "--workflows",
        "nobody",
        ready=False,
        entries=("tuned",),
        LISTENER_POLL_SECONDS="often",
        LISTENER_POL_ONLY="yes",
        JOB_FACTOR="many",
    )
    assert process.wait() == 1
    text = process.log()
    for name in ("LISTENER_POLL_SECONDS", "LISTENER_POL_ONLY", "LISTENER_POLL_ONLY"):
        assert name in text
    assert "Traceback" not in text


def test_a_database_without_the_engine_is_refused_with_the_command_that_installs_it(empty_database: str) -> None:
    listener = Inside(empty_database, {"job": job})
    with pytest.raises(UserError, match="scrapersky migrate"):
        listener.ready()


def test_a_login_without_the_right_role_is_refused_with_the_grant(bench: Bench) -> None:
    url = bench.as_listener()
    role = conninfo.conninfo_to_dict(url)["user"]
    bench.db.execute(f"REVOKE scheduler_listener FROM {role}")
    listener = Inside(url, {"job": job})
    with pytest.raises(UserError, match=f'GRANT scheduler_listener TO "{role}"'):
        listener.ready()


def test_a_wrong_password_is_refused_and_not_shown(bench: Bench) -> None:
    url = conninfo.make_conninfo(bench.as_listener(), password="wrong-secret-9")
    listener = Inside(url, {"job": job})
    with pytest.raises(UserError, match="DATABASE_URL") as refusal:
        listener.ready()
    assert "wrong-secret-9" not in str(refusal.value)


def test_a_plain_listener_role_is_enough(bench: Bench) -> None:
    bench.adopt(max_attempts=1)
    bench.queue("ok", "break", "reject", "final Filtered")
    bench.inside(url=bench.as_listener())
    bench.wait_for("Completed", "Failed", "Failed", "Filtered")
    assert bench.effects() == [1, 4]


def test_a_server_that_comes_up_later_is_waited_for(bench: Bench) -> None:
    """As after a reboot: the name resolves, the database is not there yet."""
    name = conninfo.conninfo_to_dict(bench.url)["dbname"]
    bench.adopt()
    bench.queue("ok")
    admin = psycopg.connect(bench.url, dbname="postgres", autocommit=True)
    admin.execute(f"ALTER DATABASE {name} CONNECTION LIMIT 0")
    url = bench.as_listener()
    listener = Inside(url, {"job": job})
    bench.insiders.append(listener)
    admin.execute(f"ALTER DATABASE {name} CONNECTION LIMIT -1")
    admin.close()
    bench.wait_for("Completed")
