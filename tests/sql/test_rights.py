"""Who may do what: each role against each function and table, and the tricks of someone hostile."""

import json
from collections.abc import Iterator

import psycopg
import pytest
from psycopg import sql

from listener.schema import migrate
from tests.conftest import Connect
from tests.sql.queue import Queue, call, one

MONITOR, LISTENER, ADMIN = "scheduler_monitor", "scheduler_listener", "scheduler_admin"
CRON = "scheduler_cron"
ROLES = (MONITOR, LISTENER, ADMIN, CRON)

# Role and what it may call beyond the roles above it: a listener may look as well, an admin may do everything.
LOOKS = """why preview doctor verify_deploy redact duration_bucket histogram_add histogram_percentile histogram_sum
           cron_home cron_alive cron_next cron_previous cron_parse cron_timezone"""
WORKS = "claim claimable heartbeat succeed fail defer release rescue maintain tick dispatch take_alerts alert_sent"
OPERATES = """create_workflow alter_workflow drop_workflow repair_workflow sync_cron
              enqueue requeue cancel pause resume pause_all resume_all"""
CALLS = {
    MONITOR: set(LOOKS.split()),
    LISTENER: set(f"{LOOKS} {WORKS}".split()),
    ADMIN: set(f"{LOOKS} {WORKS} {OPERATES}".split()),
    # what its jobs run, and what those ask of pg_cron
    # (a strict function of nothing but NULL is answered by the planner, whoever asks)
    CRON: {"dispatch", "maintain", "tick", "cron_home", "duration_bucket", "histogram_percentile"},
}


@pytest.fixture
def nobody(db: psycopg.Connection) -> Iterator[str]:
    """A role that has been granted nothing."""
    name = str(one(db, "SELECT 'nobody_' || substr(md5(current_database()), 1, 12)"))
    db.execute(sql.SQL("CREATE ROLE {} NOLOGIN").format(sql.Identifier(name)))
    yield name
    db.execute(sql.SQL("DROP OWNED BY {0}; DROP ROLE {0}").format(sql.Identifier(name)))


def test_each_role_can_call_its_functions_and_no_others(db: psycopg.Connection, connect: Connect, nobody: str) -> None:
    Queue(db, 1)
    functions = _functions(db)
    assert {name for name, _ in functions} == CALLS[ADMIN]
    for role in (*ROLES, nobody):
        session = connect(role, autocommit=False)
        called = {name for name, statement in functions if _is_allowed(session, statement)}
        assert (role, called) == (role, CALLS.get(role, set()))


def _functions(db: psycopg.Connection) -> list[tuple[str, str]]:
    """Every public function with a call of it; that NULLs make no sense comes after the question of rights."""
    rows = db.execute(
        """
        SELECT p.proname, format('SELECT scheduler.%I(%s)', p.proname, string_agg('NULL::' || CASE t.type
            WHEN 'anyarray'::regtype THEN 'integer[]' WHEN 'anyelement'::regtype THEN 'integer'
            ELSE t.type::regtype::text END, ', ' ORDER BY t.n))
        FROM pg_proc AS p LEFT JOIN unnest(p.proargtypes) WITH ORDINALITY AS t (type, n) ON true
        WHERE p.pronamespace = 'scheduler'::regnamespace AND p.proname !~ '^_' AND p.prorettype <> 'trigger'::regtype
        GROUP BY p.oid, p.proname
        """
    ).fetchall()
    return [(name, statement) for name, statement in rows]


def _is_allowed(session: psycopg.Connection, statement: str) -> bool:
    """False if the right to call it is missing; if it complains of something else, it must name the fix."""
    try:
        session.execute(statement.encode())
    except psycopg.errors.InsufficientPrivilege:
        return False
    except psycopg.Error as error:
        if not error.diag.message_hint:
            raise
    finally:
        session.rollback()
    return True


def test_internal_functions_are_for_those_who_operate_or_for_the_views(db: psycopg.Connection, nobody: str) -> None:
    callable_by = """
        SELECT array_agg(DISTINCT p.proname::text ORDER BY p.proname::text) FROM pg_proc AS p
        WHERE p.pronamespace = 'scheduler'::regnamespace
          AND (p.proname ~ '^_' OR p.prorettype = 'trigger'::regtype)
          AND has_function_privilege(%s, p.oid, 'EXECUTE')
    """
    looks = one(db, callable_by, MONITOR)
    assert one(db, callable_by, nobody) is None
    assert one(db, callable_by, CRON) == ["_check_name", "_cron_command", "_cron_drop", "_setting"]
    assert one(db, callable_by, LISTENER) == looks
    assert looks == [
        "_base_type",
        "_cron_command",
        "_cron_day_matches",
        "_cron_field",
        "_cron_jobs",
        "_cron_nearest",
        "_depth",
        "_examine_cron",
        "_examine_environment",
        "_examine_listeners",
        "_examine_server",
        "_examine_table",
        "_examine_vacuum",
        "_grants",
        "_index_missing",
        "_key_needs_index",
        "_launcher_lives",
        "_listened",
        "_rows_hidden",
        "_session",
        "_setting",
        "_shape",
        "_threshold",
        "_trigger_missing",
    ]


def test_the_tables_are_read_by_monitors_and_written_by_nobody(
    db: psycopg.Connection, connect: Connect, nobody: str
) -> None:
    Queue(db, 1)
    names = [
        name
        for (name,) in db.execute(
            "SELECT relname FROM pg_class WHERE relnamespace = 'scheduler'::regnamespace AND relkind IN ('r', 'v')"
        )
    ]
    assert {"workflow", "run", "audit", "status", "queue_depth", "dead_letter"} <= set(names)
    for role in (*ROLES, nobody):
        session = connect(role, autocommit=False)
        readable = {name for name in names if _is_allowed(session, f"SELECT * FROM scheduler.{name}")}
        assert (role, readable) == (role, set() if role in (CRON, nobody) else set(names))
        written = [
            (name, verb)
            for name in names
            for verb in ("INSERT", "UPDATE", "DELETE", "TRUNCATE")
            if one(db, "SELECT has_table_privilege(%s, %s, %s)", role, f"scheduler.{name}", verb)
        ]
        assert (role, written) == (role, [])
        sequences = "SELECT relname FROM pg_class WHERE relkind = 'S' AND relnamespace = 'scheduler'::regnamespace"
        for (sequence,) in db.execute(sequences.encode()).fetchall():
            used = one(db, "SELECT has_sequence_privilege(%s, %s, 'USAGE, UPDATE')", role, f"scheduler.{sequence}")
            assert (role, sequence, used) == (role, sequence, False)
        # a right on a single column would open the table by a back door
        columns = """
            SELECT a.attrelid::regclass::text FROM pg_attribute AS a JOIN pg_class AS c ON c.oid = a.attrelid
            WHERE c.relnamespace = 'scheduler'::regnamespace AND a.attacl IS NOT NULL
        """
        assert db.execute(columns.encode()).fetchall() == []


def test_nothing_is_granted_to_everybody(db: psycopg.Connection) -> None:
    granted = db.execute(
        """
        SELECT p.oid::regprocedure::text
        FROM pg_proc AS p, aclexplode(coalesce(p.proacl, acldefault('f', p.proowner))) AS a
        WHERE p.pronamespace = 'scheduler'::regnamespace AND a.grantee = 0
        UNION ALL
        SELECT c.oid::regclass::text
        FROM pg_class AS c, aclexplode(coalesce(c.relacl, acldefault('r', c.relowner))) AS a
        WHERE c.relnamespace = 'scheduler'::regnamespace AND c.relkind IN ('r', 'v', 'S') AND a.grantee = 0
        UNION ALL
        SELECT 'schema' FROM pg_namespace AS n, aclexplode(coalesce(n.nspacl, acldefault('n', n.nspowner))) AS a
        WHERE n.nspname = 'scheduler' AND a.grantee = 0
        """
    ).fetchall()
    assert granted == []


def test_in_a_database_closed_to_everybody_the_engine_keeps_what_it_needs(
    empty_database: str, connect: Connect
) -> None:
    """pg_cron connects as its job's owner; a predicate is tried on a temporary table."""
    db = connect(url=empty_database)
    name = sql.Identifier(db.info.dbname)
    db.execute(sql.SQL("REVOKE ALL ON DATABASE {} FROM PUBLIC").format(name))
    migrate(empty_database, pipeline=False)
    assert one(db, "SELECT has_database_privilege('scheduler_cron', current_database(), 'CONNECT')")
    for role in ("scheduler_owner", ADMIN):
        assert one(db, "SELECT has_database_privilege(%s, current_database(), 'TEMPORARY')", role)
    Queue(db, 1)
    db.execute(sql.SQL("REVOKE TEMPORARY ON DATABASE {} FROM scheduler_admin").format(name))
    with pytest.raises(psycopg.errors.InsufficientPrivilege) as caught:
        call(connect(ADMIN, url=empty_database), "alter_workflow", name="job", ready="wanted")
    assert "GRANT TEMPORARY ON DATABASE" in (caught.value.diag.message_hint or "")


def test_a_function_added_later_is_not_for_everybody_either(db: psycopg.Connection, nobody: str) -> None:
    db.execute("SET ROLE scheduler_owner; CREATE FUNCTION scheduler.later() RETURNS integer RETURN 1; RESET ROLE")
    assert one(db, "SELECT has_function_privilege(%s, 'scheduler.later()', 'EXECUTE')", nobody) is False


def test_a_listener_works_on_a_queue_whose_rows_it_may_not_write(db: psycopg.Connection, connect: Connect) -> None:
    queue = Queue(db, 1)
    queue.set("Queued")
    listener = connect(LISTENER)
    claim = queue.through(listener).claim()
    with pytest.raises(psycopg.errors.InsufficientPrivilege):
        listener.execute("UPDATE item SET status = 'Completed'")
    assert queue.through(listener).succeed(claim.run) == (1, [])
    assert one(listener, "SELECT count(*) FROM scheduler.status") == 1
    assert queue.status(1) == "Completed"


def test_an_admin_operates_tables_he_has_no_rights_on(db: psycopg.Connection, connect: Connect) -> None:
    queue = Queue(db, 1)
    admin = connect(ADMIN)
    assert one(admin, "SELECT queued FROM scheduler.enqueue('job', ARRAY[1])") == 1
    assert "paused" in call(admin, "pause", name="job")
    assert one(db, "SELECT who FROM scheduler.audit ORDER BY id DESC LIMIT 1") == ADMIN
    with pytest.raises(psycopg.errors.InsufficientPrivilege):
        admin.execute("SELECT * FROM item")
    for function in ("drop_workflow", "repair_workflow"):
        with pytest.raises(psycopg.errors.InsufficientPrivilege, match="only the owner"):
            call(admin, function, name="job")
    assert queue.status(1) == "Queued"


@pytest.mark.parametrize(
    "back_door",
    [
        'SELECT scheduler._register(jsonb_populate_record(w, \'{"name": "mine"}\')) FROM scheduler.workflow AS w',
        "SELECT scheduler._alter('job', jsonb_populate_record(w, '{\"ready\": \"true\"}')) FROM scheduler.workflow w",
        "SELECT scheduler._unregister('job', true)",
    ],
)
def test_the_functions_behind_the_public_ones_ask_for_the_owner_too(
    db: psycopg.Connection, connect: Connect, back_door: str
) -> None:
    Queue(db, 1)
    with pytest.raises(psycopg.errors.InsufficientPrivilege, match="only the owner"):
        connect(ADMIN).execute(back_door.encode())
    assert one(db, "SELECT count(*) FROM scheduler.workflow WHERE ready <> 'true'") == 1


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"batch_size": -1}, "batch_size cannot be"),
        ({"schedule": "* * * *"}, "has 4 fields"),
        ({"downstream": "nope"}, "no workflow 'nope'"),
        ({"ready": "true); DROP TABLE item; --"}, "ready predicate cannot be used"),
        ({"queued": "P2"}, "two meanings"),
        ({"name": "No Good"}, "cannot be the name"),
    ],
)
def test_the_functions_behind_the_public_ones_believe_nothing_they_are_given(
    db: psycopg.Connection, wrong: dict[str, object], message: str
) -> None:
    Queue(db, 1)
    given = {"name": "mine", "queued": "Q2", "processing": "P2", **wrong}
    register = "SELECT scheduler._register(jsonb_populate_record(w, %s::jsonb)) FROM scheduler.workflow AS w"
    with pytest.raises(psycopg.Error, match=message) as caught:
        db.execute(register, [json.dumps(given)])
    assert caught.value.diag.message_hint
    if not wrong.keys() & {"name", "queued"}:
        alter = "SELECT scheduler._alter('job', jsonb_populate_record(w, %s::jsonb)) FROM scheduler.workflow AS w"
        with pytest.raises(psycopg.Error, match=message) as caught:
            db.execute(alter, [json.dumps(wrong)])
        assert caught.value.diag.message_hint
    assert one(db, "SELECT array_agg(name) FROM scheduler.workflow WHERE batch_size > 0") == ["job"]


def test_a_predicate_cannot_be_used_to_guess_what_is_in_a_table(db: psycopg.Connection, connect: Connect) -> None:
    Queue(db, 1)
    admin = connect(ADMIN)
    for guess in ("requeue('job', predicate => 'id = 1')", "_requeue('job', NULL, NULL, 'id = 1', false)"):
        with pytest.raises(psycopg.errors.InsufficientPrivilege) as caught:
            admin.execute(f"SELECT scheduler.{guess}".encode())
        assert "GRANT" in (caught.value.diag.message_hint or "")
    db.execute("GRANT SELECT ON item TO scheduler_admin")
    assert call(admin, "requeue", name="job", predicate="id = 1") == 0


def test_temporary_objects_of_a_caller_are_not_taken_for_the_engines(db: psycopg.Connection, connect: Connect) -> None:
    queue = Queue(db, 2)
    queue.set("Queued")
    attacker = connect(LISTENER)
    for name in ("workflow", "run", "state", "attempt", "takeover", "control", "slot", "item", "pg_class", "pg_proc"):
        attacker.execute(
            sql.SQL("CREATE TEMPORARY TABLE {} (name text, id bigint, status text)").format(sql.Identifier(name))
        )
    attacker.execute("CREATE FUNCTION pg_temp.now() RETURNS timestamptz RETURN '1970-01-01'::timestamptz")
    attacker.execute("CREATE FUNCTION pg_temp.format(text, VARIADIC text[]) RETURNS text RETURN 'SELECT 1 / 0'")
    attacker.execute("SET search_path = pg_temp, public, pg_catalog")
    theirs = queue.through(attacker)
    claim = theirs.claim()
    assert claim.keys == ["1", "2"]
    theirs.fail(claim.run, "1", permanent=True)
    assert theirs.succeed(claim.run) == (1, [])
    assert one(attacker, "SELECT scheduler.rescue()") == 0
    assert queue.counts() == {"Failed": 1, "Completed": 1}


def test_operators_and_functions_in_public_are_not_taken_for_the_servers(
    db: psycopg.Connection, connect: Connect
) -> None:
    """Someone who may create in a schema of the caller's path cannot slip the engine his own equals sign."""
    db.execute("CREATE TABLE hit (who text); GRANT INSERT ON hit TO PUBLIC")
    db.execute(
        "CREATE FUNCTION public.trap(text, text) RETURNS boolean LANGUAGE plpgsql AS"
        " $$ BEGIN INSERT INTO public.hit VALUES (current_user); RETURN true; END $$;"
        "CREATE OPERATOR public.= (LEFTARG = text, RIGHTARG = text, FUNCTION = public.trap);"
        "CREATE FUNCTION public.pg_has_role(name, oid, text) RETURNS boolean RETURN true"
    )
    queue = Queue(db, 2)
    db.execute("UPDATE public.item SET status = 'Queued'")
    session = connect(LISTENER)
    session.execute("SET search_path = public, pg_catalog")
    theirs = queue.through(session)
    claim = theirs.claim()
    theirs.fail(claim.run, "1", permanent=True)
    theirs.succeed(claim.run)
    admin = connect(ADMIN)
    admin.execute("SET search_path = public, pg_catalog")
    assert one(admin, "SELECT scheduler.requeue('job', error => '%boom%')") == 1
    assert one(admin, "SELECT unqueued FROM scheduler.cancel('job', '{1}'::text[])") == 1
    assert one(db, "SELECT count(*) FROM hit WHERE who NOT IN ('scheduler_admin')") == 0


def test_whoever_may_connect_can_ring_the_bell_and_nothing_more(
    db: psycopg.Connection, connect: Connect, nobody: str
) -> None:
    """A notification carries no order: thousands of forged ones change no row, and no claim waits for them."""
    queue = Queue(db, 2, schedule="* * * * *")
    queue.set("Queued", 1)
    before = db.execute("SELECT * FROM scheduler.workflow, scheduler.state").fetchall()
    claim = queue.claim()
    intruder = connect(nobody)
    forged = ["job", "job!", "nope", "'; DROP TABLE item; --", '{"cancel": 1}', "", "x" * 7999]
    intruder.execute("SELECT pg_notify('scrapersky', p) FROM unnest(%s::text[]) AS p", [forged])
    intruder.execute("SELECT pg_notify('scrapersky', 'job' || n) FROM generate_series(1, 5000) AS n")
    assert queue.run(claim.run)["keys"] == ["1"]
    assert db.execute("SELECT * FROM scheduler.workflow, scheduler.state").fetchall() == before
    assert queue.succeed(claim.run) == (1, [])
    queue.set("Queued", 2)
    assert queue.claim().keys == ["2"]


def test_hostile_texts_stay_data(db: psycopg.Connection) -> None:
    evil = "'; DROP TABLE item; --"
    db.execute("CREATE TABLE odd (id text PRIMARY KEY, status text, error text)")
    words = {
        word: f'{word} {evil} $1 %s %I \\ " $$' for word in ("queued", "processing", "completed", "failed", "idle")
    }
    call(db, "create_workflow", name="job", relation="odd", status_column="status", error_column="error", **words)
    db.execute("INSERT INTO odd (id, status) VALUES (%s, %s), ('2', %s)", [evil, words["queued"], words["queued"]])
    queue = Queue.of(db)
    claim = queue.claim()
    assert sorted(claim.keys) == [evil, "2"]
    queue.fail(claim.run, evil, error=evil, permanent=True)
    queue.succeed(claim.run)
    assert "dead letter" in one(db, "SELECT scheduler.why('job', %s::text)", evil)
    assert one(db, "SELECT scheduler.requeue('job', error => %s)", evil) == 1
    assert one(db, "SELECT unqueued FROM scheduler.cancel('job', %s::text[])", [evil]) == 1
    assert one(db, "SELECT scheduler.pause('job', %s)", evil).startswith("job is paused")
    assert sorted(db.execute("SELECT id, status FROM odd").fetchall()) == sorted(
        [(evil, words["idle"]), ("2", words["completed"])]
    )
