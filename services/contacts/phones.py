"""Phone numbers: cheap to look for, and kept only if they are valid numbers of the country they are read for."""

import re
from collections.abc import Iterator, Mapping
from functools import lru_cache

import phonenumbers

_CANDIDATE = re.compile(r"(?<![\w.,/#=@:-])(?:\+ ?|\(\+?|00 ?)?\(?\d[\d ().\-/]{5,22}\d(?![\w@%]|[.,-]\d)")
_LABEL = re.compile(
    r"\b(?:tel|phone|telephone|telefon|fon|ph|call|mobile|mobil|handy|cell|t[eé]l[eé]phone|t[eé]l|telefono|tel[eé]fono"
    r"|whatsapp|hotline|text|office|direct|toll[- ]free|zentrale|durchwahl|appelez|ring|dial|contact|us|at|m|t|p)"
    r"(?:[ -]?(?:no|nr|number|nummer))?[\s.:|()\-–]*$",  # noqa: RUF001
    re.IGNORECASE,
)
_FAX = re.compile(
    r"(?:fax|telefax|t[eé]l[eé]copie)[\s.:|()\-]*(?:no|nr|number)?[\s.:|()\-]*$|\bf[.:]\s*$", re.IGNORECASE
)
_OTHER = re.compile(
    r"(?:\b(?:iban|bic|swift|vat|ust|ust-?id(?:nr)?|steuer(?:nummer|-nr)?|st\.?-?nr|tax|ein|tin|hrb|hra|siret|siren|rcs"
    r"|reg(?:istration)?|isbn|issn|ean|upc|gtin|sku|order|invoice|licen[sc]e|lic|abn|acn|cif|nif|account|konto|blz|id|no"
    r"|nr|number|zip|plz|box|postfach|case|serial|part|model|item|patent|ref|version|copyright|npi|dot|mc|roc|cslb)\b"
    r"|[#№$€£©])[\s.:#°º\-]*$",
    re.IGNORECASE,
)
_DATE = re.compile(
    r"(?:19|20)\d\d[./ -]\d\d?[./ -]\d\d?(?!\d)|\d\d?[./-]\d\d?[./-](?:19|20)\d\d(?!\d)|(?:19|20)\d\d ?- ?(?:19|20)\d\d(?!\d)"
)
_PLACEHOLDER = re.compile(r"1234567|7654321|(\d)\1{6}")
_VANITY = re.compile(r"[A-Za-z]{3,}")

# ccTLDs that are sold to everybody say nothing about a country.
_GENERIC = frozenset(
    [
        "co",
        "io",
        "ai",
        "me",
        "tv",
        "cc",
        "ws",
        "fm",
        "to",
        "ly",
        "gg",
        "sh",
        "eu",
        "su",
        "ac",
        "la",
        "am",
        "ag",
        "bz",
        "vc",
        "sc",
        "so",
        "app",
        "dev",
        "im",
        "is",
        "gl",
        "pw",
        "nu",
        "st",
    ]
)
_BY_LANGUAGE: Mapping[str, str] = {
    "de": "DE", "fr": "FR", "it": "IT", "nl": "NL", "pl": "PL", "cs": "CZ", "sk": "SK", "da": "DK", "sv": "SE",
    "nb": "NO", "no": "NO", "fi": "FI", "hu": "HU", "el": "GR", "tr": "TR", "ro": "RO", "bg": "BG", "hr": "HR",
    "sl": "SI", "uk": "UA", "he": "IL", "th": "TH", "vi": "VN", "ja": "JP", "ko": "KR",
}  # fmt: skip


class NoPhoneError(ValueError):
    """Not a number to keep; the text says why."""


def region_of(country: str | None, host: str | None, language: str | None) -> tuple[str | None, str]:
    """(ISO country, what says so): the place's own country, then the domain's, then the page's language."""
    supported = phonenumbers.SUPPORTED_REGIONS
    if country:
        code = "GB" if country.upper() == "UK" else country.strip().upper()
        if code in supported:
            return code, "country of the place"
    top = (host or "").rpartition(".")[2].upper()
    top = "GB" if top == "UK" else top
    if len(top) == 2 and top in supported and top.lower() not in _GENERIC:
        return top, "country of the domain"
    name, _, region = (language or "").replace("_", "-").partition("-")
    if (code := region.rpartition("-")[2].upper()) in supported:
        return code, "language of the page"
    if (known := _BY_LANGUAGE.get(name.lower())) is not None:
        return known, "language of the page"
    return None, "nothing names a country"


def numbers_in(text: str) -> Iterator[tuple[str, int, int, str | None]]:
    """(text, start, end, why it is something else) of everything that could be a phone number."""
    for match in _CANDIDATE.finditer(text):
        raw = match[0].rstrip(" (/-.")
        digits = sum(character.isdigit() for character in raw)
        if 7 <= digits <= 15:
            before = text[max(0, match.start() - 40) : match.start()].rpartition("\n")[2]
            yield raw, match.start(), match.start() + len(raw), _objection(raw, before)


def _objection(raw: str, before: str) -> str | None:
    if _FAX.search(before):
        return "a fax number"
    if _LABEL.search(before):
        return None
    if _OTHER.search(before):
        return "a number of another kind"
    if _DATE.match(raw):
        return "a date"
    if raw.isdigit() and not raw.startswith("00"):
        return "only digits, and nothing says that it is a phone number"
    if " " in raw and not any(mark in raw for mark in "+()-/.") and not raw.startswith("0"):
        groups = raw.split()
        if len(groups) > 5 or any(len(group) < 2 for group in groups):
            return "a row of numbers"
    return None


@lru_cache(8192)
def judge(raw: str, region: str | None) -> str:
    """The number in E.164; raises NoPhoneError for what is none."""
    text = raw.strip()
    if text.startswith("00") and not text.startswith("000"):
        text = "+" + text[2:]
    elif text.startswith(("(+", "( +")):
        text = text.lstrip("( ").replace(")", "", 1)
    # +49 (0)30 ...: the trunk prefix is not dialled from abroad
    text = re.sub(r"^(\+\d{1,3}[\s./-]*)\(0\)", r"\1", text)
    if region is None and not text.startswith("+"):
        raise NoPhoneError("nothing says which country to read it for")
    try:
        number = phonenumbers.parse(text, region)
    except phonenumbers.NumberParseException as error:
        raise NoPhoneError(f"not a phone number: {error}") from None
    if not phonenumbers.is_valid_number(number):
        country = phonenumbers.region_code_for_country_code(number.country_code or 0)
        raise NoPhoneError(f"not a valid number of {country}")
    if _PLACEHOLDER.search(str(number.national_number)):
        raise NoPhoneError("a placeholder")
    return phonenumbers.format_number(number, phonenumbers.PhoneNumberFormat.E164)


def dialled(href: str) -> str:
    """The number in a tel: link."""
    number = re.split(r"[;,?]", href.partition(":")[2], maxsplit=1)[0].lstrip("/")
    return number.strip()[:40]
