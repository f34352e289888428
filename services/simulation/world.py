"""A small town of businesses and their websites, the same for the same seed, and what is to be found there.

What ought to be found is written down when a site is made, by whoever makes it, not by reading it: the demo and the
tests compare the database with it.
"""

import random
from dataclasses import dataclass, field
from typing import Any

from services.simulation.markup import ELSEWHERE, Site, elsewhere, make_site

TRADE, TOWN = "plumber", "Austin, TX"

_FIRST = ("Ada", "Ben", "Cleo", "Dev", "Elsa", "Finn", "Gus", "Hana", "Ivo", "June", "Kofi", "Lena", "Milo", "Nora")
_LAST = ("Abbott", "Baker", "Castro", "Diaz", "Ellis", "Fisher", "Garza", "Hayes", "Irwin", "Jensen", "Keller", "Lopez")
_NAMES = (
    "Lone Star",
    "Bluebonnet",
    "Hill Country",
    "Barton Creek",
    "Live Oak",
    "Pecan Street",
    "Zilker",
    "Mockingbird",
)
_KINDS = ("Plumbing", "Plumbers", "Pipe & Drain", "Water Works", "Rooter", "Drain Doctors")
_EXCHANGES = ("326", "441", "472", "478", "836", "892")
"""Of the area code 512: numbers that exist."""


@dataclass(frozen=True)
class Expected:
    """What the pipeline must find on one domain: each once, and nothing else."""

    emails: frozenset[str] = frozenset()
    phones: frozenset[str] = frozenset()


@dataclass
class World:
    """Everything outside the database."""

    places: list[dict[str, Any]] = field(default_factory=list)
    """As Google's current API tells them."""
    sites: dict[str, Site] = field(default_factory=dict)
    """Host → website."""
    expected: dict[str, Expected] = field(default_factory=dict)
    """Domain → what is to be found. A domain that is missing here must not exist in the end."""

    @property
    def emails(self) -> set[tuple[str, str]]:
        return {(domain, email) for domain, found in self.expected.items() for email in found.emails}

    @property
    def phones(self) -> set[tuple[str, str]]:
        return {(domain, phone) for domain, found in self.expected.items() for phone in found.phones}


SHAPES = (
    "mailto",
    "cloudflare",
    "entities",
    "spelled out",
    "structured",
    "free mail",
    "phone only",
    "team",
    "noise",
    "nothing",
    "no sitemap",
    "forbidden",
    "busy",
    "gone",
    "off-site",
    "no website",
    "platform",
    "twin",
)
"""One business of each shape at least; what a shape means stands in `services.simulation.markup`."""


def make_world(seed: int = 1, businesses: int = 30) -> World:
    """So many businesses; with fewer than there are shapes, the last shapes are missing."""
    chance = random.Random(seed)  # noqa: S311 - a repeatable world, not a secret
    world = World(sites={ELSEWHERE: elsewhere()})
    names = [f"{name} {kind}" for name in _NAMES for kind in _KINDS]
    chance.shuffle(names)
    for number in range(businesses):
        shape = SHAPES[number % len(SHAPES)]
        name = names[number % len(names)] + (f" {number // len(names) + 1}" if number >= len(names) else "")
        domain = name.lower().replace(" & ", "-").replace(" ", "-") + ".com"
        person = f"{chance.choice(_FIRST)} {chance.choice(_LAST)}"
        phone = f"+1512{chance.choice(_EXCHANGES)}{number:04d}"
        website: str | None = f"https://www.{domain}/"
        if shape == "no website":
            website = None
        elif shape == "platform":
            website = f"https://www.facebook.com/{domain.removesuffix('.com')}"
        elif shape == "twin":
            # the second shop of the first business: another place, the same domain
            website = f"http://{next(iter(world.expected))}/?utm_source=maps"
        else:
            site, emails, phones = make_site(shape, domain, name, person, phone)
            world.sites[f"www.{domain}"] = site
            world.sites[domain] = Site(moved_to=f"https://www.{domain}")
            world.expected[domain] = Expected(frozenset(emails), frozenset(phones))
        world.places.append(_place(number, name, phone, website, chance))
    return world


def _place(number: int, name: str, phone: str, website: str | None, chance: random.Random) -> dict[str, Any]:
    street = f"{100 + number} Congress Ave"
    place = {
        "id": f"ChIJsim{number:013d}",
        "displayName": {"text": name, "languageCode": "en"},
        "types": ["plumber", "point_of_interest", "establishment"],
        "primaryType": "plumber",
        "formattedAddress": f"{street}, Austin, TX 78701, USA",
        "addressComponents": [
            _component(street.split()[0], "street_number"),
            _component("Congress Ave", "route"),
            _component("Austin", "locality"),
            _component("Texas", "administrative_area_level_1", short="TX"),
            _component("United States", "country", short="US"),
            _component("78701", "postal_code"),
        ],
        "location": {"latitude": round(30.26 + number / 1000, 6), "longitude": round(-97.74 - number / 1000, 6)},
        "rating": round(chance.uniform(3.2, 5.0), 1),
        "userRatingCount": chance.randint(3, 900),
        "priceLevel": "PRICE_LEVEL_MODERATE",
        "internationalPhoneNumber": f"{phone[:2]} {phone[2:5]}-{phone[5:8]}-{phone[8:]}",
        "businessStatus": "OPERATIONAL",
        "utcOffsetMinutes": -360,
    }
    return place | ({"websiteUri": website} if website else {})


def _component(long: str, kind: str, *, short: str | None = None) -> dict[str, Any]:
    return {"longText": long, "shortText": short or long, "types": [kind], "languageCode": "en"}
