"""How the bytes of a page become text: byte-order mark, then header, then what the document says of itself."""

import codecs
import re

_MARKS = ((codecs.BOM_UTF8, "utf-8"), (codecs.BOM_UTF16_LE, "utf-16-le"), (codecs.BOM_UTF16_BE, "utf-16-be"))
_LOOKED_AT = 4096
_IN_HEADER = re.compile(r"charset\s*=\s*[\"']?([\w.:-]+)", re.IGNORECASE)
_IN_META = re.compile(rb"<meta\b[^>]{0,512}?charset\s*=\s*[\"']?\s*([\w.:-]+)", re.IGNORECASE)
_IN_XML = re.compile(rb"^\s*<\?xml\b[^>]{0,256}?encoding\s*=\s*[\"']([\w.:-]+)", re.IGNORECASE)
# What browsers read under these names; Python would read fewer characters.
_WIDER = {
    "ascii": "cp1252",
    "iso8859-1": "cp1252",
    "iso8859-9": "cp1254",
    "iso8859-11": "cp874",
    "tis-620": "cp874",
    "gb2312": "gb18030",
    "gbk": "gb18030",
    "shift_jis": "cp932",
    "euc_kr": "cp949",
    "utf-16": "utf-16-le",
}


def charset_of(content_type: str, body: bytes) -> str:
    """The encoding to decode with: one that Python knows, and that reads text, always."""
    for mark, marked in _MARKS:
        if body.startswith(mark):
            return marked
    head = body[:_LOOKED_AT]
    for found in (_IN_HEADER.search(content_type), _IN_XML.search(head), _IN_META.search(head)):
        if found is not None and (name := _known(found[1])):
            # bytes that could be searched for <meta are no UTF-16, whatever it says
            said = "utf-8" if name.startswith("utf-16") and isinstance(found[1], bytes) else name
            return _believed(said, body)
    return "utf-8" if _is_utf8(body) else "cp1252"


def _believed(said: str, body: bytes) -> str:
    """What was said, if the bytes do not say otherwise: a server's default often contradicts its pages."""
    if said == "cp1252" and not body.isascii() and _is_utf8(body):
        return "utf-8"
    if said == "utf-8" and not _is_utf8(body):
        # not one letter of UTF-8 beyond ASCII, so it is not a page with a slip in it
        letters = set(body.decode("utf-8", "replace"))
        return said if any(letter > "\x7f" and letter != "\ufffd" for letter in letters) else "cp1252"
    return said


def _is_utf8(body: bytes) -> bool:
    try:
        # one character may be cut in two at the end
        codecs.getincrementaldecoder("utf-8")().decode(body)
    except UnicodeDecodeError:
        return False
    return True


def decode(body: bytes, charset: str) -> str:
    """Text that a database can keep: no NUL, no lone surrogate, no byte-order mark."""
    return body.decode(charset, "replace").removeprefix("\ufeff").replace("\x00", "")


def _known(label: str | bytes) -> str | None:
    text = label.decode("ascii") if isinstance(label, bytes) else label
    try:
        info = codecs.lookup(text)
        b"<>".decode(info.name, "replace")  # refuses codecs that are no text encoding, such as rot13 and zip
    except (LookupError, ValueError):
        return None
    # not offered by browsers, and a way to hide markup
    if info.name in ("utf-7", "idna", "punycode", "unicode_escape", "raw_unicode_escape"):
        return None
    return _WIDER.get(info.name, info.name)
