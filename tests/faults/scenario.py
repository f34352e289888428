"""One fault, one scenario: its number, what is done, what must come of it, and the function that plays it."""

import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass

from listener.postgres.throwaway import Throwaway
from tests.faults.stage import Stage, staged
from tests.faults.verdict import Verdict


class NotHere(Exception):  # noqa: N818 - an answer, not an error
    """This machine lacks what the scenario needs."""


@dataclass(frozen=True)
class Scene:
    """What a scenario is given: a server to share with others, and whether the fence is there."""

    cluster: Throwaway
    fenced: bool = True

    def stage(self, *, listeners: int = 2, name: str = "chaos", **terms: object) -> AbstractContextManager[Stage]:
        return staged(self.cluster, listeners=listeners, fenced=self.fenced, name=name, terms=terms)


Play = Callable[[Scene], Verdict]


@dataclass(frozen=True)
class Scenario:
    number: str
    title: str
    play: Play
    quick: bool
    """Part of every test run."""
    control: bool
    """Without the fence this one shows duplicates."""


SCENARIOS: dict[str, Scenario] = {}


def fault(number: str, title: str, *, quick: bool = False, control: bool = False) -> Callable[[Play], Play]:
    """Register a function as the scenario of this fault."""

    def register(play: Play) -> Play:
        assert number not in SCENARIOS, number
        SCENARIOS[number] = Scenario(number, title, play, quick, control)
        return play

    return register


@dataclass(frozen=True)
class Outcome:
    scenario: Scenario
    verdict: Verdict
    seconds: float
    skipped: str | None = None
    failed: str | None = None

    @property
    def word(self) -> str:
        if self.skipped:
            return "not here"
        return "FAILED" if self.failed or not self.verdict.is_sound else "ok"


def run(scenario: Scenario, cluster: Throwaway, *, fenced: bool = True) -> Outcome:
    """Play it and catch what it says. Broken expectations are a result; anything else is an error of the scenario."""
    began = time.monotonic()
    verdict, skipped, failed = Verdict(), None, None
    try:
        verdict = scenario.play(Scene(cluster, fenced))
    except NotHere as reason:
        skipped = str(reason)
    except AssertionError as error:
        failed = str(error) or "a broken expectation"
    return Outcome(scenario, verdict, time.monotonic() - began, skipped, failed)
