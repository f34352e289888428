"""What a curator does on the page, in a real Chromium: tick rows, press the word they become, see it happen."""

from collections.abc import Iterator

import psycopg
import pytest

from tests.browser.chromium import Browser
from tests.browser.test_page import confirm, until
from tests.conftest import migrated
from tests.pipeline.rows import column, places
from tests.servers import Postgres
from tests.web.serving import READER, TOKEN, serving

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def template(postgres: Postgres) -> Iterator[str]:
    with migrated(postgres, pipeline=True) as name:
        yield name


def test_ticked_places_become_the_word_whose_button_is_pressed(
    chrome: Browser, database: str, db: psycopg.Connection
) -> None:
    places(db, 3)
    first, second, third = map(str, column(db, "SELECT id FROM place ORDER BY place_id"))
    with serving(database) as address:
        chrome.sign_in(address, TOKEN)
        chrome.open(f"{address}/data/places")
        chrome.click(f"#rows input[value='{first}']")
        chrome.click(f"#rows input[value='{third}']")
        chrome.click(".decide button[value='Maybe']")
        until(chrome, "#dialog[open] pre", "scheduler.curate(relation => 'place'")
        until(chrome, "#dialog[open] pre", "word => 'Maybe'")
        confirm(chrome)
        until(chrome, "#told", "changed: 2")
        until(chrome, f"tr[data-key='{first}']", "Maybe")
        chrome.sign_in(address, READER)
        chrome.open(f"{address}/data/places")
        until(chrome, "#rows", "Maybe")
        assert chrome.all("#rows input, .decide") == []
    assert column(db, "SELECT id::text FROM place WHERE status = 'New'") == [second]
