"""Every contact on a page: who, how to reach them, where it stands, and what was refused and why."""

from services.contacts.extract import Contact, PageContacts, contacts

__all__ = ["Contact", "PageContacts", "contacts"]
