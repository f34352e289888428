"""WF7. A page -> every contact on it; a page that is not worth reading after all is Filtered, with the reason."""

import asyncio
import json
import re
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncSession

from listener import Done, Final, Tools, Workflow
from services.contacts import Contact, PageContacts, contacts
from services.crawl import PATIENCE, CrawlSettings, author, page_of, visit
from services.evidence import one_line
from services.fetch import Fetched, UnwantedTypeError, fetcher, verdicts
from services.html.page import Page as HtmlPage
from services.models import Page, PageProcessingStatus
from services.websites import is_of

FILTERED = PageProcessingStatus.FILTERED.value
_NOT_FOUND = re.compile(
    r"\b(?:404|not found|nicht gefunden|page introuvable|p[aá]gina no encontrada|pagina non trovata"
    r"|no longer available|doesn.?t exist|does not exist)\b",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Read:
    """What one page gave."""

    final_url: str
    status: int
    media_type: str
    title: str | None
    reach: PageContacts | None
    rule: str | None
    """Why it was not read."""
    created_by: str


async def work(page: Page, tools: Tools) -> Read | Final[Read]:
    by = author(tools)
    with verdicts():
        try:
            fetched = await visit(fetcher(tools), page.url, patience=PATIENCE)
        except UnwantedTypeError as error:
            rule = f"not HTML: {error.media_type or 'of no kind'}"
            return Final(FILTERED, Read(error.url, 200, error.media_type, None, None, rule, by))
    read = await asyncio.to_thread(read_contacts, fetched, page.url, page.domain.domain, page.domain.country_code, by)
    return Final(FILTERED, read) if read.rule else read


def read_contacts(fetched: Fetched, asked: str, site: str, country: str | None, created_by: str) -> Read:
    page = page_of(fetched)
    title = one_line(node.text(), 500) if (node := page.tree.css_first("title")) is not None else ""
    rule = unworthy(page, title, asked, fetched.final_url, site)
    reach = None if rule else contacts(page, country=country)
    return Read(fetched.final_url, fetched.status, fetched.media_type, title or None, reach, rule, created_by)


def unworthy(page: HtmlPage, title: str, asked: str, final: str, site: str) -> str | None:
    """Why a page that answered 200 is not the page that was wanted."""
    if not is_of(final, site):
        return f"redirected off-site to {urlsplit(final).hostname}"
    if asked != final and urlsplit(final).path in ("", "/") and urlsplit(asked).path not in ("", "/"):
        return "soft 404: redirected to the home page"
    heading = page.tree.css_first("h1")
    for what, words in (("title", title), ("heading", one_line(heading.text(), 200) if heading is not None else "")):
        if (match := _NOT_FOUND.search(words)) and len(words) <= 100:
            return f"soft 404: its {what} says {match[0]!r}"
    return None


def rows(read: Read, page: Page) -> list[dict[str, Any]]:
    """The contacts of one page as their table has them."""
    if read.reach is None:
        return []
    socials = {network: found.value for network, found in read.reach.socials.items()} or None
    address = read.reach.address.value["text"] if read.reach.address else None
    owner = {
        "domain_id": str(page.domain_id),
        "tenant_id": str(page.tenant_id),
        "page_id": str(page.id),
        "source_url": page.url,
        "created_by": read.created_by,
        "socials": socials,
        "address": address,
    }
    return [{**owner, **_columns(contact)} for contact in read.reach.contacts]


def _columns(contact: Contact) -> dict[str, Any]:
    return {
        "email": contact.email,
        "email_type": contact.email_type.value if contact.email_type else None,
        "phone": contact.phone,
        "name": contact.name,
        "role": contact.role,
        "context": contact.context or None,
        "found_in": contact.evidence[0].rule if contact.evidence else None,
    }


_COLUMNS = """
    domain_id uuid, tenant_id uuid, page_id uuid, source_url text, created_by text, socials jsonb, address text,
    email text, email_type email_type, phone text, name text, role text, context text, found_in text"""
_NAMES = ", ".join(column.split()[0] for column in _COLUMNS.split(","))
_GIVEN = f"{_NAMES} FROM jsonb_to_recordset(CAST(:rows AS jsonb)) AS n ({_COLUMNS})"

# Whether a phone number stands alone is a question about the whole domain: its savers take turns.
_LOCK = text("SELECT FROM domain WHERE id = ANY (CAST(:ids AS uuid[])) ORDER BY id FOR NO KEY UPDATE")

# What is known stays; what was missing is filled in. Curation is a person's.
_EMAILS = text(f"""
INSERT INTO contact AS c ({_NAMES})
SELECT {_GIVEN} ORDER BY domain_id, email
ON CONFLICT (domain_id, email) DO UPDATE SET
    phone = coalesce(c.phone, excluded.phone), name = coalesce(c.name, excluded.name),
    role = coalesce(c.role, excluded.role), socials = coalesce(c.socials, excluded.socials),
    address = coalesce(c.address, excluded.address), context = coalesce(c.context, excluded.context)
WHERE (c.phone IS NULL AND excluded.phone IS NOT NULL) OR (c.name IS NULL AND excluded.name IS NOT NULL)
   OR (c.role IS NULL AND excluded.role IS NOT NULL) OR (c.socials IS NULL AND excluded.socials IS NOT NULL)
   OR (c.address IS NULL AND excluded.address IS NOT NULL)""")

# A number that belongs to somebody with an address is not a contact of its own, whichever page was read first.
_PHONES = text(f"""
INSERT INTO contact AS c ({_NAMES})
SELECT {_GIVEN}
WHERE NOT EXISTS (
    SELECT FROM contact AS o WHERE o.domain_id = n.domain_id AND o.phone = n.phone AND o.email IS NOT NULL)
ORDER BY domain_id, phone
ON CONFLICT (domain_id, phone) WHERE email IS NULL DO NOTHING""")  # noqa: S608
_CLAIMED = text("""
DELETE FROM contact AS c USING contact AS o
WHERE c.domain_id = ANY (CAST(:ids AS uuid[])) AND c.email IS NULL AND c.contact_curation_status = 'New'
  AND c.notes IS NULL AND o.domain_id = c.domain_id AND o.phone = c.phone AND o.email IS NOT NULL""")

_PAGES = text("""
UPDATE page AS p SET http_status = n.http_status, final_url = n.final_url, content_type = n.content_type,
    title = n.title, contacts_found = n.contacts_found, filter_rule = n.filter_rule, fetched_at = now()
FROM jsonb_to_recordset(CAST(:rows AS jsonb)) AS n (
    id uuid, http_status smallint, final_url text, content_type text, title text, contacts_found integer,
    filter_rule text)
WHERE p.id = n.id""")


async def save(session: AsyncSession, results: list[Done[Page, Read]]) -> None:
    found = [(done, rows(done.result, done.item)) for done in results]
    every = [row for _, batch in found for row in batch]
    if every:
        domains = sorted({row["domain_id"] for row in every})
        await session.execute(_LOCK, {"ids": domains})
        if emails := _merged([row for row in every if row["email"]], "email"):
            await session.execute(_EMAILS, {"rows": json.dumps(emails)})
        if phones := _merged([row for row in every if not row["email"]], "phone"):
            await session.execute(_PHONES, {"rows": json.dumps(phones)})
        await session.execute(_CLAIMED, {"ids": domains})
    pages = [_page_columns(done, len(batch)) for done, batch in found]
    await session.execute(_PAGES, {"rows": json.dumps(pages)})


def _page_columns(done: Done[Page, Read], count: int) -> dict[str, Any]:
    read = done.result
    return {
        "id": str(done.item.id),
        "http_status": read.status,
        "final_url": read.final_url[:2048],
        "content_type": read.media_type[:200] or None,
        "title": read.title,
        "contacts_found": count,
        "filter_rule": read.rule,
    }


def _merged(batch: list[dict[str, Any]], key: str) -> list[dict[str, Any]]:
    """One row for each: two pages of a batch often name the same address. The first fills, the others fill in."""
    merged: dict[tuple[str, str], dict[str, Any]] = {}
    for row in sorted(batch, key=lambda row: (row["domain_id"], row[key], row["source_url"])):
        known = merged.setdefault((row["domain_id"], row[key]), row)
        for name, value in row.items():
            if known[name] is None:
                known[name] = value
    return list(merged.values())


page_curation = Workflow("page_curation", Page, work, save, settings=CrawlSettings)
