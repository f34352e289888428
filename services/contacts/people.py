"""Whose address it is: from structured data, from microformats, from the card on the page it stands in."""

import re
from dataclasses import dataclass

from selectolax.lexbor import LexborNode

from services.contacts.phones import dialled
from services.evidence import one_line
from services.html.structured import Node

_CARD = re.compile(
    r"(?:^|[\s_-])(?:team|member|staff|person|people|employee|vcard|h-card|profile|bio|attorney|lawyer|doctor|dentist|agent"
    r"|advisor|realtor|ansprechpartner|mitarbeiter|colleague|author|card|crew|expert)s?(?=$|[\s_-])",
    re.IGNORECASE,
)
_NAMED = '.fn,.p-name,[class*="name" i]:not(a):not([class*="username" i]),h1,h2,h3,h4,h5,h6,strong,b'
_ROLED = (
    '.role,.title,.p-job-title,.p-role,.position,[class*="role" i],[class*="position" i],[class*="job" i],'
    '[class*="function" i],[class*="subtitle" i],[class*="-title" i]'
)
_HIGHEST = 6
# each word has one way to be read, or a row of titles would be tried in every combination
_TITLE = r"(?:(?:Dr|Mr|Mrs|Ms|Miss|Prof|Herr|Frau|Dipl|Ing|Mag|Rev|Sir|med|dent|jur|rer|nat|phil)\.?(?:-Ing\.?)?\s+)*+"
_PARTICLE = r"(?:(?:van|von|der|den|de|la|le|da|dos|di|du|del|bin|al|el|ter|zu)\s+){0,3}"
_WORD = r"[^\W\d_a-z][\w'’.-]{0,30}"  # noqa: RUF001
_NAME = re.compile(rf"{_TITLE}{_WORD}(?:\s+{_PARTICLE}{_WORD}){{1,3}}(?:,?\s+[A-Z][A-Za-z.]{{1,5}}){{0,3}}")
_NOT_A_NAME = re.compile(
    r"\b(?:contact|us|our|team|about|get|touch|email|e-mail|mail|call|home|customer|service|services|sales|support|office"
    r"|company|inc|llc|ltd|gmbh|street|road|avenue|more|info|information|welcome|the|your|phone|address|hours|opening|free"
    r"|read|learn|click|here|send|message|write|department|general|enquiries|booking|reservations|meet|follow|privacy|legal"
    r"|kontakt|unser|unsere|uns|impressum|schreiben|sie|nous|equipo|new|all|best|and|for|with|or|of)\b",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Person:
    name: str | None = None
    role: str | None = None
    phone: str | None = None
    """As written."""


def person_name(text: str | None) -> str | None:
    """The text if it can be somebody's name."""
    name = one_line(text, 80).strip(" ,;:-|")
    return name if len(name) <= 60 and _NAME.fullmatch(name) and not _NOT_A_NAME.search(name) else None


def role_name(text: str | None) -> str | None:
    role = one_line(text, 120).strip(" ,;:-|()")
    return role if 2 < len(role) <= 80 and not re.search(r"[@\d]|://", role) else None


def described(node: Node) -> Person:
    """The person behind a node of structured data; of an organisation, only what a contact point says of itself."""
    is_person = "Person" in node.types
    name = node.text("name") if is_person or "ContactPoint" in node.types else None
    if name is None and is_person:
        name = " ".join(filter(None, (node.text("givenName"), node.text("familyName")))) or None
    role = (node.named("jobTitle") if is_person else None) or node.text("contactType", "roleName")
    return Person(one_line(name, 200) or None, role_name(role), node.text("telephone"))


class Cards:
    """The cards of one page, each looked at once."""

    def __init__(self) -> None:
        self._known: dict[int, Person | None] = {}

    def of(self, node: LexborNode | None) -> Person:
        """Whose card this element is in."""
        above = node
        for _ in range(_HIGHEST):
            if above is None or above.tag in ("body", "html", "main", "footer", "header", "table", "tbody", "ul"):
                break
            if _is_card(above) and (person := self._read(above)) is not None:
                return person
            above = above.parent
        return Person()

    def _read(self, card: LexborNode) -> Person | None:
        key = card.mem_id
        if key not in self._known:
            self._known[key] = _person(card)
        return self._known[key]


def _is_card(node: LexborNode) -> bool:
    attributes = node.attributes
    named = attributes.get("class")
    return bool(named and _CARD.search(named[:200])) or "Person" in (attributes.get("itemtype") or "")


def _person(card: LexborNode) -> Person | None:
    addresses = {link.attributes.get("href") for link in card.css('a[href^="mailto:" i],[data-cfemail]')}
    if len(addresses) > 1:
        return None  # a list of people, not one of them
    for node in card.css(_NAMED)[:20]:
        if name := person_name(node.text(separator=" ")[:200]):
            return Person(name, _role(card, node), _phone(card))
    return None


def _role(card: LexborNode, name: LexborNode) -> str | None:
    for node in card.css(_ROLED)[:20]:
        role = role_name(node.text(separator=" ")[:200]) if node.mem_id != name.mem_id else None
        if role and (person_name(role) is None or _looks_like_role(role)):
            return role
    following = name.next
    while following is not None and following.tag in ("-text", "-comment", "br"):
        following = following.next
    if following is None or following.tag not in ("p", "span", "div", "em", "i", "h4", "h5", "h6", "small"):
        return None
    has_more = following.css_first("a,p,div,ul") not in (None, following)
    return None if has_more else role_name(following.text(separator=" ")[:200])


def _looks_like_role(text: str) -> bool:
    return bool(
        re.search(
            r"manager|director|owner|founder|officer|partner|head|chief|engineer|assistant|president|technician|lead|chef"
            r"|inhaber|leiter|gesch[aä]ftsf|ceo|cto|cfo|coo|dentist|attorney|plumber|secretary|specialist|consultant",
            text,
            re.IGNORECASE,
        )
    )


def _phone(card: LexborNode) -> str | None:
    numbers = {dialled(link.attributes.get("href") or "") for link in card.css('a[href^="tel:" i]')[:5]}
    return numbers.pop() if len(numbers) == 1 else None
