"""When one machine is not enough: what Citus asks of the hot path holds in its source, long before anyone needs it."""

import re

import psycopg
import pytest

# What every claim and every result goes through, and the functions they call.
HOT = ("claim", "heartbeat", "succeed", "fail", "release")


@pytest.fixture
def hot(db: psycopg.Connection) -> dict[str, str]:
    """Their source, without comments."""
    source: dict[str, str] = dict(
        db.execute("SELECT proname, prosrc FROM pg_proc WHERE pronamespace = 'scheduler'::regnamespace").fetchall()
    )
    found: dict[str, str] = {}
    waiting = list(HOT)
    while waiting:
        name = waiting.pop()
        if name not in found:
            found[name] = re.sub(r"--.*", "", source[name])
            # what a hint tells a person to call is in quotes
            calls = re.findall(r"scheduler\.(\w+)\(", re.sub(r"'[^']*'", "", found[name]))
            waiting += set(calls) & source.keys()
    assert {"_pick", "_rescue", "_fence", "_settle"} <= found.keys()
    assert "create_workflow" not in found
    return found


def test_no_advisory_or_table_lock_is_taken(hot: dict[str, str]) -> None:
    assert [name for name, text in hot.items() if re.search(r"advisory|LOCK TABLE", text, re.IGNORECASE)] == []


def test_nothing_written_to_a_business_table_depends_on_the_moment_or_on_chance(hot: dict[str, str]) -> None:
    """Citus refuses clock_timestamp(), random() and nextval() in an UPDATE."""
    volatile = r"clock_timestamp|statement_timestamp|timeofday|random\(|nextval|gen_random_uuid"
    statements = [
        (name, statement)
        for name, text in hot.items()
        for statement in re.findall(r"EXECUTE format\((.*?)(?:INTO \w+|USING [^;]+|;)", text, re.DOTALL)
    ]
    assert len([text for _, text in statements if "UPDATE %" in text]) > 5
    assert [(name, text) for name, text in statements if re.search(volatile, text, re.IGNORECASE)] == []


def test_rows_are_locked_and_marked_by_one_statement_through_a_materialized_cte(hot: dict[str, str]) -> None:
    """A sub-select instead may lock more rows than its limit."""
    blocks = [
        (name, block)
        for name, text in hot.items()
        for block in re.findall(r"\$sql\$(.*?)\$sql\$", text, re.DOTALL)
        if "FOR NO KEY UPDATE" in block
    ]
    assert {name for name, _ in blocks} == {"_pick", "_put_back", "_requeue_due"}
    assert [name for name, block in blocks if not block.strip().startswith("WITH c AS MATERIALIZED (")] == []
    for name, text in hot.items():
        assert not re.search(r"IN \(SELECT[^()]*FOR (NO KEY )?UPDATE", text), name


def test_the_fence_is_the_lock_on_one_row(hot: dict[str, str]) -> None:
    assert re.findall(r"FROM (\S+) AS \w+ WHERE x\.id = _fence\.run FOR NO KEY UPDATE", hot["_fence"]) == [
        "scheduler.run"
    ]


def test_no_foreign_key_binds_the_engine_to_a_business_table(db: psycopg.Connection) -> None:
    db.execute("CREATE TABLE item (id integer PRIMARY KEY, status text)")
    db.execute("SELECT scheduler.create_workflow('job', 'item', 'status')")
    assert (
        db.execute(
            "SELECT conname FROM pg_constraint WHERE contype = 'f'"
            " AND (connamespace = 'scheduler'::regnamespace OR conrelid = 'item'::regclass)"
            " AND (SELECT relnamespace FROM pg_class WHERE oid = confrelid) <> 'scheduler'::regnamespace"
        ).fetchall()
        == []
    )


def test_a_row_trigger_is_needed_for_nothing_but_a_faster_bell_and_a_persons_write(db: psycopg.Connection) -> None:
    """Citus refuses triggers: without a doorbell and a processing word there is none."""
    db.execute("CREATE TABLE item (id integer PRIMARY KEY, status text)")
    db.execute("SELECT scheduler.create_workflow('job', 'item', 'status', processing => NULL, doorbell => 'dispatch')")
    assert db.execute("SELECT tgname FROM pg_trigger WHERE tgrelid = 'item'::regclass").fetchall() == []
