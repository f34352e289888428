"""Rows to begin with, and short ways to ask."""

from collections.abc import Sequence
from typing import Any

import psycopg


def fill(db: psycopg.Connection) -> None:
    """One row in each table, from the search to the contact."""
    db.execute("INSERT INTO place_search (business_type, location) VALUES ('plumber', 'Austin, TX')")
    db.execute("INSERT INTO place (place_id, place_search_id) SELECT 'one', id FROM place_search")
    db.execute("INSERT INTO domain (domain) VALUES ('example.org')")
    db.execute("INSERT INTO local_business (place_id, domain_id) SELECT 'one', id FROM domain")
    db.execute("INSERT INTO sitemap_file (domain_id, url) SELECT id, 'https://example.org/sitemap.xml' FROM domain")
    db.execute(
        "INSERT INTO page (domain_id, sitemap_file_id, url)"
        " SELECT domain_id, id, 'https://example.org/contact' FROM sitemap_file"
    )
    db.execute("INSERT INTO contact (domain_id, page_id, email) SELECT domain_id, id, 'info@example.org' FROM page")


def places(db: psycopg.Connection, count: int) -> None:
    db.execute(
        "INSERT INTO place (place_id, rating) SELECT 'p' || n, mod(n, 5) FROM generate_series(1, %s) AS n", [count]
    )


def column(db: psycopg.Connection, query: str) -> Sequence[Any]:
    return [row[0] for row in db.execute(query.encode()).fetchall()]


def row(db: psycopg.Connection, query: str) -> tuple[Any, ...] | None:
    return db.execute(query.encode()).fetchone()
