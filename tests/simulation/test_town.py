"""The simulated town: the same for the same seed, of every kind, and honest about what is to be found."""

import pytest

from services.contacts import contacts
from services.html import read_page
from services.simulation import reach
from services.simulation.addresses import ADDRESS_WAYS
from services.simulation.google import Google
from services.simulation.reach import EMAIL_WAYS, NOISE, PHONE_WAYS, Reach, write_email, write_phone
from services.simulation.themes import THEMES, Theme, render
from services.simulation.trouble import TROUBLES
from services.simulation.world import A_SEARCH, make_world

HOST = "lone-star-plumbing.com"


def _read(theme: Theme, found: Reach) -> tuple[set[str], set[str]]:
    page = read_page(render(theme, "Contact", found.html, 7), f"https://www.{HOST}/contact/")
    read = contacts(page, country="US")
    return set(read.emails), set(read.phones)


@pytest.mark.parametrize("way", EMAIL_WAYS, ids=lambda way: way.__name__)
def test_an_address_is_found_however_a_page_writes_it(way: reach.EmailWay) -> None:
    found = write_email(way, "office", HOST)
    assert _read(THEMES[0], found) == ({f"office@{HOST}"}, set())


@pytest.mark.parametrize("number", ["+15124724321", "+442079460123", "+493023125123"])
@pytest.mark.parametrize("way", PHONE_WAYS, ids=lambda way: way.__name__)
def test_a_number_is_found_however_a_page_writes_it(way: reach.PhoneWay, number: str) -> None:
    assert _read(THEMES[1], write_phone(way, number)) == (set(), {number})


@pytest.mark.parametrize("theme", THEMES, ids=lambda theme: theme.__name__)
def test_nothing_is_invented_from_noise_or_from_a_frame(theme: Theme) -> None:
    for noise in NOISE:
        assert _read(theme, Reach(noise)) == (set(), set()), noise


@pytest.mark.parametrize("theme", THEMES, ids=lambda theme: theme.__name__)
def test_pages_are_as_large_as_real_ones(theme: Theme) -> None:
    size = len(render(theme, "x", "x", 1))
    assert size > (5_000 if theme.__name__ == "by_hand" else 60_000)


def test_a_town_is_the_same_for_its_seed_and_shares_nothing_with_another() -> None:
    one, again, other = make_world(3), make_world(3), make_world(4)
    assert (one.places, one.expected, one.dead) == (again.places, again.expected, again.dead)
    assert not one.expected.keys() & other.expected.keys()
    assert not {place["id"] for place in one.places} & {place["id"] for place in other.places}


def test_a_smaller_town_is_the_beginning_of_a_larger_one() -> None:
    small, large = make_world(2, 30), make_world(2, 60)
    assert large.places[:30] == small.places
    assert large.expected.items() >= small.expected.items()


def test_no_two_businesses_of_a_large_town_share_what_only_one_has() -> None:
    town = make_world(1, 540)
    ids = [place["id"] for place in town.places]
    assert len(set(ids)) == len(ids) == 540
    phones = [phone for found in town.expected.values() for phone in found.phones]
    assert len(set(phones)) == len(phones)
    assert len(town.expected) > 400


def test_a_town_of_one_search_has_most_kinds_of_trouble_and_a_large_one_all() -> None:
    assert len(TROUBLES) < 540 * 3 // 10
    assert len(ADDRESS_WAYS) < 540 * 2 // 10
    reasons = {one.reason.partition(" ")[0] for one in make_world(1, 540).dead}
    assert {"HTTP", "TLS", "NOT_FOUND:", "there", "no", "larger", "robots.txt", "169.254.169.254", "not"} <= reasons


def test_the_searches_of_a_town_find_each_of_its_places() -> None:
    town = make_world(1, 130)
    google = Google(town.places)
    found = [place for trade, where in town.searches for place in google._matching(f"{trade} in {where}")]
    assert sorted(place["id"] for place in found) == sorted(place["id"] for place in town.places)
    assert len(town.searches) == -(-130 // A_SEARCH)
