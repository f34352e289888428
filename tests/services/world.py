"""Places for the simulated Google, and the tools `work` is given."""

from typing import Any

import httpx
from pydantic import SecretStr

from listener.tools import Clock, Toolbox, Tools
from services.places import PlacesSettings
from services.simulation.google import Google

KEY = "test-key"


def place(number: int, **changes: Any) -> dict[str, Any]:
    """A plumber in Austin, in the form of the current API; None takes a field away."""
    whole: dict[str, Any] = {
        "id": f"ChIJplumber{number:04}",
        "displayName": {"text": f"Plumber {number}", "languageCode": "en"},
        "types": ["plumber", "point_of_interest"],
        "primaryType": "plumber",
        "formattedAddress": f"{number} Main St, Austin, TX 78701, USA",
        "addressComponents": [
            {"longText": str(number), "shortText": str(number), "types": ["street_number"], "languageCode": "en-US"},
            {"longText": "Main Street", "shortText": "Main St", "types": ["route"], "languageCode": "en"},
            {"longText": "Austin", "shortText": "Austin", "types": ["locality", "political"], "languageCode": "en"},
            {
                "longText": "Texas",
                "shortText": "TX",
                "types": ["administrative_area_level_1", "political"],
                "languageCode": "en",
            },
            {"longText": "United States", "shortText": "US", "types": ["country", "political"], "languageCode": "en"},
            {"longText": "78701", "shortText": "78701", "types": ["postal_code"], "languageCode": "en-US"},
        ],
        "location": {"latitude": 30.25, "longitude": -97.75},
        "rating": 4.5,
        "userRatingCount": 87,
        "priceLevel": "PRICE_LEVEL_MODERATE",
        "websiteUri": f"https://plumber{number}.example.test/",
        "nationalPhoneNumber": "(512) 555-0100",
        "internationalPhoneNumber": "+1 512-555-0100",
        "businessStatus": "OPERATIONAL",
        "regularOpeningHours": {
            "openNow": True,
            "periods": [{"open": {"day": 1, "hour": 9, "minute": 0}, "close": {"day": 1, "hour": 17, "minute": 30}}],
            "weekdayDescriptions": ["Monday: 9:00 AM - 5:30 PM"],
        },
        "utcOffsetMinutes": -360,
        "reviews": [{"text": "expensive to ask for"}],
        **changes,
    }
    return {name: value for name, value in whole.items() if value is not None}


def plumbers(count: int) -> Google:
    return Google([place(number) for number in range(1, count + 1)])


class NoWait(Clock):
    """Sleeping takes no time but is remembered."""

    def __init__(self) -> None:
        self.slept: list[float] = []

    async def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)


def settings(base_url: str, **given: Any) -> PlacesSettings:
    return PlacesSettings(base_url=base_url, **{"api_key": SecretStr(KEY), **given})


def tools_with(http: httpx.AsyncClient, own: Any, clock: Clock | None = None) -> Tools:
    return Tools(Toolbox(http, clock), "test", own, "key", 1)
