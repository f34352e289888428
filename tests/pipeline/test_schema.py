"""The tables as the models, the migrations and the live catalogue see them."""

import re
from enum import StrEnum

import psycopg
import pytest
from sqlalchemy import create_engine

from services import models
from services.models import Base
from tests.conftest import Connect
from tests.pipeline.rows import column, fill
from tests.sql.test_view_costs import unexplained

TABLES = sorted(Base.metadata.tables)

COLUMNS = """
SELECT c.relname, a.attname, format_type(a.atttypid, a.atttypmod), a.attnotnull, pg_get_expr(d.adbin, d.adrelid)
FROM pg_attribute AS a JOIN pg_class AS c ON c.oid = a.attrelid
LEFT JOIN pg_attrdef AS d ON d.adrelid = a.attrelid AND d.adnum = a.attnum
WHERE c.relnamespace = 'public'::regnamespace AND c.relkind = 'r' AND a.attnum > 0 AND NOT a.attisdropped
ORDER BY 1, 2"""
CONSTRAINTS = """
SELECT conrelid::regclass::text, conname, pg_get_constraintdef(oid) FROM pg_constraint
WHERE connamespace = 'public'::regnamespace ORDER BY 1, 2"""
INDEXES = """
SELECT tablename, indexname, indexdef FROM pg_indexes
WHERE schemaname = 'public' AND indexname !~ '^scheduler_' ORDER BY 1, 2"""
WORDS = """
SELECT t.typname, array_agg(e.enumlabel::text ORDER BY e.enumsortorder)
FROM pg_type AS t JOIN pg_enum AS e ON e.enumtypid = t.oid
WHERE t.typnamespace = 'public'::regnamespace GROUP BY 1"""


def test_models_and_migrations_describe_the_same_tables(
    db: psycopg.Connection, empty_database: str, connect: Connect
) -> None:
    engine = create_engine("postgresql+psycopg://", creator=lambda: psycopg.connect(empty_database))
    Base.metadata.create_all(engine)
    engine.dispose()
    described = connect(url=empty_database)
    for catalogue in (COLUMNS, CONSTRAINTS, INDEXES):
        assert db.execute(catalogue).fetchall() == described.execute(catalogue).fetchall() != []


def test_the_words_in_python_are_the_words_in_the_database(db: psycopg.Connection) -> None:
    kinds = [kind for kind in vars(models).values() if isinstance(kind, type) and issubclass(kind, StrEnum)]
    ours = {re.sub(r"(?<!^)(?=[A-Z])", "_", kind.__name__).lower(): [word.value for word in kind] for kind in kinds}
    assert dict(db.execute(WORDS).fetchall()) == ours


def test_a_plain_insert_gets_its_key_tenant_author_and_times(db: psycopg.Connection) -> None:
    row = db.execute(
        "INSERT INTO domain (domain) VALUES ('example.org')"
        " RETURNING id IS NOT NULL, tenant_id, created_by = session_user, created_at = updated_at"
    ).fetchone()
    assert row == (True, models.DEFAULT_TENANT, True, True)
    assert db.execute("SELECT name FROM tenant").fetchall() == [("default",)]


def test_every_change_moves_updated_at_whatever_the_writer_says(db: psycopg.Connection) -> None:
    fill(db)
    for table in TABLES:
        db.execute(f"UPDATE {table} SET updated_at = '2020-01-02'".encode())
        assert column(db, f"SELECT DISTINCT updated_at > now() - interval '1 hour' FROM {table}") == [True], table


def test_deleting_a_domain_deletes_what_was_found_on_it_and_keeps_the_business(db: psycopg.Connection) -> None:
    fill(db)
    db.execute("DELETE FROM domain")
    left = {table: column(db, f"SELECT count(*) FROM {table}")[0] for table in TABLES}
    assert left == {
        **dict.fromkeys(("tenant", "place_search", "place", "local_business"), 1),
        **dict.fromkeys(("domain", "sitemap_file", "page", "contact"), 0),
    }


AGAIN = [
    "INSERT INTO place (place_id) SELECT place_id FROM place",
    "INSERT INTO local_business (place_id) SELECT place_id FROM local_business",
    "INSERT INTO domain (domain) SELECT domain FROM domain",
    "INSERT INTO sitemap_file (domain_id, url) SELECT domain_id, url FROM sitemap_file",
    "INSERT INTO page (domain_id, url) SELECT domain_id, url FROM page",
    "INSERT INTO contact (domain_id, email, phone) SELECT domain_id, email, '+15125550199' FROM contact",
    "INSERT INTO contact (domain_id, phone) SELECT id, '+15125550100' FROM domain, generate_series(1, 2)",
]


def test_nothing_is_stored_twice(db: psycopg.Connection) -> None:
    fill(db)
    for again in AGAIN:
        with pytest.raises(psycopg.errors.UniqueViolation):
            db.execute(again.encode())


IMPOSSIBLE = [
    ("INSERT INTO contact (domain_id, name) SELECT id, 'Nobody' FROM domain", "contact_reachable_check"),
    ("UPDATE contact SET email = 'Info@Example.org'", "contact_email_check"),
    ("UPDATE contact SET email = 'logo'", "contact_email_check"),
    ("UPDATE contact SET phone = '5125550100'", "contact_phone_check"),
    ("UPDATE domain SET domain = 'Example.org'", "domain_domain_check"),
    ("UPDATE domain SET domain = 'example.org/contact'", "domain_domain_check"),
    ("UPDATE page SET url = 'javascript:alert(1)'", "page_url_check"),
    ("UPDATE page SET url = 'https://example.org/' || repeat('x', 3000)", "page_url_check"),
    ("UPDATE place_search SET location = ' '", "place_search_location_check"),
]


def test_what_cannot_be_true_is_refused_whoever_writes_it(db: psycopg.Connection) -> None:
    fill(db)
    for statement, constraint in IMPOSSIBLE:
        with pytest.raises(psycopg.errors.CheckViolation) as caught:
            db.execute(statement.encode())
        assert caught.value.diag.constraint_name == constraint


QUESTIONS = [
    "SELECT deep_scan_status, COUNT(*) FROM place GROUP BY deep_scan_status ORDER BY 2 DESC",
    (
        "SELECT id, place_id, deep_scan_status, updated_at FROM place WHERE updated_at > NOW() - INTERVAL '1 hour'"
        " ORDER BY updated_at DESC LIMIT 20"
    ),
    "SELECT domain_extraction_status, COUNT(*) FROM local_business GROUP BY domain_extraction_status",
    (
        "SELECT id, name, website, domain_extraction_status, updated_at FROM local_business"
        " ORDER BY updated_at DESC LIMIT 20"
    ),
    "SELECT COUNT(*) FROM domain WHERE created_at > NOW() - INTERVAL '1 hour'",
    (
        "SELECT deep_scan_error, COUNT(*) FROM place WHERE deep_scan_status = 'Error'"
        " GROUP BY deep_scan_error ORDER BY 2 DESC"
    ),
]


def test_the_questions_operators_ask_are_answered_as_they_ask_them(db: psycopg.Connection) -> None:
    fill(db)
    db.execute("UPDATE place SET deep_scan_status = 'Error', deep_scan_error = 'NOT_FOUND'")
    for question in QUESTIONS:
        assert len(db.execute(question.encode()).fetchall()) == 1, question


def test_no_place_has_two_businesses(db: psycopg.Connection) -> None:
    fill(db)
    assert column(db, "SELECT place_id, COUNT(*) FROM local_business GROUP BY place_id HAVING COUNT(*) > 1") == []


def test_psql_explains_what_the_pipeline_adds_to_the_engine(db: psycopg.Connection) -> None:
    assert unexplained(db) == []
