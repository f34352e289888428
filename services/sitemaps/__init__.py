"""Sitemaps: where they are, what is in them, and which of their pages are worth reading."""

from services.sitemaps.reader import Entry, NotASitemapError, SitemapReader

__all__ = ["Entry", "NotASitemapError", "SitemapReader"]
