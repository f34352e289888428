"""The tables of the pipeline, as sql/pipeline/tables.sql makes them; a test keeps the two alike."""

from services.models.base import DEFAULT_TENANT, Base
from services.models.places import LocalBusiness, Place, PlaceSearch, Tenant
from services.models.sites import Contact, Domain, Page, SitemapFile
from services.models.words import (
    CurationStatus,
    DeepScanStatus,
    DomainExtractionStatus,
    DomainStatus,
    EmailType,
    PageCurationStatus,
    PageProcessingStatus,
    PlaceSearchStatus,
    SitemapAnalysisStatus,
    SitemapCurationStatus,
    SitemapImportStatus,
    SitemapType,
)

__all__ = [
    "DEFAULT_TENANT",
    "Base",
    "Contact",
    "CurationStatus",
    "DeepScanStatus",
    "Domain",
    "DomainExtractionStatus",
    "DomainStatus",
    "EmailType",
    "LocalBusiness",
    "Page",
    "PageCurationStatus",
    "PageProcessingStatus",
    "Place",
    "PlaceSearch",
    "PlaceSearchStatus",
    "SitemapAnalysisStatus",
    "SitemapCurationStatus",
    "SitemapFile",
    "SitemapImportStatus",
    "SitemapType",
    "Tenant",
]
