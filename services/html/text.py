"""The visible text of a page as lines, each place of which leads back to its element."""

from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass

from selectolax.lexbor import LexborNode

from services.html.tags import COMMENT_ID, TEXT_ID, tag_ids

_INLINE = (
    "a abbr acronym b bdi bdo big cite code data del dfn em font i ins kbd label mark nobr q s samp small span strike"
    " strong sub sup time tt u var wbr"
)
_UNREAD = "script style template noembed noframes textarea option title"
_INLINE_IDS = tag_ids(_INLINE)
_UNREAD_IDS = tag_ids(_UNREAD)
_SPECIAL_IDS = _INLINE_IDS | _UNREAD_IDS | {COMMENT_ID}
"""All others are blocks."""

_ODD: dict[int, str | None] = {ord(blank): " " for blank in "\u00a0\u2007\u202f\u2002\u2003\u2009"}
_ODD |= dict.fromkeys(map(ord, "\u00ad\u200b\u200c\u200d\u2060\ufeff\u200e\u200f"))
_ODD |= {ord("＠"): "@", ord("﹫"): "@", ord("．"): ".", ord("。"): ".", ord("‐"): "-", ord("‑"): "-", ord("–"): "-"}  # noqa: RUF001
_OTHER_AT = "\uff20\ufe6b"


@dataclass(slots=True)
class Text:
    """The visible text: inline elements run on, blocks begin a new line. An offset leads back to its element."""

    whole: str
    _starts: list[int]
    _nodes: list[LexborNode]

    def node_at(self, offset: int) -> LexborNode | None:
        index = bisect_right(self._starts, offset) - 1
        return self._nodes[index].parent if index >= 0 else None


def visible(body: LexborNode | None, *, every: bool) -> Text:
    """Of the elements, all are kept if `every`, else those with an @: theirs are asked for."""
    parts, numbers, nodes = _walk(body, every=every)
    whole = "".join(parts)
    if not whole.isascii():
        if not every and any(mark in whole for mark in _OTHER_AT):
            parts, numbers, nodes = _walk(body, every=True)
        parts = [part if part.isascii() else part.translate(_ODD) for part in parts]
        whole = "".join(parts)
    return Text(whole, list(_offsets(parts, numbers)), nodes)


def _offsets(parts: list[str], numbers: list[int]) -> Iterator[int]:
    """Where these parts begin; joining measures the parts between them sooner than adding up their lengths."""
    offset = done = 0
    for number in numbers:
        offset += len("".join(parts[done:number]))
        done = number
        yield offset


def _walk(body: LexborNode | None, *, every: bool) -> tuple[list[str], list[int], list[LexborNode]]:
    """The pieces of the text, which of them have their node kept, and those nodes.

    An element that opens is seen on the way; one that closes shows in that the next text is in another block. After
    the parse nothing costs more than this walk, and much of it is questions to nodes: a text is asked for its block
    only if nothing has opened before it, or if it may be in an element that is not read.
    """
    parts: list[str] = []
    numbers: list[int] = []
    nodes: list[LexborNode] = []
    blocks: dict[int, int] = {}  # inline element -> the block it is in; kept, so that deep nesting stays linear
    unread: set[int] = set()
    inside = 0  # an unread element whose end has not been seen
    nested = False  # whether an unread element had others in it: from then on each text is asked
    before: LexborNode | None = None  # a text whose block has not been asked for
    block, opened = 0, True
    text, inline, special, block_of, add = TEXT_ID, _INLINE_IDS, _SPECIAL_IDS, blocks.get, parts.append
    wanted = "" if every else "@"
    for node in body.traverse(include_text=True) if body is not None else ():
        kind = node.tag_id
        if kind == text:
            if opened:
                if inside or nested:
                    key = node.parent.mem_id  # type: ignore[union-attr]
                    if block_of(key, key) in unread:
                        continue
                    inside = 0
                opened, before = False, node
                add("\n")
            else:
                if before is not None:
                    key = before.parent.mem_id  # type: ignore[union-attr]
                    block, before = block_of(key, key), None
                key = node.parent.mem_id  # type: ignore[union-attr]
                if key != block and (key := block_of(key, key)) != block:
                    if key in unread:
                        continue
                    block = key
                    add("\n")
            fragment = node.text_content or ""
            if wanted in fragment:
                numbers.append(len(parts))
                nodes.append(node)
            add(fragment)
        elif kind not in special:
            opened = True
            if inside:
                key = node.parent.mem_id  # type: ignore[union-attr]
                nested = nested or block_of(key, key) == inside
                inside = 0
        elif kind in inline:
            key = node.parent.mem_id  # type: ignore[union-attr]
            blocks[node.mem_id] = block_of(key, key)
        elif kind != COMMENT_ID:
            opened = True
            if inside:
                key = node.parent.mem_id  # type: ignore[union-attr]
                nested = nested or block_of(key, key) == inside
            inside = node.mem_id
            unread.add(inside)
    return parts, numbers, nodes
