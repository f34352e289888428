from collections.abc import Iterator

import pytest

from listener.postgres.throwaway import Throwaway, throwaway


@pytest.fixture(scope="session")
def cluster() -> Iterator[Throwaway]:
    """One of its own: it is restarted and crashed."""
    with throwaway(durable=True) as made:
        yield made
