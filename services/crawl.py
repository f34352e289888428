"""What the workflows that read websites share: their settings, who they write as."""

from uuid import UUID

from pydantic import Field

from listener import Tools
from services.fetch import Fetched, FetchSettings
from services.html import Page, read_page
from services.settings import DEFAULT_SYSTEM_USER


class CrawlSettings(FetchSettings):
    """The fetcher's settings, and the system user of PipelineSettings."""

    scheduler_system_user_id: UUID = Field(default=DEFAULT_SYSTEM_USER, validation_alias="SCHEDULER_SYSTEM_USER_ID")


def author(tools: Tools) -> str:
    """The `created_by` of the rows this work leads to."""
    settings = tools.settings
    return str(settings.scheduler_system_user_id if isinstance(settings, CrawlSettings) else DEFAULT_SYSTEM_USER)


def page_of(fetched: Fetched) -> Page:
    return read_page(fetched.text(), fetched.final_url, fetched.headers)
