"""Seeds of a schedule: environment variables that set a workflow's first schedule, batch size and instances.

They are applied when a database is first set up and by `scrapersky schedules apply`. After that the database is the
truth; a listener only checks them, so that a bad value is refused at start.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Self

from pydantic import BaseModel, Field, ValidationError, field_validator

from listener.errors import UserError
from listener.workflow import Workflow

HOUR = 60
DAY = 24 * HOUR

_VARIABLES = {"schedule": "INTERVAL_MINUTES", "batch_size": "BATCH_SIZE", "max_instances": "MAX_INSTANCES"}
"""The setting in the database → the end of the variable that seeds it."""


class Seed(BaseModel):
    """What <prefix>INTERVAL_MINUTES, <prefix>BATCH_SIZE and <prefix>MAX_INSTANCES say; None where they are unset."""

    interval_minutes: int | None = None
    batch_size: int | None = Field(default=None, ge=1, le=10000)
    max_instances: int | None = Field(default=None, ge=1, le=10000)

    @field_validator("interval_minutes")
    @classmethod
    def _is_even(cls, minutes: int | None) -> int | None:
        if minutes is not None:
            cron_every(minutes)
        return minutes

    @property
    def schedule(self) -> str | None:
        return None if self.interval_minutes is None else cron_every(self.interval_minutes)

    @classmethod
    def read(cls, prefix: str, environment: Mapping[str, str]) -> Self:
        return cls.model_validate({name: environment.get(prefix + name.upper()) for name in cls.model_fields})


def cron_every(minutes: int) -> str:
    """Cron text that fires every so many minutes; an interval cron cannot keep evenly is refused, not rounded."""
    if 1 <= minutes < HOUR and HOUR % minutes == 0:
        return "* * * * *" if minutes == 1 else f"*/{minutes} * * * *"
    hours, rest = divmod(minutes, HOUR)
    if rest == 0 and 1 <= hours < DAY // HOUR and DAY // HOUR % hours == 0:
        return "0 * * * *" if hours == 1 else f"0 */{hours} * * *"
    if minutes == DAY:
        return "0 0 * * *"
    raise ValueError(
        f"every {minutes} minutes cannot be kept evenly by cron: use a divisor of 60, or 60, 120, 180, 240, 360, 480,"
        " 720 or 1440"
    )


def complaints_about_retired(workflows: Iterable[Workflow[Any, Any]], environment: Mapping[str, str]) -> list[str]:
    """One line for each variable that is set under a prefix no longer used, with the names that took its place."""
    heirs: dict[str, list[str]] = {}
    for workflow in workflows:
        for prefix in workflow.retired_env_prefixes:
            for field in Seed.model_fields:
                heirs.setdefault(prefix + field.upper(), []).append(workflow.env_prefix + field.upper())
    return [f"{name}: is no longer used; set {' or '.join(heirs[name])}" for name in heirs if name in environment]


@dataclass(frozen=True)
class Difference:
    """One setting of a workflow that the environment wants otherwise than the database has it."""

    workflow: str
    setting: str
    variable: str
    environment: str | int
    database: str | int | None


def read_seeds(workflows: Iterable[Workflow[Any, Any]], environment: Mapping[str, str]) -> dict[str, Seed]:
    """The seed of each workflow, or one error that names everything wrong with them."""
    chosen = list(workflows)
    complaints = complaints_about_retired(chosen, environment)
    seeds = {}
    for workflow in chosen:
        try:
            seeds[workflow.name] = Seed.read(workflow.env_prefix, environment)
        except ValidationError as error:
            complaints += [
                f"{workflow.env_prefix}{str(problem['loc'][0]).upper()}: {problem['msg'].removeprefix('Value error, ')}"
                for problem in error.errors(include_url=False)
            ]
    if complaints:
        raise UserError(
            "These schedules cannot be used:\n" + "\n".join(f"  {line}" for line in complaints),
            "Correct them in the environment or in .env.",
        )
    return seeds


def differences(
    workflow: Workflow[Any, Any], seed: Seed, stored: Mapping[str, str | int | None]
) -> Iterator[Difference]:
    """Where the environment disagrees with what the database has; what it leaves unset it does not care about."""
    for setting, variable in _VARIABLES.items():
        wanted = getattr(seed, setting)
        has = stored[setting]
        if wanted is not None and wanted != (" ".join(has.split()) if isinstance(has, str) else has):
            yield Difference(workflow.name, setting, workflow.env_prefix + variable, wanted, has)
