"""The benchmark's town, read by the workflows' own `work`: every address of it and no other, as the figures claim."""

import json
from typing import Any

import pytest

from benchmarks.pipeline.__main__ import READERS, measure, served

OURS = READERS[0]


@pytest.mark.slow
@pytest.mark.parametrize("task", ["domains", "parse"])
def test_all_of_a_town_is_read_and_nothing_else(task: str) -> None:
    with served(8) as path:
        town: dict[str, Any] = json.loads(path.read_text("utf-8"))
        report = measure(OURS, task, path)
    expected = {site["domain"]: site["emails"] for site in town["sites"] if site["emails"]}
    assert {domain: emails for domain, emails in report["found"].items() if emails} == expected


@pytest.mark.slow
def test_every_page_that_sitemaps_of_all_kinds_name_is_listed() -> None:
    with served(16) as path:
        town: dict[str, Any] = json.loads(path.read_text("utf-8"))
        report = measure(OURS, "sitemaps", path)
    for site in town["sites"]:
        listed = [page for page in report["found"].get(site["domain"], []) if "/products/" not in page]
        expected = [page for page in site["listed_pages"] if "/products/" not in page]
        assert set(listed) >= set(expected), site["root"]
