"""The words of the status columns: each enum is an enum type of PostgreSQL with the same words (a test compares)."""

from enum import StrEnum


class PlaceSearchStatus(StrEnum):
    PENDING = "pending"
    PROCESSING = "processing"
    COMPLETE = "complete"
    FAILED = "failed"


class DeepScanStatus(StrEnum):
    QUEUED = "Queued"
    PROCESSING = "Processing"
    COMPLETED = "Completed"
    ERROR = "Error"


class DomainExtractionStatus(StrEnum):
    QUEUED = "Queued"
    PROCESSING = "Processing"
    COMPLETED = "Completed"
    ERROR = "Error"


class DomainStatus(StrEnum):
    PENDING = "pending"
    PROCESSING = "processing"
    COMPLETED = "completed"
    ERROR = "error"


class SitemapAnalysisStatus(StrEnum):
    PENDING = "pending"
    """Nobody has asked for it."""
    QUEUED = "queued"
    PROCESSING = "processing"
    SUBMITTED = "submitted"
    FAILED = "failed"


class SitemapImportStatus(StrEnum):
    QUEUED = "Queued"
    PROCESSING = "Processing"
    COMPLETE = "Complete"
    ERROR = "Error"


class PageProcessingStatus(StrEnum):
    QUEUED = "Queued"
    PROCESSING = "Processing"
    COMPLETE = "Complete"
    ERROR = "Error"
    FILTERED = "Filtered"


class CurationStatus(StrEnum):
    """What a person thinks of a place, a business or a contact."""

    NEW = "New"
    SELECTED = "Selected"
    MAYBE = "Maybe"
    NOT_A_FIT = "Not a Fit"
    ARCHIVED = "Archived"


class SitemapCurationStatus(StrEnum):
    """What a person thinks of a domain's sitemaps, or of one of them."""

    NEW = "New"
    SELECTED = "Selected"
    MAYBE = "Maybe"
    NOT_A_FIT = "Not a Fit"
    ARCHIVED = "Archived"
    COMPLETED = "Completed"


class PageCurationStatus(StrEnum):
    NEW = "New"
    SELECTED = "Selected"
    SKIPPED = "Skipped"
    REJECTED = "Rejected"


class SitemapType(StrEnum):
    INDEX = "index"
    STANDARD = "standard"
    IMAGE = "image"
    VIDEO = "video"
    NEWS = "news"


class EmailType(StrEnum):
    CORPORATE = "corporate"
    FREE = "free"
    SERVICE = "service"
    UNKNOWN = "unknown"
