"""A sitemap as it comes: fed in chunks, read without a tree, so that memory does not grow with the file."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any, NamedTuple

from lxml import etree

from services.models.words import SitemapType

MOST_URLS = 50_000
MOST_BYTES = 50 * 1024 * 1024
"""Both as the sitemaps protocol has them, counted after decompression."""
MOST_ELEMENTS = 1_500_000
LONGEST_URL = 2048
_LONGEST_TEXT = 4096
_HEAD = 4096
_ENTITIES = frozenset({b"amp", b"lt", b"gt", b"quot", b"apos"})
_LONGEST_ENTITY = 12

_ROOT = re.compile(rb"<(?:[A-Za-z][\w.-]{0,40}:)?([A-Za-z][\w.-]{0,40})[\s>/]")
_PROLOG = re.compile(rb"\s*(?:<\?.*?\?>|<!--.*?-->)", re.DOTALL)
# nobody who sends these bytes means it
_WRONG_ENCODING = re.compile(
    rb"\A(<\?xml[^>]{0,100}?)encoding\s{0,5}=\s{0,5}[\"']utf-?16[^\"'>]{0,5}[\"']", re.IGNORECASE
)
_ADDRESS = re.compile(r"https?://", re.IGNORECASE)
_EMPTY = re.compile(r"[\x00-\x20\x7f]")


_BLANK = re.compile(rb"\A(?:\s|\xef\xbb\xbf)+")
_CHATTER = re.compile(rb"(?:Warning|Notice|Deprecated|Fatal error|Strict Standards)(?:</b>)?:", re.IGNORECASE)


def _is_chatter(text: bytes) -> bool:
    """What PHP says of a plugin, before the sitemap itself."""
    return _CHATTER.search(text) is not None


class NotASitemapError(Exception):
    """Something else was served; the text says what."""


class Entry(NamedTuple):
    """One line of a sitemap, as written there."""

    loc: str
    lastmod: datetime | None = None
    priority: float | None = None
    changefreq: str | None = None


@dataclass(frozen=True)
class _Shape:
    """How a kind of document lists its addresses."""

    item: str
    format: str
    is_index: bool = False


_SHAPES: Mapping[str, _Shape] = {
    "urlset": _Shape("url", "xml"),
    "sitemapindex": _Shape("sitemap", "xml", is_index=True),
    "rss": _Shape("item", "feed"),
    "rdf": _Shape("item", "feed"),
    "feed": _Shape("entry", "feed"),
}
_EXTENSIONS = {"news": SitemapType.NEWS, "video": SitemapType.VIDEO, "image": SitemapType.IMAGE}


class SitemapReader:
    """Feed it the bytes; it gives the entries as they become whole, and in the end says what it was.

    Reading stops at the caps: `stopped` then says which, and what was read up to there counts.
    """

    def __init__(self, *, most_urls: int = MOST_URLS, most_bytes: int = MOST_BYTES) -> None:
        self._most_urls = most_urls
        self._most_bytes = most_bytes
        self._head: bytes | None = b""
        self._lines: bytes = b""
        self._target: _Target | None = None
        self._parser: etree.XMLParser | None = None
        self.format = ""
        """xml, text or feed; empty until enough has come."""
        self.is_index = False
        self.count = 0
        self.size = 0
        self.stopped = ""
        self.flaw = ""
        """What is broken about its XML; what could be read all the same counts."""
        self.has_lastmod = self.has_priority = self.has_changefreq = False
        self._extended = dict.fromkeys(_EXTENSIONS.values(), 0)

    @property
    def kind(self) -> SitemapType:
        """Of an extension, if at least half of the entries use it."""
        if self.is_index:
            return SitemapType.INDEX
        for kind in _EXTENSIONS.values():
            if self._extended[kind] and self._extended[kind] * 2 >= self.count:
                return kind
        return SitemapType.STANDARD

    def feed(self, chunk: bytes) -> list[Entry]:
        """The entries that these bytes complete. Raises NotASitemapError as soon as it is clear."""
        if self.stopped:
            return []
        self.size += len(chunk)
        if self.size > self._most_bytes:
            self.stopped = f"longer than {self._most_bytes:,} bytes"
            chunk = chunk[: len(chunk) - (self.size - self._most_bytes)]
        if self._head is not None:
            self._head += chunk
            if len(self._head.lstrip()) < _HEAD and not self.stopped:
                return []
            chunk = self._begin()
        return self._read(chunk)

    def finish(self) -> list[Entry]:
        """All bytes are there: the last entries."""
        entries = self._read(self._begin()) if self._head is not None else []
        if self.format == "text":
            entries += self._take(self._lines.splitlines())
        elif self._parser is not None:
            if self.stopped:
                return entries
            self._close(self._parser)
            entries += self._collect()
            fatal = self._parser.feed_error_log.filter_from_fatals()
            self.flaw = " ".join(str(fatal[0].message).split())[:200] if len(fatal) else ""
            if self.flaw and not self.count:
                raise NotASitemapError(f"broken XML: {self.flaw}")
        return entries

    def _begin(self) -> bytes:
        """Look at the beginning and choose how to read on."""
        text, self._head = self._head or b"", None
        text = _BLANK.sub(b"", text, count=1)
        if (late := text.find(b"<?xml", 1)) > 0 and _is_chatter(text[:late]):
            text = text[late:]
        if not text:
            raise NotASitemapError("an empty document")
        if text.startswith((b"\xff\xfe", b"\xfe\xff")):
            raise NotASitemapError("UTF-16, which sitemaps may not use")
        if text.startswith(b"<"):
            self._shape(text)
            text = _WRONG_ENCODING.sub(rb"\1", text, count=1)
        elif re.match(rb"https?://\S", text, re.IGNORECASE):
            self.format = "text"
        else:
            raise NotASitemapError("neither XML nor a list of addresses")
        return text

    def _shape(self, text: bytes) -> None:
        at = 0
        while prolog := _PROLOG.match(text, at):
            at = prolog.end()
        beginning = text[at : at + 200].lstrip().lower()
        if beginning.startswith((b"<!doctype html", b"<html")):
            raise NotASitemapError("an HTML page")
        if beginning.startswith(b"<!"):
            # none has one, and entities are declared there
            raise NotASitemapError("XML with a DOCTYPE, which no sitemap has")
        root = _ROOT.search(text, at)
        name = root[1].decode().lower() if root else ""
        shape = _SHAPES.get(name)
        if shape is None:
            is_html = name in ("head", "body", "div", "script", "meta", "title")
            raise NotASitemapError("an HTML page" if is_html else f"XML of another kind (<{name}>)")
        self.format, self.is_index = shape.format, shape.is_index
        self._target = _Target(shape.item)
        self._parser = etree.XMLParser(
            target=self._target, resolve_entities=False, no_network=True, recover=True, huge_tree=False, load_dtd=False
        )

    def _read(self, chunk: bytes) -> list[Entry]:
        if self.format == "text":
            *lines, self._lines = (self._lines + chunk).split(b"\n")
            if len(self._lines) > _LONGEST_TEXT * 4:
                self._lines = b"-"  # no address is as long as that
            return self._take(lines)
        if self._parser is not None:
            try:
                self._parser.feed(self._escaped(chunk))
            except etree.XMLSyntaxError as error:
                self.stopped = f"broken XML: {error.msg}"
            if self._target is not None and self._target.elements > MOST_ELEMENTS:
                self.stopped = f"more than {MOST_ELEMENTS:,} elements"
        return self._collect()

    def _escaped(self, chunk: bytes) -> bytes:
        """With every & that begins nothing made one that stands for itself: many write ?a=1&b=2 as it is."""
        chunk, self._lines = self._lines + chunk, b""
        if (last := chunk.rfind(b"&", -_LONGEST_ENTITY)) >= 0 and b";" not in chunk[last:]:
            chunk, self._lines = chunk[:last], chunk[last:]  # it may be an entity cut in two
        return _amplified(chunk)

    def _close(self, parser: etree.XMLParser) -> None:
        try:
            parser.feed(_amplified(self._lines))
            parser.close()
        except etree.XMLSyntaxError as error:
            self.stopped = f"broken XML: {error.msg}"

    def _take(self, lines: list[bytes]) -> list[Entry]:
        texts = (line.decode("utf-8", "replace").strip() for line in lines)
        return self._count([Entry(text) for text in texts if text[:4].lower() == "http" and len(text) <= LONGEST_URL])

    def _collect(self) -> list[Entry]:
        if self._target is None or not self._target.items:
            return []
        items, self._target.items = self._target.items, []
        entries = []
        for fields in items:
            if entry := _entry(fields):
                entries.append(entry)
                for kind in fields.get("+", "").split():
                    self._extended[_EXTENSIONS[kind]] += 1
        return self._count(entries)

    def _count(self, entries: list[Entry]) -> list[Entry]:
        room = self._most_urls - self.count
        if len(entries) > room:
            entries = entries[:room]
            self.stopped = f"more than {self._most_urls:,} entries"
        self.count += len(entries)
        for entry in entries:
            self.has_lastmod |= entry.lastmod is not None
            self.has_priority |= entry.priority is not None
            self.has_changefreq |= entry.changefreq is not None
        return entries


def _amplified(chunk: bytes) -> bytes:
    if b"&" not in chunk or b"<![CDATA[" in chunk:
        return chunk
    first, *parts = chunk.split(b"&")
    return first + b"".join((b"&" if _is_entity(part) else b"&amp;") + part for part in parts)


def _is_entity(text: bytes) -> bool:
    name, semicolon, _ = text[:_LONGEST_ENTITY].partition(b";")
    return bool(semicolon) and (name in _ENTITIES or (name.startswith(b"#") and name[1:].isalnum()))


_LASTMOD = ("lastmod", "updated", "pubdate", "date", "published")
_WANTED = frozenset({"loc", "link", "guid", "id", "priority", "changefreq", *_LASTMOD})


class _Target:
    """lxml's parser calls this. iterparse builds a tree: 50 MB of `<a/>` would be 1.5 GB of it."""

    def __init__(self, item: str) -> None:
        self.items: list[dict[str, str]] = []
        self.elements = 0
        self._item = item
        self._fields: dict[str, str] | None = None
        self._depth = 0
        self._name = ""
        self._text: list[str] = []

    def start(self, tag: str | bytes, attrib: Mapping[Any, Any]) -> None:
        self.elements += 1
        name = str(tag).rpartition("}")[2].lower()
        if self._fields is None:
            if name == self._item:
                self._fields, self._depth = {}, 0
            return
        self._depth += 1
        if self._depth == 1:
            self._name, self._text = name, []
            if name in _EXTENSIONS and name not in self._fields.get("+", ""):
                self._fields["+"] = f"{self._fields.get('+', '')} {name}"
            elif name == "link" and attrib.get("href") and attrib.get("rel", "alternate") == "alternate":
                # an Atom entry; in a urlset these are translations, and loc is what counts
                self._fields.setdefault("href", attrib["href"])

    def data(self, data: str | bytes) -> None:
        if self._depth == 1 and self._name in _WANTED and len(self._text) < 100:
            self._text.append(str(data))

    def comment(self, text: str | bytes) -> None:
        """Nothing; lxml wants it there."""

    def end(self, tag: str | bytes) -> None:  # noqa: ARG002
        if self._fields is None:
            return
        if self._depth == 0:
            self.items.append(self._fields)
            self._fields = None
            return
        if self._depth == 1 and self._name in _WANTED:
            self._fields.setdefault(self._name, "".join(self._text)[:_LONGEST_TEXT])
        self._depth -= 1

    def close(self) -> None:
        self._fields = None


def _entry(fields: Mapping[str, str]) -> Entry | None:
    written = fields.get("loc") or fields.get("href") or fields.get("link") or ""
    # a feed's guid or id is an address only if it looks like one
    loc = _EMPTY.sub("", written) or next(
        (text for name in ("guid", "id") if _ADDRESS.match(text := fields.get(name, "").strip())), ""
    )
    if not loc or len(loc) > LONGEST_URL:
        return None
    lastmod = next((moment for name in _LASTMOD if (moment := moment_of(fields.get(name, "")))), None)
    changefreq = fields.get("changefreq", "").strip()[:20] or None
    return Entry(loc, lastmod, _priority(fields.get("priority", "")), changefreq)


def moment_of(text: str) -> datetime | None:
    """W3C dates of any precision, and those of RSS; None for what is neither."""
    written = text.strip()[:40]
    if not written:
        return None
    if re.fullmatch(r"\d{4}", written):
        written += "-01-01"
    elif re.fullmatch(r"\d{4}-\d{2}", written):
        written += "-01"
    try:
        moment = datetime.fromisoformat(written)
    except ValueError:
        try:
            moment = parsedate_to_datetime(written)
        except (ValueError, IndexError):
            return None
    moment = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    return moment if 1990 <= moment.year <= 2100 else None


def _priority(text: str) -> float | None:
    try:
        value = float(text)
    except ValueError:
        return None
    return value if 0 <= value <= 1 else None
