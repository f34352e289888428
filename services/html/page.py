"""A parsed page. Everything that looks at a page shares one parse and one walk over its text."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from itertools import islice
from urllib.parse import urljoin, urlsplit

from selectolax.lexbor import LexborHTMLParser, LexborNode

from services.evidence import SNIPPET, one_line, snippet
from services.html.hiding import hide
from services.html.tags import tag_ids
from services.html.taming import tame
from services.html.text import Text, visible
from services.websites import site_of

MOST_BYTES = 5_000_000
"""What is looked at of a page; the rest of a larger one is left alone."""
DEEPEST_PATH = 12
FARTHEST_SIBLING = 1000
MOST_CONTEXTS = 200
MOST_PATHS = 1_000

_LINK_IDS = tag_ids("a area")
(_SCRIPT_ID,) = tag_ids("script")
_DECODED = frozenset(["data-cfemail", "data-domain", "data-email", "data-mail"])
_NOTED = (
    "[href]:is(a,area),[data-cfemail],[data-domain],[data-email],[data-mail],.spamspan:is(span,bdo),"
    'script[type*="ld+json" i],[itemscope],[itemprop]'
)


Given = tuple[LexborNode, Mapping[str, str | None]]
"""An element and its attributes."""


@dataclass
class Page:
    """One page and what is known of how it came."""

    tree: LexborHTMLParser
    source: bytes
    url: str
    headers: Mapping[str, str] = field(default_factory=dict)
    hidden: list[str] = field(default_factory=list)
    """The text of what readers do not see."""
    explained: bool = False
    """Whether to say where each thing stands; that costs more than finding it."""
    _told: int = 0
    _paths: int = 0

    @cached_property
    def site(self) -> str | None:
        """The registrable domain this page is on."""
        return site_of(self.url) if self.url else None

    @cached_property
    def base(self) -> str:
        """What relative links are relative to."""
        node = self.tree.css_first("base[href]")
        return self.resolve(node.attributes.get("href") or "", self.url) or self.url if node else self.url

    @cached_property
    def text(self) -> Text:
        return visible(self.tree.body, every=self.explained)

    def path(self, node: LexborNode | None) -> str:
        """Where an element is, if that is wanted."""
        if not self.explained or node is None or self._paths >= MOST_PATHS:
            return ""
        self._paths += 1
        return path_of(node)

    def path_at(self, offset: int) -> str:
        """Where a place in the text is, if that is wanted."""
        return self.path(self.text.node_at(offset)) if self.explained else ""

    def around(self, node: LexborNode) -> str:
        """The words around an element."""
        own = one_line(node.text(separator=" ")[:SNIPPET])
        self._told += 1
        # an element above may be as large as the page: a page of nothing but links must not be read for each of them
        if self._told > MOST_CONTEXTS or (above := node.parent) is None:
            return own
        words = " ".join(above.text(separator=" ")[:2000].split())
        at = max(words.find(own), 0)
        return snippet(words, at, at + len(own))

    @property
    def links(self) -> list[tuple[str, LexborNode]]:
        """Every a[href] and area[href], as written, in the order of the page."""
        return self._sorted[0]

    @property
    def marked(self) -> list[Given]:
        """Elements that address decoders look at, with their attributes."""
        return self._sorted[1]

    @cached_property
    def data(self) -> list[Given]:
        """JSON-LD and microdata, with their attributes."""
        # without an itemscope no itemprop belongs to anything
        scoped = any("itemscope" in given for _, given in self._noted)
        return [
            one
            for one in self._noted
            if one[0].tag_id == _SCRIPT_ID or (scoped and ("itemprop" in one[1] or "itemscope" in one[1]))
        ]

    @cached_property
    def _noted(self) -> list[Given]:
        """One search for all of them, in the order of the page. What several parts of it find is found so often."""
        found: list[Given] = []
        before = 0
        for node in self.tree.css(_NOTED):
            if (key := node.mem_id) != before:
                found.append((node, node.attributes))
                before = key
        return found

    @cached_property
    def _sorted(self) -> tuple[list[tuple[str, LexborNode]], list[Given]]:
        links: list[tuple[str, LexborNode]] = []
        marked: list[Given] = []
        for node, given in self._noted:
            written = given.get("href") or ""
            if (
                not _DECODED.isdisjoint(given)
                or "spamspan" in (given.get("class") or "")
                or "email-protection#" in written
                or "UnCryptMailto" in written
            ):
                marked.append((node, given))
            elif node.tag_id not in _LINK_IDS:
                continue
            if href := written.strip():
                links.append((href, node))
        return links, marked

    @cached_property
    def language(self) -> str | None:
        root = self.tree.root
        value = one_line(root.attributes.get("lang") or root.attributes.get("xml:lang"), 35) if root else ""
        return value if re.fullmatch(r"[A-Za-z]{2,3}(?:[-_][A-Za-z0-9]{2,8}){0,3}", value) else None

    @cached_property
    def metas(self) -> dict[str, tuple[str, str]]:
        """name or property, lower case -> (content, path); the first of each, as browsers and sharers take it."""
        found: dict[str, tuple[str, str]] = {}
        for node in islice(self.tree.css("meta[content]"), 500):
            attributes = node.attributes
            for kind in ("name", "property", "itemprop", "http-equiv"):
                name = (attributes.get(kind) or "").strip().lower()
                content = one_line(attributes.get("content"), 2000)
                if name and content and name not in found:
                    found[name] = (content, f'meta[{kind}="{name}"]')
        return found

    def resolve(self, href: str, base: str | None = None) -> str | None:
        """An absolute http(s) address, or None."""
        try:
            joined = urljoin(self.base if base is None else base, href.strip())
            parts = urlsplit(joined)
        except ValueError:
            return None
        return joined if parts.scheme in ("http", "https") and parts.netloc and len(joined) <= 2048 else None


def read_page(
    source: bytes | str, url: str = "", headers: Mapping[str, str] | None = None, *, explain: bool = False
) -> Page:
    """Parse a page. Broken markup is read as browsers read it; nothing raises."""
    body = source.encode("utf-8", "replace") if isinstance(source, str) else source
    # NUL would end lexbor's text early in places; a browser shows U+FFFD for it
    body = tame(body[:MOST_BYTES].replace(b"\x00", b"") if b"\x00" in body else body[:MOST_BYTES])
    tree = LexborHTMLParser(body)
    lowered = {name.lower(): value for name, value in (headers or {}).items()}
    return Page(tree, body, url, lowered, hide(tree), explained=explain)


def path_of(node: LexborNode, limit: int = DEEPEST_PATH) -> str:
    """A short CSS path to an element: from the nearest id down."""
    steps: list[str] = []
    current: LexborNode | None = node
    while current is not None and len(steps) < limit:
        tag = current.tag
        if not tag or tag in ("html", "-document"):
            break
        if tag.startswith("-"):
            current = current.parent
            continue
        name = current.attributes.get("id")
        if name and re.fullmatch(r"[A-Za-z_][\w-]{0,60}", name):
            steps.append(f"{tag}#{name}")
            break
        steps.append(tag if tag == "body" else f"{tag}:nth-of-type({_position(current, tag)})")
        current = current.parent
    return " > ".join(reversed(steps)) or "html"


def _position(node: LexborNode, tag: str) -> int:
    position, steps, before = 1, 0, node.prev
    while before is not None and steps < FARTHEST_SIBLING:
        position += before.tag == tag
        steps += 1
        before = before.prev
    return position
