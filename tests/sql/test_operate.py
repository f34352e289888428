"""Operating and finishing: what each call does and says, and that a bad one changes nothing."""

from typing import Any

import psycopg
import pytest

from tests.sql.queue import Queue, call, one

UNKNOWN = ("there is no workflow 'nope'", "Registered: job.")
NOT_KEYS = ("these are not keys of", "Give values of id, of type integer")

# statement with RUN for an open run of items 1 and 2; what the message and the hint say
REFUSALS: list[tuple[str, tuple[str, str]]] = [
    *(
        (statement, UNKNOWN)
        for statement in (
            "SELECT scheduler.alter_workflow('nope', batch_size => 1)",
            "SELECT scheduler.drop_workflow('nope')",
            "SELECT scheduler.repair_workflow('nope')",
            "SELECT scheduler.dispatch('nope')",
            "SELECT scheduler.dispatch('nope', 'pg_cron')",
            "SELECT scheduler.enqueue('nope', ARRAY[1])",
            "SELECT scheduler.requeue('nope')",
            "SELECT scheduler.requeue('nope', ARRAY[1])",
            "SELECT scheduler.cancel('nope', ARRAY[1])",
            "SELECT scheduler.pause('nope')",
            "SELECT scheduler.resume('nope')",
            "SELECT scheduler.why('nope', 1)",
            "SELECT scheduler.preview('nope')",
            "SELECT scheduler.claim('nope')",
            "SELECT scheduler.rescue('nope')",
        )
    ),
    ("SELECT scheduler.enqueue('job', '{1,x}'::text[])", NOT_KEYS),
    ("SELECT scheduler.cancel('job', '{1,x}'::text[])", NOT_KEYS),
    ("SELECT scheduler.requeue('job', '{1,x}'::text[])", NOT_KEYS),
    ("SELECT scheduler.why('job', 'x'::text)", NOT_KEYS),
    ("SELECT scheduler.requeue('job', predicate => 'nope >')", ("ready predicate cannot be used", "true-or-false")),
    ("SELECT scheduler.requeue('job', predicate => 'true); DROP TABLE item; --')", ("cannot be used", "true-or-false")),
    ("SELECT scheduler.claim('job', items => 0)", ("cannot claim 0 items", "above 0")),
    ("SELECT scheduler.heartbeat(NULL)", ("needs the id", "uuid")),
    ("SELECT scheduler.succeed(RUN, '{1}', '{Filtered,Filtered}')", ("there are 1 keys", "one entry a key")),
    ("SELECT scheduler.succeed(RUN, '{1}', '{Queued}')", ("not a final word", "scheduler.release()")),
    ("SELECT scheduler.succeed(RUN, histogram => '{-1}')", ("at most 48", "duration_bucket")),
    ("SELECT scheduler.succeed(RUN, words => '{Filtered,Filtered}')", ("words need the keys", "one entry a key")),
    ("SELECT scheduler.succeed(RUN, histogram => '{{1,2},{3,4}}')", ("at most 48", "duration_bucket")),
    ("SELECT scheduler.succeed(RUN, histogram => '[0:1]={1,2}')", ("at most 48", "duration_bucket")),
    ("SELECT scheduler.succeed(RUN, histogram => '{2147483647}')", ("at most 48", "duration_bucket")),
    ("SELECT scheduler.fail(RUN, NULL, NULL)", ("needs the keys", "one error a key")),
    ("SELECT scheduler.fail(RUN, '{1,2}', '{boom}')", ("there are 2 keys", "one entry a key")),
    ("SELECT scheduler.fail(RUN, '{1}', '{boom}', '{t,f}')", ("there are 1 keys", "one entry a key")),
    ("SELECT scheduler.fail(RUN, '{1}', '{a}', histogram => '{NULL}')", ("at most 48", "duration_bucket")),
    ("SELECT scheduler.release(RUN, hold => '-1 s')", ("cannot be held for", "from 0 to 1 day")),
    ("SELECT scheduler.release(RUN, hold => '2 days')", ("cannot be held for", "pause()")),
]


def test_a_bad_call_names_the_fix_and_changes_nothing(db: psycopg.Connection) -> None:
    queue = Queue(db, 3)
    queue.set("Queued", 1, 2)
    run = queue.claim().run
    for statement, (message, hint) in REFUSALS:
        before = _everything(db)
        told = _refusal(db, statement.replace("RUN", str(run)))
        assert message in (told.message_primary or ""), statement
        assert hint in (told.message_hint or ""), statement
        assert _everything(db) == before, statement


def test_nothing_is_stranded_where_no_word_says_running(db: psycopg.Connection) -> None:
    Queue(db, 1, processing=None)
    told = _refusal(db, "SELECT scheduler.requeue('job', stranded => true)")
    assert "nothing can be stranded" in (told.message_primary or "")
    assert told.message_hint == "Leave stranded out."


def _refusal(db: psycopg.Connection, statement: str) -> psycopg.errors.Diagnostic:
    with pytest.raises(psycopg.Error) as caught:
        db.execute(statement.encode())
    return caught.value.diag


def _everything(db: psycopg.Connection) -> list[Any]:
    tables = ["workflow", "state", "slot", "run", "attempt", "takeover", "listener", "audit", "stat", "control"]
    return [
        one(db, f"SELECT jsonb_agg(t ORDER BY t::text) FROM {table} AS t")
        for table in ("item", *(f"scheduler.{name}" for name in tables))
    ]


@pytest.mark.parametrize("function", ["dispatch", "rescue", "enqueue", "succeed", "fail", "release", "cancel"])
def test_a_snapshot_that_could_be_stale_is_refused(db: psycopg.Connection, function: str) -> None:
    queue = Queue(db, 1)
    queue.set("Queued")
    run = queue.claim().run
    arguments = {
        "dispatch": "'job'",
        "rescue": "'job'",
        "enqueue": "'job', ARRAY[1]",
        "cancel": "'job', ARRAY[1]",
        "succeed": f"{run}",
        "fail": f"{run}, '{{1}}', '{{a}}'",
        "release": f"{run}",
    }[function]
    db.execute("SET default_transaction_isolation = 'serializable'")
    told = _refusal(db, f"SELECT scheduler.{function}({arguments})")
    assert "READ COMMITTED" in (told.message_hint or "")
    assert queue.status(1) == "Processing"


def test_no_ids_at_all_are_not_all_ids(db: psycopg.Connection) -> None:
    """array_agg() of no rows is NULL: whoever selects nothing must not requeue everything."""
    queue = Queue(db, 2)
    queue.set("Queued", 1)
    queue.fail(queue.claim().run, "1", permanent=True)
    queue.set("Queued", 2)
    nothing = "(SELECT array_agg(id) FROM item WHERE id > 99)"
    assert one(db, f"SELECT scheduler.requeue('job', {nothing})") == 0
    assert one(db, f"SELECT scheduler.requeue('job', ids => {nothing}, error => '%boom%')") == 0
    assert one(db, f"SELECT unqueued + revoked FROM scheduler.cancel('job', {nothing})") == 0
    assert one(db, f"SELECT queued FROM scheduler.enqueue('job', {nothing})") == 0
    assert queue.counts() == {"Failed": 1, "Queued": 1}


def test_enqueue_says_what_became_of_each_item(db: psycopg.Connection) -> None:
    queue = Queue(db, 5)
    queue.set("Queued", 1, 2)
    queue.claim(items=1)
    queue.set("Completed", 3)
    row = db.execute("SELECT * FROM scheduler.enqueue('job', ARRAY[1, 2, 3, 4, 4, 99])").fetchone()
    # queued, already queued, running, missing
    assert row == (2, 1, 1, 1)
    assert queue.counts() == {"Processing": 1, "Queued": 3, None: 1}


def test_enqueue_knows_what_runs_without_a_processing_word(db: psycopg.Connection) -> None:
    queue = Queue(db, 3, processing=None)
    queue.set("Queued", 1, 2)
    queue.claim(items=1)
    assert db.execute("SELECT * FROM scheduler.enqueue('job', ARRAY[1, 2, 3])").fetchone() == (1, 1, 1, 0)


def test_enqueue_gives_a_failing_item_all_its_attempts_back(db: psycopg.Connection) -> None:
    queue = Queue(db, 1, backoff="1 hour", backoff_max="1 hour")
    queue.set("Queued")
    queue.fail(queue.claim().run, "1")
    assert one(db, "SELECT queued FROM scheduler.enqueue('job', ARRAY[1])") == 1
    assert queue.claim().attempts == [1]


def test_every_operation_leaves_who_did_what_in_the_audit(db: psycopg.Connection) -> None:
    queue = Queue(db, 3)
    db.execute("SELECT set_config('scheduler.actor', 'alice@example.org', false)")
    queue.want(1)
    call(db, "dispatch", name="job")
    db.execute("SELECT scheduler.enqueue('job', ARRAY[2])")
    db.execute("SELECT scheduler.cancel('job', ARRAY[1])")
    call(db, "requeue", name="job")
    call(db, "pause", name="job", reason="why not")
    call(db, "resume", name="job")
    call(db, "pause_all")
    call(db, "resume_all")
    call(db, "alter_workflow", name="job", batch_size=7)
    call(db, "drop_workflow", name="job")
    assert db.execute("SELECT action, workflow, affected FROM scheduler.audit ORDER BY id").fetchall() == [
        ("create_workflow", "job", None),
        ("dispatch", "job", 1),
        ("enqueue", "job", 1),
        ("cancel", "job", 1),
        ("requeue", "job", 0),
        ("pause", "job", None),
        ("resume", "job", None),
        ("pause_all", None, None),
        ("resume_all", None, None),
        ("alter_workflow", "job", None),
        ("drop_workflow", "job", 0),
    ]
    who = {row[0] for row in db.execute("SELECT who FROM scheduler.audit WHERE id > 1")}
    assert who == {f"{one(db, 'SELECT session_user')} for alice@example.org"}


def test_a_finished_run_is_not_finished_twice(db: psycopg.Connection) -> None:
    queue = Queue(db, 2)
    queue.set("Queued")
    claim = queue.claim()
    assert queue.succeed(claim.run, "1", "1") == (1, [])
    assert queue.succeed(claim.run, "1") == (0, ["1"])
    assert queue.succeed(claim.run) == (1, [])
    assert queue.succeed(claim.run) == (0, [])
    assert queue.fail(claim.run, "2")[:2] == (0, ["2"])
    assert one(db, "SELECT scheduler.release(%s)", claim.run) == 0
    assert queue.counts() == {"Completed": 2}
    assert queue.succeed(999_999, "1") == (0, ["1"])


def test_a_run_cannot_finish_the_items_of_another(db: psycopg.Connection) -> None:
    queue = Queue(db, 2, batch_size=1)
    queue.set("Queued")
    first, second = queue.claim(), queue.claim()
    assert queue.succeed(first.run, "1", "2") == (1, ["2"])
    assert queue.succeed(second.run) == (1, [])
