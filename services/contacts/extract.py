"""One pass over a page for each kind of thing, in a fixed order: the same page always gives the same contacts."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from urllib.parse import unquote

from selectolax.lexbor import LexborNode

from services.contacts import emails, phones, socials
from services.contacts.addresses import country_of, postal_address
from services.contacts.obfuscation import hidden_addresses
from services.contacts.people import Cards, Person, described, person_name
from services.evidence import Evidence, Found, Refused, one_line, snippet
from services.html.page import Page
from services.html.structured import Structured, structured
from services.models.words import EmailType

MOST_CONTACTS = 1_000
MOST_REFUSALS = 200
MOST_EVIDENCE = 5
MOST_TEXT = 500_000
"""Characters searched for phone numbers; a page of nothing but digits is searched slowly."""


@dataclass(slots=True)
class Contact:
    """One way to reach somebody. Without an e-mail address it is a phone number's."""

    email: str | None = None
    email_type: EmailType | None = None
    phone: str | None = None
    """E.164."""
    name: str | None = None
    role: str | None = None
    evidence: list[Evidence] = field(default_factory=list)

    @property
    def context(self) -> str:
        """The words around it."""
        return next((one.snippet for one in self.evidence if one.snippet), "")


@dataclass(slots=True)
class PageContacts:
    contacts: list[Contact] = field(default_factory=list)
    socials: dict[str, Found[str]] = field(default_factory=dict)
    address: Found[dict[str, str]] | None = None
    region: str | None = None
    """The country that national phone numbers were read for."""
    refused: list[Refused] = field(default_factory=list)
    """Kept only of a page that is read with `explain`."""

    @property
    def emails(self) -> list[str]:
        return [contact.email for contact in self.contacts if contact.email]

    @property
    def phones(self) -> list[str]:
        return list(dict.fromkeys(contact.phone for contact in self.contacts if contact.phone))


def contacts(page: Page, *, country: str | None = None, data: Structured | None = None) -> PageContacts:
    """All contacts of the page. `country` is that of the business, if it is known."""
    return _Reader(page, data or structured(page), country).read()


class _Reader:
    def __init__(self, page: Page, data: Structured, country: str | None) -> None:
        self.page = page
        self.data = data
        self.cards = Cards()
        self.by_email: dict[str, Contact] = {}
        self.by_phone: dict[str, list[Evidence]] = {}
        self.found = PageContacts(refused=list(data.refused))
        self._refused: set[tuple[str, str]] = set()
        host = page.site or ""
        self.region, self._region_rule = phones.region_of(
            country or country_of(data.nodes), host, page.language or self._locale()
        )

    def _locale(self) -> str | None:
        content = self.page.metas.get("og:locale")
        return content[0] if content else None

    def read(self) -> PageContacts:
        self._structured()
        self._links()
        self._decoded()
        self._text()
        self._hidden()
        self._finish()
        return self.found

    # -- where they come from ---------------------------------------------------------------------------------------

    def _structured(self) -> None:
        for node in self.data.nodes:
            evidence = Evidence(node.rule, node.where, one_line(node.text("name")))
            person = described(node)
            for text in node.texts("email"):
                for address in _split_addresses(text):
                    self._email(address, evidence, person)
            for text in node.texts("telephone"):
                self._phone(phones.dialled(text) if text[:4].lower() == "tel:" else text, evidence)
            for text in node.texts("sameAs"):
                self._social(text, evidence)

    def _links(self) -> None:
        for href, node in self.page.links:
            if href[0] in "/#?." and href[:2] != "//":
                continue  # within the site: most are
            scheme = href[:9].lower()
            if scheme.startswith("mailto:"):
                self._mailto(href, node)
            elif scheme.startswith(("tel:", "callto:")):
                self._phone(
                    phones.dialled(unquote(href[:200])), Evidence("tel", self.page.path(node), self.page.around(node))
                )
            elif scheme.startswith("http") or href.startswith("//"):
                self._social(href, None, node)

    def _mailto(self, href: str, node: LexborNode) -> None:
        evidence = Evidence("mailto", self.page.path(node), self.page.around(node))
        addresses = _split_addresses(unquote(href[7:4096].partition("?")[0]))
        person = self.cards.of(node)
        if person.name is None and len(addresses) == 1 and (name := person_name(node.text(separator=" ")[:200])):
            person = Person(name, person.role, person.phone)
        for address in addresses:
            self._email(address, evidence, person)

    def _decoded(self) -> None:
        for address, evidence in hidden_addresses(self.page):
            if "@" in address:
                self._email(address, evidence, Person())

    def _text(self) -> None:
        text = self.page.text.whole
        for address, start, end in emails.addresses_in(text):
            evidence = _Lazy(self.page, "text", start, end)
            if reason := emails.surrounded(text, start, end):
                self._refuse("email", address, reason, evidence)
            else:
                self._email(address, evidence, Person(), start)
        for raw, start, end, objection in phones.numbers_in(text[:MOST_TEXT], self.region):
            evidence = _Lazy(self.page, "text", start, end)
            if objection:
                self._refuse("phone", raw, objection, evidence)
            else:
                self._phone(raw, evidence)

    def _hidden(self) -> None:
        for text in self.page.hidden:
            for address, start, end in emails.addresses_in(unquote(text)):
                if address.lower() not in self.by_email:
                    self._refuse(
                        "email", address, "readers do not see it", Evidence("hidden", "", snippet(text, start, end))
                    )

    # -- what becomes of them ---------------------------------------------------------------------------------------

    def _email(self, raw: str, found: "Evidence | _Lazy", person: Person, offset: int | None = None) -> None:
        try:
            email = emails.judge(raw, self.page.site)
        except emails.NoEmailError as error:
            self._refuse("email", raw, str(error), found)
            return
        contact = self.by_email.get(email)
        if contact is None:
            if len(self.by_email) >= MOST_CONTACTS:
                self._refuse("email", email, f"more than {MOST_CONTACTS:,} on one page", found)
                return
            contact = self.by_email[email] = Contact(email, emails.type_of(email, self.page.site))
            if offset is not None:
                person = self.cards.of(self.page.text.node_at(offset + raw.find("@")))
        if len(contact.evidence) < MOST_EVIDENCE:
            contact.evidence.append(_made(found))
        contact.name = contact.name or person.name
        contact.role = contact.role or person.role
        if contact.phone is None and person.phone:
            contact.phone = self._valid_phone(person.phone.removeprefix("tel:"))

    def _phone(self, raw: str, found: "Evidence | _Lazy") -> None:
        try:
            number = phones.judge(raw, self.region)
        except phones.NoPhoneError as error:
            self._refuse("phone", raw, str(error), found)
            return
        seen = self.by_phone.setdefault(number, [])
        if len(seen) < MOST_EVIDENCE and len(self.by_phone) <= MOST_CONTACTS:
            seen.append(_made(found))

    def _valid_phone(self, raw: str) -> str | None:
        try:
            return phones.judge(raw, self.region)
        except phones.NoPhoneError:
            return None

    def _social(self, url: str, evidence: Evidence | None, node: LexborNode | None = None) -> None:
        try:
            answer = socials.profile(url)
        except socials.NoProfileError as error:
            self._refuse("social", url, str(error), evidence or Evidence("link", self.page.path(node)))
            return
        if answer is not None and answer[0] not in self.found.socials:
            self.found.socials[answer[0]] = Found(answer[1], evidence or Evidence("link", self.page.path(node)))

    def _refuse(self, kind: str, value: str, reason: str, found: "Evidence | _Lazy") -> None:
        key = (kind, value)
        if self.page.explained and key not in self._refused and len(self.found.refused) < MOST_REFUSALS:
            self._refused.add(key)
            self.found.refused.append(Refused(kind, one_line(value, 120), reason, _made(found)))

    def _finish(self) -> None:
        named = {contact.phone for contact in self.by_email.values()}
        lone = [
            Contact(phone=number, evidence=evidence)
            for number, evidence in self.by_phone.items()
            if number not in named
        ]
        self.found.contacts = [*self.by_email.values(), *lone]
        self.found.region = self.region
        self.found.address = postal_address(self.page, self.data.nodes)


class _Lazy:
    """Evidence from the text, made only where it is kept: a path costs more than finding the value."""

    __slots__ = ("end", "page", "rule", "start")

    def __init__(self, page: Page, rule: str, start: int, end: int) -> None:
        self.page, self.rule, self.start, self.end = page, rule, start, end

    def made(self) -> Evidence:
        text = self.page.text
        return Evidence(self.rule, self.page.path_at(self.start), snippet(text.whole, self.start, self.end))


def _made(found: "Evidence | _Lazy") -> Evidence:
    return found.made() if isinstance(found, _Lazy) else found


def _split_addresses(text: str) -> list[str]:
    """`"Jane" <jane@a.com>, b@a.com; c@a.com` as three addresses; none for a share button."""
    return list(_addresses(text[:2000]))[:50]


def _addresses(text: str) -> Iterator[str]:
    for part in text.replace(";", ",").split(","):
        inside = part.rpartition("<")[2].partition(">")[0] if "<" in part else part
        inside = re.sub(r"^\s*mailto:|^[\s/]+", "", inside, flags=re.IGNORECASE)
        if "@" in inside:
            yield inside.strip()
