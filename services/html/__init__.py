"""One web page, read as a browser would: its tree, its visible text, its links, its structured data."""

from services.html.page import Page, read_page

__all__ = ["Page", "read_page"]
