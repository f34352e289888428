"""What a home page says about itself, each value with where it stands."""

from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

from services.evidence import Evidence, Found, one_line
from services.html.page import Page, path_of
from services.html.structured import Structured, structured, worth_keeping
from services.html.technologies import Technology, technologies

LONGEST_TITLE = 500
LONGEST_DESCRIPTION = 2_000


@dataclass(slots=True)
class Metadata:
    title: Found[str] | None = None
    description: Found[str] | None = None
    language: Found[str] | None = None
    canonical: Found[str] | None = None
    favicon: Found[str] | None = None
    logo: Found[str] | None = None
    generator: Found[str] | None = None
    cms: Found[Technology] | None = None
    technologies: list[Found[Technology]] = field(default_factory=list)
    structured_data: list[dict[str, Any]] = field(default_factory=list)


def metadata(page: Page, data: Structured | None = None) -> Metadata:
    found = data or structured(page)
    built_with = technologies(page)
    return Metadata(
        title=_first(page, _title, "og:title", "twitter:title", limit=LONGEST_TITLE),
        description=_first(page, None, "description", "og:description", limit=LONGEST_DESCRIPTION),
        language=_language(page),
        canonical=_canonical(page),
        favicon=_favicon(page),
        logo=_logo(page, found),
        generator=_first(page, None, "generator", limit=200),
        cms=next((one for one in built_with if one.value.is_cms), None),
        technologies=built_with,
        structured_data=worth_keeping(found.nodes),
    )


def _first(page: Page, look: Callable[[Page], Found[str] | None] | None, *names: str, limit: int) -> Found[str] | None:
    if look is not None and (found := look(page)) is not None:
        return found
    for name in names:
        if name in page.metas:
            content, where = page.metas[name]
            return Found(content[:limit], Evidence("meta", where))
    return None


def _title(page: Page) -> Found[str] | None:
    # an <svg> has titles too
    for node in islice(page.tree.css("head > title, title"), 5):
        parent = node.parent
        text = one_line(node.text(), LONGEST_TITLE)
        if text and (parent is None or parent.tag != "svg"):
            return Found(text, Evidence("element", "title"))
    return None


def _language(page: Page) -> Found[str] | None:
    if page.language:
        return Found(page.language, Evidence("attribute", "html[lang]"))
    for name in ("content-language", "og:locale"):
        if name in page.metas:
            content, where = page.metas[name]
            return Found(content.partition(",")[0].replace("_", "-")[:35], Evidence("meta", where))
    if said := page.headers.get("content-language"):
        return Found(said.partition(",")[0].strip()[:35], Evidence("header", "content-language"))
    return None


def _canonical(page: Page) -> Found[str] | None:
    for node in islice(page.tree.css('link[rel~="canonical" i][href]'), 3):
        if url := page.resolve(node.attributes.get("href") or ""):
            return Found(url, Evidence("link", path_of(node)))
    return None


def _favicon(page: Page) -> Found[str] | None:
    for selector in ('link[rel~="icon" i][href]', 'link[rel~="apple-touch-icon" i][href]'):
        for node in islice(page.tree.css(selector), 5):
            if url := page.resolve(node.attributes.get("href") or ""):
                return Found(url, Evidence("link", path_of(node)))
    return None


def _logo(page: Page, data: Structured) -> Found[str] | None:
    for thing in data.nodes:
        inner = (url for one in thing.nodes("logo") if (url := one.text("url", "contentUrl")))
        written = thing.text("logo") or next(inner, "")
        if written and (url := page.resolve(written)):
            return Found(url, Evidence(thing.rule, thing.where))
    selector = 'header img[src], [class*="logo" i] img[src], img[class*="logo" i][src], img[id*="logo" i][src]'
    for node in islice(page.tree.css(selector), 20):
        attributes = node.attributes
        said = " ".join(attributes.get(name) or "" for name in ("class", "id", "alt", "src")).lower()
        parent = node.parent
        around = (parent.attributes.get("class") or "").lower() if parent is not None else ""
        if ("logo" in said or "logo" in around) and (url := page.resolve(attributes.get("src") or "")):
            return Found(url, Evidence("image", path_of(node)))
    if "og:logo" in page.metas:
        content, where = page.metas["og:logo"]
        if url := page.resolve(content):
            return Found(url, Evidence("meta", where))
    return None
