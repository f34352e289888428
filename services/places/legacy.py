"""The legacy API: everything in the query string, HTTP 200 for everything, `status` decides."""

import re

from listener import Clock
from services.places.errors import (
    BadRequestError,
    DayQuotaError,
    GoneError,
    KeyRefusedError,
    MinuteQuotaError,
    PlacesError,
    UnavailableError,
)
from services.places.reading import address_parts, inside, number, objects, text, texts, whole
from services.places.records import MOST_RESULTS, Details, Found, FoundPlace, Json, Query
from services.places.settings import PlacesSettings
from services.places.transport import Transport

BASE_URL = "https://maps.googleapis.com"
_MOST_PAGES = MOST_RESULTS // 20
# Only what has a column. A search cannot be asked for less.
DETAILS_FIELDS = ",".join(
    (
        "name",
        "formatted_address",
        "address_component",
        "international_phone_number",
        "website",
        "type",
        "geometry/location",
        "rating",
        "user_ratings_total",
        "price_level",
        "opening_hours",
        "business_status",
        "utc_offset",
    )
)
_TOKEN_SECONDS = 2.0
"""A page token is not good before about that."""
_TOKEN_TRIES = 5
_TIME = re.compile(r"([01]\d|2[0-4])([0-5]\d)")


class LegacyApi:
    def __init__(self, transport: Transport, settings: PlacesSettings, key: str, clock: Clock) -> None:
        self._transport = transport
        self._settings = settings
        self._key = key
        self._clock = clock

    async def search(self, query: Query) -> Found:
        found: dict[str, FoundPlace] = {}
        answer = await self._call("textsearch", self._params(query))
        pages = 1
        while True:
            for place in map(_found, objects(answer.get("results"))):
                if place is not None:
                    found.setdefault(place.place_id, place)
            token = text(answer.get("next_page_token"))
            if token is None or len(found) >= query.max_results or pages >= _MOST_PAGES:
                return Found(list(found.values())[: query.max_results], pages)
            answer = await self._next_page(token)
            pages += 1

    async def details(self, place_id: str) -> Details:
        params = {"place_id": place_id, "fields": DETAILS_FIELDS, "language": self._settings.language}
        answer = await self._call("details", {**params, "region": self._settings.region})
        if answer.get("status") == "ZERO_RESULTS":
            raise GoneError("ZERO_RESULTS: the place id was valid, but the place is no more")
        return _details(inside(answer, "result") or {})

    def _params(self, query: Query) -> dict[str, str | None]:
        around = query.latitude is not None and query.longitude is not None and query.radius
        return {
            "query": query.text,
            "location": f"{query.latitude},{query.longitude}" if around else None,
            "radius": str(query.radius) if around else None,
            "language": query.language or self._settings.language,
            "region": query.region or self._settings.region,
        }

    async def _next_page(self, token: str) -> Json:
        """The page a token stands for; until the token works, Google calls the request invalid."""
        for left in reversed(range(_TOKEN_TRIES)):
            await self._clock.sleep(_TOKEN_SECONDS)
            try:
                return await self._call("textsearch", {"pagetoken": token})
            except BadRequestError as error:
                if not left:
                    raise UnavailableError(f"the next page does not become ready: {error}") from error
        raise AssertionError("unreachable")

    async def _call(self, what: str, params: dict[str, str | None]) -> Json:
        reply = await self._transport.call(
            "GET",
            f"{self._settings.base_url or BASE_URL}/maps/api/place/{what}/json",
            params={**{name: value for name, value in params.items() if value}, "key": self._key},
        )
        status = text(reply.body.get("status")) or f"HTTP {reply.status}"
        if reply.status == 200 and status in ("OK", "ZERO_RESULTS"):
            return reply.body
        raise told(reply.status, status, text(reply.body.get("error_message")) or "no reason given")


def told(http_status: int, status: str, message: str) -> PlacesError:
    """Which of the errors this status is."""
    words = f"{status}: {message}"
    match status:
        case "REQUEST_DENIED":
            return KeyRefusedError(words)
        case "OVER_DAILY_LIMIT":
            return DayQuotaError(words)
        case "OVER_QUERY_LIMIT":
            return (DayQuotaError if re.search(r"\bdaily\b|\bday\b", message, re.IGNORECASE) else MinuteQuotaError)(
                words
            )
        case "NOT_FOUND":
            return GoneError(words)
        case "INVALID_REQUEST":
            return BadRequestError(words)
        case "UNKNOWN_ERROR":
            return UnavailableError(words)
        case _:
            return BadRequestError(words) if 400 <= http_status < 500 else UnavailableError(words)


def _found(place: Json) -> FoundPlace | None:
    place_id = text(place.get("place_id"))
    if place_id is None:
        return None
    types = texts(place.get("types"))
    return FoundPlace(
        place_id=place_id,
        name=text(place.get("name")),
        address=text(place.get("formatted_address")),
        business_type=types[0] if types else None,
        types=types,
        latitude=number(inside(place, "geometry", "location", "lat"), -90, 90),
        longitude=number(inside(place, "geometry", "location", "lng"), -180, 180),
        rating=number(place.get("rating"), 0, 5),
        review_count=whole(place.get("user_ratings_total"), 0, 2**31 - 1),
        price_level=whole(place.get("price_level"), 0, 4),
        raw=place,
    )


def _details(place: Json) -> Details:
    address = text(place.get("formatted_address"))
    types = texts(place.get("types"))
    closed = "CLOSED_PERMANENTLY" if place.get("permanently_closed") is True else None
    return Details(
        name=text(place.get("name")),
        address=address,
        parts=address_parts(objects(place.get("address_components")), "long_name", "short_name", address),
        phone=text(place.get("international_phone_number")),
        website=text(place.get("website")),
        business_type=types[0] if types else None,
        categories=types,
        latitude=number(inside(place, "geometry", "location", "lat"), -90, 90),
        longitude=number(inside(place, "geometry", "location", "lng"), -180, 180),
        rating=number(place.get("rating"), 0, 5),
        review_count=whole(place.get("user_ratings_total"), 0, 2**31 - 1),
        price_level=whole(place.get("price_level"), 0, 4),
        opening_hours=_hours(place.get("opening_hours")),
        business_status=text(place.get("business_status")) or closed,
        utc_offset_minutes=whole(place.get("utc_offset"), -1440, 1440),
    )


def _hours(value: object) -> Json | None:
    """In the form of the current API."""
    periods = [
        {edge: _moment(period[edge]) for edge in ("open", "close") if isinstance(period.get(edge), dict)}
        for period in objects(inside(value, "periods"))
    ]
    weekdays = texts(inside(value, "weekday_text")) or []
    return {"periods": periods, "weekdays": weekdays} if periods or weekdays else None


def _moment(value: Json) -> dict[str, int]:
    found = _TIME.fullmatch(str(value.get("time")))
    hour, minute = (int(found[1]), int(found[2])) if found else (0, 0)
    return {"day": whole(value.get("day"), 0, 6) or 0, "hour": hour, "minute": minute}
