from collections.abc import Iterator

import psycopg
import pytest

from tests.browser.chromium import Browser, browser, why_not
from tests.sql.queue import Queue
from tests.web.serving import serving


@pytest.fixture(scope="session")
def chrome() -> Iterator[Browser]:
    """This test process's browser."""
    if reason := why_not():
        pytest.skip(reason)
    with browser() as opened:
        yield opened


@pytest.fixture
def queue(db: psycopg.Connection) -> Queue:
    """Five rows of workflow `job`."""
    return Queue(db, rows=5, doorbell="off")


@pytest.fixture
def address(database: str, queue: Queue) -> Iterator[str]:
    """Where this test's page is."""
    with serving(database) as served:
        yield served
