"""A parsed page. Everything that looks at a page shares one parse and one walk over its text."""

import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from itertools import accumulate, chain, islice
from urllib.parse import urljoin, urlsplit

from selectolax.lexbor import LexborHTMLParser, LexborNode

from services.evidence import SNIPPET, one_line, snippet
from services.html.taming import tame
from services.websites import site_of

MOST_BYTES = 5_000_000
"""What is looked at of a page; the rest of a larger one is left alone."""
DEEPEST_PATH = 12
FARTHEST_SIBLING = 1000
MOST_CONTEXTS = 200
MOST_PATHS = 1_000

_INLINE = (
    "a abbr acronym b bdi bdo big cite code data del dfn em font i ins kbd label mark nobr q s samp small span strike"
    " strong sub sup time tt u var wbr"
)
_UNREAD = "script style template noembed noframes textarea option title"
# Readers do not see these, so nothing in them is the page's word; decoys inside addresses are made this way.
HIDDEN = (
    '[hidden]:not([hidden="until-found"]),[style*="display:none" i],[style*="display: none" i],'
    '[style*="visibility:hidden" i],[style*="visibility: hidden" i]'
)
_HIDING = re.compile(r"display\s?:\s?none")
_CLASS = re.compile(r"\.([A-Za-z_][\w-]{0,60})\s*$")
_ODD: dict[int, str | None] = {ord(blank): " " for blank in "\u00a0\u2007\u202f\u2002\u2003\u2009"}
_ODD |= dict.fromkeys(map(ord, "\u00ad\u200b\u200c\u200d\u2060\ufeff\u200e\u200f"))
_ODD |= {ord("＠"): "@", ord("﹫"): "@", ord("．"): ".", ord("。"): ".", ord("‐"): "-", ord("‑"): "-", ord("–"): "-"}  # noqa: RUF001


def _tag_ids(names: str) -> frozenset[int]:
    """lexbor's numbers of these elements: comparing numbers is five times faster than comparing names."""
    # each by itself: inside one another the parser would move or drop some of them
    trees = (LexborHTMLParser(f"<{name}></{name}>") for name in names.split())
    found = ((tree.css_first(name), name) for tree, name in zip(trees, names.split(), strict=True))
    return frozenset(node.tag_id for node, _ in found if node is not None)


_INLINE_IDS = _tag_ids(_INLINE)
_UNREAD_IDS = _tag_ids(_UNREAD)
_marked = LexborHTMLParser("<body>text<!--comment-->").body
_TEXT_ID, _COMMENT_ID = (
    next(node.tag_id for node in _marked.iter(include_text=True) if node.tag == tag) if _marked else 0
    for tag in ("-text", "-comment")
)

_LINK_IDS = _tag_ids("a area")
(_SCRIPT_ID,), (_SPAN_ID,), (_BDO_ID,) = map(_tag_ids, ("script", "span", "bdo"))
_DECODED = frozenset(["data-cfemail", "data-domain", "data-email", "data-mail"])
_NOTED = (
    "a[href],area[href],[data-cfemail],[data-domain],[data-email],[data-mail],span.spamspan,bdo,"
    'script[type*="ld+json" i]'
)
Given = tuple[LexborNode, Mapping[str, str | None]]
"""An element and its attributes."""


@dataclass(slots=True)
class Text:
    """The visible text: inline elements run on, blocks begin a new line. An offset leads back to its element."""

    whole: str
    _starts: list[int]
    _nodes: list[LexborNode]

    def node_at(self, offset: int) -> LexborNode | None:
        index = bisect_right(self._starts, offset) - 1
        return self._nodes[index].parent if index >= 0 else None


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
        return _visible(self.tree.body, every=self.explained)

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

    @cached_property
    def links(self) -> list[tuple[str, LexborNode]]:
        """Every a[href] and area[href], as written, in the order of the page."""
        return [(href, node) for node, given in self.marked if (href := (given.get("href") or "").strip())]

    @cached_property
    def marked(self) -> list[Given]:
        """Links, and elements that address decoders look at, with their attributes."""
        return self._noted[0]

    @cached_property
    def data(self) -> list[Given]:
        """JSON-LD and microdata, with their attributes."""
        return self._noted[1]

    @cached_property
    def _noted(self) -> tuple[list[Given], list[Given]]:
        """One search for both, because each walks the whole page."""
        marked: list[Given] = []
        data: list[Given] = []
        # without an itemscope no itemprop belongs to anything
        scoped = self.tree.css_first("[itemscope]") is not None
        for node in self.tree.css(f"{_NOTED},[itemscope],[itemprop]" if scoped else _NOTED):
            given, kind = node.attributes, node.tag_id
            if kind == _SCRIPT_ID or (scoped and ("itemprop" in given or "itemscope" in given)):
                data.append((node, given))
            if (
                (kind in _LINK_IDS and "href" in given)
                or not _DECODED.isdisjoint(given)
                or kind == _BDO_ID
                or (kind == _SPAN_ID and "spamspan" in (given.get("class") or ""))
            ):
                marked.append((node, given))
        return marked, data

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
    page = Page(tree, body, url, lowered, explained=explain)
    page.hidden = _hide(tree)
    return page


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


def _hide(tree: LexborHTMLParser) -> list[str]:
    """Take out what readers do not see, and return its text."""
    body = tree.body
    if body is None:
        return []
    selectors = []
    # one search for both: each walks the whole page
    hidden = body.css(f"style,{HIDDEN}")
    styles = [node for node in hidden if node.tag == "style"]
    hidden = [node for node in hidden if node.tag != "style" or node.css_matches(HIDDEN)] if styles else hidden
    for style in islice((*(tree.head.css("style") if tree.head is not None else ()), *styles), 50):
        # a menu closed by a media query is hidden too; only inline elements are taken for decoys
        names = islice(_hiding_classes(style.text() or ""), 50)
        selectors += [f"span.{name},b.{name},i.{name},em.{name}" for name in names]
    removed: list[str] = []
    for node in _outermost(chain(hidden, (node for selector in selectors for node in body.css(selector)))):
        removed.append(node.text(separator=" ")[:10_000])
        removed += [href for link in node.css("a[href]") if (href := link.attributes.get("href") or "")]
        node.decompose()
    return removed


def _hiding_classes(style: str) -> Iterator[str]:
    for rule in _HIDING.finditer(style):
        brace = style.rfind("{", max(0, rule.start() - 400), rule.start())
        found = _CLASS.search(style, max(0, brace - 80), brace) if brace > 0 else None
        if found and "}" not in style[brace : rule.start()]:
            yield found[1]


def _outermost(nodes: Iterable[LexborNode]) -> list[LexborNode]:
    """Without those inside another: a removed element's children are gone with it."""
    chosen = {node.mem_id: node for node in nodes if node.tag not in ("html", "body")}
    clear: set[int] = set()  # elements known to have no hidden one above them: each is climbed past once
    outermost = []
    for node in chosen.values():
        climbed = []
        above = node.parent
        while above is not None and above.mem_id not in clear and above.mem_id not in chosen:
            climbed.append(above.mem_id)
            above = above.parent
        if above is None or above.mem_id not in chosen:
            clear.update(climbed)
            outermost.append(node)
    return outermost


def _visible(body: LexborNode | None, *, every: bool) -> Text:
    """Of the elements, all are kept if `every`, else those with an @: theirs are asked for.

    An element that opens is seen on the way; one that closes shows in that the next text is in another block.
    """
    parts: list[str] = []
    numbers: list[int] = []  # of those parts whose elements are kept
    nodes: list[LexborNode] = []
    blocks: dict[int, int] = {}  # inline element -> the block it is in; kept, so that deep nesting stays linear
    unread: set[int] = set()
    text, comment, inline = _TEXT_ID, _COMMENT_ID, _INLINE_IDS
    add = parts.append
    block, opened = 0, True
    for node in body.traverse(include_text=True) if body is not None else ():
        kind = node.tag_id
        if kind == text:
            container = node.parent.mem_id  # type: ignore[union-attr]
            if container in blocks:
                container = blocks[container]
            if opened or container != block:
                if container in unread:
                    continue
                block, opened = container, False
                add("\n")
            fragment = node.text_content or ""
            if not fragment.isascii():
                fragment = fragment.translate(_ODD)
            if every or "@" in fragment:
                numbers.append(len(parts))
                nodes.append(node)
            add(fragment)
        elif kind in inline:
            key = node.parent.mem_id  # type: ignore[union-attr]
            blocks[node.mem_id] = blocks.get(key, key)
        elif kind != comment:
            opened = True
            if kind in _UNREAD_IDS:
                unread.add(node.mem_id)
    ends = [0, *accumulate(map(len, parts))] if nodes else []
    return Text("".join(parts), [ends[number] for number in numbers], nodes)
