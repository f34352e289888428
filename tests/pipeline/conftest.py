"""Here every test has the pipeline's tables too."""

from collections.abc import Iterator

import pytest

from tests.conftest import migrated
from tests.servers import Postgres


@pytest.fixture(scope="session")
def template(postgres: Postgres) -> Iterator[str]:
    """The name of a database with the engine and the pipeline, to be copied."""
    with migrated(postgres, pipeline=True) as name:
        yield name
