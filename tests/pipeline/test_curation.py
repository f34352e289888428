"""Gates: what Selected means, who goes on without it, and selecting many at once."""

import threading
from dataclasses import dataclass

import psycopg
import pytest
from psycopg import conninfo, sql

from tests.conftest import Connect
from tests.pipeline.rows import column, fill, places, row
from tests.sql.queue import call, one
from tests.waiting import wait_until


@dataclass(frozen=True)
class Gate:
    workflow: str
    table: str
    curation: str
    status: str
    queued: str = "Queued"
    processing: str = "Processing"
    failed: str = "Error"
    idle: str | None = None

    def select(self, db: psycopg.Connection) -> None:
        db.execute(f"UPDATE {self.table} SET {self.curation} = 'Selected'".encode())

    def shown(self, db: psycopg.Connection) -> object:
        return column(db, f"SELECT {self.status} FROM {self.table}")[0]


GATES = [
    Gate("deep_scan", "place", "status", "deep_scan_status"),
    Gate("domain_extraction", "local_business", "status", "domain_extraction_status"),
    Gate(
        "sitemap_analysis", "domain", "sitemap_curation_status", "sitemap_analysis_status",
        "queued", "processing", "failed", "pending",
    ),
    Gate("sitemap_import", "sitemap_file", "deep_scrape_curation_status", "sitemap_import_status"),
    Gate("page_curation", "page", "page_curation_status", "page_processing_status"),
]  # fmt: skip
each_gate = pytest.mark.parametrize("gate", GATES, ids=lambda gate: gate.workflow)


def dispatch(db: psycopg.Connection, workflow: str) -> int:
    return int(one(db, "SELECT queued FROM scheduler.dispatch(%s)", workflow))


def claim(db: psycopg.Connection, workflow: str) -> tuple[int, list[str], list[int]]:
    found = db.execute("SELECT run, keys, attempts FROM scheduler.claim(%s)", [workflow]).fetchone()
    assert found is not None
    return found


def fail(db: psycopg.Connection, run: int, key: str, *, permanent: bool = True) -> None:
    db.execute("SELECT scheduler.fail(%s, %s, %s, %s)", [run, [key], ["boom"], [permanent]])


@each_gate
def test_a_selected_row_is_queued_and_no_other(gate: Gate, db: psycopg.Connection) -> None:
    fill(db)
    assert dispatch(db, gate.workflow) == 0
    gate.select(db)
    assert gate.shown(db) == gate.idle, "the schedule marks it Queued, not the client"
    assert dispatch(db, gate.workflow) == 1
    assert gate.shown(db) == gate.queued


@each_gate
def test_a_failed_row_selected_again_is_queued_again_and_never_twice(gate: Gate, db: psycopg.Connection) -> None:
    fill(db)
    gate.select(db)
    dispatch(db, gate.workflow)
    run, keys, _ = claim(db, gate.workflow)
    fail(db, run, keys[0])
    assert gate.shown(db) == gate.failed
    assert dispatch(db, gate.workflow) == 0, "a dead item is not tried for ever"

    gate.select(db)
    assert dispatch(db, gate.workflow) == 1
    run, keys, attempts = claim(db, gate.workflow)
    assert attempts == [1], "it has all its attempts again"

    # while it runs: selecting it does not queue it a second time, nor disturb the run
    gate.select(db)
    assert gate.shown(db) == gate.processing
    assert dispatch(db, gate.workflow) == 0
    assert row(db, f"SELECT accepted FROM scheduler.succeed({run}, NULL, NULL)") == (1,)

    gate.select(db)
    assert dispatch(db, gate.workflow) == 0, "done is done"


def test_an_item_waiting_for_its_retry_is_not_run_twice_when_selected_again(db: psycopg.Connection) -> None:
    places(db, 1)
    db.execute("UPDATE place SET status = 'Selected'")
    dispatch(db, "deep_scan")
    run, keys, _ = claim(db, "deep_scan")
    fail(db, run, keys[0], permanent=False)
    db.execute("UPDATE place SET status = 'Selected'")
    db.execute("UPDATE scheduler.attempt SET retry_at = now() WHERE state = 'waiting'")
    assert db.execute("SELECT queued + retried FROM scheduler.dispatch('deep_scan')").fetchone() == (1,)
    assert claim(db, "deep_scan")[1:] == (keys, [1])


def test_selecting_a_failed_item_while_the_engine_queues_it_leaves_it_queued_once(
    db: psycopg.Connection, connect: Connect
) -> None:
    places(db, 1)
    db.execute("UPDATE place SET status = 'Selected', deep_scan_status = 'Error'")
    engine, person = connect(autocommit=False), connect()
    engine.execute("SELECT scheduler.requeue('deep_scan', predicate => 'true')")
    thread = threading.Thread(target=person.execute, args=["UPDATE place SET status = 'Selected'"])
    thread.start()
    waits = f"SELECT wait_event_type FROM pg_stat_activity WHERE pid = {person.info.backend_pid}"
    wait_until(lambda: column(db, waits) == ["Lock"], what="the person's write to wait for the engine's")
    engine.commit()
    thread.join(20)
    assert row(db, "SELECT deep_scan_status FROM place") == ("Queued",)
    assert dispatch(db, "deep_scan") == 0
    assert len(claim(db, "deep_scan")[1]) == 1


def test_selecting_a_cancelled_item_again_is_asking_for_it(db: psycopg.Connection) -> None:
    places(db, 1)
    db.execute("UPDATE place SET status = 'Selected'")
    dispatch(db, "deep_scan")
    db.execute("SELECT scheduler.cancel('deep_scan', ARRAY(SELECT id FROM place))")
    assert dispatch(db, "deep_scan") == 0
    db.execute("UPDATE place SET status = 'Selected'")
    assert dispatch(db, "deep_scan") == 1


def test_a_rescan_that_writes_data_does_not_start_a_failed_item_again(db: psycopg.Connection) -> None:
    places(db, 1)
    db.execute("UPDATE place SET status = 'Selected', deep_scan_status = 'Error'")
    db.execute(
        "INSERT INTO place (place_id, name) VALUES ('p1', 'New name')"
        " ON CONFLICT (place_id) DO UPDATE SET name = excluded.name"
    )
    assert row(db, "SELECT name, status, deep_scan_status FROM place") == ("New name", "Selected", "Error")


def test_a_page_that_a_rule_left_out_is_read_when_a_person_selects_it(db: psycopg.Connection) -> None:
    fill(db)
    db.execute("UPDATE page SET page_processing_status = 'Filtered', filter_rule = 'media'")
    db.execute("UPDATE page SET page_curation_status = 'Selected'")
    assert dispatch(db, "page_curation") == 1


def test_an_open_gate_lets_new_rows_through_and_a_closed_one_does_not(db: psycopg.Connection) -> None:
    places(db, 3)
    db.execute("UPDATE place SET status = 'Not a Fit' WHERE place_id = 'p1'")
    assert call(db, "auto_advance", workflow="deep_scan", open=True) == (
        "deep_scan: items go on by themselves; 2 ready now"
    )
    assert dispatch(db, "deep_scan") == 2
    assert column(db, "SELECT place_id FROM place WHERE deep_scan_status IS NULL") == ["p1"], "it was turned down"
    assert call(db, "auto_advance", workflow="deep_scan", open=False) == "deep_scan: a person selects; 0 ready now"
    places_more = "INSERT INTO place (place_id) VALUES ('more')"
    db.execute(places_more)
    assert dispatch(db, "deep_scan") == 0
    assert column(db, "SELECT open FROM scheduler.gate WHERE workflow = 'deep_scan'") == [False]
    audited = "SELECT detail ->> 'open' FROM scheduler.audit WHERE action = 'auto_advance' ORDER BY id"
    assert column(db, audited) == ["true", "false"]


def test_every_gate_opens_and_closes(db: psycopg.Connection) -> None:
    fill(db)
    for workflow in ("deep_scan", "domain_extraction", "sitemap_import", "page_curation"):
        before = one(db, "SELECT ready FROM scheduler.workflow WHERE name = %s", workflow)
        call(db, "auto_advance", workflow=workflow, open=True)
        assert dispatch(db, workflow) == 1
        call(db, "auto_advance", workflow=workflow, open=False)
        assert one(db, "SELECT ready FROM scheduler.workflow WHERE name = %s", workflow) == before


def test_what_has_no_gate_is_told_with_those_that_have(db: psycopg.Connection) -> None:
    for workflow in ("domain_metadata", "place_search", "no_such", None):
        with pytest.raises(psycopg.errors.InvalidParameterValue, match="has no gate") as caught:
            call(db, "auto_advance", workflow=workflow, open=True)
        assert "deep_scan, domain_extraction, page_curation, sitemap_import" in str(caught.value.diag.message_hint)


def test_only_the_owner_of_the_table_opens_a_gate(db: psycopg.Connection, connect: Connect) -> None:
    admin = connect("scheduler_admin")
    with pytest.raises(psycopg.errors.InsufficientPrivilege, match="only the owner"):
        call(admin, "auto_advance", workflow="deep_scan", open=True)
    with pytest.raises(psycopg.errors.InsufficientPrivilege, match="only the owner"):
        call(admin, "_set_gate", workflow="deep_scan", open=True)


def curate(db: psycopg.Connection, *arguments: object, **named: object) -> dict[str, int]:
    names = "".join(f", {name} => %({name})s" for name in named)
    given = {f"a{n}": value for n, value in enumerate(arguments)} | named
    places_ = ", ".join(f"%(a{n})s" for n in range(len(arguments)))
    cursor = db.execute(f"SELECT * FROM scheduler.curate({places_}{names})".encode(), given)
    found = cursor.fetchone()
    assert found is not None
    assert cursor.description is not None
    return dict(zip((c.name for c in cursor.description), found, strict=True))


def test_selecting_by_filter_counts_what_it_did(db: psycopg.Connection) -> None:
    places(db, 10)
    db.execute("UPDATE place SET deep_scan_status = 'Error', status = 'Selected' WHERE place_id = 'p3'")
    db.execute("UPDATE place SET deep_scan_status = 'Processing', status = 'Selected' WHERE place_id = 'p4'")
    first = {"matched": 4, "changed": 2, "again": 1, "unchanged": 1, "in_progress": 1}
    assert curate(db, "place", "rating >= 3", dry_run=True) == first
    assert column(db, "SELECT count(*) FROM place WHERE status = 'Selected'") == [2], "a dry run writes nothing"
    assert curate(db, "place", "rating >= 3") == first
    assert column(db, "SELECT place_id FROM place WHERE status = 'Selected' ORDER BY 1") == ["p3", "p4", "p8", "p9"]
    assert row(db, "SELECT deep_scan_status FROM place WHERE place_id = 'p3'") == (None,)
    assert row(db, "SELECT deep_scan_status FROM place WHERE place_id = 'p4'") == ("Processing",)
    assert curate(db, "place", "rating >= 3") == {**first, "changed": 0, "again": 0, "unchanged": 4}
    noted = "SELECT affected, detail ->> 'predicate' FROM scheduler.audit WHERE action = 'curate' ORDER BY id LIMIT 1"
    assert row(db, noted) == (3, "rating >= 3"), "the dry run is none of it"


def test_selecting_can_be_limited_and_undone(db: psycopg.Connection) -> None:
    places(db, 10)
    assert curate(db, "place", "true", most=3)["changed"] == 3
    assert curate(db, "place", "status = 'Selected'", "Archived")["changed"] == 3
    assert curate(db, "contact", "true", "Maybe")["matched"] == 0


BAD = [
    (("tenant", "true"), "not a table that people curate"),
    (("place", "true", "selected"), "not a value of"),
    (("place", "no_such_column > 3"), "no_such_column"),
    (("place", "true) THEN; DELETE FROM place; --"), "cannot be used"),
    (("place", "true) UNION SELECT FROM tenant WHERE (true"), "cannot be used"),
    (("place", "true", "Selected", 0), "most cannot be 0"),
    (("place", None), "cannot be NULL"),
]


def test_a_bad_selection_changes_nothing_and_says_why(db: psycopg.Connection) -> None:
    places(db, 2)
    for arguments, message in BAD:
        with pytest.raises(psycopg.Error, match=message):
            curate(db, *arguments)
    assert column(db, "SELECT DISTINCT status FROM place") == ["New"]


def test_a_curator_needs_no_more_rights_than_on_the_table(
    connect: Connect, db: psycopg.Connection, database: str
) -> None:
    places(db, 2)
    curator = sql.Identifier("curator_" + str(conninfo.conninfo_to_dict(database)["dbname"]))
    db.execute(sql.SQL("CREATE ROLE {0}; GRANT SELECT, UPDATE ON place TO {0}").format(curator))
    try:
        db.execute("UPDATE place SET deep_scan_status = 'Error'")
        session = connect()
        session.execute(sql.SQL("SET SESSION AUTHORIZATION {}").format(curator))
        session.execute("UPDATE place SET status = 'Selected'")
        assert dispatch(db, "deep_scan") == 2
    finally:
        db.execute(sql.SQL("DROP OWNED BY {0}; DROP ROLE {0}").format(curator))
    assert curate(connect("scheduler_admin"), "place", "true", "Maybe")["changed"] == 2


def test_backpressure_holds_back_what_feeds_a_full_queue(db: psycopg.Connection) -> None:
    fill(db)
    call(db, "alter_workflow", name="sitemap_import", downstream_limit=1)
    db.execute("UPDATE page SET page_processing_status = 'Queued'")
    db.execute("UPDATE sitemap_file SET deep_scrape_curation_status = 'Selected'")
    assert row(db, "SELECT queued, note FROM scheduler.dispatch('sitemap_import')") == (
        0,
        "held back: page_curation has 1 or more items Queued",
    )
    downstream = "SELECT name, downstream FROM scheduler.workflow WHERE downstream IS NOT NULL ORDER BY 1"
    assert db.execute(downstream).fetchall() == [
        ("domain_extraction", "domain_metadata"),
        ("sitemap_import", "page_curation"),
    ]
