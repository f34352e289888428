"""What is asked of Google Places and what is kept of its answers, the same for both APIs."""

from dataclasses import dataclass
from typing import Any

Json = dict[str, Any]
MOST_RESULTS = 60
"""Google gives no more for one search, over three pages."""


@dataclass(frozen=True)
class Query:
    text: str
    latitude: float | None = None
    longitude: float | None = None
    radius: int | None = None
    """In metres, around the point."""
    max_results: int = MOST_RESULTS
    language: str | None = None
    region: str | None = None


@dataclass(frozen=True)
class FoundPlace:
    """One result of a search, named as the columns of `place`."""

    place_id: str
    name: str | None
    address: str | None
    business_type: str | None
    types: list[str] | None
    latitude: float | None
    longitude: float | None
    rating: float | None
    review_count: int | None
    price_level: int | None
    raw: Json


@dataclass(frozen=True)
class Found:
    places: list[FoundPlace]
    """Each once, in Google's order."""
    pages: int
    """So many calls were paid for."""


@dataclass(frozen=True)
class Address:
    street: str | None = None
    city: str | None = None
    state: str | None = None
    postal_code: str | None = None
    country: str | None = None
    country_code: str | None = None


@dataclass(frozen=True)
class Details:
    """One place, named as the columns of `local_business`."""

    name: str | None
    address: str | None
    parts: Address
    phone: str | None
    website: str | None
    business_type: str | None
    categories: list[str] | None
    latitude: float | None
    longitude: float | None
    rating: float | None
    review_count: int | None
    price_level: int | None
    opening_hours: Json | None
    business_status: str | None
    utc_offset_minutes: int | None
