"""Websites that work: every theme, robots.txt, sitemap and way of writing contacts, each with another."""

from functools import partial
from html import escape

from services.simulation.lot import Built, Dead, Expected, Lot, expect, with_www
from services.simulation.reach import (
    EMAIL_WAYS,
    NOISE,
    PHONE_WAYS,
    Person,
    Reach,
    team,
    write_email,
    write_phone,
)
from services.simulation.robots import ROBOTS_WAYS, RobotsWay, allow_all
from services.simulation.site import Answer, Site
from services.simulation.sitemaps import SITEMAP_WAYS, SitemapWay
from services.simulation.themes import THEMES, render

_BOXES = ("office", "info", "hello", "service", "dispatch", "contact", "quotes", "team")
UNLISTED = ("/img/van.jpg", "/tag/taps/", "/cart/", "/2019/07/", "/feed/", "/wp-json/wp/v2/pages", "/author/joe/")
"""In the sitemaps too, and not worth reading."""
UNREAD = ("/services/drain-cleaning/", "/blog/2024/05/how-to-fix-a-tap/", "/shop/pipes/copper-elbow/")
"""Pages that exist, name a trap, and that nobody is to read."""


def make_healthy(lot: Lot, turn: int) -> Built:
    """The turn-th of them: the ways go round at different paces, so that each meets each in time."""
    site, expected = healthy_site(lot, turn)
    return Built(f"{lot.root}/", with_www(lot, site), {lot.domain: expected})


def healthy_site(lot: Lot, turn: int) -> tuple[Site, Expected]:
    found = _texts(lot, turn)
    theme = THEMES[turn % len(THEMES)]
    traps = {path: Reach(f"<h1>{path}</h1><p>Write to trap-{lot.number}@never-read.net</p>") for path in UNREAD}
    answers: dict[str, Answer] = {}
    for number, (path, text) in enumerate((found | traps).items()):
        title = f"{path.strip('/').replace('-', ' ').title() or 'Home'} - {lot.name}"
        answers[path] = Answer(partial(render, theme, title, text.html, lot.seed + number))
    answers |= {path: Answer(b"<title>x</title><p>trap@never-read.net", 200) for path in UNLISTED}
    urls = [f"{lot.root}{path}" for path in answers]
    site = Site(answers)
    dead = publish(site, lot, urls, turn)
    return site, expect(*found.values(), dead=dead)


def ways(turn: int) -> tuple[SitemapWay, RobotsWay]:
    """How the turn-th of them has its sitemaps and its robots.txt; the one at another pace than the other."""
    return SITEMAP_WAYS[turn % len(SITEMAP_WAYS)], ROBOTS_WAYS[(turn + turn // len(ROBOTS_WAYS)) % len(ROBOTS_WAYS)]


def publish(site: Site, lot: Lot, urls: list[str], turn: int) -> frozenset[Dead]:
    """Give the site a robots.txt and sitemaps; what of these must end in the dead letter."""
    make_sitemaps, make_rules = ways(turn)
    sitemaps = make_sitemaps(lot.root, urls)
    sitemap = f"{lot.root}{sitemaps.named}"
    rules = make_rules(lot.root, sitemap)
    if not sitemaps.usual and not rules.names_sitemap:
        rules = allow_all(lot.root, sitemap)
    site.answers |= sitemaps.answers
    if rules.answer is not None:
        site.answers["/robots.txt"] = rules.answer
    return frozenset(Dead("sitemap_import", f"{lot.root}{path}", why) for path, why in sitemaps.dead.items())


def _texts(lot: Lot, turn: int) -> dict[str, Reach]:
    """What the pages that are to be read say."""
    host = "gmail.com" if turn % 9 == 8 else lot.domain
    box = f"{lot.domain.partition('.')[0].replace('-', '')}{lot.number}" if host != lot.domain else _BOXES[turn % 8]
    first, second = EMAIL_WAYS[2 * turn % len(EMAIL_WAYS)], EMAIL_WAYS[(2 * turn + 1) % len(EMAIL_WAYS)]
    heading = Reach(f"<h1>Contact {escape(lot.name)}</h1>{_noise(turn)}")
    contact = heading + write_email(first, box, host) + write_phone(PHONE_WAYS[turn % len(PHONE_WAYS)], lot.phone)
    about = Reach(f"<h1>About us</h1>{_noise(turn + 7)}") + write_email(second, f"desk{lot.number}", lot.domain)
    texts = {
        "/": Reach(f"<h1>{escape(lot.name)}</h1><p>Pipes and drains since 1987.</p>{_noise(turn + 3)}"),
        "/about-us/": about,
        "/contact/": contact,
        "/reviews/": Reach("<h1>Reviews</h1><p>They came at once. 5 of 5, 1,204 of them.</p>"),
    }
    if turn % 3 == 0:
        people = [lot.person, Person("Dana O'Neill", "Office manager")]
        texts["/our-team/"] = Reach("<h1>Our team</h1>") + team(people, lot.domain)
    if turn % 4 == 1:
        texts["/privacy-policy/"] = Reach("<h1>Privacy</h1>" + _noise(turn + 11))
    return texts


def _noise(turn: int) -> str:
    return "".join(NOISE[(turn * 3 + n) % len(NOISE)] for n in range(3))
