"""The commands, on a real database: what they print, what they change, and how they end."""

import http.server
import json
import re
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from listener import Workflow
from listener.cli.say import complain
from listener.errors import UserError
from tests.cli.conftest import Scrapersky
from tests.cli.terminal import terminal
from tests.sql.queue import Queue, call, one


@pytest.fixture
def queue(db: psycopg.Connection) -> Queue:
    """Ten items: 1 dead, 2 waits for its retry, 3 and 4 done, 5 and 6 queued, the others not wanted yet."""
    queue = Queue(db, 10, batch_size=4, backoff="1 hour", schedule="*/5 * * * *")
    queue.want(1, 2, 3, 4, 5, 6)
    call(db, "dispatch", name="job")
    run = queue.claim().run
    queue.fail(run, "1", error="HTTP 404 at https://example.org/1", permanent=True)
    queue.fail(run, "2", error="timeout after 30 s")
    queue.succeed(run)
    call(db, "dispatch", name="job")
    return queue


def test_status_shows_every_workflow_and_why_it_does_not_run(scrapersky: Scrapersky, queue: Queue) -> None:
    call(queue.db, "pause", name="job", reason="waiting for a key")
    answer = scrapersky("status")
    assert answer.code == 0
    cells = answer.out.splitlines()[2].split()
    assert cells[:6] == ["job", "paused", "2", "0", "1", "1"]
    assert "waiting for a key" in answer.out
    shown = json.loads(scrapersky("status", "job", "--json").out)
    assert (shown[0]["queued"], shown[0]["dead"], shown[0]["paused"]) == (2, 1, True)


def test_runs_errors_and_the_dead_letter_are_shown(scrapersky: Scrapersky, queue: Queue) -> None:
    assert "with failures" in scrapersky("runs").out
    assert json.loads(scrapersky("runs", "job", "--json").out)[0]["claimed"] == 4
    # alone of its kind it is shown as it is; for programs the kind stays the same however many there are
    assert "timeout after 30 s" in scrapersky("errors").out
    assert "timeout after # s" in [error["error"] for error in json.loads(scrapersky("errors", "--json").out)]
    assert [error["items"] for error in json.loads(scrapersky("errors", "--json").out)] == [1, 1]
    assert "HTTP 404" in scrapersky("dead", "job").out
    assert [item["key"] for item in json.loads(scrapersky("dead", "--json").out)] == ["1"]
    assert "more with --limit" in scrapersky("errors", "--limit", "1").err


def test_nothing_to_show_is_said_and_is_no_error(scrapersky: Scrapersky) -> None:
    for command in ("status", "runs", "errors", "dead", "top"):
        answer = scrapersky(command)
        assert answer.code == 0
        assert answer.out.strip()
        assert json.loads(scrapersky(command, "--json").out) == []


def test_an_unknown_workflow_is_refused_with_those_there_are(scrapersky: Scrapersky, queue: Queue) -> None:
    for command in ("status", "runs", "errors", "dead", "preview", "dispatch", "pause", "resume"):
        answer = scrapersky(command, "jobb")
        assert answer.code == 1, command
        assert "jobb" in answer.err
        assert "Registered: job." in answer.err
        assert answer.out == ""


def test_why_answers_in_words(scrapersky: Scrapersky, queue: Queue) -> None:
    assert "dead letter" in scrapersky("why", "job", "1").out
    assert "backs off until" in json.loads(scrapersky("why", "job", "2", "--json").out)["why"]
    answer = scrapersky("why", "job", "x")
    assert answer.code == 1
    assert "Give values of id" in answer.err


def test_preview_changes_nothing(scrapersky: Scrapersky, queue: Queue) -> None:
    queue.want(7, 8)
    before = queue.counts()
    assert [item["key"] for item in json.loads(scrapersky("preview", "job", "--json").out)] == ["7", "8"]
    assert queue.counts() == before
    call(queue.db, "pause", name="job")
    assert "paused" in scrapersky("preview", "job").err


def test_doctor_fails_on_an_error_and_only_then(scrapersky: Scrapersky, db: psycopg.Connection) -> None:
    Queue(db)
    assert scrapersky("doctor").code == 0
    db.execute("DROP INDEX scheduler_job_queued")
    answer = scrapersky("doctor")
    assert answer.code == 1
    assert answer.out.startswith("ERROR  job: the index of its queue is missing")
    assert "    SELECT scheduler.repair_workflow('job');" in answer.out
    found = json.loads(scrapersky("doctor", "--json").out)
    db.execute(next(finding["fix"] for finding in found if finding["severity"] == "error"))
    assert scrapersky("doctor", "--json").code == 0


def test_doctor_compares_what_the_environment_says(
    scrapersky: Scrapersky, db: psycopg.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    Queue(db, schedule="*/5 * * * *")
    workflow = Workflow("job", dict, lambda item, _: item)
    monkeypatch.setattr("listener.discover.find", lambda: ({"job": workflow}, []))
    monkeypatch.setenv("JOB_SCHEDULER_INTERVAL_MINUTES", "5")
    assert "environment" not in scrapersky("doctor").out
    monkeypatch.setenv("JOB_SCHEDULER_BATCH_SIZE", "7")
    answer = scrapersky("doctor")
    assert "the environment says batch_size = 7, the database 100" in answer.out
    assert "SELECT scheduler.alter_workflow('job', batch_size => '7');" in answer.out


def test_dispatch_pause_and_resume_do_what_they_say_and_name_the_person(scrapersky: Scrapersky, queue: Queue) -> None:
    queue.want()
    assert scrapersky("dispatch", "job").out == "queued 2, retried 0\n"
    assert "job is paused" in scrapersky("pause", "job", "--reason", "enough").out
    assert one(queue.db, "SELECT paused_reason FROM scheduler.workflow") == "enough"
    assert json.loads(scrapersky("resume", "job", "--json").out) == {"resume": "job goes on"}
    who = one(queue.db, "SELECT who FROM scheduler.audit WHERE action = 'pause'")
    assert " for " in who


def test_everything_can_be_paused_but_not_by_accident(scrapersky: Scrapersky, queue: Queue) -> None:
    assert "Name a workflow, or say --all" in scrapersky("pause").err
    assert scrapersky("pause", "--all", typed="n\n").code == 1
    assert one(queue.db, "SELECT paused_at FROM scheduler.control") is None
    assert scrapersky("pause", "--all", "--yes").code == 0
    assert one(queue.db, "SELECT paused_at IS NOT NULL FROM scheduler.control")
    assert "everything goes on" in scrapersky("resume", "--all").out


def test_requeue_takes_ids_a_pattern_or_all_and_asks_before_all(scrapersky: Scrapersky, queue: Queue) -> None:
    assert scrapersky("requeue", "job", typed="n\n").code == 1
    assert queue.status(1) == "Failed"
    assert scrapersky("requeue", "job", "1").out == "requeued 1\n"
    assert queue.status(1) == "Queued"
    assert json.loads(scrapersky("requeue", "job", "--error", "%nothing%", "--yes", "--json").out) == {"requeued": 0}
    answer = scrapersky("requeue", "job", typed="y\n")
    assert "all 1 failed and dead items" in answer.err
    assert queue.status(2) == "Queued"
    assert scrapersky("requeue", "job", "3", "--stranded").code == 1
    queue.set("Processing", 9)
    assert scrapersky("requeue", "job", "--stranded", "--yes").out == "requeued 1\n"
    queue.set("Failed", 10)
    assert scrapersky("requeue", "job", "--where", "id > 9", "--yes").out == "requeued 1\n"


def test_cancel_asks_first(scrapersky: Scrapersky, queue: Queue) -> None:
    assert scrapersky("cancel", "job", "5", typed="\n").code == 1
    assert queue.status(5) == "Queued"
    assert scrapersky("cancel", "job", "5", "6", "--yes").out == "unqueued 2, revoked 0, untouched 0\n"
    assert queue.status(5) is None


def test_a_monitor_is_told_what_it_lacks(
    scrapersky: Scrapersky, queue: Queue, monkeypatch: pytest.MonkeyPatch, database: str
) -> None:
    monkeypatch.setenv("PGOPTIONS", "-c role=scheduler_monitor")
    assert scrapersky("status").code == 0
    answer = scrapersky("pause", "job")
    assert answer.code == 1
    assert "GRANT scheduler_admin" in answer.err


def test_a_database_without_the_engine_is_told_how_to_get_it(
    scrapersky: Scrapersky, empty_database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DATABASE_URL", empty_database)
    for command in (["status"], ["why", "job", "1"], ["doctor"], ["pause", "job"], ["top"], ["health"]):
        answer = scrapersky(*command)
        assert answer.code == 1
        assert "scrapersky migrate" in answer.err


def test_a_server_that_is_away_or_a_wrong_url_is_told_without_the_password(
    scrapersky: Scrapersky, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DATABASE_URL", "postgresql://u:hunter22@127.0.0.1:1/x")
    answer = scrapersky("status")
    assert answer.code == 1
    assert "No connection to the database" in answer.err
    monkeypatch.setenv("DATABASE_URL", "postgresql://u:hunter22@127.0.0.1:99999999/x?nonsense=1")
    wrong = scrapersky("status")
    assert wrong.code == 1
    assert "hunter22" not in answer.err + wrong.err


def test_the_url_may_stand_in_a_file(
    scrapersky: Scrapersky, queue: Queue, database: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.delenv("DATABASE_URL")
    (tmp_path / ".env").write_text(f"DATABASE_URL='{database}'\n")
    assert scrapersky("status").out.splitlines()[2].startswith("job")


@pytest.fixture
def web() -> Iterator[tuple[str, list[bytes]]]:
    """A page that answers with what is put into the list."""
    answers: list[bytes] = []

    class Page(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.end_headers()
            self.wfile.write(answers[0])

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002
            pass

    with http.server.HTTPServer(("127.0.0.1", 0), Page) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield str(server.server_port), answers
        server.shutdown()


def test_health_asks_the_database_and_the_listener_if_it_serves(
    scrapersky: Scrapersky, web: tuple[str, list[bytes]], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert scrapersky("health").out == "ok (database)\n"
    port, answers = web
    monkeypatch.setenv("WEB_PORT", port)
    answers.append(b'{"status": "ok"}')
    assert scrapersky("health").out == f"ok (http://127.0.0.1:{port}/health)\n"
    for bad in (b'{"status": "draining"}', b"[1]", b"not json"):
        answers[0] = bad
        assert scrapersky("health").code == 1
    assert scrapersky("health", "--url", "file:///etc/hostname").code == 1


def test_top_looks_once_for_scripts(scrapersky: Scrapersky, queue: Queue) -> None:
    answer = scrapersky("top", "--once")
    assert answer.code == 0
    assert "\x1b" not in answer.out
    row = next(line for line in answer.out.splitlines() if line.startswith("job"))
    assert row.split()[:5] == ["job", "waiting", "2", "0", "1"]
    assert "█" in row
    shown = json.loads(scrapersky("top", "--json").out)[0]
    assert (shown["queued"], shown["finished"], sum(shown["history"])) == (2, 4, 4)


@pytest.mark.slow
def test_top_draws_until_q_and_leaves_the_terminal_as_it_was(database: str, queue: Queue) -> None:
    with terminal("top", "--interval", "0.2", DATABASE_URL=database) as screen:
        screen.read_until("q quits")
        queue.set("Queued", 9)
        screen.read_until(" 3 ")
        screen.type("q")
        assert screen.wait() == 0
        assert screen.shown.startswith("\x1b[?1049h")
        assert screen.shown.rstrip().endswith("\x1b[?1049l")
        frame = screen.shown.split("\x1b[H")[1]
        assert all(len(line) <= 80 for line in _bare(frame).splitlines())


@pytest.mark.slow
def test_ctrl_c_ends_top_quietly(database: str, queue: Queue) -> None:
    with terminal("top", DATABASE_URL=database) as screen:
        screen.read_until("q quits")
        screen.interrupt()
        assert screen.wait() == 0
        assert "Traceback" not in screen.shown
        assert screen.shown.rstrip().endswith("\x1b[?1049l")


@pytest.mark.slow
def test_colours_are_for_terminals_and_never_against_the_wish_of_the_user(database: str, queue: Queue) -> None:
    with terminal("status", DATABASE_URL=database) as screen:
        assert screen.wait() == 0
        assert "\x1b[3" in screen.shown
        assert all(len(line) <= 80 for line in _bare(screen.shown).splitlines())
    with terminal("status", DATABASE_URL=database, NO_COLOR="1") as screen:
        assert screen.wait() == 0
        assert "\x1b" not in screen.shown


def test_names_of_workflows_are_completed(queue: Queue, scrapersky: Scrapersky) -> None:
    from listener.cli.ask import complete_workflow

    assert complete_workflow("jo") == ["job"]
    assert complete_workflow("x") == []


def test_completion_is_silent_without_a_database(monkeypatch: pytest.MonkeyPatch) -> None:
    from listener.cli.ask import complete_workflow

    monkeypatch.setenv("DATABASE_URL", "postgresql://127.0.0.1:1/x")
    assert complete_workflow("") == []


def test_every_command_has_an_example_in_its_help() -> None:
    from typer.main import get_command

    from listener.cli import app

    commands = get_command(app).commands  # type: ignore[attr-defined]
    for name, command in commands.items():
        for each in getattr(command, "commands", {"": command}).values():
            assert "Example" in (each.help or ""), f"{name} {each.name}"


def _bare(text: str) -> str:
    return re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", text).replace("\r", "")


def test_help_lists_every_command_in_one_whole_sentence(
    scrapersky: Scrapersky, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    listed = scrapersky("--help").out.partition("\nRun:\n")[2]
    assert listed.index("migrate") < listed.index("Watch:") < listed.index("status") < listed.index("Operate:")
    for group in ("", "db", "schedules", "contact", "inspect"):
        said = scrapersky(*group.split(), "--help").out
        assert not re.search(r"\w\.\.\.", said), said


def test_a_long_complaint_breaks_between_words_on_a_terminal(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", "40")
    monkeypatch.setenv("NO_COLOR", "1")
    error = UserError("There is no workflow 'jobb' in this database.", "Registered: deep_scan, domain_extraction.")
    complain(error)
    assert capsys.readouterr().err.splitlines() == [f"Error: {error.message}", error.hint]
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    complain(error)
    lines = capsys.readouterr().err.splitlines()
    assert max(map(len, lines)) <= 40
    assert " ".join(lines) == f"Error: {error.message} {error.hint}"
