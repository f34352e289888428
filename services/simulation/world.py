"""A small town of businesses and their websites, the same for the same seed, and what is to be found there.

What ought to be found is written down when a site is made, by whoever makes it, not by reading it: the demo and the
tests compare the database with it.
"""

import random
from dataclasses import dataclass, field
from typing import Any

from services.simulation.addresses import ADDRESS_WAYS
from services.simulation.healthy import make_healthy
from services.simulation.lot import Built, Dead, Expected, Lot
from services.simulation.reach import Person
from services.simulation.site import Site
from services.simulation.trouble import ELSEWHERE, TROUBLES, elsewhere

TRADE = "plumber"
TOWNS = ("Austin, TX", "Round Rock, TX", "Cedar Park, TX", "Pflugerville, TX", "Georgetown, TX", "Kyle, TX", "Buda, TX",
         "Leander, TX", "Lakeway, TX")  # fmt: skip
A_SEARCH = 60
"""Google gives no more for one search; a larger town is searched town by town."""

_FIRST = ("Ada", "Ben", "Cleo", "Dev", "Elsa", "Finn", "Gus", "Hana", "Ivo", "June", "Kofi", "Lena", "Milo", "Nora")
_LAST = ("Abbott", "Baker", "Castro", "Diaz", "Ellis", "Fisher", "Garza", "Hayes", "Irwin", "Jensen", "Keller", "Lopez")
_ROLES = ("Owner", "Founder", "Managing director", "Master plumber")
_NAMES = (
    "Lone Star", "Bluebonnet", "Hill Country", "Barton Creek", "Live Oak", "Pecan Street", "Zilker", "Mockingbird",
    "Onion Creek", "Balcones", "Capitol", "South Congress", "Travis", "Mesquite", "Longhorn", "Armadillo",
)  # fmt: skip
_KINDS = ("Plumbing", "Plumbers", "Pipe & Drain", "Water Works", "Rooter", "Drain Doctors")
_TOPS = ("com", "com", "net", "com", "plumbing", "com", "us", "com", "biz")
_EXCHANGES = ("326", "441", "472", "478", "836", "892")
"""Of the area code 512: numbers that exist."""
_PLAN = "HTHWHTHTWH"
"""Of ten businesses: (H)ealthy websites, (T)rouble, and (W)ebsite fields that are worth a look."""


@dataclass
class World:
    """Everything outside the database."""

    places: list[dict[str, Any]] = field(default_factory=list)
    """As Google's current API tells them."""
    vanished: frozenset[str] = frozenset()
    """Places that a search still finds and whose details are gone."""
    searches: list[tuple[str, str]] = field(default_factory=list)
    """(trade, town): together they find all places."""
    sites: dict[str, Site] = field(default_factory=dict)
    """Host → website."""
    expected: dict[str, Expected] = field(default_factory=dict)
    """Domain → what is to be found. A domain that is missing here must not exist in the end."""
    dead: set[Dead] = field(default_factory=set)
    """All that must end in the dead letter."""
    refused: set[str] = field(default_factory=set)
    unknown: set[str] = field(default_factory=set)
    without_tls: set[str] = field(default_factory=set)
    secure_only: set[str] = field(default_factory=set)

    @property
    def emails(self) -> set[tuple[str, str]]:
        return {(domain, email) for domain, found in self.expected.items() for email in found.emails}

    @property
    def phones(self) -> set[tuple[str, str]]:
        return {(domain, phone) for domain, found in self.expected.items() for phone in found.phones}

    def replay(self, address: str, closed: str) -> str:
        """FETCH_REPLAY for this world at `host:port`; at `closed` nobody listens. Addresses in numbers fit no rule."""
        rules = [f"{host}={closed}" for host in sorted(self.refused)]
        rules += [f"{host}=nowhere" for host in sorted(self.unknown)]
        rules += [f"{host}:443=tls:{address}" for host in sorted(self.without_tls)]
        tops = {host.rpartition(".")[2] for host in (*self.sites, *self.expected)}
        return ",".join([*rules, *(f"*.{top}={address}" for top in sorted(tops))])


def make_world(seed: int = 1, businesses: int = A_SEARCH) -> World:
    """So many businesses. A small one has some of all kinds; with some hundreds, each kind meets many others."""
    chance = random.Random(seed)  # noqa: S311 - a repeatable world, not a secret
    world = World(sites={ELSEWHERE: elsewhere()})
    names = [f"{name} {kind}" for name in _NAMES for kind in _KINDS]
    chance.shuffle(names)
    turns = {"H": 7 * (seed - 1), "T": 18 * (seed - 1), "W": 6 * (seed - 1)}
    for number in range(businesses):
        name = names[number % len(names)] + (f" {number // len(names) + 1}" if number >= len(names) else "")
        lot = _lot(number, name, seed, chance)
        kind = _PLAN[number % len(_PLAN)]
        _settle(world, lot, _build(kind, turns[kind], lot, world), chance)
        turns[kind] += 1
    world.searches = [(TRADE, town) for town in TOWNS[: -(-businesses // A_SEARCH)]]
    return world


def _lot(number: int, name: str, seed: int, chance: random.Random) -> Lot:
    # two towns in one database must not meet: neither by a place's id nor by a domain
    label = name.lower().replace(" & ", "-").replace(" ", "-") + (str(seed) if seed > 1 else "")
    person = Person(f"{chance.choice(_FIRST)} {chance.choice(_LAST)}", chance.choice(_ROLES))
    phone = f"+1512{chance.choice(_EXCHANGES)}{number:04d}"
    domain, place = f"{label}.{_TOPS[number % len(_TOPS)]}", f"ChIJsim{seed:03d}x{number:09d}"
    return Lot(number, name, domain, person, phone, place, seed * 100_003 + number * 101)


def _build(kind: str, turn: int, lot: Lot, world: World) -> Built:
    if kind == "T":
        return TROUBLES[turn % len(TROUBLES)](lot)
    if kind == "W":
        first = next(domain for domain, found in world.expected.items() if found.emails)
        return ADDRESS_WAYS[turn % len(ADDRESS_WAYS)](lot, turn, first)
    return make_healthy(lot, turn)


def _settle(world: World, lot: Lot, built: Built, chance: random.Random) -> None:
    world.sites |= built.sites
    world.expected |= built.expected
    world.dead |= built.dead.union(*(found.dead for found in built.expected.values()))
    world.refused |= built.refused
    world.unknown |= built.unknown
    world.without_tls |= built.without_tls
    world.secure_only |= built.secure_only
    place = _place(lot, built.website, chance)
    world.places.append(place)
    if built.website is None and lot.number % 3 == 0:
        world.vanished |= {place["id"]}
        reason = "The Place ID is no longer valid. Please refresh cached Place IDs as per the documentation."
        world.dead.add(Dead("deep_scan", place["id"], f"NOT_FOUND: {reason}"))


def _place(lot: Lot, website: str | None, chance: random.Random) -> dict[str, Any]:
    """As complete or incomplete as Google's are: what is not known is absent."""
    number = lot.number
    town, _, state = TOWNS[number // A_SEARCH % len(TOWNS)].partition(", ")
    street = f"{100 + number} Congress Ave"
    place: dict[str, Any] = {
        "name": f"places/{lot.place_id}",
        "id": lot.place_id,
        "displayName": {"text": lot.name, "languageCode": "en"},
        "types": ["plumber", "point_of_interest", "establishment"],
        "primaryType": "plumber",
        "formattedAddress": f"{street}, {town}, {state} 78701, USA",
        "addressComponents": [
            _component(street.split()[0], "street_number"),
            _component("Congress Ave", "route"),
            _component(town, "locality"),
            _component("Texas", "administrative_area_level_1", short="TX"),
            _component("United States", "country", short="US"),
            _component("78701", "postal_code"),
        ],
        "location": {"latitude": round(30.26 + number / 1000, 6), "longitude": round(-97.74 - number / 1000, 6)},
        "rating": round(chance.uniform(3.2, 5.0), 1),
        "userRatingCount": chance.randint(3, 900),
        "priceLevel": "PRICE_LEVEL_MODERATE",
        "nationalPhoneNumber": f"({lot.phone[2:5]}) {lot.phone[5:8]}-{lot.phone[8:]}",
        "internationalPhoneNumber": f"{lot.phone[:2]} {lot.phone[2:5]}-{lot.phone[5:8]}-{lot.phone[8:]}",
        "googleMapsUri": f"https://maps.google.com/?cid={10**15 + number}",
        "businessStatus": "OPERATIONAL",
        "regularOpeningHours": _hours(number),
        "timeZone": {"id": "America/Chicago"},
        "utcOffsetMinutes": -360,
    }
    match number % 11:
        case 3:  # works at its customers' places only
            place["pureServiceAreaBusiness"] = True
            del place["location"]
        case 5:  # nobody has rated it yet
            for name in ("rating", "userRatingCount", "priceLevel"):
                del place[name]
        case 7:
            place["businessStatus"] = "CLOSED_TEMPORARILY"
        case 9:
            place["businessStatus"] = "CLOSED_PERMANENTLY"
            place["movedPlaceId"] = "ChIJsim-moved-away"
    return place | ({"websiteUri": website} if website else {})


def _hours(number: int) -> dict[str, Any]:
    if number % 4 == 1:  # day and night: Google then names no end
        return {"openNow": True, "periods": [{"open": {"day": 0, "hour": 0, "minute": 0}}],
                "weekdayDescriptions": ["Monday: Open 24 hours"]}  # fmt: skip
    periods = [
        {"open": {"day": day, "hour": 8, "minute": 0}, "close": {"day": day, "hour": 17, "minute": 30}}
        for day in range(1, 6)
    ]
    return {"openNow": False, "periods": periods, "weekdayDescriptions": ["Monday: 8:00 AM - 5:30 PM"]}


def _component(long: str, kind: str, *, short: str | None = None) -> dict[str, Any]:
    return {"longText": long, "shortText": short or long, "types": [kind], "languageCode": "en"}
