"""The shapes of a place in both of Google's APIs, and what is left of it under a field mask."""

from typing import Any

Json = dict[str, Any]
_TEXT: Json = {"text": {}, "languageCode": {}}
_POINT: Json = {"latitude": {}, "longitude": {}}
_MOMENT: Json = {"day": {}, "hour": {}, "minute": {}, "date": {}}
_HOURS: Json = {
    "openNow": {},
    "periods": {"open": _MOMENT, "close": _MOMENT},
    "weekdayDescriptions": {},
    "nextOpenTime": {},
    "nextCloseTime": {},
}
PLACE: Json = {
    "name": {},
    "id": {},
    "displayName": _TEXT,
    "types": {},
    "primaryType": {},
    "primaryTypeDisplayName": _TEXT,
    "formattedAddress": {},
    "shortFormattedAddress": {},
    "addressComponents": {"longText": {}, "shortText": {}, "types": {}, "languageCode": {}},
    "postalAddress": {},
    "location": _POINT,
    "viewport": {"low": _POINT, "high": _POINT},
    "plusCode": {"globalCode": {}, "compoundCode": {}},
    "rating": {},
    "userRatingCount": {},
    "websiteUri": {},
    "nationalPhoneNumber": {},
    "internationalPhoneNumber": {},
    "googleMapsUri": {},
    "businessStatus": {},
    "movedPlace": {},
    "movedPlaceId": {},
    "pureServiceAreaBusiness": {},
    "regularOpeningHours": _HOURS,
    "currentOpeningHours": _HOURS,
    "timeZone": {"id": {}, "version": {}},
    "utcOffsetMinutes": {},
    "priceLevel": {},
    "priceRange": {},
    "editorialSummary": _TEXT,
    "reviews": {},
    "photos": {},
}
"""Fields and what is inside them. Not all that Google has: all that a place here can have."""
SEARCH: Json = {"places": PLACE, "nextPageToken": {}, "searchUri": {}}
_LEGACY_FIELDS = {
    "name": "name",
    "place_id": "place_id",
    "formatted_address": "formatted_address",
    "address_component": "address_components",
    "address_components": "address_components",
    "geometry": "geometry",
    "geometry/location": "geometry",
    "type": "types",
    "types": "types",
    "rating": "rating",
    "user_ratings_total": "user_ratings_total",
    "price_level": "price_level",
    "business_status": "business_status",
    "opening_hours": "opening_hours",
    "formatted_phone_number": "formatted_phone_number",
    "international_phone_number": "international_phone_number",
    "website": "website",
    "url": "url",
    "utc_offset": "utc_offset",
}
_PRICES = ("FREE", "INEXPENSIVE", "MODERATE", "EXPENSIVE", "VERY_EXPENSIVE")


class MaskError(Exception):
    """Names the path that does not exist."""


def masked(value: Json, mask: str, shape: Json) -> Json:
    """Only what the mask names, down to sub-paths; `*` is everything."""
    kept: Json = {}
    for path in mask.split(","):
        if path == "*":
            return value
        names = path.split(".")
        _check(names, shape, path)
        _copy(value, kept, names)
    return kept


def _check(names: list[str], shape: Json, path: str) -> None:
    for name in names:
        if name not in shape:
            raise MaskError(path)
        shape = shape[name]


def _copy(source: Any, target: Json, names: list[str]) -> None:
    first, *rest = names
    if first not in source:
        return
    value = source[first]
    if not rest:
        target[first] = value
    elif isinstance(value, list):
        entries = target.setdefault(first, [{} for _ in value])
        for entry, kept in zip(value, entries, strict=True):
            _copy(entry, kept, rest)
    else:
        _copy(value, target.setdefault(first, {}), rest)


def legacy_place(place: Json, fields: str | None) -> Json:
    """A place as the legacy API writes it: the fields asked for, or all; what is unset is absent."""
    whole = {name: value for name, value in _legacy(place).items() if value is not None}
    if not fields:
        return whole
    for name in fields.split(","):
        if name not in _LEGACY_FIELDS:
            raise MaskError(name)
    wanted = {_LEGACY_FIELDS[name] for name in fields.split(",")}
    return {name: value for name, value in whole.items() if name in wanted}


def _legacy(place: Json) -> Json:
    point = place.get("location")
    price = place.get("priceLevel")
    return {
        "place_id": place["id"],
        "name": place.get("displayName", {}).get("text"),
        "formatted_address": place.get("formattedAddress"),
        "address_components": [
            {"long_name": part["longText"], "short_name": part["shortText"], "types": part["types"]}
            for part in place.get("addressComponents", [])
        ]
        or None,
        "geometry": point and {"location": {"lat": point["latitude"], "lng": point["longitude"]}},
        "types": place.get("types"),
        "rating": place.get("rating"),
        "user_ratings_total": place.get("userRatingCount"),
        "price_level": _PRICES.index(price.removeprefix("PRICE_LEVEL_")) if price else None,
        "business_status": place.get("businessStatus"),
        "permanently_closed": True if place.get("businessStatus") == "CLOSED_PERMANENTLY" else None,
        "opening_hours": _hours(place.get("regularOpeningHours")),
        "formatted_phone_number": place.get("nationalPhoneNumber"),
        "international_phone_number": place.get("internationalPhoneNumber"),
        "website": place.get("websiteUri"),
        "url": place.get("googleMapsUri"),
        "utc_offset": place.get("utcOffsetMinutes"),
    }


def _hours(hours: Json | None) -> Json | None:
    if hours is None:
        return None
    periods = [{edge: _moment(moment) for edge, moment in period.items()} for period in hours.get("periods", [])]
    return {
        "open_now": hours.get("openNow", False),
        "periods": periods,
        "weekday_text": hours.get("weekdayDescriptions", []),
    }


def _moment(moment: Json) -> Json:
    return {"day": moment.get("day", 0), "time": f"{moment.get('hour', 0):02}{moment.get('minute', 0):02}"}
