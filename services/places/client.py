"""The interface of both APIs, and which of them is used."""

from collections.abc import Awaitable, Callable
from typing import Protocol

from listener import Clock, Tools
from listener.redact import know
from services.places.budget import Budget
from services.places.current import CurrentApi
from services.places.errors import NoKeyError
from services.places.legacy import LegacyApi
from services.places.records import Details, Found, Query
from services.places.settings import PlacesSettings
from services.places.transport import Http, Transport


class Places(Protocol):
    """Google Places. Every way it can fail is a PlacesError; nothing is tried twice, that is the engine's business."""

    async def search(self, query: Query) -> Found:
        """All pages of a text search, up to `max_results`. Nothing found is an answer."""

    async def details(self, place_id: str) -> Details:
        """What we keep of one place, and nothing more: each group of fields costs money."""


def connect(
    settings: PlacesSettings, http: Http, clock: Clock, spend: Callable[[], Awaitable[None]] | None = None
) -> Places:
    key = settings.api_key.get_secret_value().strip() if settings.api_key else ""
    if not key:
        raise NoKeyError("there is no key for Google Places: set GOOGLE_PLACES_API_KEY")
    know(key)
    transport = Transport(http, spend)
    if settings.api == "legacy":
        return LegacyApi(transport, settings, key, clock)
    return CurrentApi(transport, settings, key)


def places(tools: Tools) -> Places:
    """Google Places as this workflow's settings say."""
    settings = tools.settings if isinstance(tools.settings, PlacesSettings) else PlacesSettings()
    return connect(settings, tools.http, tools.clock, Budget(tools, settings.budget, settings.daily_calls).spend)
