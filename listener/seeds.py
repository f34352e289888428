"""Seeds of a schedule: environment variables that set a workflow's first schedule, batch size and instances.

They are applied when a database is first set up and by `scrapersky schedules apply`. After that the database is the
truth; a listener only checks them, so that a bad value is refused at start.
"""

from collections.abc import Iterable, Mapping
from typing import Any, Self

from pydantic import BaseModel, Field, field_validator

from listener.workflow import Workflow

HOUR = 60
DAY = 24 * HOUR


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
