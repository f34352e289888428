from collections.abc import Iterator

import httpx
import psycopg
import pytest

from tests.sql.queue import Queue
from tests.web.serving import Visitor, serving


@pytest.fixture
def queue(db: psycopg.Connection) -> Queue:
    """Five rows of workflow `job`: 1 to 3 wanted."""
    made = Queue(db, rows=5, schedule="*/5 * * * *", doorbell="off")
    made.want(1, 2, 3)
    return made


@pytest.fixture
def visitor(database: str, queue: Queue) -> Iterator[Visitor]:
    """Somebody at the page of this test's database, not signed in."""
    with serving(database) as address, httpx.Client(base_url=address) as client:
        yield Visitor(client)
