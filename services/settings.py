"""Settings that all workflows of the pipeline share. FetchSettings and PlacesSettings have more, each with a prefix."""

from typing import Final
from uuid import UUID

from pydantic import Field
from pydantic_settings import BaseSettings, SettingsConfigDict

from listener.settings import ENV_FILE

DEFAULT_SYSTEM_USER: Final = UUID("00000000-0000-0000-0000-000000000002")


class PipelineSettings(BaseSettings):
    """Read from the environment and `.env`, checked when the listener starts: `Workflow(..., settings=...)`."""

    model_config = SettingsConfigDict(
        env_file=ENV_FILE, extra="ignore", env_ignore_empty=True, frozen=True, populate_by_name=True
    )

    # an alias, so that it is the same variable for a class with a prefix
    scheduler_system_user_id: UUID = Field(default=DEFAULT_SYSTEM_USER, validation_alias="SCHEDULER_SYSTEM_USER_ID")
    """Who made the rows a workflow makes: their `created_by`."""
