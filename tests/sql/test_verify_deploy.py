"""After a deploy, each question is answered yes when all is well, and no when it is not."""

import psycopg
import pytest
from typer.testing import CliRunner

from listener.cli import app
from tests.conftest import Connect
from tests.sql.queue import Queue

LISTENER = "00000000-0000-0000-0000-000000000001"


@pytest.fixture
def queue(db: psycopg.Connection) -> Queue:
    """A workflow, a listener that has just been heard, and maintenance that has just run."""
    queue = Queue(db, rows=3, schedule="* * * * *")
    db.execute(
        "INSERT INTO scheduler.listener (id, host, pid, version, workflows) VALUES (%s, 'a', 1, '1', '{job}')",
        [LISTENER],
    )
    db.execute("SELECT scheduler.maintain()")
    return queue


def objections(db: psycopg.Connection, stage: str) -> dict[str, str]:
    rows = db.execute('SELECT "check", detail FROM scheduler.verify_deploy(%s) WHERE NOT ok', [stage]).fetchall()
    return dict(rows)


def test_when_all_is_well_every_answer_is_yes(queue: Queue) -> None:
    for stage, questions in (("hour", 9), ("day", 13), ("week", 16)):
        answers = queue.db.execute("SELECT ok, detail FROM scheduler.verify_deploy(%s)", [stage]).fetchall()
        assert answers == [(True, None)] * questions


FAULTS = [
    ("hour", "doctor", "DROP INDEX scheduler_job_queued"),
    ("hour", "stuck", "UPDATE scheduler.listener SET stopped_at = now(); UPDATE item SET status = 'Queued'"),
    ("hour", "listener knows", "UPDATE scheduler.listener SET workflows = '{other}'"),
    ("hour", "one version", "INSERT INTO scheduler.listener (id, version) VALUES (gen_random_uuid(), '2')"),
    ("hour", "maintenance ran", "UPDATE scheduler.control SET maintained_at = now() - interval '4 minutes'"),
    ("hour", "its last slot", "UPDATE scheduler.state SET next_slot = now() - interval '4 minutes'"),
    ("hour", "breaker", "UPDATE scheduler.state SET breaker_state = 'open', breaker_until = now() + interval '1 hour'"),
    ("hour", "80 %", "INSERT INTO scheduler.stat VALUES ('job', 'minute', now(), 1, 10, 7, 3, 0, 0, 0, 0, 0, '{}')"),
    ("hour", "moved", "UPDATE item SET status = 'Queued'"),
    ("day", "for more than a day", "UPDATE item SET status = 'Queued', created_at = now() - interval '2 days'"),
    ("day", "rescued", "INSERT INTO scheduler.stat VALUES ('job', 'minute', now(), 1, 9, 9, 0, 0, 0, 0, 0, 1, '{}')"),
    ("day", "goodbye", "UPDATE scheduler.listener SET seen_at = now() - interval '6 minutes'"),
    ("day", "pause", "UPDATE scheduler.workflow SET paused_at = now() - interval '25 hours'"),
    ("week", "dispatched", "UPDATE scheduler.workflow SET created_at = now() - interval '8 days'"),
    (
        "week",
        "forgotten as it should",
        """INSERT INTO scheduler.run (workflow, keys, claimed, started_at, lease_until, deadline, finished_at)
           SELECT 'job', '{}', 1, t, t, t, t FROM (SELECT now() - interval '10 days' AS t) AS x""",
    ),
    ("week", "dead letter", "INSERT INTO scheduler.attempt (workflow, key, state) VALUES ('job', '1', 'dead')"),
]


def test_every_question_sees_the_fault_it_asks_for(queue: Queue) -> None:
    asked = [row[0] for row in queue.db.execute("SELECT \"check\" FROM scheduler.verify_deploy('week')").fetchall()]
    for stage, question, fault in FAULTS:
        (whole,) = (check for check in asked if question in check)
        with queue.db.transaction(force_rollback=True):
            queue.db.execute(fault.encode())
            assert whole in objections(queue.db, stage), fault
        asked.remove(whole)
    assert asked == []


def test_a_stage_that_does_not_exist_is_refused(queue: Queue) -> None:
    with pytest.raises(psycopg.errors.InvalidParameterValue) as refusal:
        queue.db.execute("SELECT scheduler.verify_deploy('month')")
    assert refusal.value.diag.message_hint == "Use hour, day or week."


def test_a_monitor_may_ask(queue: Queue, connect: Connect) -> None:
    assert objections(connect("scheduler_monitor"), "week") == {}


def test_the_command_ends_with_an_error_when_an_answer_is_no(
    queue: Queue, database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DATABASE_URL", database)
    well = CliRunner().invoke(app, ["verify-deploy", "--stage", "week"])
    assert (well.exit_code, "NO" in well.output) == (0, False), well.output
    queue.db.execute("DELETE FROM scheduler.listener")
    ill = CliRunner().invoke(app, ["verify-deploy"])
    assert ill.exit_code == 1
    assert "NO" in ill.output
