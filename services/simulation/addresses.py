"""What stands in Google's website field: a site of its own, somebody else's page, several spellings, or nothing."""

from collections.abc import Callable
from dataclasses import replace
from urllib.parse import quote

from services.simulation.healthy import make_healthy
from services.simulation.lot import Built, Dead, Lot
from services.simulation.site import Site

AddressWay = Callable[[Lot, int, str], Built]
"""(lot, turn, a domain that another business has) → the business."""


def nothing(_: Lot, __: int, ___: str) -> Built:
    return Built(None)


def social_page(lot: Lot, _: int, __: str) -> Built:
    return Built(f"https://www.facebook.com/{lot.domain.partition('.')[0]}/?ref=maps")


def page_of_links(lot: Lot, _: int, __: str) -> Built:
    return Built(f"https://linktr.ee/{lot.domain.partition('.')[0]}")


def directory(lot: Lot, _: int, __: str) -> Built:
    return Built(f"https://www.yelp.com/biz/{lot.domain.partition('.')[0]}-austin")


def twin(_: Lot, __: int, other: str) -> Built:
    """The second shop of another business: another place, the same domain."""
    return Built(f"http://{other}/?utm_source=google&utm_medium=maps")


def chain(_: Lot, __: int, other: str) -> Built:
    return Built(f"https://www.{other}/locations/austin-north/?utm_campaign=gmb#hours")


def wrapped(lot: Lot, turn: int, _: str) -> Built:
    """As Maps links out at times."""
    built = make_healthy(lot, turn)
    return replace(built, website=f"https://www.google.com/url?q={quote(f'{lot.root}/?x=1', safe='')}&sa=D&usg=AOv")


def untidy(lot: Lot, turn: int, _: str) -> Built:
    return replace(make_healthy(lot, turn), website=f"  {lot.host.upper()}.:443/Index.HTML?ref=maps ")


def with_credentials(lot: Lot, turn: int, _: str) -> Built:
    return replace(make_healthy(lot, turn), website=f"http://user:secret@{lot.domain}:80/")


def international(lot: Lot, turn: int, _: str) -> Built:
    """Written as people read it, kept as DNS has it."""
    name = lot.domain.partition(".")[0]
    lot = replace(
        lot, domain=f"{f'bücher-{name}.de'.encode('idna').decode()}", phone=f"+493023125{lot.number % 1000:03}"
    )
    return replace(make_healthy(lot, turn), website=f"https://www.bücher-{name}.de/kontakt")


def second_level(lot: Lot, turn: int, _: str) -> Built:
    lot = replace(lot, domain=f"{lot.domain.partition('.')[0]}.co.uk", phone=f"+442079460{lot.number % 1000:03}")
    return make_healthy(lot, turn)


def on_a_platform(lot: Lot, turn: int, _: str) -> Built:
    """A host below a public suffix that a platform gives away: a domain of its own."""
    lot = replace(lot, domain=f"{lot.domain.partition('.')[0]}.myshopify.com")
    built = make_healthy(lot, turn)
    site = built.sites[lot.host]
    # no www there: the bare host serves everything
    return replace(built, website=f"https://{lot.domain}/", sites={lot.domain: Site(moved_to=lot.root), lot.host: site})


def bare_address(lot: Lot, _: int, __: str) -> Built:
    return _invalid(lot, "http://203.0.113.7/shop", "203.0.113.7 is an IP address, not a domain")


def not_an_address(lot: Lot, _: int, __: str) -> Built:
    return _invalid(lot, "info@localhost", "it is an e-mail address, not a website")


def unknown_top(lot: Lot, _: int, __: str) -> Built:
    return _invalid(lot, "https://www.our-shop.localhost/", ".localhost is no top-level domain")


def _invalid(lot: Lot, website: str, reason: str) -> Built:
    words = f"the website {website!r} has no domain: {reason}"
    return Built(website, dead=frozenset({Dead("domain_extraction", lot.place_id, words)}))


ADDRESS_WAYS: tuple[AddressWay, ...] = (
    nothing, social_page, twin, international, wrapped, second_level, bare_address, chain, untidy, page_of_links,
    on_a_platform, not_an_address, directory, with_credentials, unknown_top,
)  # fmt: skip
