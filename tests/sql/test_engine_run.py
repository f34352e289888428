"""Claim, finish, retry, rescue: what happens to one item after the other."""

import uuid
from datetime import timedelta

import psycopg
import pytest

from tests.sql.queue import Queue, call, one
from tests.waiting import PATIENCE


def test_the_oldest_are_claimed_first_up_to_the_batch_size(db: psycopg.Connection) -> None:
    queue = Queue(db, 10, batch_size=4)
    queue.set("Queued")
    claim = queue.claim()
    assert claim.keys == ["1", "2", "3", "4"]
    assert claim.attempts == [1, 1, 1, 1]
    assert queue.counts() == {"Processing": 4, "Queued": 6}
    assert queue.claim(items=2).keys == ["5", "6"]
    assert queue.claim(items=100).keys == ["7", "8", "9", "10"]
    assert queue.claim().reason == "empty"


def test_a_higher_priority_goes_before_age(db: psycopg.Connection) -> None:
    queue = Queue(db, 4, priority_column="priority")
    db.execute("UPDATE item SET priority = CASE id WHEN 3 THEN 9 WHEN 4 THEN 1 END")
    queue.set("Queued")
    assert [queue.claim(items=1).keys[0] for _ in range(4)] == ["3", "4", "1", "2"]


@pytest.mark.parametrize("processing", ["Processing", None])
@pytest.mark.parametrize("column", ["key", "tid", "place"])
def test_columns_named_as_in_the_engines_own_queries_keep_the_order(
    db: psycopg.Connection, column: str, processing: str | None
) -> None:
    db.execute(f"CREATE TABLE t (id int PRIMARY KEY, {column} int, status text)".encode())
    db.execute("INSERT INTO t SELECT n, -n FROM generate_series(1, 12) AS n")
    settings = {"age_column": column, "processing": processing, "ready": "true", "batch_size": 2}
    call(db, "create_workflow", name="job", relation="t", status_column="status", **settings)
    assert [key for (key,) in db.execute("SELECT key FROM scheduler.preview('job')")] == ["12", "11"]
    call(db, "dispatch", name="job")
    assert db.execute("SELECT id FROM t WHERE status = 'Queued' ORDER BY id").fetchall() == [(11,), (12,)]
    db.execute("UPDATE t SET status = 'Queued'")
    assert Queue.of(db).claim().keys == ["12", "11"]


def test_numbers_in_a_key_column_named_key_are_claimed_in_their_order(db: psycopg.Connection) -> None:
    db.execute("CREATE TABLE t (key int PRIMARY KEY, status text)")
    call(db, "create_workflow", name="job", relation="t", status_column="status", processing=None)
    db.execute("INSERT INTO t SELECT n, 'Queued' FROM generate_series(1, 12) AS n")
    assert Queue.of(db).claim(3).keys == ["1", "2", "3"]


@pytest.mark.parametrize("processing", ["Processing", None])
def test_rows_that_have_moved_since_they_were_claimed_are_finished_all_the_same(
    db: psycopg.Connection, processing: str | None
) -> None:
    queue = Queue(db, 4, processing=processing)
    queue.set("Queued")
    claim = queue.claim()
    db.execute("UPDATE item SET priority = 1 WHERE id IN (1, 3)")
    assert queue.succeed(claim.run) == (4, [])
    assert queue.counts() == {"Completed": 4}
    assert queue.run(claim.run)["places"] is None


def test_whatever_is_in_a_rows_place_by_now_is_not_finished_for_it(db: psycopg.Connection) -> None:
    queue = Queue(db, 4, batch_size=2, processing=None)
    queue.set("Queued")
    mine, theirs = queue.claim(), queue.claim()
    # as if vacuum had freed the places of mine, and the rows of the other run had come to lie there
    db.execute(
        "UPDATE scheduler.run SET places = (SELECT places FROM scheduler.run WHERE id = %s) WHERE id = %s",
        [theirs.run, mine.run],
    )
    assert queue.succeed(mine.run) == (2, [])
    assert [queue.status(key) for key in (1, 2, 3, 4)] == ["Completed", "Completed", "Queued", "Queued"]
    assert queue.succeed(theirs.run) == (2, [])


def test_a_thousand_rows_are_finished_where_they_were_claimed(db: psycopg.Connection) -> None:
    """Looking up each key again took a fifth of the time."""
    queue = Queue(db, 1000, batch_size=1000, processing=None)
    queue.set("Queued")
    looked_up = "SELECT idx_scan FROM pg_stat_user_indexes WHERE indexrelname = 'item_pkey'"
    db.execute("SELECT pg_stat_force_next_flush()")
    before = one(db, looked_up)
    assert queue.succeed(queue.claim().run) == (1000, [])
    db.execute("SELECT pg_stat_force_next_flush()")
    assert one(db, looked_up) == before


def test_success_leaves_the_word_no_error_and_no_trace(db: psycopg.Connection) -> None:
    queue = Queue(db, 3)
    queue.set("Queued")
    claim = queue.claim()
    assert queue.succeed(claim.run, "1", "2") == (2, [])
    assert queue.run(claim.run)["finished_at"] is None
    assert queue.succeed(claim.run) == (1, [])
    assert queue.counts() == {"Completed": 3}
    assert queue.run(claim.run)["finished_at"] is not None
    assert one(db, "SELECT count(*) FROM scheduler.attempt") == 0


def test_an_item_can_end_in_a_word_of_its_own(db: psycopg.Connection) -> None:
    queue = Queue(db, 2)
    queue.set("Queued")
    claim = queue.claim()
    queue.succeed(claim.run, "1", "2", words=["Filtered", None])
    assert [queue.status(1), queue.status(2)] == ["Filtered", "Completed"]


@pytest.mark.parametrize("word", ["Queued", "Processing", "Failed"])
def test_the_engines_own_words_are_not_final(db: psycopg.Connection, word: str) -> None:
    queue = Queue(db, 1)
    queue.set("Queued")
    claim = queue.claim()
    with pytest.raises(psycopg.errors.InvalidParameterValue, match="not a final word"):
        queue.succeed(claim.run, "1", words=[word])
    assert queue.status(1) == "Processing"


def test_a_failure_is_retried_until_the_attempts_are_used_up(db: psycopg.Connection) -> None:
    queue = Queue(db, 1, max_attempts=3)
    queue.set("Queued")
    for attempt in (1, 2, 3):
        claim = queue.claim()
        assert claim.attempts == [attempt]
        _, _, dead = queue.fail(claim.run, "1", error=f"try {attempt}")
        assert (queue.status(1), queue.error(1)) == ("Failed", f"try {attempt}")
        assert dead == (["1"] if attempt == 3 else [])
        queue.due()
    assert queue.claim().reason == "empty"
    assert db.execute("SELECT key, attempts, reason FROM scheduler.dead_letter").fetchall() == [
        ("1", 3, "attempts used up")
    ]


def test_rows_that_a_trigger_of_the_application_keeps_as_they_are_are_not_claimed(db: psycopg.Connection) -> None:
    queue = Queue(db, 4)
    queue.set("Queued")
    db.execute(
        "CREATE FUNCTION keep() RETURNS trigger LANGUAGE plpgsql AS"
        " $$ BEGIN RETURN CASE WHEN NEW.id IN (1, 3) AND NEW.status = 'Processing' THEN NULL ELSE NEW END; END $$;"
        "CREATE TRIGGER keep BEFORE UPDATE ON item FOR EACH ROW EXECUTE FUNCTION keep()"
    )
    claim = queue.claim()
    assert claim.keys == ["2", "4"]
    assert [queue.status(n) for n in (1, 2, 3, 4)] == ["Queued", "Processing", "Queued", "Processing"]
    assert queue.claim().reason == "empty"


def test_success_after_a_failure_clears_the_error_and_the_ledger(db: psycopg.Connection) -> None:
    queue = Queue(db, 1)
    queue.set("Queued")
    queue.fail(queue.claim().run, "1")
    queue.due()
    queue.succeed(queue.claim().run)
    assert (queue.status(1), queue.error(1), queue.ledger(1)) == ("Completed", None, None)


def test_a_permanent_failure_goes_to_the_dead_letter_at_once(db: psycopg.Connection) -> None:
    queue = Queue(db, 1)
    queue.set("Queued")
    assert queue.fail(queue.claim().run, "1", permanent=True)[2] == ["1"]
    assert queue.ledger(1) == ("dead", 1, 0)


def test_backoff_doubles_with_jitter_up_to_its_limit(db: psycopg.Connection) -> None:
    queue = Queue(db, 1, backoff="10 seconds", backoff_max="60 seconds", max_attempts=9)
    for attempt, delay in enumerate([10, 20, 40, 60, 60], start=1):
        queue.set("Queued")
        queue.fail(queue.claim().run, "1")
        waited = one(db, "SELECT extract(epoch FROM retry_at - now()) FROM scheduler.attempt")
        assert 0.5 * delay - 1 <= float(waited) <= 1.5 * delay, attempt


def test_a_retry_comes_no_sooner_than_the_server_asked(db: psycopg.Connection) -> None:
    queue = Queue(db, 1)
    queue.set("Queued")
    queue.fail(queue.claim().run, "1", after="1 hour")
    waited = one(db, "SELECT retry_at - now() FROM scheduler.attempt")
    assert timedelta(minutes=59) <= waited <= timedelta(minutes=67)


def test_an_error_is_cut_and_its_secrets_are_gone(db: psycopg.Connection) -> None:
    queue = Queue(db, 1)
    queue.set("Queued")
    queue.fail(
        queue.claim().run,
        "1",
        error="GET https://bob:hunter2@example.org/?key=AIzaSyTOPSECRET0123456789abcd " + "x" * 5000,
    )
    error = queue.error(1)
    assert error is not None
    assert len(error) == 1024
    assert "hunter2" not in error
    assert "TOPSECRET" not in error


def test_release_spends_no_attempt_and_can_hold_the_workflow(db: psycopg.Connection) -> None:
    queue = Queue(db, 2)
    queue.set("Queued")
    claim = queue.claim()
    assert one(db, "SELECT scheduler.release(%s, '{1}')", claim.run) == 1
    assert one(db, "SELECT scheduler.release(%s, hold => '10 minutes', reason => 'API down')", claim.run) == 1
    assert queue.counts() == {"Queued": 2}
    held = queue.claim()
    assert (held.reason, held.again_at is not None) == ("held", True)
    call(db, "resume", name="job")
    assert queue.claim().attempts == [1, 1]


def test_a_lost_listener_costs_an_attempt_and_the_item_comes_back(db: psycopg.Connection) -> None:
    queue = Queue(db, 1)
    queue.set("Queued")
    first = queue.claim()
    queue.expire(first.run)
    second = queue.claim()
    assert (second.keys, second.attempts) == (["1"], [2])
    assert queue.succeed(first.run, "1") == (0, ["1"])
    assert queue.status(1) == "Processing"
    assert queue.succeed(second.run, "1") == (1, [])


def test_results_are_taken_after_the_lease_until_someone_rescues(db: psycopg.Connection) -> None:
    queue = Queue(db, 1)
    queue.set("Queued")
    claim = queue.claim()
    queue.expire(claim.run)
    assert queue.succeed(claim.run) == (1, [])
    assert call(db, "rescue") == 0


def test_an_item_that_kills_its_listener_ends_alone_and_its_neighbours_get_through(db: psycopg.Connection) -> None:
    queue = Queue(db, 200, batch_size=200, max_attempts=4)
    queue.set("Queued")
    killer = "77"
    for _ in range(400):
        claim = queue.claim()
        if claim.run is None:
            break
        if killer in claim.keys:
            queue.expire(claim.run)
        else:
            queue.succeed(claim.run)
    assert queue.counts() == {"Completed": 199, "Failed": 1}
    assert queue.ledger(int(killer)) == ("dead", 4, 4)
    assert "listener was lost" in (queue.error(77) or "")


def test_a_heartbeat_renews_the_lease_but_never_past_the_deadline(db: psycopg.Connection) -> None:
    queue = Queue(db, 1, lease="10 seconds", timeout="1 second")
    queue.set("Queued")
    listener = str(uuid.uuid4())
    claim = queue.claim(listener=listener)
    assert claim.run is not None
    db.execute("UPDATE scheduler.run SET lease_until = now() - interval '5 s', deadline = now() + interval '2 s'")
    assert queue.heartbeat(listener, claim.run) == {claim.run: (False, [])}
    assert one(db, "SELECT lease_until = deadline FROM scheduler.run")
    assert one(db, "SELECT state FROM scheduler.listeners") == "alive"


def test_a_heartbeat_tells_what_was_lost(db: psycopg.Connection) -> None:
    queue = Queue(db, 3, batch_size=1)
    queue.set("Queued")
    mine, other = str(uuid.uuid4()), str(uuid.uuid4())
    rescued, foreign, cancelled = (queue.claim(listener=who) for who in (mine, other, mine))
    queue.expire(rescued.run)
    call(db, "rescue")
    db.execute("SELECT scheduler.cancel('job', %s::text[])", [cancelled.keys])
    assert rescued.run
    assert foreign.run
    assert cancelled.run
    told = queue.heartbeat(mine, rescued.run, foreign.run, cancelled.run)
    assert [told[run][0] for run in (rescued.run, foreign.run, cancelled.run)] == [True, True, True]


def test_pause_stops_claims_and_dispatches_and_lets_running_items_finish(db: psycopg.Connection) -> None:
    queue = Queue(db, 4, batch_size=2)
    queue.set("Queued", 1, 2)
    queue.want(3, 4)
    claim = queue.claim()
    call(db, "pause", name="job", reason="maintenance")
    assert queue.claim().reason == "paused"
    call(db, "dispatch", name="job")
    assert queue.counts() == {"Processing": 2, None: 2}
    assert queue.succeed(claim.run)[0] == 2
    call(db, "resume", name="job")
    call(db, "dispatch", name="job")
    assert len(queue.claim().keys) == 2


def test_pause_all_outlives_resume_and_keeps_single_pauses(db: psycopg.Connection) -> None:
    queue = Queue(db, 1)
    queue.set("Queued")
    call(db, "pause", name="job")
    call(db, "pause_all", reason="upgrade")
    assert "resume_all" in call(db, "resume", name="job")
    assert queue.claim().reason == "paused"
    call(db, "pause", name="job")
    assert "job" in call(db, "resume_all")
    assert queue.claim().reason == "paused"
    call(db, "resume", name="job")
    assert queue.claim().keys == ["1"]


def test_cancel_takes_queued_items_back_and_the_schedule_leaves_them(db: psycopg.Connection) -> None:
    queue = Queue(db, 2)
    queue.want()
    call(db, "dispatch", name="job")
    assert db.execute("SELECT * FROM scheduler.cancel('job', ARRAY[1])").fetchone() == (1, 0, 0)
    assert queue.status(1) is None
    call(db, "dispatch", name="job")
    assert queue.status(1) is None
    assert db.execute("SELECT queued FROM scheduler.enqueue('job', ARRAY[1])").fetchone() == (1,)
    assert queue.claim().keys == ["1", "2"]


def test_cancel_takes_running_items_from_their_run_and_tells_the_listener(db: psycopg.Connection) -> None:
    queue = Queue(db, 2)
    queue.set("Queued")
    listener = str(uuid.uuid4())
    claim = queue.claim(listener=listener)
    assert claim.run is not None
    db.execute("LISTEN scrapersky")
    assert db.execute("SELECT * FROM scheduler.cancel('job', ARRAY[2, 99])").fetchone() == (0, 1, 1)
    assert [note.payload for note in db.notifies(timeout=PATIENCE, stop_after=1)] == ["job!"]
    assert queue.heartbeat(listener, claim.run) == {claim.run: (False, ["2"])}
    assert queue.succeed(claim.run, "1", "2") == (1, ["2"])
    assert [queue.status(1), queue.status(2)] == ["Completed", None]


def test_requeue_by_ids_by_error_by_predicate_and_all(db: psycopg.Connection) -> None:
    queue = Queue(db, 4)
    queue.set("Queued")
    run = queue.claim().run
    for key, error in (("1", "timeout of host a"), ("2", "timeout of host b"), ("3", "bad page"), ("4", "bad page")):
        queue.fail(run, key, error=error, permanent=True)
    assert call(db, "requeue", name="job", error="%host a%") == 1
    assert call(db, "requeue", name="job", predicate="id = 3") == 1
    assert one(db, "SELECT scheduler.requeue('job', ARRAY[4, 1])") == 1
    assert queue.counts() == {"Queued": 3, "Failed": 1}
    assert call(db, "requeue", name="job") == 1
    assert queue.claim().attempts == [1, 1, 1, 1]


def test_a_dead_item_queued_by_hand_starts_anew(db: psycopg.Connection) -> None:
    queue = Queue(db, 1, max_attempts=1)
    queue.set("Queued")
    queue.fail(queue.claim().run, "1")
    queue.set("Queued")
    assert queue.claim().attempts == [1]


def test_stranded_items_can_be_queued(db: psycopg.Connection) -> None:
    queue = Queue(db, 3)
    queue.set("Processing", 1)
    queue.set("Queued", 2)
    queue.claim()
    assert "stranded => true" in one(db, "SELECT scheduler.why('job', 1)")
    assert call(db, "requeue", name="job", stranded=True) == 1
    assert [queue.status(1), queue.status(2)] == ["Queued", "Processing"]


@pytest.mark.parametrize("word", ["Filtered", None])
def test_a_persons_write_wins(db: psycopg.Connection, word: str | None) -> None:
    queue = Queue(db, 2)
    queue.set("Queued")
    claim = queue.claim()
    queue.set(word, 1)
    assert queue.succeed(claim.run) == (1, ["1"])
    assert queue.status(1) == word
    assert queue.run(claim.run)["discarded"] == 1


@pytest.mark.parametrize("detour", [None, "Filtered"])
def test_an_item_requeued_by_a_person_belongs_to_the_next_run(db: psycopg.Connection, detour: str | None) -> None:
    queue = Queue(db, 1)
    queue.set("Queued")
    first = queue.claim()
    if detour:
        queue.set(detour, 1)
    queue.set("Queued", 1)
    second = queue.claim()
    assert second.keys == ["1"]
    assert queue.succeed(first.run, "1") == (0, ["1"])
    assert queue.fail(first.run, "1")[:2] == (0, ["1"])
    assert queue.status(1) == "Processing"
    assert queue.succeed(second.run) == (1, [])


def test_a_row_deleted_while_it_runs_is_no_trouble(db: psycopg.Connection) -> None:
    queue = Queue(db, 3)
    queue.set("Queued")
    claim = queue.claim()
    db.execute("DELETE FROM item WHERE id < 3")
    assert queue.fail(claim.run, "1")[:2] == (0, ["1"])
    assert queue.succeed(claim.run) == (1, ["2"])
    assert queue.run(claim.run)["finished_at"] is not None


def test_without_a_processing_word_the_row_is_not_touched_by_a_claim(db: psycopg.Connection) -> None:
    queue = Queue(db, 3, processing=None)
    queue.set("Queued")
    before = db.execute("SELECT ctid, xmin FROM item ORDER BY id").fetchall()
    first, second = queue.claim(items=2), queue.claim()
    assert (first.keys, second.keys) == (["1", "2"], ["3"])
    assert db.execute("SELECT ctid, xmin FROM item ORDER BY id").fetchall() == before
    assert queue.claim().reason == "empty"
    queue.succeed(first.run)
    queue.fail(second.run, "3", permanent=True)
    assert queue.counts() == {"Completed": 2, "Failed": 1}


def test_max_instances_counts_open_runs_also_when_it_changes(db: psycopg.Connection) -> None:
    queue = Queue(db, 9, batch_size=1, max_instances=2)
    queue.set("Queued")
    first, second = queue.claim(), queue.claim()
    assert queue.claim().reason == "max_instances"
    call(db, "alter_workflow", name="job", max_instances=3)
    third = queue.claim()
    assert third.run is not None
    call(db, "alter_workflow", name="job", max_instances=1)
    queue.succeed(first.run)
    queue.succeed(third.run)
    assert queue.claim().reason == "max_instances"
    queue.succeed(second.run)
    assert queue.claim().run is not None
    call(db, "alter_workflow", name="job", clear=["max_instances"])
    open_run = queue.claim()
    assert open_run.run is not None
    call(db, "alter_workflow", name="job", max_instances=2)
    assert queue.claim().reason == "max_instances"


def test_the_rate_limit_holds_in_every_window(db: psycopg.Connection) -> None:
    queue = Queue(db, 20, batch_size=4, rate_limit=6, rate_period="1 minute")
    queue.set("Queued")
    assert [len(queue.claim().keys) for _ in range(2)] == [4, 2]
    refused = queue.claim()
    assert (refused.reason, refused.again_at is not None) == ("rate_limit", True)
    db.execute("UPDATE scheduler.run SET started_at = started_at - interval '1 minute' WHERE claimed = 4")
    assert len(queue.claim().keys) == 4
    assert queue.claim().reason == "rate_limit"


def test_the_breaker_trips_probes_and_closes(db: psycopg.Connection) -> None:
    queue = Queue(db, 60, batch_size=20, max_attempts=9, backoff="1 hour", backoff_max="1 hour")
    queue.set("Queued")
    claim = queue.claim()
    queue.fail(claim.run, *claim.keys)
    tripped = queue.claim()
    assert (tripped.reason, tripped.again_at is not None) == ("breaker", True)
    assert one(db, "SELECT state FROM scheduler.status") == "breaker open"
    db.execute("UPDATE scheduler.state SET breaker_until = now() - interval '1 second'")
    probe = queue.claim()
    assert len(probe.keys) == 1
    assert queue.claim().reason == "breaker"
    queue.fail(probe.run, *probe.keys)
    assert one(db, "SELECT breaker_until > now() + interval '90 seconds' FROM scheduler.state")
    db.execute("UPDATE scheduler.state SET breaker_until = now() - interval '1 second'")
    queue.succeed(queue.claim().run)
    assert len(queue.claim().keys) == 20


def test_rejected_items_do_not_trip_the_breaker(db: psycopg.Connection) -> None:
    queue = Queue(db, 40, batch_size=40)
    queue.set("Queued")
    claim = queue.claim()
    queue.fail(claim.run, *claim.keys[:30], permanent=True)
    queue.fail(claim.run, *claim.keys[30:])
    assert one(db, "SELECT breaker_state FROM scheduler.state") == "closed"


def test_only_read_committed_transactions_may_claim(db: psycopg.Connection) -> None:
    queue = Queue(db, 1)
    db.execute("SET default_transaction_isolation = 'repeatable read'")
    with pytest.raises(psycopg.errors.InvalidTransactionState, match="READ COMMITTED"):
        queue.claim()


def test_two_workflows_share_a_table_without_meeting(db: psycopg.Connection) -> None:
    queue = Queue(db, 2)
    db.execute("ALTER TABLE item ADD COLUMN other text")
    queue.create("second", status_column="other", error_column=None, ready=None)
    queue.set("Queued")
    db.execute("UPDATE item SET other = 'Queued'")
    first, second = queue.claim(), queue.claim(name="second")
    assert first.keys == second.keys == ["1", "2"]
    queue.succeed(first.run)
    queue.fail(second.run, "1", "2")
    assert db.execute("SELECT DISTINCT status, other FROM item").fetchall() == [("Completed", "Failed")]


def test_a_dropped_table_breaks_its_own_workflow_only(db: psycopg.Connection) -> None:
    queue = Queue(db, 1)
    db.execute("CREATE TABLE second (id integer PRIMARY KEY, status text)")
    call(db, "create_workflow", name="second", relation="second", status_column="status")
    queue.set("Queued")
    db.execute("DROP TABLE second")
    with pytest.raises(psycopg.errors.UndefinedTable, match="has been dropped"):
        queue.claim(name="second")
    call(db, "maintain")
    assert one(db, "SELECT state FROM scheduler.status WHERE workflow = 'second'") == "broken"
    assert queue.claim().keys == ["1"]
    assert "is gone" in call(db, "drop_workflow", name="second")
