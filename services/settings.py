"""Settings that all workflows of the pipeline share. A workflow with more of its own inherits from this."""

from typing import Final
from uuid import UUID

from pydantic_settings import BaseSettings, SettingsConfigDict

DEFAULT_SYSTEM_USER: Final = UUID("00000000-0000-0000-0000-000000000002")


class PipelineSettings(BaseSettings):
    """Read from the environment and `.env`, checked when the listener starts: `Workflow(..., settings=...)`."""

    model_config = SettingsConfigDict(env_file=".env", extra="ignore", env_ignore_empty=True, frozen=True)

    scheduler_system_user_id: UUID = DEFAULT_SYSTEM_USER
    """Who made the rows a workflow makes: their `created_by`."""
