"""From a search to businesses: what Google Places tells us."""

from datetime import datetime
from typing import Any
from uuid import UUID

from sqlalchemy import CheckConstraint, ForeignKey, Index, Numeric, SmallInteger, text
from sqlalchemy.orm import Mapped, mapped_column

from services.models.base import Base, Owned, Row, one_of_new, words
from services.models.words import CurationStatus, DeepScanStatus, DomainExtractionStatus, PlaceSearchStatus


class Tenant(Row, Base):
    """Whose data it is. There is one, `default`, unless someone adds more."""

    __tablename__ = "tenant"

    name: Mapped[str] = mapped_column(unique=True)


class PlaceSearch(Owned, Base):
    """WF1. "<business_type> in <location>"; a search is a row, so it survives a restart."""

    __tablename__ = "place_search"
    __table_args__ = (
        CheckConstraint("business_type ~ '\\S'", "business_type"),
        CheckConstraint("location ~ '\\S'", "location"),
        CheckConstraint("radius BETWEEN 1 AND 50000", "radius"),
        CheckConstraint("max_results BETWEEN 1 AND 60", "max_results"),
    )

    business_type: Mapped[str]
    location: Mapped[str]
    latitude: Mapped[float | None]
    """With longitude: look around this point."""
    longitude: Mapped[float | None]
    radius: Mapped[int | None]
    """In metres around the point; 10,000 if it is not said."""
    max_results: Mapped[int] = mapped_column(SmallInteger, server_default=text("60"))
    language: Mapped[str | None]
    region: Mapped[str | None]
    status: Mapped[PlaceSearchStatus] = mapped_column(
        words(PlaceSearchStatus), server_default=text("'pending'::place_search_status")
    )
    error: Mapped[str | None]
    places_found: Mapped[int | None]
    places_new: Mapped[int | None]
    pages_fetched: Mapped[int | None]
    searched_at: Mapped[datetime | None]


class Place(Owned, Base):
    """WF2. One result of a search; `status` is what a person thinks of it."""

    __tablename__ = "place"
    __table_args__ = (
        CheckConstraint("place_id ~ '\\S' AND octet_length(place_id) <= 1024", "place_id"),
        Index("place_place_search_id", "place_search_id"),
        Index("place_updated_at", "updated_at"),
        Index("place_deep_scan_status", "deep_scan_status"),
    )

    place_search_id: Mapped[UUID | None] = mapped_column(ForeignKey("place_search.id", ondelete="SET NULL"))
    """The search that found it first."""
    place_id: Mapped[str] = mapped_column(unique=True)
    """Google's id."""
    name: Mapped[str | None]
    address: Mapped[str | None]
    business_type: Mapped[str | None]
    """Google's primary type."""
    types: Mapped[list[str] | None]
    latitude: Mapped[float | None]
    longitude: Mapped[float | None]
    rating: Mapped[float | None] = mapped_column(Numeric(2, 1, asdecimal=False))
    review_count: Mapped[int | None]
    price_level: Mapped[int | None] = mapped_column(SmallInteger)
    """0 (free) to 4 (very expensive)."""
    query: Mapped[str | None]
    """The text that was searched for when it was last found."""
    raw: Mapped[dict[str, Any] | None] = mapped_column(deferred=True)
    """The result as Google gave it."""
    notes: Mapped[str | None]
    status: Mapped[CurationStatus] = one_of_new(CurationStatus)
    deep_scan_status: Mapped[DeepScanStatus | None] = mapped_column(words(DeepScanStatus))
    deep_scan_error: Mapped[str | None]
    deep_scanned_at: Mapped[datetime | None]


class LocalBusiness(Owned, Base):
    """WF3. The details of one place."""

    __tablename__ = "local_business"
    __table_args__ = (
        Index("local_business_domain_id", "domain_id"),
        Index("local_business_updated_at", "updated_at"),
        Index("local_business_domain_extraction_status", "domain_extraction_status"),
    )

    place_id: Mapped[str] = mapped_column(
        ForeignKey("place.place_id", ondelete="CASCADE", onupdate="CASCADE"), unique=True
    )
    domain_id: Mapped[UUID | None] = mapped_column(ForeignKey("domain.id", ondelete="SET NULL"))
    name: Mapped[str | None]
    address: Mapped[str | None]
    """As one line; the parts follow."""
    street: Mapped[str | None]
    city: Mapped[str | None]
    state: Mapped[str | None]
    postal_code: Mapped[str | None]
    country: Mapped[str | None]
    country_code: Mapped[str | None]
    """Two capital letters."""
    phone: Mapped[str | None]
    """International, as Google writes it."""
    website: Mapped[str | None]
    business_type: Mapped[str | None]
    categories: Mapped[list[str] | None]
    latitude: Mapped[float | None]
    longitude: Mapped[float | None]
    rating: Mapped[float | None] = mapped_column(Numeric(2, 1, asdecimal=False))
    review_count: Mapped[int | None]
    price_level: Mapped[int | None] = mapped_column(SmallInteger)
    opening_hours: Mapped[dict[str, Any] | None]
    business_status: Mapped[str | None]
    utc_offset_minutes: Mapped[int | None] = mapped_column(SmallInteger)
    scanned_at: Mapped[datetime | None]
    notes: Mapped[str | None]
    status: Mapped[CurationStatus] = one_of_new(CurationStatus)
    domain_extraction_status: Mapped[DomainExtractionStatus | None] = mapped_column(words(DomainExtractionStatus))
    domain_extraction_error: Mapped[str | None]
    domain_extraction_note: Mapped[str | None]
    """Why it was completed without a domain, such as a website that is a social profile."""
