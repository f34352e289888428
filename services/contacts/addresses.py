"""Postal addresses: from structured data, else from the element that HTML has for it."""

import re
from collections.abc import Iterable

from services.evidence import Evidence, Found, one_line
from services.html.page import Page, path_of
from services.html.structured import Node

_PARTS = ("streetAddress", "postOfficeBoxNumber", "postalCode", "addressLocality", "addressRegion", "addressCountry")
_NOISE = re.compile(r"[^\s,]*@[^\s,]*|(?:tel|phone|fax|email|e-mail|call|t|f|e)\s*[.:]\s*", re.IGNORECASE)
_NUMBER = re.compile(r"\d")
_PHONE = re.compile(r"\+?\(?\d[\d ()./-]{7,}\d")


def postal_address(page: Page, nodes: Iterable[Node]) -> Found[dict[str, str]] | None:
    """The first address that names a street or a town; `text` is the whole on one line."""
    for node in nodes:
        if (parts := _structured(node)) is not None:
            return Found(parts, Evidence(node.rule, node.where, parts["text"]))
    for element in page.tree.css("address,.adr,.h-adr,.p-adr")[:20]:
        text = one_line(_PHONE.sub(" ", _NOISE.sub(" ", element.text(separator=" "))), 300).strip(" ,|")
        if 10 <= len(text) <= 250 and _NUMBER.search(text) and len(text.split()) >= 3:
            return Found({"text": text}, Evidence("address element", path_of(element), text))
    return None


def country_of(nodes: Iterable[Node]) -> str | None:
    """The two-letter country that an address in the structured data names."""
    for node in nodes:
        code = node.named("addressCountry") or ""
        if re.fullmatch(r"[A-Za-z]{2}", code):
            return code.upper()
    return None


def _structured(node: Node) -> dict[str, str] | None:
    if "PostalAddress" not in node.types and not node.text("streetAddress"):
        written = node.text("address")
        if written and len(written) >= 10 and _NUMBER.search(written) and node.text("name"):
            return {"text": one_line(written, 300)}
        return None
    parts = {name: one_line(value, 200) for name in _PARTS if (value := node.named(name))}
    if not parts.get("streetAddress") and not parts.get("addressLocality"):
        return None
    town = " ".join(filter(None, (parts.get("postalCode"), parts.get("addressLocality"))))
    line = ", ".join(
        filter(None, (parts.get("streetAddress"), town, parts.get("addressRegion"), parts.get("addressCountry")))
    )
    return {"text": line, **parts}
