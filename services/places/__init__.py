"""Google Places: the current API and the legacy one behind one interface.

with verdicts():                                   # a PlacesError becomes the engine's Hold, Retry or Reject
    found = await places(tools).search(Query("plumber in Austin, TX"))
    details = await places(tools).details("ChIJ…")
"""

from services.places.client import Places, places
from services.places.errors import (
    BadRequestError,
    BudgetError,
    DayQuotaError,
    GoneError,
    KeyRefusedError,
    MinuteQuotaError,
    NoKeyError,
    PlacesError,
    UnavailableError,
    verdicts,
)
from services.places.records import Details, Found, FoundPlace, Query
from services.places.settings import PlacesSettings

__all__ = [
    "BadRequestError",
    "BudgetError",
    "DayQuotaError",
    "Details",
    "Found",
    "FoundPlace",
    "GoneError",
    "KeyRefusedError",
    "MinuteQuotaError",
    "NoKeyError",
    "Places",
    "PlacesError",
    "PlacesSettings",
    "Query",
    "UnavailableError",
    "places",
    "verdicts",
]
