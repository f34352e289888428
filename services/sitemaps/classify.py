"""Which pages are worth reading: a page's category, how sure it is, and the rule that decides what becomes of it."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from urllib.parse import unquote, urlsplit

SHALLOW = 1
"""Segments of the path up to which a page of no known kind is still worth a look."""
DEEP = 3


class Verdict(Enum):
    READ = "read"
    FILTERED = "filtered"
    NEW = "new"


@dataclass(frozen=True, slots=True)
class PageClass:
    category: str
    depth: int
    confidence: float
    verdict: Verdict
    rule: str
    priority: int
    """How soon to read it; the queue takes the highest first."""


# The words of each kind in the languages of the sites we meet; a segment is compared with its dashes and dots gone.
_WORDS: Mapping[str, str] = {
    "contact": """contact contactus contacts kontakt kontaktieren contacto contactenos contatti contattaci contato
        nouscontacter contactez contacteznous getintouch reachus findus kontakty iletisim yhteystiedot kapcsolat
        contactinfo contactinformation visitus writeus kontaktformular contactform ansprechpartner""",
    "team": """team ourteam theteam staff ourstaff people ourpeople meettheteam meetourteam leadership management
        mitarbeiter unserteam equipe notreequipe equipo nuestroequipo ilteam chisiamoteam attorneys ourattorneys
        doctors ourdoctors providers agents advisors dasteam whoweare personnel crew""",
    "imprint": """impressum imprint mentionslegales avisolegal notelegali colofon legalnotice anbieterkennzeichnung
        sitenotice""",
    "about": """about aboutus ueberuns uberuns uber overons apropos quisommesnous quienessomos sobre sobrenosotros
        sobrenos chisiamo onas omoss omos company unternehmen ourstory story history geschichte firma entreprise
        azienda nosotros""",
    "careers": """careers career jobs job karriere stellenangebote empleo vacancies joinus jointheteam recrutement
        lavoraconnoi hiring workwithus trabajaconnosotros stellen arbeitenbeiuns""",
    "legal": """legal privacy privacypolicy datenschutz datenschutzerklaerung terms termsofservice termsofuse
        termsandconditions agb cookies cookiepolicy disclaimer politiquedeconfidentialite privacidad
        politicadeprivacidad privacystatement accessibility gdpr""",
    "service": """services service leistungen dienstleistungen servicios servizi prestations whatwedo""",
    "location": """locations location standorte standort filialen branches stores findastore anfahrt directions
        ubicacion sedi""",
    "blog": """blog blogs news aktuelles articles article posts journal magazine magazin noticias actualites stories
        neuigkeiten press presse""",
    "product": """product products produkte shop store collections collection item items catalog katalog productos
        prodotti produits""",
}
_CATEGORY = {word: category for category, words in _WORDS.items() for word in words.split()}
_WORTH = {
    "home": 100,
    "contact": 90,
    "imprint": 80,
    "team": 70,
    "about": 60,
    "location": 50,
    "careers": 40,
    "legal": 30,
}

_MEDIA = re.compile(
    r"\.(?:jpe?g|png|gif|webp|svg|ico|bmp|tiff?|avif|mp[34]|m4[av]|avi|mov|wmv|webm|ogg|wav|flac|pdf|docx?|xlsx?|pptx?|zip"
    r"|rar|7z|t?gz|exe|dmg|apk|css|js|json|xml|txt|ics|vcf|eot|ttf|woff2?)$"
)
_FEED = re.compile(r"(?:^|/)(?:feed|rss|atom|rdf)(?:/|$|\.xml$)")
_TAG = re.compile(r"(?:^|/)(?:tag|tags|category|categories|kategorie|schlagwort|etiqueta|label|author|autor|topics?)/")
_ARCHIVE = re.compile(r"(?:^|/)(?:archives?|archiv)(?:/|$)|(?:^|/)(?:19|20)\d\d(?:/\d\d?){0,2}/?$|(?:^|/)page/\d+/?$")
_SYSTEM = re.compile(
    r"(?:^|/)(?:wp-admin|wp-login\.php|wp-json|xmlrpc\.php|cart|checkout|basket|warenkorb|kasse|login|signin|signup"
    r"|register|my-?account|mein-konto|account|wishlist|search|suche|logout|password|cdn-cgi)(?:/|$)"
)
_DATED = re.compile(r"(?:^|/)(?:19|20)\d\d/\d\d?/")
_LANGUAGE = re.compile(
    r"(?:ar|bg|cs|da|de|el|en|es|et|fi|fr|he|hr|hu|it|ja|ko|lt|lv|nb|nl|no|pl|pt|ro|ru|sk|sl|sv|th|tr|uk|vi|zh|us|gb|at|ch)"
    r"(?:[-_][a-z]{2})?"
)
_FILE = re.compile(r"\.(?:html?|php|aspx?|jsp|cfm)$")
_HOME = frozenset({"", "index", "home", "default", "start", "startseite", "welcome", "homepage"})


def classify(url: str) -> PageClass:
    """By its address alone."""
    parts = urlsplit(url)
    path = unquote(parts.path).lower()
    segments = [segment for segment in path.split("/") if segment]
    plain = [_FILE.sub("", segment) for segment in segments]
    if plain and _LANGUAGE.fullmatch(plain[0]):
        plain = plain[1:]  # /de/kontakt is as deep as /kontakt
    depth = len(plain)
    joined = path.strip("/")
    if rule := _excluded(joined, parts.query):
        return PageClass(rule.partition(":")[0], depth, 0.95, Verdict.FILTERED, rule, 0)
    if depth == 0 or (depth == 1 and plain[0] in _HOME):
        if parts.query:
            return PageClass("other", depth, 0.3, Verdict.NEW, "home page with a query", 0)
        return _worth("home", depth, 1.0, "home page")
    return _by_words(plain, depth, joined)


def _excluded(path: str, query: str) -> str | None:
    if match := _MEDIA.search(path):
        return f"media: {match[0]}"
    if _FEED.search(path) or re.search(r"(?:^|&)feed=", query):
        return "feed: a list for machines"
    if match := _TAG.search(f"{path}/"):
        return f"tag: {match[0].strip('/')}"
    if _ARCHIVE.search(path):
        return "archive: a list of older pages"
    if match := _SYSTEM.search(path):
        return f"system: {match[0].strip('/')}"
    return None


def _by_words(plain: list[str], depth: int, path: str) -> PageClass:
    if any(_CATEGORY.get(segment) == "blog" for segment in plain[:-1]):
        return _blog(plain, depth)
    for distance, segment in enumerate(reversed(plain)):
        category, confidence, how = _segment(segment)
        if category is None:
            continue
        if category in _WORTH and (distance == 0 or depth <= DEEP):
            sure = max(0.3, confidence - 0.15 * distance - 0.05 * max(0, depth - 2))
            if depth - distance > DEEP:
                break
            # below team/ are its members; below about/ may be anything
            if distance and category not in ("team", "contact", "location", "about"):
                break
            return _worth(category, depth, round(sure, 2), f"{category}: {how}")
        if distance == 0 and category not in _WORTH:
            verdict = Verdict.READ if depth <= SHALLOW else Verdict.NEW
            return PageClass(category, depth, confidence, verdict, f"{category}: {how}", 10 if depth <= SHALLOW else 0)
        if category == "product":
            return PageClass("product", depth, 0.7, Verdict.NEW, f"product: below {segment}", 0)
    if _DATED.search(f"{path}/"):
        return _blog(plain, depth)
    if depth <= SHALLOW:
        return PageClass("other", depth, 0.3, Verdict.READ, "shallow", 20 - depth)
    return PageClass("other", depth, 0.3, Verdict.NEW, "no rule", 0)


def _blog(plain: list[str], depth: int) -> PageClass:
    if depth >= 2:
        return PageClass("blog", depth, 0.8, Verdict.FILTERED, "blog: a single post", 0)
    return PageClass("blog", depth, 0.6, Verdict.NEW, f"blog: {plain[-1]}", 0)


def _segment(segment: str) -> tuple[str | None, float, str]:
    word = (
        re.sub(r"[\s_.+-]", "", segment)
        .replace("ü", "ue")
        .replace("ö", "oe")
        .replace("ä", "ae")
        .replace("é", "e")
        .replace("à", "a")
    )
    if category := _CATEGORY.get(word):
        return category, 0.95, f"/{segment}"
    tokens = re.split(r"[\s_.+-]+", segment)
    if len(tokens) <= 4:
        for token in tokens:
            category = _CATEGORY.get(token)
            if category in _WORTH and len(token) > 3:
                return category, 0.7, f"{token} in /{segment}"
    return None, 0.0, ""


def _worth(category: str, depth: int, confidence: float, rule: str) -> PageClass:
    return PageClass(category, depth, confidence, Verdict.READ, rule, _WORTH[category] - min(depth, 9))
