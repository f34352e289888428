"""Set up: any table goes in, a bad call changes nothing, the table comes out as it was."""

from dataclasses import dataclass
from functools import partial

import psycopg
import pytest
from psycopg import sql

from tests.conftest import Connect
from tests.sql.blocked import blocked
from tests.sql.queue import Queue, call, one


@dataclass(frozen=True)
class Shape:
    name: str
    ddl: str
    table: str
    key: str = "id"
    status: str = "status"
    new_key: str = "n"


ENUM = "CREATE TYPE word AS ENUM ('Queued', 'Processing', 'Completed', 'Failed');"

SHAPES = [
    Shape("bigint and text", "CREATE TABLE t (id bigint PRIMARY KEY, status text)", "t"),
    Shape(
        "uuid and enum",
        f"{ENUM} CREATE TABLE t (id uuid PRIMARY KEY, status word)",
        "t",
        new_key="md5(n::text)::uuid",
    ),
    Shape(
        "text and varchar", "CREATE TABLE t (id text PRIMARY KEY, status varchar(20))", "t", new_key="'{' || n || '\",'"
    ),
    Shape(
        "domains",
        "CREATE DOMAIN code AS text CHECK (value <> ''); CREATE DOMAIN state AS text CHECK (value <> 'Nonsense');"
        " CREATE TABLE t (id code PRIMARY KEY, status state)",
        "t",
        new_key="'k' || n",
    ),
    Shape("smallint and char", "CREATE TABLE t (id smallint PRIMARY KEY, status char(12))", "t"),
    Shape(
        "citext",
        "CREATE EXTENSION citext; CREATE DOMAIN code AS citext; CREATE TABLE t (id code PRIMARY KEY, status citext)",
        "t",
        new_key="'K' || n",
    ),
    Shape("numeric", "CREATE TABLE t (id numeric PRIMARY KEY, status text)", "t", new_key="n / 10.0"),
    Shape("inet", "CREATE TABLE t (id inet PRIMARY KEY, status text)", "t", new_key="'127.0.0.0'::inet + n"),
    Shape("a unique NOT NULL column", "CREATE TABLE t (id integer NOT NULL UNIQUE, status text)", "t"),
    Shape(
        "hostile names",
        """CREATE SCHEMA "My ""Schema";
           CREATE TABLE "My ""Schema"."Robert'); DROP TABLE x;--" ("the %I key" int PRIMARY KEY, "Status $1" text)""",
        """"My ""Schema"."Robert'); DROP TABLE x;--\"""",
        key="the %I key",
        status="Status $1",
    ),
    Shape(
        "types in another schema",
        "CREATE SCHEMA far; CREATE TYPE far.word AS ENUM ('Queued', 'Processing', 'Completed', 'Failed');"
        " CREATE TABLE far.t (id int PRIMARY KEY, status far.word)",
        "far.t",
    ),
    Shape(
        "partitioned",
        "CREATE TABLE t (id int PRIMARY KEY, status text) PARTITION BY RANGE (id);"
        " CREATE TABLE t1 PARTITION OF t FOR VALUES FROM (0) TO (3);"
        " CREATE TABLE t2 PARTITION OF t FOR VALUES FROM (3) TO (99)",
        "t",
    ),
    Shape(
        "row security that hides nothing",
        "CREATE TABLE t (id int PRIMARY KEY, status text); ALTER TABLE t ENABLE ROW LEVEL SECURITY;"
        " CREATE POLICY everybody ON t USING (true)",
        "t",
    ),
    Shape(
        "status NOT NULL with a default", "CREATE TABLE t (id int PRIMARY KEY, status text NOT NULL DEFAULT 'New')", "t"
    ),
]


@pytest.mark.parametrize("shape", SHAPES, ids=lambda shape: shape.name)
@pytest.mark.slow
def test_any_table_with_data_becomes_a_queue_in_one_call(db: psycopg.Connection, shape: Shape) -> None:
    db.execute(shape.ddl)
    key, status = sql.Identifier(shape.key), sql.Identifier(shape.status)
    table = sql.SQL(shape.table)
    db.execute(
        sql.SQL("INSERT INTO {} ({}) SELECT {} FROM generate_series(1, 5) AS n").format(
            table,
            key,
            sql.SQL(shape.new_key),
        )
    )
    before = _snapshot(db, shape.table)
    call(db, "create_workflow", name="job", relation=shape.table, status_column=shape.status)
    db.execute(sql.SQL("UPDATE {} SET {} = 'Queued'").format(table, status))

    queue = Queue.of(db)
    first = queue.claim(3)
    keys = [row[0] for row in db.execute(sql.SQL("SELECT {0}::text FROM {1} ORDER BY {0}").format(key, table))]
    assert sorted(first.keys) == sorted(keys[:3])
    assert queue.succeed(first.run, *first.keys[:2]) == (2, [])
    assert queue.fail(first.run, first.keys[2])[0] == 1
    rest = queue.claim()
    assert sorted(rest.keys) == sorted(keys[3:])
    assert one(db, "SELECT scheduler.release(%s)", rest.run) == 2
    words = db.execute(sql.SQL("SELECT {}::text, count(*) FROM {} GROUP BY 1").format(status, table)).fetchall()
    assert sorted(words) == [("Completed", 2), ("Failed", 1), ("Queued", 2)]
    assert "Attempt 1 of 5 failed" in one(db, "SELECT scheduler.why('job', %s::text)", first.keys[2])
    assert db.execute("SELECT * FROM scheduler.cancel('job', %s::text[])", [rest.keys]).fetchone() == (2, 0, 0)

    call(db, "drop_workflow", name="job")
    assert _snapshot(db, shape.table) == before


def _snapshot(db: psycopg.Connection, table: str) -> list[tuple[object, ...]]:
    """Everything of the catalogue that belongs to a table or its schema and is not a row."""
    return db.execute(
        """
        WITH t AS (
            SELECT %(t)s::regclass AS id UNION SELECT inhrelid FROM pg_inherits WHERE inhparent = %(t)s::regclass
        )
        SELECT 'index', indexrelid::regclass::text, pg_get_indexdef(indexrelid) FROM pg_index, t WHERE indrelid = t.id
        UNION ALL SELECT 'trigger', tgname, pg_get_triggerdef(g.oid) FROM pg_trigger AS g, t WHERE tgrelid = t.id
        UNION ALL SELECT 'rights', oid::regclass::text, coalesce(relacl, acldefault('r', relowner))::text
                  FROM pg_class, t WHERE oid = t.id
        UNION ALL SELECT 'schema', nspname, coalesce(nspacl, acldefault('n', nspowner))::text FROM pg_namespace
                  WHERE nspname !~ '^pg_' AND nspname NOT IN ('information_schema', 'scheduler')
        UNION ALL SELECT 'column', attname, concat_ws(' ', atttypid::regtype, attnotnull, attstattarget,
                                                      CASE WHEN attacl::text <> '{}' THEN attacl::text END)
                  FROM pg_attribute, t WHERE attrelid = t.id
        UNION ALL SELECT 'storage', oid::regclass::text, reloptions::text FROM pg_class, t WHERE oid = t.id
        UNION ALL SELECT 'check', conname, pg_get_constraintdef(c.oid) FROM pg_constraint AS c, t WHERE conrelid = t.id
        ORDER BY 1, 2, 3
        """,
        {"t": table},
    ).fetchall()


TABLES = """
    CREATE TABLE ok (id int PRIMARY KEY, status text, error text, kind text, made timestamptz, prio int,
                     twice text GENERATED ALWAYS AS (kind || kind) STORED);
    CREATE TYPE word AS ENUM ('Queued', 'Completed', 'Failed');
    CREATE TABLE short_enum (id int PRIMARY KEY, status word);
    CREATE TABLE checked (id int PRIMARY KEY, status text CHECK (status IN ('Queued', 'Processing', 'Completed')));
    CREATE TABLE no_key (id int, status text);
    CREATE TABLE two_keys (a int, b int, status text, PRIMARY KEY (a, b));
    CREATE TABLE "Mixed" (id int PRIMARY KEY, status text);
    CREATE TABLE small (id int PRIMARY KEY, status varchar(5));
    CREATE DOMAIN state AS word;
    CREATE TABLE over_enum (id int PRIMARY KEY, status state);
    CREATE TABLE times (id timestamptz PRIMARY KEY, status text);
    CREATE TABLE days (id date PRIMARY KEY, status text);
    CREATE TABLE lists (id int[] PRIMARY KEY, status text);
    CREATE TABLE flags (id int PRIMARY KEY, status boolean);
    CREATE TABLE tags (id int PRIMARY KEY, status text[]);
    CREATE TABLE bytes (id bytea PRIMARY KEY, status text);
    CREATE TABLE spans (id tstzmultirange PRIMARY KEY, status text);
    CREATE TABLE by_region (id int, region text, status text, PRIMARY KEY (id, region)) PARTITION BY LIST (region);
    CREATE TYPE pair AS (a int, b int);
    CREATE TABLE pairs (id pair PRIMARY KEY, status text);
    CREATE TABLE parent (id int PRIMARY KEY, status text);
    CREATE TABLE child () INHERITS (parent);
    CREATE TABLE ruled (id int PRIMARY KEY, status text);
    CREATE RULE logs AS ON UPDATE TO ruled DO ALSO NOTIFY ruled;
    CREATE DOMAIN brief AS varchar(10);
    CREATE TABLE terse (id int PRIMARY KEY, status text, brief brief, checked text CHECK (length(checked) < 100));
    CREATE TABLE numbers (id int PRIMARY KEY, status int);
    CREATE VIEW seen AS SELECT * FROM ok;
    CREATE TEMP TABLE passing (id int PRIMARY KEY, status text);
    CREATE TABLE walled (id int PRIMARY KEY, status text);
    ALTER TABLE walled ENABLE ROW LEVEL SECURITY;
    CREATE TABLE glazed (id int PRIMARY KEY, status text);
    ALTER TABLE glazed ENABLE ROW LEVEL SECURITY;
    CREATE TABLE let (id int PRIMARY KEY, status text);
    ALTER TABLE let ENABLE ROW LEVEL SECURITY;
    CREATE POLICY tenants ON let USING (status = current_user);
    CREATE POLICY looks ON glazed FOR SELECT TO scheduler_owner USING (true);
"""

# (arguments beyond name, relation 'ok' and status_column 'status'; what the message says; what the hint says)
BAD: list[tuple[dict[str, object], str, str]] = [
    ({"name": "Job"}, "cannot be the name", "lower-case"),
    ({"name": None}, "cannot be the name", "lower-case"),
    ({"name": "x" * 41}, "cannot be the name", "at most 40"),
    ({"name": "job; DROP TABLE ok"}, "cannot be the name", "lower-case"),
    ({"name": "maintain"}, "engine's own job", "another name"),
    ({"name": "taken"}, "exists already", "alter_workflow"),
    ({"relation": "nowhere"}, "there is no table 'nowhere'", "Create the table first"),
    ({"relation": "mixed"}, "there is no table", 'public."Mixed"'),
    ({"relation": ""}, "there is no table", "Create the table first"),
    ({"relation": None}, "there is no table", "Create the table first"),
    ({"relation": 'a"b'}, "there is no table", "Create the table first"),
    ({"relation": "seen"}, "is not a table", "not a view"),
    ({"relation": "passing"}, "temporary", "permanent"),
    ({"relation": "pg_catalog.pg_class"}, "", ""),
    ({"relation": "scheduler.run"}, "belongs to the system", "of your own"),
    ({"relation": "walled"}, "row security", "CREATE POLICY"),
    ({"relation": "glazed"}, "row security", "CREATE POLICY"),
    ({"relation": "let"}, "row security", "CREATE POLICY"),
    ({"relation": "parent"}, "inherit from", "partitioned table"),
    ({"relation": "ruled"}, "a rule rewrites", "DROP RULE logs"),
    ({"relation": "no_key"}, "no unique key", "IDENTITY UNIQUE"),
    ({"relation": "two_keys"}, "no unique key", "IDENTITY UNIQUE"),
    ({"key_column": "kind"}, "no unique key", "UNIQUE"),
    ({"key_column": "nope"}, "has no column nope", "Its columns: id, status"),
    ({"status_column": "nope"}, "has no column nope", "Its columns: id, status"),
    ({"status_column": None}, "", "Its columns: id, status"),
    ({"status_column": "xmin"}, "has no column", "Its columns"),
    ({"status_column": "id"}, "", ""),
    ({"status_column": "twice"}, "generated", "plain column"),
    ({"error_column": "nope"}, "has no column nope", "Its columns"),
    ({"error_column": "prio"}, "", ""),
    ({"priority_column": "nope"}, "has no column nope", "Its columns"),
    ({"age_column": "nope"}, "has no column nope", "Its columns"),
    ({"relation": "short_enum"}, "'Processing' is not a value of", "ALTER TYPE"),
    ({"relation": "checked"}, "refused by constraint", "Use a word it allows"),
    ({"relation": "small"}, "'Queued'", ""),
    ({"relation": "numbers"}, "", ""),
    ({"relation": "over_enum"}, "domain over an enum", "TYPE public.word"),
    ({"relation": "flags"}, "'Queued' is not a value of", "a word the column can hold"),
    ({"relation": "tags"}, "'Queued' is not a value of", "a word the column can hold"),
    ({"relation": "bytes"}, "depends on the settings of a session", "key_column"),
    ({"relation": "spans"}, "depends on the settings of a session", "key_column"),
    ({"relation": "by_region"}, "no unique key", "one by one"),
    ({"relation": '"Mixed"'}, "workflow taken uses the word 'Queued'", "words of its own"),
    ({"relation": '"Mixed"', "queued": "Q"}, "workflow taken uses the word 'Processing'", "words of its own"),
    ({"relation": '"Mixed"', "queued": "Processing", "processing": None}, "the word 'Processing'", "words of its own"),
    ({"relation": "times"}, "depends on the settings of a session", "key_column"),
    ({"relation": "days"}, "depends on the settings of a session", "key_column"),
    ({"relation": "lists"}, "cannot compare", "ADD COLUMN item_id"),
    ({"relation": "pairs"}, "cannot compare", "ADD COLUMN item_id"),
    ({"relation": "terse", "error_column": "brief"}, "does not hold every error text", "TYPE text"),
    ({"relation": "terse", "error_column": "checked"}, "refuses error texts", "DROP CONSTRAINT"),
    ({"queued": "Processing"}, "two meanings", "four different"),
    ({"completed": None}, "cannot be NULL", "Only processing"),
    ({"idle": "Completed"}, "two meanings", "different"),
    ({"ready": "status ="}, "ready predicate", "true-or-false"),
    ({"ready": "kind"}, "ready predicate", "true-or-false"),
    ({"ready": "nope > 1"}, "ready predicate", "true-or-false"),
    ({"ready": "true); DELETE FROM ok; --"}, "ready predicate", "true-or-false"),
    ({"ready": ""}, "ready predicate", "true-or-false"),
    ({"ready": "count(*) > 1"}, "ready predicate", "true-or-false"),
    ({"batch_size": -1}, "batch_size cannot be '-1'", "from 1 to 10000"),
    ({"batch_size": 0}, "batch_size cannot be '0'", "from 1 to 10000"),
    ({"batch_size": None}, "batch_size cannot be NULL", "from 1 to 10000"),
    ({"max_instances": 0}, "max_instances", "pause()"),
    ({"concurrency": 0}, "concurrency", "from 1"),
    ({"rate_limit": 0}, "rate_limit", "above 0"),
    ({"rate_period": "-1 s"}, "rate_period", "1 second"),
    ({"lease": "0"}, "lease", "1 second"),
    ({"timeout": "0"}, "timeout", "1 second"),
    ({"max_attempts": 0}, "max_attempts", "from 1"),
    ({"backoff": "-1 s"}, "backoff", "0 or more"),
    ({"backoff": "2 h", "backoff_max": "1 h"}, "backoff_max", "no shorter"),
    ({"backoff_max": "11 years"}, "backoff_max", "at most 10 years"),
    ({"grace": "0"}, "grace", "above 0"),
    ({"downstream": "nope"}, "nope", ""),
    ({"downstream": "job"}, "", ""),
    ({"downstream_limit": 0}, "downstream_limit", "above 0"),
    ({"doorbell": "loud"}, "doorbell cannot be 'loud'", "commit, dispatch or off"),
    ({"schedule": "0 0 * * * *"}, "has 6 fields, not five", ""),
    ({"schedule": ""}, "has 0 fields", ""),
    ({"schedule": "* * *"}, "has 3 fields", ""),
    ({"schedule": "61 * * * *"}, "outside 0-59", "from 0 to 59"),
    ({"schedule": "*/7 * * * *"}, "cannot be kept evenly", ""),
    ({"schedule": "0-59/7 * * * *"}, "cannot be kept evenly", ""),
    ({"schedule": "* */5 * * *"}, "cannot be kept evenly", ""),
    ({"schedule": "30 seconds ago"}, "", ""),
    ({"schedule": "7 seconds"}, "divisor of 60", "10, 12, 15"),
    ({"schedule": "0 0 31 2 *"}, "never fires", "No such date"),
    ({"schedule": "5-1 * * * *"}, "outside", "smaller first"),
    ({"schedule": "* * * * MONDAY"}, "not a valid", "Write *"),
    ({"schedule": "@reboot"}, "", ""),
]


@pytest.mark.slow
@pytest.mark.parametrize(("wrong", "message", "hint"), BAD, ids=[str(bad[0]) for bad in BAD])
def test_a_bad_registration_names_the_fix_and_leaves_nothing(
    db: psycopg.Connection, wrong: dict[str, object], message: str, hint: str
) -> None:
    db.execute(TABLES)
    call(db, "create_workflow", name="taken", relation='"Mixed"', status_column="status")
    before = _everything(db)
    with pytest.raises(psycopg.Error) as caught:
        call(db, "create_workflow", **{"name": "job", "relation": "ok", "status_column": "status", **wrong})
    told = caught.value.diag
    assert message in (told.message_primary or "")
    assert hint in (told.message_hint or "")
    # our own words, not an accident deep inside
    assert told.message_hint
    assert (told.sqlstate or "")[:2] not in ("XX", "0A") or "pg_cron" in (told.message_primary or "")
    assert _everything(db) == before


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"name": "nope", "batch_size": 1}, "nope"),
        ({"batch_size": -1}, "batch_size cannot be"),
        ({"schedule": "99 * * * *"}, "outside 0-59"),
        ({"ready": "syntax error here"}, "ready predicate"),
        ({"downstream": "taken"}, "own downstream"),
        ({"clear": ["batch_size"]}, "cannot be cleared"),
        ({"doorbell": "loud"}, "doorbell"),
    ],
)
def test_a_bad_alteration_changes_nothing(db: psycopg.Connection, wrong: dict[str, object], message: str) -> None:
    db.execute(TABLES)
    call(db, "create_workflow", name="taken", relation="ok", status_column="status", schedule="* * * * *")
    before = _everything(db)
    with pytest.raises(psycopg.Error, match=message) as caught:
        call(db, "alter_workflow", **{"name": "taken", **wrong})
    assert caught.value.diag.message_hint
    assert _everything(db) == before


def _everything(db: psycopg.Connection) -> list[tuple[object, ...]]:
    found = db.execute("SELECT to_jsonb(w)::text FROM scheduler.workflow AS w ORDER BY 1").fetchall()
    for table in ("ok", "short_enum", "checked", "no_key", "two_keys", '"Mixed"', "small", "numbers", "walled"):
        found += _snapshot(db, table)
    found += db.execute("SELECT * FROM scheduler.state").fetchall()
    found += db.execute("SELECT * FROM scheduler.audit").fetchall()
    return found


def test_alter_takes_effect_at_once_and_is_audited(db: psycopg.Connection) -> None:
    queue = Queue(db, 5)
    queue.set("Queued")
    assert "batch_size = 2" in call(db, "alter_workflow", name="job", batch_size=2)
    assert len(queue.claim().keys) == 2
    call(db, "alter_workflow", name="job", schedule="*/5 * * * *", grace="1 minute")
    assert one(db, "SELECT next_fire > now() FROM scheduler.schedules WHERE workflow = 'job'")
    call(db, "alter_workflow", name="job", clear=["schedule", "grace"])
    assert db.execute("SELECT schedule, grace FROM scheduler.workflow").fetchone() == (None, None)
    changes = db.execute("SELECT detail FROM scheduler.audit WHERE action = 'alter_workflow' ORDER BY id").fetchall()
    assert changes[0][0] == {"batch_size": "2"}
    assert changes[2][0] == {"schedule": "NULL", "grace": "NULL"}


def test_a_lowered_limit_waits_for_the_runs_beyond_it(db: psycopg.Connection) -> None:
    queue = Queue(db, 4, batch_size=1, max_instances=3)
    queue.set("Queued")
    runs = [queue.claim().run for _ in range(3)]
    call(db, "alter_workflow", name="job", max_instances=1)
    queue.succeed(runs[0])
    queue.succeed(runs[1])
    assert queue.claim().reason == "max_instances"
    queue.succeed(runs[2])
    assert queue.claim().run


def test_running_items_keep_a_workflow_until_it_is_forced(db: psycopg.Connection) -> None:
    queue = Queue(db, 3)
    queue.set("Queued")
    run = queue.claim(2).run
    with pytest.raises(psycopg.errors.ObjectInUse, match="2 items of workflow job are running") as caught:
        call(db, "drop_workflow", name="job")
    assert "pause" in (caught.value.diag.message_hint or "")
    assert "2 running ones are Queued again" in call(db, "drop_workflow", name="job", force=True)
    assert queue.counts() == {"Queued": 3}
    assert queue.succeed(run, "1") == (0, ["1"])


def test_one_column_can_carry_an_item_from_workflow_to_workflow(db: psycopg.Connection) -> None:
    """The final word of the first is the queue of the second; what they may not share is a word that claims."""
    queue = Queue(db, 1)
    queue.set("Queued")
    queue.create("next", queued="Completed", processing="Checking", completed="Checked")
    queue.succeed(queue.claim().run)
    queue.succeed(queue.claim(name="next").run)
    assert queue.status(1) == "Checked"


@pytest.mark.parametrize(
    "change",
    [
        "ALTER TABLE item RENAME status TO state",
        "ALTER TABLE item DROP status CASCADE",
        "ALTER TABLE item RENAME id TO item_id",
        "ALTER TYPE word RENAME VALUE 'Processing' TO 'Running'",
    ],
)
def test_a_workflow_whose_column_or_word_is_gone_can_be_dropped_with_items_running(
    db: psycopg.Connection, change: str
) -> None:
    db.execute(f"{ENUM} CREATE TABLE item (id int PRIMARY KEY, status word); INSERT INTO item VALUES (1, 'Queued')")
    before = _snapshot(db, "item")
    call(db, "create_workflow", name="job", relation="item", status_column="status")
    Queue.of(db).claim()
    db.execute(change.encode())
    assert "could not be put back" in call(db, "drop_workflow", name="job", force=True)
    assert [part for part in _snapshot(db, "item") if part[0] in ("trigger", "rights")] == [
        part for part in before if part[0] in ("trigger", "rights")
    ]


def test_a_renamed_key_stops_the_engine_and_not_the_application(db: psycopg.Connection) -> None:
    queue = Queue(db, 2)
    queue.set("Queued")
    queue.claim()
    db.execute("ALTER TABLE item RENAME id TO item_id")
    told: list[str | None] = []
    db.add_notice_handler(lambda note: told.append(note.message_hint))
    db.execute("UPDATE item SET status = 'Filtered' WHERE item_id = 1")
    db.execute("DELETE FROM item WHERE item_id = 2")
    assert db.execute("SELECT item_id, status FROM item").fetchall() == [(1, "Filtered")]
    assert all("scheduler.doctor()" in (hint or "") for hint in told)
    assert len(told) == 2


def test_rows_that_row_security_hides_meanwhile_are_not_taken_for_deleted(db: psycopg.Connection) -> None:
    queue = Queue(db, 4, batch_size=1)
    queue.set("Queued")
    runs = [queue.claim().run for _ in range(4)]
    queue.expire(runs[3])
    db.execute("ALTER TABLE item ENABLE ROW LEVEL SECURITY")
    for finish in (
        lambda: queue.succeed(runs[0]),
        lambda: queue.fail(runs[1], "2"),
        lambda: call(db, "release", run=runs[2]),
        lambda: call(db, "rescue", workflow="job"),
    ):
        with pytest.raises(psycopg.errors.InsufficientPrivilege) as caught:
            finish()
    db.execute((caught.value.diag.message_hint or "").encode())
    assert queue.succeed(runs[0]) == (1, [])
    assert queue.counts() == {"Completed": 1, "Processing": 3}


def test_an_index_built_beforehand_is_adopted(db: psycopg.Connection) -> None:
    db.execute("CREATE TABLE t (id int PRIMARY KEY, status text)")
    db.execute("CREATE INDEX CONCURRENTLY scheduler_job_queued ON t (id) WHERE status = 'Queued'")
    oid = one(db, "SELECT 'scheduler_job_queued'::regclass::oid")
    call(db, "create_workflow", name="job", relation="t", status_column="status")
    assert one(db, "SELECT 'scheduler_job_queued'::regclass::oid") == oid


def test_two_registrations_at_once_take_turns_and_the_second_is_told(db: psycopg.Connection, connect: Connect) -> None:
    db.execute("CREATE TABLE t (id int PRIMARY KEY, status text)")
    first, second = connect(autocommit=False), connect()
    call(first, "create_workflow", name="job", relation="t", status_column="status")
    register = partial(call, second, "create_workflow", name="job", relation="t", status_column="status")
    with blocked(db, second, register) as answer:
        first.commit()
    with pytest.raises(psycopg.errors.DuplicateObject, match="exists already"):
        answer.result()


def test_a_temporary_table_in_the_way_of_a_predicate_is_named(db: psycopg.Connection) -> None:
    Queue(db)
    db.execute("CREATE TEMPORARY TABLE t (id int)")
    with pytest.raises(psycopg.errors.DuplicateTable) as caught:
        call(db, "alter_workflow", name="job", ready="wanted")
    db.execute((caught.value.diag.message_hint or "").removesuffix(" then again.").encode())
    assert "ready" in call(db, "alter_workflow", name="job", ready="wanted")


def test_a_key_that_only_the_engine_sees_as_text_is_looked_up_by_an_index(db: psycopg.Connection) -> None:
    db.execute("CREATE EXTENSION citext; CREATE TABLE t (id citext PRIMARY KEY, status text)")
    call(db, "create_workflow", name="job", relation="t", status_column="status")
    db.execute("SET enable_seqscan = off; SET search_path = pg_catalog, pg_temp")
    plan = db.execute("EXPLAIN SELECT FROM public.t WHERE id = ANY ('{a,b}'::public.citext[])").fetchall()
    assert any("scheduler_job_key" in line for (line,) in plan)


def test_a_dropped_table_is_told_to_whoever_alters_its_workflow(db: psycopg.Connection) -> None:
    Queue(db)
    db.execute("DROP TABLE item")
    with pytest.raises(psycopg.errors.UndefinedTable) as caught:
        call(db, "alter_workflow", name="job", ready="wanted")
    db.execute((caught.value.diag.message_hint or "").encode())
    assert one(db, "SELECT count(*) FROM scheduler.workflow") == 0


def test_a_plain_role_registers_its_own_table_and_no_other(db: psycopg.Connection, connect: Connect) -> None:
    role = one(db, "SELECT 'dba_' || substr(md5(current_database()), 1, 12)")
    db.execute(
        sql.SQL("CREATE ROLE {0} LOGIN IN ROLE scheduler_admin; GRANT CREATE ON SCHEMA public TO {0}").format(
            sql.Identifier(role)
        )
    )
    try:
        db.execute("CREATE TABLE foreign_table (id int PRIMARY KEY, status text)")
        dba = connect(role)
        dba.execute("CREATE TABLE own (id int PRIMARY KEY, status text)")
        call(dba, "create_workflow", name="job", relation="own", status_column="status")
        dba.execute("INSERT INTO own VALUES (1, 'Queued')")
        assert Queue.of(db).claim().keys == ["1"]
        with pytest.raises(psycopg.errors.InsufficientPrivilege, match="only the owner") as caught:
            call(dba, "create_workflow", name="other", relation="foreign_table", status_column="status")
        assert "GRANT" in (caught.value.diag.message_hint or "")
        call(dba, "drop_workflow", name="job", force=True)
    finally:
        db.execute(sql.SQL("DROP OWNED BY {0}; DROP ROLE {0}").format(sql.Identifier(role)))
