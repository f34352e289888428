"""From a domain to contacts: what the business's own website tells us."""

from datetime import datetime
from typing import Any
from uuid import UUID

from sqlalchemy import BigInteger, CheckConstraint, ForeignKey, Index, SmallInteger, UniqueConstraint, text
from sqlalchemy.orm import Mapped, mapped_column, relationship

from services.models.base import Base, Owned, one_of_new, words
from services.models.words import (
    CurationStatus,
    DomainStatus,
    EmailType,
    PageCurationStatus,
    PageProcessingStatus,
    SitemapAnalysisStatus,
    SitemapCurationStatus,
    SitemapImportStatus,
    SitemapType,
)


class Domain(Owned, Base):
    """WF4a and WF4b. One website: its metadata, and how its sitemaps were analysed."""

    __tablename__ = "domain"
    __table_args__ = (
        CheckConstraint("domain = lower(domain) AND domain ~ '^[^\\s/]{1,253}$'", "domain"),
        Index("domain_created_at", "created_at"),
    )

    domain: Mapped[str] = mapped_column(unique=True)
    """The registrable host in lower case, IDN as punycode."""
    country_code: Mapped[str | None]
    """The country of the business that led here, for reading phone numbers."""

    status: Mapped[DomainStatus] = mapped_column(words(DomainStatus), server_default=text("'pending'::domain_status"))
    last_error: Mapped[str | None]
    home_url: Mapped[str | None]
    """Where the home page was found in the end."""
    http_status: Mapped[int | None] = mapped_column(SmallInteger)
    title: Mapped[str | None]
    description: Mapped[str | None]
    language: Mapped[str | None]
    canonical_url: Mapped[str | None]
    favicon_url: Mapped[str | None]
    logo_url: Mapped[str | None]
    generator: Mapped[str | None]
    cms: Mapped[str | None]
    cms_version: Mapped[str | None]
    technologies: Mapped[list[str] | None]
    emails: Mapped[list[str] | None]
    phones: Mapped[list[str] | None]
    socials: Mapped[dict[str, str] | None]
    """Platform → address of the profile."""
    structured_data: Mapped[list[dict[str, Any]] | None] = mapped_column(deferred=True)
    metadata_at: Mapped[datetime | None]

    sitemap_analysis_status: Mapped[SitemapAnalysisStatus] = mapped_column(
        words(SitemapAnalysisStatus), server_default=text("'pending'::sitemap_analysis_status")
    )
    sitemap_analysis_error: Mapped[str | None]
    sitemap_curation_status: Mapped[SitemapCurationStatus] = one_of_new(SitemapCurationStatus)
    sitemap_count: Mapped[int | None]
    """How many sitemaps the last analysis found; 0 is an answer, NULL is none yet."""
    sitemap_url_count: Mapped[int | None]
    sitemap_note: Mapped[str | None]
    """What the analysis has to say, such as that there is no sitemap."""
    sitemap_analyzed_at: Mapped[datetime | None]
    notes: Mapped[str | None]


class SitemapFile(Owned, Base):
    """WF5 and WF6. One sitemap of a domain."""

    __tablename__ = "sitemap_file"
    __table_args__ = (
        UniqueConstraint("domain_id", "url"),
        CheckConstraint("url ~ '^https?://' AND octet_length(url) <= 2048", "url"),
        Index("sitemap_file_parent_id", "parent_id"),
    )

    domain_id: Mapped[UUID] = mapped_column(ForeignKey("domain.id", ondelete="CASCADE"))
    parent_id: Mapped[UUID | None] = mapped_column(ForeignKey("sitemap_file.id", ondelete="SET NULL"))
    """The index that lists it."""
    url: Mapped[str]
    sitemap_type: Mapped[SitemapType | None] = mapped_column(words(SitemapType))
    format: Mapped[str | None]
    """xml, text or feed."""
    found_by: Mapped[str | None]
    """robots.txt, usual path, home page, index, import …"""
    depth: Mapped[int] = mapped_column(SmallInteger, server_default=text("0"))
    """How many indexes above it."""
    url_count: Mapped[int | None]
    gzip: Mapped[bool | None]
    size_bytes: Mapped[int | None] = mapped_column(BigInteger)
    http_status: Mapped[int | None] = mapped_column(SmallInteger)
    response_ms: Mapped[int | None]
    has_lastmod: Mapped[bool | None]
    has_priority: Mapped[bool | None]
    has_changefreq: Mapped[bool | None]
    analyzed_at: Mapped[datetime | None]
    notes: Mapped[str | None]
    deep_scrape_curation_status: Mapped[SitemapCurationStatus] = one_of_new(SitemapCurationStatus)
    sitemap_import_status: Mapped[SitemapImportStatus | None] = mapped_column(words(SitemapImportStatus))
    sitemap_import_error: Mapped[str | None]
    pages_found: Mapped[int | None]
    pages_new: Mapped[int | None]
    pages_selected: Mapped[int | None]
    pages_filtered: Mapped[int | None]
    import_note: Mapped[str | None]
    """What the import has to say, such as that it stopped at a cap."""
    imported_at: Mapped[datetime | None]

    # `work` has no database, so what it needs of the domain comes with the item.
    domain: Mapped[Domain] = relationship(lazy="joined", innerjoin=True, viewonly=True)


class Page(Owned, Base):
    """WF7. One page of a website; only those worth reading are queued."""

    __tablename__ = "page"
    __table_args__ = (
        UniqueConstraint("domain_id", "url"),
        CheckConstraint("url ~ '^https?://' AND octet_length(url) <= 2048", "url"),
        Index("page_sitemap_file_id", "sitemap_file_id"),
    )

    domain_id: Mapped[UUID] = mapped_column(ForeignKey("domain.id", ondelete="CASCADE"))
    sitemap_file_id: Mapped[UUID | None] = mapped_column(ForeignKey("sitemap_file.id", ondelete="SET NULL"))
    """The sitemap that listed it first."""
    url: Mapped[str]
    category: Mapped[str | None]
    """home, contact, about, team, imprint, careers, legal, blog …"""
    depth: Mapped[int | None] = mapped_column(SmallInteger)
    """Segments of its path."""
    confidence: Mapped[float | None]
    """How sure the category is, 0 to 1."""
    lastmod: Mapped[datetime | None]
    sitemap_priority: Mapped[float | None]
    """What the sitemap says, 0 to 1."""
    priority: Mapped[int] = mapped_column(SmallInteger, server_default=text("0"))
    """How soon to read it: the queue's order, highest first, then the oldest."""
    filter_rule: Mapped[str | None]
    """What made it Filtered."""
    notes: Mapped[str | None]
    page_curation_status: Mapped[PageCurationStatus] = one_of_new(PageCurationStatus)
    page_processing_status: Mapped[PageProcessingStatus | None] = mapped_column(words(PageProcessingStatus))
    page_processing_error: Mapped[str | None]
    http_status: Mapped[int | None] = mapped_column(SmallInteger)
    final_url: Mapped[str | None]
    content_type: Mapped[str | None]
    title: Mapped[str | None]
    contacts_found: Mapped[int | None]
    """0 is an answer, NULL is none yet."""
    fetched_at: Mapped[datetime | None]

    domain: Mapped[Domain] = relationship(lazy="joined", innerjoin=True, viewonly=True)


class Contact(Owned, Base):
    """WF8. A way to reach someone: one row a domain and email; a phone without an email counts too."""

    __tablename__ = "contact"
    __table_args__ = (
        UniqueConstraint("domain_id", "email"),
        CheckConstraint("email IS NOT NULL OR phone IS NOT NULL", "reachable"),
        CheckConstraint("email = lower(email) AND email ~ '^[^@\\s]{1,64}@[^@\\s]{1,253}$'", "email"),
        CheckConstraint("phone ~ '^\\+[1-9][0-9]{5,14}$'", "phone"),
        # Only an index can say "where": an upsert names it with index_elements and index_where.
        Index("contact_phone_only", "domain_id", "phone", unique=True, postgresql_where=text("email IS NULL")),
        Index("contact_page_id", "page_id"),
        Index("contact_created_at", "created_at"),
        Index("contact_email", "email"),
    )

    domain_id: Mapped[UUID] = mapped_column(ForeignKey("domain.id", ondelete="CASCADE"))
    page_id: Mapped[UUID | None] = mapped_column(ForeignKey("page.id", ondelete="SET NULL"))
    """The page it was found on first."""
    source_url: Mapped[str | None]
    """That page's address, which outlives the row of the page."""
    email: Mapped[str | None]
    """In lower case."""
    email_type: Mapped[EmailType | None] = mapped_column(words(EmailType))
    """NULL if there is no email."""
    phone: Mapped[str | None]
    """E.164."""
    name: Mapped[str | None]
    role: Mapped[str | None]
    socials: Mapped[dict[str, str] | None]
    """Platform → address of the profile."""
    address: Mapped[str | None]
    context: Mapped[str | None]
    """The text around it on the page."""
    found_in: Mapped[str | None]
    """mailto, text, JSON-LD, cloudflare …"""
    notes: Mapped[str | None]
    contact_curation_status: Mapped[CurationStatus] = one_of_new(CurationStatus)
