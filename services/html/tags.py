"""lexbor's numbers of elements: comparing numbers is five times faster than comparing names."""

from selectolax.lexbor import LexborHTMLParser


def tag_ids(names: str) -> frozenset[int]:
    # each by itself: inside one another the parser would move or drop some of them
    trees = (LexborHTMLParser(f"<{name}></{name}>") for name in names.split())
    found = ((tree.css_first(name), name) for tree, name in zip(trees, names.split(), strict=True))
    return frozenset(node.tag_id for node, _ in found if node is not None)


_marked = LexborHTMLParser("<body>text<!--comment-->").body
TEXT_ID, COMMENT_ID = (
    next(node.tag_id for node in _marked.iter(include_text=True) if node.tag == tag) if _marked else 0
    for tag in ("-text", "-comment")
)
