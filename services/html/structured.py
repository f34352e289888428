"""Structured data: JSON-LD block by block (a broken one loses nothing but itself), microdata, and microformats."""

import html
import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

from selectolax.lexbor import LexborNode

from services.evidence import Evidence, Refused, one_line
from services.html.page import Given, Page

MOST_BLOCKS = 100
MOST_BLOCK_CHARACTERS = 1_000_000
MOST_NODES = 2_000
DEEPEST = 40
MOST_PROPERTIES = 2_000

_CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]")
_COMMENT = re.compile(
    r"^\s*(?:<!--|//\s*<!\[CDATA\[|/\*\s*<!\[CDATA\[\s*\*/|<!\[CDATA\[)|(?:-->|//\s*\]\]>|/\*\s*\]\]>\s*\*/|\]\]>)\s*$"
)
_TRAILING_COMMA = re.compile(r",(\s*[}\]])")


@dataclass(slots=True)
class Node:
    """One thing that the page describes: its types and its plain properties."""

    types: tuple[str, ...]
    properties: dict[str, list[Any]]
    """Texts, and nested `Node`s."""
    where: str
    rule: str
    parent: "Node | None" = None

    def texts(self, *names: str) -> list[str]:
        return [value for name in names for value in self.properties.get(name, ()) if isinstance(value, str)]

    def text(self, *names: str) -> str | None:
        return next(iter(self.texts(*names)), None)

    def nodes(self, *names: str) -> list["Node"]:
        return [value for name in names for value in self.properties.get(name, ()) if isinstance(value, Node)]

    def named(self, *names: str) -> str | None:
        """A text, or the name of the thing that stands there."""
        if (text := self.text(*names)) is not None:
            return text
        return next((name for node in self.nodes(*names) if (name := node.text("name"))), None)


@dataclass(slots=True)
class Structured:
    nodes: list[Node] = field(default_factory=list)
    refused: list[Refused] = field(default_factory=list)


def structured(page: Page) -> Structured:
    """All nodes of the page, in its order, nested ones after the one they are in."""
    found = Structured()
    elements = page.data
    scripts = (one for one, given in elements if "ld+json" in (given.get("type") or "").lower() and one.tag == "script")
    for number, script in enumerate(islice(scripts, MOST_BLOCKS), 1):
        where = f"script[type=ld+json] #{number}"
        text = script.text()
        try:
            data = _load(text)
        except (ValueError, RecursionError) as error:
            reason = "nested too deeply" if isinstance(error, RecursionError) else f"not JSON: {error}"
            found.refused.append(Refused("structured data", one_line(text, 80), reason, Evidence("json-ld", where)))
            continue
        _collect(data, where, found.nodes)
    _microdata(page, elements, found.nodes)
    return found


def _load(text: str) -> Any:
    if len(text) > MOST_BLOCK_CHARACTERS:
        raise ValueError(f"longer than {MOST_BLOCK_CHARACTERS:,} characters")
    cleaned = _COMMENT.sub("", _COMMENT.sub("", _CONTROL.sub(" ", text))).strip().rstrip(";")
    if not cleaned:
        raise ValueError("an empty block")
    try:
        return json.loads(cleaned, strict=False)
    except json.JSONDecodeError as error:
        for repaired in (_TRAILING_COMMA.sub(r"\1", cleaned), html.unescape(cleaned)):
            if repaired != cleaned:
                try:
                    return json.loads(repaired, strict=False)
                except json.JSONDecodeError:
                    continue
        raise ValueError(f"{error.msg} at character {error.pos}") from None


def _collect(data: Any, where: str, into: list[Node]) -> None:
    """Flatten without recursion: a page may nest as deep as it likes."""
    # (value, path, depth, the node it belongs to, the property it is of)
    stack: list[tuple[Any, str, int, Node | None, str]] = [(data, f"{where} $", 0, None, "")]
    while stack and len(into) < MOST_NODES:
        value, path, depth, parent, name = stack.pop()
        if isinstance(value, list):
            if depth < DEEPEST:
                items = list(enumerate(islice(value, MOST_PROPERTIES)))
                stack += [(item, f"{path}[{i}]", depth + 1, parent, name) for i, item in reversed(items)]
        elif isinstance(value, dict):
            if depth < DEEPEST:
                node = _node(value, path, parent)
                into.append(node)
                if parent is not None:
                    parent.properties.setdefault(name, []).append(node)
                inner = [(k, v) for k, v in islice(value.items(), 200) if isinstance(v, dict | list)]
                stack += [(v, f"{path}.{k}", depth + 1, node, str(k)) for k, v in reversed(inner)]
        elif parent is not None and isinstance(value, str) and value.strip():
            parent.properties.setdefault(name, []).append(_clean(value))


def _node(value: Mapping[str, Any], path: str, parent: Node | None) -> Node:
    properties: dict[str, list[Any]] = {}
    for key, item in islice(value.items(), 200):
        if isinstance(item, str) and item.strip():
            properties[str(key)] = [_clean(item)]
        elif isinstance(item, int | float) and not isinstance(item, bool):
            properties[str(key)] = [str(item)]
    return Node(_types(value.get("@type")), properties, path, "json-ld", parent)


def _clean(text: str) -> str:
    """As a database can keep it: JSON may spell NUL and half a surrogate pair."""
    return html.unescape(text.strip()).replace("\x00", "").encode("utf-8", "replace").decode()


def _types(value: Any) -> tuple[str, ...]:
    given = value if isinstance(value, list) else [value]
    return tuple(_clean(item).rpartition("/")[2].rpartition(":")[2] for item in given[:10] if isinstance(item, str))


def _microdata(page: Page, elements: list[Given], into: list[Node]) -> None:
    """Each itemprop goes to the nearest itemscope above it."""
    scopes: dict[int, Node] = {}
    known: dict[int, Node | None] = {}
    for element, attributes in islice(elements, MOST_PROPERTIES):
        owner = _owner(element, scopes, known)
        names = (attributes.get("itemprop") or "").split()
        value: Any = None
        if "itemscope" in attributes:
            kinds = tuple(kind.rstrip("/").rpartition("/")[2] for kind in (attributes.get("itemtype") or "").split())
            value = scopes[element.mem_id] = Node(kinds, {}, page.path(element), "microdata", owner)
            into.append(value)
        elif names:
            value = _item_value(element, attributes)
        if owner is not None and value:
            for name in names[:5]:
                owner.properties.setdefault(name, []).append(value)


def _owner(element: LexborNode, scopes: dict[int, Node], known: dict[int, Node | None]) -> Node | None:
    climbed: list[int] = []
    found: Node | None = None
    above = element.parent
    while above is not None:
        key = above.mem_id
        if key in scopes:
            found = scopes[key]
            break
        if key in known:
            found = known[key]
            break
        climbed.append(key)
        above = above.parent
    known.update(dict.fromkeys(climbed, found))
    return found


def _item_value(element: LexborNode, attributes: Mapping[str, str | None]) -> str:
    for name in ("content", "href", "src", "datetime", "data"):
        if attributes.get(name):
            return one_line(attributes[name], 2000)
    return one_line(element.text(separator=" "), 500)


# What is worth a place on the domain: who the business is, where, and how to reach it.
_KEPT = [
    "name",
    "legalName",
    "alternateName",
    "description",
    "url",
    "logo",
    "image",
    "telephone",
    "faxNumber",
    "email",
    "priceRange",
    "foundingDate",
    "vatID",
    "taxID",
    "openingHours",
    "sameAs",
    "areaServed",
    "jobTitle",
    "contactType",
    "addressCountry",
    "addressLocality",
    "addressRegion",
    "postalCode",
    "streetAddress",
    "latitude",
    "longitude",
    "ratingValue",
    "reviewCount",
]
_KEPT_NODES = [
    "address",
    "geo",
    "contactPoint",
    "founder",
    "employee",
    "employees",
    "aggregateRating",
    "openingHoursSpecification",
    "member",
    "department",
    "parentOrganization",
    "location",
]
_ABOUT_BUSINESS = frozenset({"telephone", "address", "openingHours", "contactPoint", "email", "sameAs", "logo"})
_NOT_BUSINESS = frozenset({"Article", "BlogPosting", "NewsArticle", "BreadcrumbList", "ListItem", "Product", "Offer"})


def worth_keeping(nodes: list[Node], most: int = 20) -> list[dict[str, Any]]:
    """The nodes that say who is behind the site, with the properties that matter, as JSON."""
    return list(islice((_plain(node, 0) for node in nodes if _is_business(node)), most))


def _is_business(node: Node) -> bool:
    if node.parent is not None and _is_kept_inside(node):
        return False
    has_name = bool(node.text("name", "legalName"))
    return has_name and not _NOT_BUSINESS.intersection(node.types) and bool(_ABOUT_BUSINESS & node.properties.keys())


def _is_kept_inside(node: Node) -> bool:
    parent = node.parent
    return parent is not None and any(node in parent.nodes(name) for name in _KEPT_NODES) and _is_business(parent)


def _plain(node: Node, depth: int) -> dict[str, Any]:
    plain: dict[str, Any] = {"@type": list(node.types)} if node.types else {}
    said = node.properties.keys()  # few of all that could be
    for name in filter(said.__contains__, _KEPT):
        if texts := [one_line(text, 1000) for text in node.texts(name)[:20]]:
            plain[name] = texts[0] if len(texts) == 1 else texts
    if depth < 3:
        for name in filter(said.__contains__, _KEPT_NODES):
            if inner := [_plain(child, depth + 1) for child in node.nodes(name)[:20]]:
                plain[name] = inner[0] if len(inner) == 1 else inner
    return plain


def walk(nodes: list[Node], *names: str) -> Iterator[tuple[Node, str]]:
    """(node, text) for every text property of these names."""
    for node in nodes:
        for text in node.texts(*names):
            yield node, text
