"""The benchmark's town, read by the workflows' own `work`: every address of it and no other, as the figures claim."""

import json
from typing import Any

import pytest

from benchmarks.pipeline.__main__ import READERS, measure, served

OURS = READERS[0]


@pytest.mark.slow
def test_all_of_a_town_is_read_and_nothing_else() -> None:
    with served(8) as path:
        town: dict[str, Any] = json.loads(path.read_text("utf-8"))
        found = measure(OURS, "domains", path)["found"]
        listed = measure(OURS, "sitemaps", path)["found"]
    expected = {site["domain"]: site["emails"] for site in town["sites"] if site["emails"]}
    assert {domain: emails for domain, emails in found.items() if emails} == expected
    for site in town["sites"]:
        assert set(listed[site["domain"]]) >= set(site["listed_pages"]), site["root"]
