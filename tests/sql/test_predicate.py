"""The ready predicate: it means in every session what it meant to the person who wrote it."""

import psycopg
from psycopg import sql

from tests.conftest import Connect
from tests.sql.queue import Queue, call, one


def test_it_means_the_same_whatever_the_search_path_of_the_clock(db: psycopg.Connection, connect: Connect) -> None:
    db.execute("CREATE SCHEMA mine; CREATE SCHEMA other; GRANT USAGE ON SCHEMA mine TO scheduler_owner")
    for schema, answer in (("mine", "true"), ("other", "false")):
        db.execute(
            sql.SQL("CREATE FUNCTION {}.good(integer) RETURNS boolean IMMUTABLE RETURN {}").format(
                sql.Identifier(schema), sql.SQL(answer)
            )
        )
    db.execute("SET search_path = mine, public")
    queue = Queue(db, 2, ready="good(id) AND created_at < '2099-02-01' AND status IS NULL")
    clock = connect()
    clock.execute("SET search_path = other; SET datestyle = 'SQL, DMY'")
    assert one(clock, "SELECT queued FROM scheduler.dispatch('job')") == 2
    assert queue.counts() == {"Queued": 2}


def test_it_means_the_same_whatever_way_the_author_writes_intervals(db: psycopg.Connection, connect: Connect) -> None:
    author = connect()
    author.execute("SET intervalstyle = 'sql_standard'")
    # in that style the sign counts for the hours too
    Queue(author, 1, ready="id * interval '1 day' < interval '-1 2:00:00' + interval '2 days 1 hour'")
    assert one(db, "SELECT queued FROM scheduler.dispatch('job')") == 0


def test_it_may_look_into_other_tables_and_refer_to_the_row(db: psycopg.Connection) -> None:
    db.execute("CREATE TABLE approval (item integer); GRANT SELECT ON approval TO scheduler_owner")
    queue = Queue(db, 3, ready="EXISTS (SELECT FROM approval AS a WHERE a.item = t.id)")
    db.execute("INSERT INTO approval VALUES (2)")
    call(db, "dispatch", name="job")
    assert queue.counts() == {"Queued": 1, None: 2}
    queue.succeed(queue.claim().run)
    call(db, "dispatch", name="job")
    assert queue.counts() == {"Completed": 1, None: 2}


def test_changing_it_changes_the_index_with_it(db: psycopg.Connection) -> None:
    queue = Queue(db, 4)
    definition = "SELECT pg_get_indexdef(to_regclass('scheduler_job_ready'))"
    assert "wanted" in one(db, definition)
    call(db, "alter_workflow", name="job", ready="id > 3 AND status IS NULL")
    assert "id > 3" in one(db, definition)
    call(db, "dispatch", name="job")
    assert queue.counts() == {"Queued": 1, None: 3}
    call(db, "alter_workflow", name="job", clear=["ready"])
    assert one(db, definition) is None
    db.execute("UPDATE item SET status = NULL")
    assert one(db, "SELECT queued FROM scheduler.dispatch('job')") == 0


def test_one_that_no_index_can_serve_works_and_the_doctor_says_so(db: psycopg.Connection) -> None:
    told: list[str | None] = []
    db.add_notice_handler(lambda note: told.append(note.message_primary))
    queue = Queue(db, 2, ready="created_at < now() AND status IS NULL")
    assert "no index can serve its ready predicate" in (told[-1] or "")
    call(db, "dispatch", name="job")
    assert queue.counts() == {"Queued": 2}
    assert "no index serves its ready predicate" in one(
        db, "SELECT string_agg(finding, '') FROM scheduler.doctor() WHERE workflow = 'job'"
    )


def test_a_text_that_reads_like_the_status_column_is_not_the_column(db: psycopg.Connection) -> None:
    """So finished rows are not queued again and again."""
    queue = Queue(db, 1, ready="coalesce(error, '') <> 'status'")
    call(db, "dispatch", name="job")
    queue.succeed(queue.claim().run)
    assert one(db, "SELECT queued FROM scheduler.dispatch('job')") == 0
