"""The pipeline on the web page: its steps in order, the way of an item up and down, its tables."""

import itertools
import json
import re

import httpx
import psycopg

from services.web import pipeline
from tests.browser import stage
from tests.pipeline.rows import column, fill, places, row
from tests.web.serving import READER, Visitor, serving


def test_the_page_follows_an_item_through_all_seven_steps(database: str, db: psycopg.Connection) -> None:
    stage.prepare(db)
    with serving(database) as address, httpx.Client(base_url=address, timeout=30) as client:
        visitor = Visitor(client)
        visitor.sign_in()
        table = visitor.get("/").text.partition('<table id="workflows"')[2]
        steps = re.findall(r'<tr data-key="(\w+)">', table)
        assert steps == list(pipeline.chain)
        # one link after the other, from a website back to the search that found it
        key = stage.a_dead_item(db, "domain_metadata")
        upwards = ("domain_metadata", "domain_extraction", "deep_scan", "place_search")
        for workflow, before in itertools.pairwise(upwards):
            key = linked(visitor, workflow, key, before)
        file = db.execute("SELECT sitemap_file_id, id FROM page LIMIT 1").fetchone()
        assert file is not None
        assert linked(visitor, "page_curation", str(file[1]), "sitemap_import") == str(file[0])
        domain = linked(visitor, "sitemap_import", str(file[0]), "sitemap_analysis")
        assert linked(visitor, "sitemap_analysis", domain, "sitemap_import") == str(file[0])
        contacts = json.loads(visitor.get("/data/contacts/export.json?email_type=corporate").text)
    assert len(contacts) == 20
    assert {contact["email_type"] for contact in contacts} == {"corporate"}


def linked(visitor: Visitor, workflow: str, key: str, other: str) -> str:
    """The key of the first item of the other workflow that an item's page leads to."""
    page = visitor.get(f"/workflows/{workflow}/items/{key}").text
    found = re.search(rf'<table id="chain".*?/workflows/{other}/items/([0-9a-f-]+)"', page, re.DOTALL)
    assert found is not None, f"{workflow} does not lead to {other}"
    return found[1]


def test_ticked_rows_become_what_a_person_decides_and_the_audit_names_that_person(
    database: str, db: psycopg.Connection
) -> None:
    places(db, 3)
    first, second, _ = map(str, column(db, "SELECT id FROM place ORDER BY place_id"))
    with serving(database) as address, httpx.Client(base_url=address, timeout=30) as client:
        operator = Visitor(client)
        operator.sign_in()
        page = operator.get("/data/places").text
        assert f'name="key" value="{first}"' in page
        assert re.findall(r'<button name="word" value="([^"]+)"', page) == [
            *("New", "Selected", "Maybe", "Not a Fit", "Archived")
        ]
        shown = operator.get(f"/do/decide?table=places&key={first}&key={second}&word=Selected").text
        assert "scheduler.curate(relation =&gt; " in shown
        assert column(db, "SELECT DISTINCT status FROM place") == ["New"], "showing it does nothing"
        done = operator.act("decide", table="places", keys=f"{first} {second}", word="Selected", next="/data/places")
        assert done.headers["location"] == "/data/places"
        assert "changed: 2" in operator.get("/data/places").text
    assert column(db, "SELECT id::text FROM place WHERE status = 'Selected' ORDER BY place_id") == [first, second]
    noted = row(db, "SELECT who, affected, detail ->> 'word' FROM scheduler.audit WHERE action = 'curate'")
    assert noted is not None
    assert (str(noted[0]).endswith(" for operator"), *noted[1:]) == (True, 2, "Selected")


def test_a_decision_that_cannot_be_meant_changes_nothing(database: str, db: psycopg.Connection) -> None:
    fill(db)
    key = column(db, "SELECT id::text FROM place")[0]
    hostile = "') OR true --"
    with serving(database) as address, httpx.Client(base_url=address, timeout=30) as client:
        visitor = Visitor(client)
        visitor.sign_in()
        refused = (
            ({"table": "places", "keys": "", "word": "Selected"}, 400),
            ({"table": "places", "keys": key, "word": "Adored"}, 400),
            ({"table": "tenants", "keys": key, "word": "Selected"}, 404),
            ({"table": "places", "key": hostile, "word": "Selected"}, 409),
        )
        for fields, status in refused:
            assert visitor.act("decide", **fields).status_code == status, fields
        assert visitor.act("decide", "forged", table="places", keys=key, word="Selected").status_code == 403
        visitor.sign_in(READER)
        assert 'name="key"' not in visitor.get("/data/places").text
        assert visitor.act("decide", table="places", keys=key, word="Selected").status_code == 403
    assert column(db, "SELECT status FROM place") == ["New"]
