"""How Google Places is asked, from GOOGLE_PLACES_* in the environment and `.env`."""

import re
from typing import Literal

from pydantic import Field, SecretStr, field_validator
from pydantic_settings import SettingsConfigDict

from services.settings import PipelineSettings


class PlacesSettings(PipelineSettings):
    """Give it as `Workflow(settings=PlacesSettings)`, so that it is checked when the listener starts."""

    model_config = SettingsConfigDict(env_prefix="GOOGLE_PLACES_")

    api_key: SecretStr | None = None
    """Without one the two workflows wait; the others run."""
    api: Literal["new", "legacy"] = "new"
    """`legacy` for old projects that have only that one switched on."""
    budget: str = Field(default="google_places", pattern=r"^[a-z][a-z0-9_]{0,39}$")
    """The name of the budget that calls are taken out of: every project at Google may have its own."""
    daily_calls: int = Field(default=1000, ge=0)
    """Calls a day, to begin with; later: `SELECT scheduler.set_budget('google_places', …)`."""
    base_url: str | None = None
    """Where the API is, if not at Google."""
    language: str | None = None
    """Of names and addresses, such as `en`, where a search names none."""
    region: str | None = None
    """Two letters, such as `us`, where a search names none."""

    @field_validator("base_url")
    @classmethod
    def _is_url(cls, value: str | None) -> str | None:
        if value is not None and not re.match(r"https?://[^/\s?#@]+(/[^\s?#]*)?$", value):
            raise ValueError("a base URL is written https://host or http://host:port, without a question mark")
        return value.rstrip("/") if value else None
