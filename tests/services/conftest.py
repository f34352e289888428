from collections.abc import AsyncIterator, Iterator

import httpx
import pytest

from tests.conftest import migrated
from tests.servers import Postgres
from tests.services.pipeline import Pipeline


@pytest.fixture(scope="session")
def template(postgres: Postgres) -> Iterator[str]:
    """Here `database` has the pipeline's tables too."""
    with migrated(postgres, pipeline=True) as name:
        yield name


@pytest.fixture
async def http() -> AsyncIterator[httpx.AsyncClient]:
    async with httpx.AsyncClient() as client:
        yield client


@pytest.fixture
async def pipeline(database: str) -> AsyncIterator[Pipeline]:
    made = Pipeline(database)
    yield made
    await made.close()
