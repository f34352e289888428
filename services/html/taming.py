"""What makes a parser slow and can only be an attack is taken out of a page before it is parsed."""

import re
from itertools import islice

DEEPEST = 2_000
MOST_STEPS = 20_000_000
"""HTML's own algorithm looks through all open elements for each new one: 100,000 nested <div> take 20 s, these steps
0.7 s at worst, and browsers stop at a depth of 512."""
MOST_TRUSTED = 10_000
"""Tags of a page that are not counted one by one: even if all of them were open, they would do no harm."""
MOST_ATTRIBUTES = 300
"""Of one element; each new one is compared with all before it."""
_LONGEST_TAG = 2_000
_SUSPICIOUS = 1_800
"""A depth, counted roughly, at which to count well: those strings of scripts that look like tags leave room for few."""
_STRETCH = 16_384

_ELEMENT = re.compile(rb"<(/?)([a-zA-Z][^\s/>]{0,40})")
# These close each other, or have no end.
_CLOSE_THEMSELVES = frozenset(
    b"area base br col embed hr img input link meta param source track wbr p li dt dd td th tr tbody thead tfoot"
    b" caption colgroup option optgroup rp rt body html head script style title noscript path".split()
)
_COSTLY = frozenset([b"body", b"html", b"option"])
# A tag as HTML ends it: not at a > inside a quoted value.
_WHOLE_TAG = re.compile(rb"""<[a-zA-Z](?:[^>"'=]++|=\s*+(?:"[^"]*+"|'[^']*+')?+|["'])*+""")
_OPENED = re.compile(rb"<[a-zA-Z]")
_QUOTED = re.compile(rb"""=\s*+(?:"[^"]*+"|'[^']*+')""")
_BEFORE_VALUE = frozenset(b"= \t\n\r\x0b\x0c")
_ATTRIBUTE = re.compile(rb"""[\s/"'=]+[^\s/"'=]""")


def tame(body: bytes) -> bytes:
    """The page without what makes a parser slow and can only be an attack. All but a few pages are left alone."""
    if _may_have_a_long_tag(body):
        body = _with_few_attributes(body)
    tags = [body.count(b"<", start, start + _STRETCH) for start in range(0, len(body), _STRETCH)]
    count = sum(tags)
    return _shallow(body) if count > MOST_TRUSTED or (count > DEEPEST and _may_be_deep(body, tags)) else body


def _may_have_a_long_tag(body: bytes) -> bool:
    """Whether a > is far away. One inside a quoted value is no end: two of those in a row are as bad."""
    start, quoted = 0, False
    double = single = -1  # where the last of each kind of quote is
    while start < len(body):
        # the last > that is near enough: most of the page is leapt over
        end = body.rfind(b">", start, start + _LONGEST_TAG)
        if end < 0:
            end = body.find(b">", start + _LONGEST_TAG)
            end = len(body) if end < 0 else end
            opened = None if quoted else _OPENED.search(body, start, end)
            if end - (opened.start() if opened else start) > _LONGEST_TAG and (quoted or opened):
                return True
        double = max(double, body.rfind(b'"', start, end))
        single = max(single, body.rfind(b"'", start, end))
        # a > is inside a value if the quote before it is the one that began it
        inside = (double > 0 and body[double - 1] in _BEFORE_VALUE and _began(body, double)) or (
            single > 0 and body[single - 1] in _BEFORE_VALUE and _began(body, single)
        )
        if inside and quoted:
            return True
        quoted = inside
        start = end + 1
    return False


def _began(body: bytes, mark: int) -> bool:
    """Whether the quote there begins a value."""
    before = body[max(0, mark - 64) : mark].rstrip()
    return not before or before.endswith(b"=")


def _with_few_attributes(body: bytes) -> bytes:
    """Tags of too many attributes without any."""
    kept: list[bytes] = []
    done = 0
    for tag in _WHOLE_TAG.finditer(body):
        start, end = tag.span()
        if end - start > _LONGEST_TAG and _has_many_attributes(tag[0]):
            name = _ELEMENT.match(tag[0])
            kept += [body[done:start], name[0] if name else b""]
            done = end
    return b"".join((*kept, body[done:])) if kept else body


def _has_many_attributes(tag: bytes) -> bool:
    return len(_ATTRIBUTE.findall(_QUOTED.sub(b'="', tag))) > 2 * MOST_ATTRIBUTES


def _may_be_deep(body: bytes, tags: list[int]) -> bool:
    """Counted roughly, a stretch at a time: ten times faster than looking at each tag.

    The rest of a page that has too few tags left to become deep is not looked at: that is most of most pages.
    """
    depth, left = 0, sum(tags)
    for number, count in enumerate(tags):
        if depth + left <= _SUSPICIOUS:
            return False
        left -= count
        depth += count - 2 * body.count(b"</", number * _STRETCH, (number + 1) * _STRETCH)
        if depth > _SUSPICIOUS:
            return True
    return False


def _shallow(body: bytes) -> bytes:
    """The page up to where its nesting can only be an attack."""
    lowered = body.lower()
    opened: dict[bytes, int] = {}
    depth = steps = roots = options = start = 0
    while start < len(body):
        # by the thousand: matches cost twice as much, and all tags of the worst page at once 100 MB
        end = lowered.find(b"<", start + _STRETCH)
        end = len(body) if end < 0 else end
        for number, (closing, name) in enumerate(_ELEMENT.findall(lowered, start, end)):
            if name in _CLOSE_THEMSELVES:
                if name in _COSTLY:
                    if name == b"option":
                        options += 1
                        steps += options  # all of one list are looked at for each
                    else:
                        roots += 1
                        steps += 50 * roots  # each more of them adds its attributes to the first
            elif closing:
                if name == b"select":
                    options = 0
                if opened.get(name):
                    opened[name] -= 1
                    depth -= 1
                continue
            else:
                if name == b"select":
                    options = 0
                opened[name] = opened.get(name, 0) + 1
                depth += 1
                steps += depth
            if depth > DEEPEST or steps > MOST_STEPS:
                tag = next(islice(_ELEMENT.finditer(lowered, start, end), number, None))
                return body[: tag.start()]
        start = end
    return body
