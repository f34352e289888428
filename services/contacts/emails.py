"""E-mail addresses in text: found from the @ outwards, so that no page can make it slow; and judged before kept."""

import re
from collections.abc import Iterator
from functools import lru_cache

from services.models.words import EmailType
from services.websites import RESERVED, InvalidHostError, normal_host, registrable_domain

# A whole-page expression hangs on real pages; from each @, 64 characters to the left and a bounded match to the right.
_LEFT = re.compile(r"[A-Za-z0-9_](?:[A-Za-z0-9._%+'&-]{0,63})$")
_RIGHT = re.compile(r"(?:[^\W_](?:[\w-]{0,61}[^\W_])?\.){1,8}[^\W\d_][\w-]{1,62}")
# The dot-atom of RFC 5322; quoted names exist there, but on no page.
_LOCAL = re.compile(r"[a-z0-9_](?:[a-z0-9!#$%&'*+=?^_`{|}~-]*)(?:\.[a-z0-9!#$%&'*+=?^_`{|}~-]+)*")
_ESCAPED = re.compile(r"^(?:u003[ce]|u0022|x3[ce]|n|t)(?=[A-Za-z0-9])")
_PERCENT = re.compile(r"^(?:20|3[cea]|22|27)(?=[A-Za-z])", re.IGNORECASE)
# `joe@joes.comPhone`: two elements of a page that run into each other
_RUN_ON = re.compile(r"([a-z]{2,24})[A-Z][A-Za-z]*")
_LONGEST_LOCAL = 64
MOST_LOOKS = 20_000
"""How many @ of one text are looked at; a page with more of them is not about people."""

_NO_REPLY = re.compile(
    r"(?:do[._-]?)?no?t?[._-]?reply(?![a-z])|mailer-daemon|bounces?$|bounce[+-]|devnull$|nobody$|unsubscribe$"
)
_TRACKER_HOSTS = ("sentry.io", "wixpress.com", "sentry-cdn.com", "bugsnag.com", "rollbar.com", "ingest.sentry.io")
_HEX = re.compile(r"[0-9a-f]{20,}|[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
_ASSET = re.compile(r"\d+(?:\.\d+)?x\b")
_VERSION = re.compile(r"v?\d+\.\d+(?:\.|$)")
_PLACEHOLDER_DOMAINS = frozenset(
    [
        "example.com",
        "example.net",
        "example.org",
        "example.edu",
        "domain.com",
        "yourdomain.com",
        "your-domain.com",
        "mydomain.com",
        "yoursite.com",
        "yourwebsite.com",
        "mysite.com",
        "website.com",
        "yourcompany.com",
        "company.com",
        "mycompany.com",
        "sitename.com",
        "test.com",
        "sample.com",
        "email.tld",
        "domain.tld",
        "beispiel.de",
        "musterfirma.de",
        "exemple.fr",
        "ejemplo.com",
        "esempio.it",
        "acme.com",
        "placeholder.com",
        "addresshere.com",
        "youremail.com",
        "yourmail.com",
        "emailaddress.com",
        "mustermann.de",
        "bar.com",
        "foo.com",
    ]
)
_PLACEHOLDER_LOCALS = re.compile(
    r"(?:your|ihr|ihre|votre|tu|su)[._-]?(?:first|last|full)?[._-]?(?:name|e?-?mail|address|adresse|nombre|correo|nom)"
    r"(?:[._-]?(?:here|address))?"
    r"|first[._-]?name[._-]?last[._-]?name|first\.last|vorname[._-]?nachname|prenom[._-]?nom|nombre[._-]?apellido"
    r"|your|max[._-]?mustermann|erika[._-]?mustermann|x{3,}|abc123|lorem|ipsum|placeholder|example|someone"
)

FREE = frozenset(
    [
        "gmail.com",
        "googlemail.com",
        "yahoo.com",
        "yahoo.co.uk",
        "yahoo.de",
        "yahoo.fr",
        "yahoo.es",
        "yahoo.it",
        "yahoo.ca",
        "yahoo.com.au",
        "ymail.com",
        "rocketmail.com",
        "hotmail.com",
        "hotmail.co.uk",
        "hotmail.de",
        "hotmail.fr",
        "hotmail.es",
        "hotmail.it",
        "outlook.com",
        "outlook.de",
        "outlook.fr",
        "live.com",
        "live.co.uk",
        "live.de",
        "msn.com",
        "aol.com",
        "icloud.com",
        "me.com",
        "mac.com",
        "proton.me",
        "protonmail.com",
        "pm.me",
        "gmx.de",
        "gmx.net",
        "gmx.com",
        "gmx.at",
        "gmx.ch",
        "web.de",
        "t-online.de",
        "freenet.de",
        "arcor.de",
        "mail.com",
        "email.com",
        "mail.ru",
        "yandex.ru",
        "yandex.com",
        "zoho.com",
        "fastmail.com",
        "hey.com",
        "tutanota.com",
        "tuta.io",
        "posteo.de",
        "mailbox.org",
        "orange.fr",
        "wanadoo.fr",
        "free.fr",
        "sfr.fr",
        "laposte.net",
        "libero.it",
        "virgilio.it",
        "tiscali.it",
        "alice.it",
        "tin.it",
        "btinternet.com",
        "sky.com",
        "virginmedia.com",
        "talktalk.net",
        "ntlworld.com",
        "comcast.net",
        "verizon.net",
        "att.net",
        "sbcglobal.net",
        "bellsouth.net",
        "cox.net",
        "charter.net",
        "earthlink.net",
        "roadrunner.com",
        "rr.com",
        "shaw.ca",
        "rogers.com",
        "bell.net",
        "telus.net",
        "bigpond.com",
        "optusnet.com.au",
        "xtra.co.nz",
        "qq.com",
        "163.com",
        "126.com",
        "sina.com",
        "naver.com",
        "daum.net",
        "hanmail.net",
        "uol.com.br",
        "bol.com.br",
        "terra.com.br",
        "wp.pl",
        "o2.pl",
        "interia.pl",
        "onet.pl",
        "seznam.cz",
        "centrum.cz",
        "abv.bg",
        "ukr.net",
        "telenet.be",
        "skynet.be",
        "bluewin.ch",
        "hispeed.ch",
        "ziggo.nl",
        "kpnmail.nl",
        "planet.nl",
        "home.nl",
        "rediffmail.com",
    ]
)
_SERVICE = re.compile(
    r"(?:info|infos|information|contact|contactus|kontakt|contacto|contato|contatti|hello|hi|hallo|hola|bonjour|mail|email"
    r"|post|office|buero|bureau|admin|administration|administrator|webmaster|postmaster|hostmaster|abuse|support|help"
    r"|helpdesk|service|services|kundenservice|customerservice|customer|care|team|sales|vertrieb|ventas|vente|verkauf"
    r"|marketing|press|presse|media|pr|jobs|job|careers|career|karriere|bewerbung|hr|recruiting|recruitment|personal"
    r"|billing|accounts|accounting|buchhaltung|invoice|invoices|rechnung|finance|orders|order|bestellung|shop|store"
    r"|booking|bookings|reservations|reservation|reservierung|appointments|termin|reception|empfang|rezeption|enquiries"
    r"|enquiry|inquiries|inquiry|anfrage|quotes|quote|estimates|feedback|legal|privacy|datenschutz|dpo|security"
    r"|newsletter|news|events|general|main|secretary|sekretariat|dispatch|emergency|notdienst|partners|partner|web"
    r"|website|front|frontdesk|desk|company|business|studio|praxis|kanzlei|hotel|restaurant|members|membership)"
    r"(?:[._+-]?(?:[a-z]{2}|\d{1,4}|team|office|desk))?"
)


class NoEmailError(ValueError):
    """Not an address to keep; the text says why."""


def addresses_in(text: str) -> Iterator[tuple[str, int, int]]:
    """(address, start, end) of everything around an @ that has the shape of an address."""
    at, looked = text.find("@"), 0
    while at >= 0 and looked < MOST_LOOKS:
        looked += 1
        left = _LEFT.search(text[max(0, at - _LONGEST_LOCAL) : at])
        right = _RIGHT.match(text, at + 1)
        if left and right:
            local = left[0]
            start = at - len(local)
            escapes = {"\\": _ESCAPED, "%": _PERCENT}.get(text[start - 1 : start]) if start else None
            if escapes and (escaped := escapes.match(local)):
                start += escaped.end()
                local = local[escaped.end() :]
            domain = _without_next_sentence(right[0])
            yield f"{local}@{domain}", start, at + 1 + len(domain)
        at = text.find("@", at + 1)


def _without_next_sentence(domain: str) -> str:
    """`a.com.Call us` is a.com; a name in lower case all through is left alone."""
    head, _, last = domain.rpartition(".")
    if "." in head and last[:1].isupper() and head[-1:].islower():
        return head
    return f"{head}.{run_on[1]}" if (run_on := _RUN_ON.fullmatch(last)) else domain


def surrounded(text: str, start: int, end: int) -> str | None:
    """Why what stands there is part of something else, or None."""
    if text[start - 1 : start] == "@" or text[end : end + 1] == "@":
        return "there is more than one @: a handle, not an address"
    before = text[max(0, start - 100) : start]
    token = before.split()[-1] if before and not before[-1].isspace() and before.split() else ""
    if "://" in token:
        return "part of a URL"
    return None


@lru_cache(8192)
def judge(candidate: str, site: str | None = None) -> str:
    """The address as it is stored, lower case; raises NoEmailError for what is not one or not anybody's."""
    local, at, domain = candidate.strip().strip(".'\"<>()[],;:").lower().rpartition("@")
    if not at or not local or not domain:
        raise NoEmailError("there is no @ between two parts")
    if len(local) > _LONGEST_LOCAL or not _LOCAL.fullmatch(local):
        raise NoEmailError(f"{local!r} is no name of a mailbox")
    if _ASSET.match(domain):
        raise NoEmailError("the name of an image")
    if _VERSION.match(domain):
        raise NoEmailError("a version, not a host")
    try:
        host = normal_host(domain)
    except InvalidHostError as error:
        raise NoEmailError(str(error)) from None
    registrable = registrable_domain(host)
    if registrable is None:
        raise NoEmailError(f".{host.rpartition('.')[2]} is no top-level domain")
    _refuse_noise(local, host, registrable, site)
    return f"{local}@{host}"


def _refuse_noise(local: str, host: str, registrable: str, site: str | None) -> None:
    if registrable in _PLACEHOLDER_DOMAINS or (host.rpartition(".")[2] in RESERVED and registrable != site):
        raise NoEmailError(f"{registrable} is a placeholder")
    if _PLACEHOLDER_LOCALS.fullmatch(local):
        raise NoEmailError(f"{local}@ is a placeholder")
    if local == "git":
        raise NoEmailError("the address of a repository, not a mailbox")
    if host.endswith(_TRACKER_HOSTS) or _HEX.fullmatch(local):
        raise NoEmailError("an id of an error tracker, not a mailbox")
    if _NO_REPLY.match(local):
        raise NoEmailError("nobody reads it: a no-reply address")


def type_of(email: str, site: str | None) -> EmailType:
    """Free: anybody's mailbox provider. Service: a shared box. Corporate: a person at the site's own domain."""
    local, _, host = email.partition("@")
    if host in FREE:
        return EmailType.FREE
    if _SERVICE.fullmatch(local):
        return EmailType.SERVICE
    if site is not None and registrable_domain(host) == site:
        return EmailType.CORPORATE
    return EmailType.UNKNOWN
