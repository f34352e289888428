"""A short mix of faults in every test run; `make faults SEEDS=50` is the long one."""

from collections.abc import Iterator

import pytest

from listener.postgres.throwaway import Throwaway, throwaway
from tests.faults.mix import run_mix

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def cluster() -> Iterator[Throwaway]:
    """One of its own: it is restarted and crashed."""
    with throwaway(durable=True) as made:
        yield made


@pytest.mark.parametrize("seed", [1, 2])
def test_a_mix_of_faults_loses_nothing_and_doubles_nothing(cluster: Throwaway, seed: int) -> None:
    report = run_mix(cluster, seed, items=300, faults=4)
    assert report.verdict.is_sound, report
    assert report.faults.total() == 4
