"""The pipeline on the web page: its steps in order, the way of an item up and down, its contacts."""

import itertools
import json
import re

import httpx
import psycopg

from services.web import pipeline
from tests.browser import stage
from tests.web.serving import Visitor, serving


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
