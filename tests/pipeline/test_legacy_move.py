"""The old system's rows in our own tables: all that can be, once, with nobody's work lost or begun twice."""

from pathlib import Path

import psycopg
import pytest

from listener.errors import UserError
from services.legacy_move import move
from tests.sql.queue import one

LEGACY = Path(__file__).parents[1] / "legacy" / "legacy.sql"


@pytest.fixture
def old(db: psycopg.Connection) -> psycopg.Connection:
    """The old tables in a schema of their own beside ours, with sites that refer to their domain."""
    db.execute("CREATE SCHEMA old")
    db.execute("SET search_path = old")
    db.execute(LEGACY.read_bytes())
    db.execute("UPDATE sitemap_files SET domain_id = (SELECT id FROM domains WHERE url LIKE '%//' || domain || '/%')")
    db.execute("UPDATE pages SET domain_id = (SELECT id FROM domains WHERE url LIKE '%//' || domain || '/%')")
    db.execute("SET search_path = public")
    db.execute("SELECT scheduler.pause_all('moving')")
    return db


def test_every_row_arrives_with_its_status_and_zombies_wait_again(database: str, old: psycopg.Connection) -> None:
    assert [(m.pair.new, m.moved, m.refused) for m in move(database, "old", apply=True)] == [
        (table, 16, 0) for table in ("place", "domain", "local_business", "sitemap_file", "page")
    ]
    expected = {"Queued": 7, "Completed": 2, "Error": 1, None: 6}
    assert dict(old.execute("SELECT deep_scan_status::text, count(*) FROM place GROUP BY 1").fetchall()) == expected
    assert one(old, "SELECT count(*) FROM domain WHERE sitemap_analysis_status = 'queued'") == 7
    assert (
        one(old, "SELECT count(*) FROM page JOIN domain ON domain.id = domain_id WHERE url LIKE '%' || domain || '%'")
        == 16
    )
    assert one(old, "SELECT name FROM local_business WHERE place_id = 'place-1'") == "Business 1"
    assert one(old, "SELECT count(*) FROM place JOIN old.places_staging USING (id)") == 16, "keys are kept"


def test_moving_again_moves_only_what_is_new(database: str, old: psycopg.Connection) -> None:
    move(database, "old", apply=True)
    old.execute("UPDATE place SET deep_scan_status = 'Completed'")
    old.execute("INSERT INTO old.places_staging (place_id) VALUES ('late')")
    again = move(database, "old", apply=True)
    assert [(m.moved, m.already) for m in again] == [(1, 16), (0, 16), (0, 16), (0, 16), (0, 16)]
    assert one(old, "SELECT count(*) FROM place WHERE deep_scan_status = 'Completed'") == 16


def test_looking_first_gives_the_same_numbers_and_changes_nothing(database: str, old: psycopg.Connection) -> None:
    shown = move(database, "old", apply=False)
    assert one(old, "SELECT count(*) FROM place") == 0
    assert move(database, "old", apply=True) == shown


def test_a_domain_we_know_already_gets_the_old_ones_pages(database: str, old: psycopg.Connection) -> None:
    old.execute("INSERT INTO domain (domain) VALUES ('business1.example')")
    old.execute("UPDATE old.domains SET domain = 'Business1.example' WHERE domain = 'business1.example'")
    moved = {m.pair.new: m for m in move(database, "old", apply=True)}
    assert (moved["domain"].moved, moved["domain"].already, moved["page"].moved) == (15, 1, 16)


def test_rows_that_we_cannot_hold_are_counted_not_forced(database: str, old: psycopg.Connection) -> None:
    old.execute("UPDATE old.pages SET domain_id = NULL WHERE url LIKE '%business1.%'")
    old.execute("UPDATE old.pages SET url = 'ftp://business2.example' WHERE url LIKE '%business2.%'")
    (page,) = (m for m in move(database, "old", apply=True) if m.pair.new == "page")
    assert (page.moved, page.refused) == (14, 2)


def test_a_word_without_a_meaning_here_is_refused(database: str, old: psycopg.Connection) -> None:
    old.execute("UPDATE old.sitemap_files SET sitemap_import_status = 'Submitted' WHERE url LIKE '%business3.%'")
    with pytest.raises(UserError, match="'Submitted'") as refusal:
        move(database, "old", apply=True)
    assert "Queued, Processing, Complete, Error" in refusal.value.hint
    assert one(old, "SELECT count(*) FROM place") == 0


def test_what_is_missing_is_named(database: str, db: psycopg.Connection) -> None:
    with pytest.raises(UserError, match="schema of their own"):
        move(database, "public", apply=True)
    with pytest.raises(UserError, match="no old tables"):
        move(database, "elsewhere", apply=True)
