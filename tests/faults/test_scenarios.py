"""The quickest scenarios in every test run; `make faults` plays all of them."""

import pytest

from listener.postgres.throwaway import Throwaway
from tests.faults import every
from tests.faults.mix import run_mix
from tests.faults.scenario import SCENARIOS, run

QUICK = [scenario.number for scenario in every.chosen() if scenario.quick]


def test_every_fault_we_know_of_has_a_scenario() -> None:
    assert {f"F{number}" for number in range(1, 33)} <= set(SCENARIOS)


@pytest.mark.slow
@pytest.mark.parametrize("number", QUICK)
def test_a_fault_loses_nothing_and_doubles_nothing(cluster: Throwaway, number: str) -> None:
    outcome = run(SCENARIOS[number], cluster)
    assert outcome.word == "ok", outcome
    assert outcome.verdict.items


@pytest.mark.slow
def test_a_mix_of_faults_loses_nothing_and_doubles_nothing(cluster: Throwaway) -> None:
    report = run_mix(cluster, 1, items=200, faults=4)
    assert report.verdict.is_sound, report
    assert report.faults.total() == 4
