"""The current API, "Places API (New)": JSON over POST, a field mask, errors by HTTP status and reason."""

import re
from urllib.parse import quote

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
from services.places.transport import Reply, Transport

BASE_URL = "https://places.googleapis.com"
_PAGE_SIZE = 20
_MOST_PAGES = MOST_RESULTS // _PAGE_SIZE
# Only what has a column: the dearest field asked for sets the price of the call.
_SEARCH_FIELDS = (
    "id",
    "displayName",
    "formattedAddress",
    "primaryType",
    "types",
    "location",
    "rating",
    "userRatingCount",
    "priceLevel",
)
_DETAILS_FIELDS = (
    "displayName",
    "formattedAddress",
    "addressComponents",
    "internationalPhoneNumber",
    "websiteUri",
    "primaryType",
    "types",
    "location",
    "rating",
    "userRatingCount",
    "priceLevel",
    "regularOpeningHours.periods",
    "regularOpeningHours.weekdayDescriptions",
    "businessStatus",
    "utcOffsetMinutes",
)
SEARCH_MASK = ",".join([*(f"places.{name}" for name in _SEARCH_FIELDS), "nextPageToken"])
DETAILS_MASK = ",".join(_DETAILS_FIELDS)
_PRICES = {
    "PRICE_LEVEL_FREE": 0,
    "PRICE_LEVEL_INEXPENSIVE": 1,
    "PRICE_LEVEL_MODERATE": 2,
    "PRICE_LEVEL_EXPENSIVE": 3,
    "PRICE_LEVEL_VERY_EXPENSIVE": 4,
}
_KEY_REASONS = re.compile(r"API_KEY_\w+|SERVICE_DISABLED|BILLING_DISABLED|CONSUMER_\w+|ACCESS_TOKEN_\w+")


class CurrentApi:
    def __init__(self, transport: Transport, settings: PlacesSettings, key: str) -> None:
        self._transport = transport
        self._settings = settings
        self._key = key

    async def search(self, query: Query) -> Found:
        body = self._body(query)
        found: dict[str, FoundPlace] = {}
        pages = 0
        token: str | None = None
        while pages < _MOST_PAGES:
            paged = body if token is None else {**body, "pageToken": token}
            answer = await self._call("POST", "/v1/places:searchText", SEARCH_MASK, body=paged)
            pages += 1
            for place in map(_found, objects(answer.get("places"))):
                if place is not None:
                    found.setdefault(place.place_id, place)
            token = text(answer.get("nextPageToken"))
            if token is None or len(found) >= query.max_results:
                break
        return Found(list(found.values())[: query.max_results], pages)

    async def details(self, place_id: str) -> Details:
        settings = self._settings
        params = {"languageCode": settings.language, "regionCode": settings.region}
        return _details(await self._call("GET", f"/v1/places/{quote(place_id, safe='')}", DETAILS_MASK, params=params))

    def _body(self, query: Query) -> Json:
        # all of it stays the same from page to page, or the token is refused
        body: Json = {
            "textQuery": query.text,
            "pageSize": min(_PAGE_SIZE, query.max_results),
            # those that work at their customers' places, as most plumbers do, are left out unless asked for
            "includePureServiceAreaBusinesses": True,
        }
        if language := query.language or self._settings.language:
            body["languageCode"] = language
        if region := query.region or self._settings.region:
            body["regionCode"] = region
        if query.latitude is not None and query.longitude is not None and query.radius:
            center = {"latitude": query.latitude, "longitude": query.longitude}
            body["locationBias"] = {"circle": {"center": center, "radius": float(query.radius)}}
        return body

    async def _call(
        self,
        method: str,
        path: str,
        mask: str,
        *,
        params: dict[str, str | None] | None = None,
        body: Json | None = None,
    ) -> Json:
        reply = await self._transport.call(
            method,
            (self._settings.base_url or BASE_URL) + path,
            params={name: value for name, value in (params or {}).items() if value},
            headers={"X-Goog-Api-Key": self._key, "X-Goog-FieldMask": mask},
            body=body,
        )
        if reply.status != 200:
            raise told(reply)
        return reply.body


def told(reply: Reply) -> PlacesError:
    """Which of the errors this answer is."""
    error = inside(reply.body, "error")
    status = text(inside(error, "status")) or f"HTTP {reply.status}"
    message = text(inside(error, "message")) or "no reason given"
    info = [detail for detail in objects(inside(error, "details")) if "reason" in detail]
    reason = text(info[0]["reason"]) if info else None
    words = f"{reason or status}: {message}"
    if reason and _KEY_REASONS.fullmatch(reason):
        # a bad key is a 400, not a 401 or 403
        return KeyRefusedError(words)
    match reply.status:
        case 401 | 403:
            return KeyRefusedError(words)
        case 404:
            return GoneError(words)
        case 429:
            quota = (
                " ".join(str(inside(info[0], "metadata", name)) for name in ("quota_limit", "quota_unit"))
                if info
                else ""
            )
            return (DayQuotaError if _is_daily(f"{quota} {message}") else MinuteQuotaError)(words)
        case 400 if "place id" in message.lower():
            return GoneError(words)
        case status_code if status_code >= 500 or status_code == 408:
            return UnavailableError(words)
        case _:
            return BadRequestError(words)


def _is_daily(quota: str) -> bool:
    return re.search(r"per ?day|1/d/", quota, re.IGNORECASE) is not None


def _found(place: Json) -> FoundPlace | None:
    place_id = text(place.get("id"))
    if place_id is None:
        return None
    return FoundPlace(
        place_id=place_id,
        name=text(inside(place, "displayName", "text")),
        address=text(place.get("formattedAddress")),
        business_type=text(place.get("primaryType")),
        types=texts(place.get("types")),
        latitude=number(inside(place, "location", "latitude"), -90, 90),
        longitude=number(inside(place, "location", "longitude"), -180, 180),
        rating=number(place.get("rating"), 0, 5),
        review_count=whole(place.get("userRatingCount"), 0, 2**31 - 1),
        price_level=_PRICES.get(str(place.get("priceLevel"))),
        raw=place,
    )


def _details(place: Json) -> Details:
    address = text(place.get("formattedAddress"))
    return Details(
        name=text(inside(place, "displayName", "text")),
        address=address,
        parts=address_parts(objects(place.get("addressComponents")), "longText", "shortText", address),
        phone=text(place.get("internationalPhoneNumber")),
        website=text(place.get("websiteUri")),
        business_type=text(place.get("primaryType")),
        categories=texts(place.get("types")),
        latitude=number(inside(place, "location", "latitude"), -90, 90),
        longitude=number(inside(place, "location", "longitude"), -180, 180),
        rating=number(place.get("rating"), 0, 5),
        review_count=whole(place.get("userRatingCount"), 0, 2**31 - 1),
        price_level=_PRICES.get(str(place.get("priceLevel"))),
        opening_hours=_hours(place.get("regularOpeningHours")),
        business_status=text(place.get("businessStatus")),
        utc_offset_minutes=whole(place.get("utcOffsetMinutes"), -1440, 1440),
    )


def _hours(value: object) -> Json | None:
    """`periods` ({open, close}: day 0 is Sunday, hour, minute; no close: always open) and `weekdays`, in words."""
    periods = [
        {edge: _moment(period[edge]) for edge in ("open", "close") if isinstance(period.get(edge), dict)}
        for period in objects(inside(value, "periods"))
    ]
    weekdays = texts(inside(value, "weekdayDescriptions")) or []
    return {"periods": periods, "weekdays": weekdays} if periods or weekdays else None


def _moment(value: Json) -> dict[str, int]:
    # zeros are left out on the wire
    return {name: whole(value.get(name), 0, 59) or 0 for name in ("day", "hour", "minute")}
