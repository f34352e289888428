"""Addresses that pages hide from harvesters and show to people: each way of hiding has its own decoder."""

import base64
import binascii
import codecs
import html
import re
from collections.abc import Iterator, Mapping
from itertools import islice
from urllib.parse import unquote

from selectolax.lexbor import LexborNode

from services.contacts.emails import NoEmailError, addresses_in, judge
from services.evidence import Evidence, one_line, snippet
from services.html.page import Page
from services.websites import site_of

Candidate = tuple[str, Evidence]

MOST = 500
MOST_LOOKS = 5_000
_HEX = re.compile(r"(?:[0-9a-fA-F]{2}){4,300}")
_AT_WORDS = ("at", "arroba", "ät", "klammeraffe", "@")
_DOT_WORDS = ("dot", "punkt", "punto", "point", "ponto")
_AT = rf"(?:{'|'.join(_AT_WORDS)})"
_DOT = rf"(?:{'|'.join(_DOT_WORDS)}|\.)"
_BRACKETED_AT = re.compile(rf"(?:\[\s?{_AT}\s?\]|\(\s?{_AT}\s?\)|\{{\s?{_AT}\s?\}}|<\s?{_AT}\s?>)[ ]?", re.IGNORECASE)
_SPOKEN_DOT = re.compile(r"\s(?:dot|punkt|punto|point|ponto)\s", re.IGNORECASE)
_ANY_DOT = rf"(?:\s?[\[({{<]\s?{_DOT}\s?[\])}}>]\s?|\s(?:dot|punkt|punto|point|ponto)\s|\.)"
_BRACKETED_DOT = re.compile(_ANY_DOT, re.IGNORECASE)
# "find us at joes dot com" names a website, not a mailbox
_NO_MAILBOX = re.compile(
    r"us|me|you|him|her|them|it|we|they|i|meet|visit|find|see|look|looking|online|here|there|website|site|page|available"
    r"|shop|book|order|located|based|arrived?|lives?|work|works|worked|speak|talk|join|check|go|went|is|are|was|were|be"
    r"|been|read|more|stop|come|start|begins?|began|starts|aim|aimed|good|great|back|stay|staying",
    re.IGNORECASE,
)
_NAME_BEFORE = re.compile(
    rf"[A-Za-z0-9][A-Za-z0-9_+-]{{0,63}}(?:{_ANY_DOT}[A-Za-z0-9_+-]{{1,63}}){{0,4}}$", re.IGNORECASE
)
_HOST_AFTER = re.compile(
    rf"[^\W_](?:[\w-]{{0,61}}[^\W_])?(?:{_ANY_DOT}[^\W_](?:[\w-]{{0,61}}[^\W_])?){{1,5}}", re.IGNORECASE
)
_ROT13 = re.compile(r"znvygb:([A-Za-z0-9._%+@-]{5,254})")
_TYPO3 = re.compile(
    r"linkTo_UnCryptMailto\((?:'|\"|%27|%22|&#39;|&quot;)([^'\"&)]{8,300}?)(?:'|\"|%27|%22|&#39;|&quot;)"
)
_ATOB = re.compile(r"atob\(\s*[\"']([A-Za-z0-9+/_-]{8,400}={0,2})[\"']\s*\)")
_WRITE = re.compile(r"document\.write(?:ln)?\(|innerHTML\s?=|\.href\s?=")
_ASSIGN = re.compile(r"(?<![\w$.])([A-Za-z_$][\w$]{0,40})\s{0,3}=\s{0,3}(?:\"([^\"\\\n]{0,200})\"|'([^'\\\n]{0,200})')")
_TOKEN = re.compile(
    r"\"((?:[^\"\\\n]|\\.){0,500})\"|'((?:[^'\\\n]|\\.){0,500})'|([A-Za-z_$][\w$]{0,40})|([+\s]+)|(.)", re.DOTALL
)
_LONGEST_EXPRESSION = 2000
_LONGEST_SCRIPT = 200_000
_RIGHT_TO_LEFT = re.compile(rb"direction\s?:\s?rtl")
_BACKWARDS_LEFT = re.compile(r"[A-Za-z0-9._+-]{4,80}$")
_BACKWARDS_RIGHT = re.compile(r"[A-Za-z0-9._+-]{1,64}")


def hidden_addresses(page: Page) -> Iterator[Candidate]:
    """Everything the decoders find, still to be judged."""
    for decode in (_marked, _reversed, _rot13, _base64, _written, _spoken):
        yield from islice(decode(page), MOST)


def cloudflare(text: str) -> str | None:
    """The first byte is the key with which the others were XORed."""
    if not _HEX.fullmatch(text):
        return None
    key, *rest = bytes.fromhex(text)
    return bytes(byte ^ key for byte in rest).decode("utf-8", "replace")


def _marked(page: Page) -> Iterator[Candidate]:
    """The decoders whose addresses are in attributes."""
    for node, given in page.marked:
        href = given.get("href") or ""
        if code := given.get("data-cfemail"):
            yield from _found(cloudflare(code), "cloudflare", page, node)
        elif "/cdn-cgi/l/email-protection#" in href:
            address = cloudflare(href.rpartition("#")[2]) or ""
            yield from _found(address.partition("?")[0], "cloudflare", page, node)
        elif "UnCryptMailto" in href:
            match = _TYPO3.search(href)
            yield from _found(_shifted(unquote(match[1])) if match else None, "shifted letters", page, node)
        elif "data-domain" in given or "data-email" in given or "data-mail" in given:
            yield from _found(_joined(given), "data attributes", page, node)
        elif "spamspan" in (given.get("class") or ""):
            user, domain = node.css_first("span.u"), node.css_first("span.d")
            if user is not None and domain is not None:
                yield from _found(f"{_undotted(user.text())}@{_undotted(domain.text())}", "spamspan", page, node)


def _found(address: str | None, rule: str, page: Page, node: LexborNode) -> Iterator[Candidate]:
    if address:
        yield address, Evidence(rule, page.path(node), page.around(node))


def _joined(given: Mapping[str, str | None]) -> str | None:
    """user and domain from attributes of their own, or the whole from one."""
    user = next((value for name in _USERS if (value := given.get(name))), "")
    domain, top = given.get("data-domain") or "", given.get("data-tld") or ""
    if user and domain:
        return f"{user}@{domain}.{top}" if top else f"{user}@{domain}"
    whole = given.get("data-email") or given.get("data-mail") or ""
    return whole if "@" in whole else None


_USERS = ("data-user", "data-name", "data-local", "data-mailbox", "data-u")


def _reversed(page: Page) -> Iterator[Candidate]:
    """Written backwards, and turned round again by a style."""
    text = page.text.whole
    turned: bool | None = None
    at, looked = text.find("@"), 0
    while at >= 0 and looked < MOST_LOOKS:
        looked += 1
        left, right = _BACKWARDS_LEFT.search(text[max(0, at - 80) : at]), _BACKWARDS_RIGHT.match(text, at + 1)
        if left and right and not _reads_forwards(f"{left[0]}@{right[0]}", page.site):
            start = at - len(left[0])
            addresses = list(addresses_in(text[start : right.end()][::-1]))
            if addresses and turned is None:  # asked only now: the source is long
                turned = b"bidi-override" in page.source or page.tree.css_first("bdo") is not None
                if not turned and not _RIGHT_TO_LEFT.search(page.source):
                    return
            for address, _, _ in addresses:
                # right-to-left alone turns round only what is written so: then it must be the site's own
                if turned or site_of(f"//{address.rpartition('@')[2]}") == page.site:
                    yield address, Evidence("reversed", page.path_at(at), snippet(text, start, right.end()))
        at = text.find("@", at + 1)


def _reads_forwards(address: str, site: str | None) -> bool:
    try:
        judge(address, site)
    except NoEmailError:
        return False
    return True


def _rot13(page: Page) -> Iterator[Candidate]:
    if not _holds(page.source, b"znvygb", b"z"):
        return
    for match in _ROT13.finditer(page.source.decode("utf-8", "replace")):
        address = codecs.decode(match[1], "rot13")
        yield unquote(address), Evidence("rot13", f"source character {match.start()}", match[0][:80])


def _holds(source: bytes, needle: bytes, rare: bytes) -> bool:
    """Whether the needle is in it, asked by its rarest letter: one byte is found 30 times as fast as six are."""
    offset = needle.index(rare)
    at = source.find(rare)
    for _ in range(len(source) // 500):
        if at < 0 or source.startswith(needle, at - offset):
            return at >= 0
        at = source.find(rare, at + 1)
    return needle in source  # not so rare in this page


_RINGS = ((0x2B, 0x3A), (0x40, 0x5A), (0x61, 0x7A))


def _shifted(text: str) -> str | None:
    for offset in range(-25, 26):
        for turn in (_ring, _plain):
            scheme, colon, address = "".join(turn(ord(c), offset) for c in text).partition(":")
            if colon and scheme == "mailto" and "@" in address:
                return address.partition("?")[0]
    return None


def _ring(code: int, offset: int) -> str:
    for low, high in _RINGS:
        if low <= code <= high:
            return chr(low + (code - low + offset) % (high - low + 1))
    return chr(code)


def _plain(code: int, offset: int) -> str:
    return chr(max(0, code + offset))


def _base64(page: Page) -> Iterator[Candidate]:
    if b"atob(" not in page.source:
        return
    for match in _ATOB.finditer(page.source.decode("utf-8", "replace")):
        try:
            decoded = base64.b64decode(match[1] + "=" * (-len(match[1]) % 4), altchars=None).decode("utf-8")
        except (binascii.Error, UnicodeDecodeError):
            continue
        for address, _, _ in addresses_in(html.unescape(decoded)):
            yield address, Evidence("base64", f"source character {match.start()}", match[0][:80])


def _written(page: Page) -> Iterator[Candidate]:
    """document.write('a' + '@' + host), with the page's own plain variables put in."""
    if b"document.write" not in page.source and not _holds(page.source, b"innerHTML", b"H"):
        return
    for number, script in enumerate(page.tree.css("script:not([src])"), 1):
        code = script.text()
        if ("@" not in code and "64" not in code) or ("+" not in code and "write" not in code):
            continue
        variables = {m[1]: m[2] if m[2] is not None else m[3] for m in islice(_ASSIGN.finditer(code), 200)}
        for match in islice(_WRITE.finditer(code), 50):
            written = html.unescape(_evaluate(code, match.end(), variables))
            for address, _, _ in addresses_in(unquote(written)):
                where = f"script:nth-of-type({number}) character {match.start()}"
                yield address, Evidence("script", where, one_line(code[match.start() : match.start() + 120]))


def _evaluate(code: str, start: int, variables: dict[str, str | None]) -> str:
    """The text of a sum of strings and known names; stops at what is neither."""
    parts: list[str] = []
    for token in _TOKEN.finditer(code, start, start + _LONGEST_EXPRESSION):
        double, single, name, blank, other = token.groups()
        if name is not None:
            if (value := variables.get(name)) is None:
                break
            parts.append(value)
        elif other is not None:
            break
        elif blank is None:
            parts.append((double if double is not None else single or "").replace('\\"', '"').replace("\\'", "'"))
    return "".join(parts)


def _spoken(page: Page) -> Iterator[Candidate]:
    """name [at] host [dot] tld. Without brackets only where the dot is spoken too: "us at example.com" is prose."""
    text = page.text.whole
    for bracket in "[({<":
        at, looked = text.find(bracket), 0
        while at >= 0 and looked < MOST_LOOKS:
            looked += 1
            if match := _BRACKETED_AT.match(text, at):
                yield from _around(page, text, match.start(), match.end(), "bracketed")
            at = text.find(bracket, at + 1)
    # a plain search: an expression looks at every character. Bytes, because one odd letter makes lower() slow.
    lowered = text.encode("latin-1", "replace").lower()
    for word in (b" at ", b" arroba "):
        at, looked = lowered.find(word), 0
        while at >= 0 and looked < MOST_LOOKS:
            looked += 1
            if _SPOKEN_DOT.search(text, at, at + 200):
                yield from _around(page, text, at, at + len(word), "spoken")
            at = lowered.find(word, at + 1)


def _around(page: Page, text: str, start: int, end: int, rule: str) -> Iterator[Candidate]:
    start -= text[start - 1 : start] == " "
    name = _NAME_BEFORE.search(text[max(0, start - 64) : start])
    host = _HOST_AFTER.match(text, end, end + 200)
    if not name or not host:
        return
    if rule == "spoken" and (not _SPOKEN_DOT.search(host[0]) or _NO_MAILBOX.fullmatch(name[0])):
        return
    address = f"{_undotted(name[0])}@{_undotted(host[0])}"
    first, last = start - len(name[0]), host.end()
    yield address, Evidence(rule, page.path_at(start), snippet(text, first, last))


def _undotted(text: str) -> str:
    return _BRACKETED_DOT.sub(".", text.strip())
