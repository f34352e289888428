"""Phone numbers: cheap to look for, and kept only if they are valid numbers of the country they are read for."""

import re
from collections.abc import Iterator, Mapping
from functools import lru_cache

import phonenumbers
from phonenumbers.re_util import enable_pattern_cache

enable_pattern_cache()  # of its metadata: a fixed number of them

# It begins with a digit, because those are found fast; what may stand before it is looked at afterwards.
_CANDIDATE = re.compile(r"[0-9][0-9 ().\-/]{5,22}[0-9](?!(?![xX]\d{1,6}\b)[\w@%]|[.,-][0-9])")
# what a number is of: money, measures, time
_AFTER = re.compile(
    r" ?(?:usd|eur|gbp|chf|euros?|dollars?|pounds?|kr|km|kg|cm|mm|m²|m2|sqm|sq\.? ?ft|kwh|uhr|h|[€$£%°])(?!\w)"
)
_BEFORE = re.compile(r"(?:^|[^\w.,/#=@:+(-])(\(?\+? ?\(?)$")


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


_PHONE_WORDS = _words("""
    tel phone telephone telefon fon ph call mobile mobil handy cell téléphone tél telefono teléfono whatsapp hotline
    text office direct free zentrale durchwahl appelez ring dial contact us at m t p""")
_FAX_WORDS = _words("fax telefax téléfax télécopie f")
_COUNTING_WORDS = _words("no nr number nummer num")
_OTHER_WORDS = _words("""
    iban bic swift vat ust ustid ust-id ust-idnr ustidnr steuernummer steuer-nr st-nr tax ein tin hrb hra siret siren
    rcs registration reg isbn issn ean upc gtin sku order invoice license licence lic abn acn cif nif account konto kto
    blz id no nr number zip plz box postfach case serial part model item patent ref version copyright npi mc roc cslb
    lot ticket permit""")
# every digit as one, and every mark that may stand between them as another
_CLASSES = bytes.maketrans(b"0123456789 ().-/", b"0000000000      ")
_LONG_ENOUGH = re.compile(rb"0(?=[0 ]{5,22}0)")
_NO_DIGITS = str.maketrans("", "", " ().-/+")
_SIGNS = frozenset("#№$€£©")
_EDGES = " \t.:|()-–#°º,"  # noqa: RUF001
_DATE = re.compile(
    r"(?:19|20)\d\d[./ -]\d\d?[./ -]\d\d?(?!\d)|\d\d?[./-]\d\d?[./-](?:19|20)\d\d(?!\d)"
    r"|[01]?\d[/.](?:19|20)\d\d ?- ?[01]?\d[/.](?:19|20)\d\d(?!\d)|(?:(?:19|20)\d\d[ ,/]+)+(?:19|20)\d\d(?!\d)"
    r"|(?:19|20)\d\d ?- ?(?:19|20)\d\d(?!\d)"
)
_HOURS = re.compile(r"[012]?\d[.:][0-5]\d ?- ?[012]?\d[.:][0-5]\d")
_IP = re.compile(r"(?!\d\d(?:\.\d\d){3}$)(?:1?\d?\d|2[0-5]\d)(?:\.(?:1?\d?\d|2[0-5]\d)){3}")
_TRUNK = re.compile(r"^(\+\d{1,3}[\s./-]*)\(0\)")
_PARAMETERS = re.compile(r"[;,?]")
_PLACEHOLDER = re.compile(r"1234567|7654321|(\d)\1{6}")

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


def numbers_in(text: str, region: str | None = None) -> Iterator[tuple[str, int, int, str | None]]:
    """(text, start, end, why it is something else) of everything that could be a phone number."""
    trunk = _trunk_prefix(region)
    for match in _candidates(text):
        begin = match.start()
        opened = _BEFORE.search(text, max(0, begin - 5), begin)
        if opened is None:
            continue
        start = begin - len(opened[1].lstrip(" "))
        before = text[max(0, start - 40) : start].rpartition("\n")[2]
        for raw, at in _apart(text[start : match.end()].rstrip(" (/-."), start):
            if 7 <= len(raw.translate(_NO_DIGITS)) <= 15:
                after = text[at + len(raw) : at + len(raw) + 12].lower()
                yield raw, at, at + len(raw), _objection(raw, before, after, trunk)


def _candidates(text: str) -> Iterator[re.Match[str]]:
    """As finditer gives them, but past what is too short a plain search leaps from digit to digit."""
    classes = text.encode("latin-1", "replace").translate(_CLASSES)
    possible = _LONG_ENOUGH.search(classes)
    while possible:
        at = possible.start()
        match = _CANDIDATE.match(text, at)
        if match:
            yield match
        possible = _LONG_ENOUGH.search(classes, match.end() if match else at + 1)


def _apart(raw: str, start: int) -> Iterator[tuple[str, int]]:
    """`030 901820 / 030 901821` as two: each side of the slash is a number by itself."""
    left, slash, right = raw.partition("/")
    if slash and min(len(part.translate(_NO_DIGITS)) for part in (left, right)) >= 7:
        yield left.rstrip(), start
        yield right.strip(), start + len(left) + 1 + len(right) - len(right.lstrip())
    else:
        yield raw, start


@lru_cache(300)
def _trunk_prefix(region: str | None) -> str:
    """What a number is begun with inside the country, such as 0; empty if nothing."""
    metadata = phonenumbers.PhoneMetadata.metadata_for_region(region or "", None)
    return (metadata.national_prefix or "") if metadata is not None else ""


def _objection(raw: str, before: str, after: str, trunk: str) -> str | None:
    words = before.lower().rsplit(None, 3)[-3:]
    labels = [label for word in words if (label := word.strip(_EDGES))]
    label = labels[-1] if labels else ""
    if label in _COUNTING_WORDS and len(labels) > 1:
        label = labels[-2] if labels[-2] in _PHONE_WORDS | _FAX_WORDS else label
    if label in _FAX_WORDS:
        return "a fax number"
    if label in _PHONE_WORDS:
        return None
    if label in _OTHER_WORDS or (before.rstrip()[-1:] in _SIGNS):
        return "a number of another kind"
    if _DATE.match(raw):
        return "a date"
    if _HOURS.match(raw):
        return "a time"
    if _AFTER.match(after):
        return "an amount"
    if _IP.fullmatch(raw):
        return "an IP address"
    if trunk == "0" and not raw.lstrip("(").startswith(("0", "+")):
        return "it does not begin with 0, and nothing says that it is a phone number"
    if raw.isdigit() and not raw.startswith("00"):
        return "only digits, and nothing says that it is a phone number"
    if not any(mark in raw for mark in "+()-/.") and not raw.startswith("0"):
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
    text = _TRUNK.sub(r"\1", text)
    if region is None and not text.startswith("+"):
        raise NoPhoneError("nothing says which country to read it for")
    try:
        number = phonenumbers.parse(text, region)
    except phonenumbers.NumberParseException as error:
        raise NoPhoneError(f"not a phone number: {error}") from None
    if not is_valid(number):
        country = phonenumbers.region_code_for_country_code(number.country_code or 0)
        raise NoPhoneError(f"not a valid number of {country}")
    if _PLACEHOLDER.search(str(number.national_number)):
        raise NoPhoneError("a placeholder")
    return phonenumbers.format_number(number, phonenumbers.PhoneNumberFormat.E164)


def is_valid(number: phonenumbers.PhoneNumber) -> bool:
    """As phonenumbers has it, but what has told one country from its neighbours is not tried again."""
    region = phonenumbers.region_code_for_number(number)
    if region is None:
        return False
    shared = len(phonenumbers.COUNTRY_CODE_TO_REGION_CODE.get(number.country_code or 0, ())) > 1
    metadata = phonenumbers.PhoneMetadata.metadata_for_region(region, None) if shared else None
    if metadata is not None and metadata.leading_digits is None:
        return True  # found by its whole number
    return phonenumbers.is_valid_number_for_region(number, region)


def dialled(href: str) -> str:
    """The number in a tel: link."""
    number = _PARAMETERS.split(href.partition(":")[2], maxsplit=1)[0].lstrip("/")
    return number.strip()[:40]
