"""What readers do not see is no word of the page's, and is taken out of its tree: addresses have decoys made so."""

import re
from collections.abc import Iterable, Iterator
from itertools import chain, islice

from selectolax.lexbor import LexborHTMLParser, LexborNode

from services.html.tags import tag_ids

# Selectors are tried one after another on every element: one that most elements fail at once stands for four.
HIDDEN = (
    '[hidden]:not([hidden="until-found"]),[style]:is([style*="display:none" i],[style*="display: none" i],'
    '[style*="visibility:hidden" i],[style*="visibility: hidden" i])'
)
_HIDING = re.compile(r"display\s?:\s?\Z")
_CLASS = re.compile(r"\.([A-Za-z_][\w-]{0,60})\s*$")
(_STYLE_ID,) = tag_ids("style")


def hide(tree: LexborHTMLParser) -> list[str]:
    """Take out what is hidden, and return its text."""
    body = tree.body
    if body is None:
        return []
    found = body.css(f"style,{HIDDEN}")
    hidden = [node for node in found if node.tag_id != _STYLE_ID or node.css_matches(HIDDEN)]
    heads = tree.head.css("style") if tree.head is not None else []
    styles = (*heads, *(node for node in found if node.tag_id == _STYLE_ID))
    classes: dict[str, None] = {}
    for style in islice(styles, 50):
        classes |= dict.fromkeys(islice(_hiding_classes(style.text()), 50))
    removed: list[str] = []
    for node in _outermost(chain(hidden, _decoys(body, classes))):
        removed.append(node.text(separator=" ")[:10_000])
        removed += [href for link in node.css("a[href]") if (href := link.attributes.get("href") or "")]
        node.decompose()
    return removed


def _decoys(body: LexborNode, classes: Iterable[str]) -> Iterator[LexborNode]:
    """The inline elements of these classes: a menu closed by a media query is hidden too, and is none."""
    if not classes:
        return
    inline = body.css("span[class],b[class],i[class],em[class]")
    worn = {name for node in inline for name in (node.attributes["class"] or "").lower().split()}
    for name in classes:
        if name.lower() in worn:
            yield from body.css(f"span.{name},b.{name},i.{name},em.{name}")


def _hiding_classes(style: str) -> Iterator[str]:
    at = style.find("none")
    while at >= 0:
        if rule := _HIDING.search(style, max(0, at - 10), at):
            brace = style.rfind("{", max(0, rule.start() - 400), rule.start())
            found = _CLASS.search(style, max(0, brace - 80), brace) if brace > 0 else None
            if found and "}" not in style[brace : rule.start()]:
                yield found[1]
        at = style.find("none", at + 4)


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
