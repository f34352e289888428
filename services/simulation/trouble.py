"""Websites with which something is wrong, and the words with which each must end in the dead letter."""

import gzip
from collections.abc import Callable
from functools import cache, partial
from html import escape

from services.simulation.lot import Built, Dead, Expected, Lot, expect, with_www
from services.simulation.reach import Reach, mailto, shown, tel, write_email, write_phone
from services.simulation.robots import endless as endless_robots
from services.simulation.server import Manner
from services.simulation.site import HTML, TEXT, XML, Answer, Site, redirect
from services.simulation.sitemaps import bottomless, html_for_everything, looping, urlset
from services.simulation.themes import by_hand, render

Trouble = Callable[[Lot], Built]
ELSEWHERE = "www.directory.org"
METADATA_ADDRESS = "http://169.254.169.254/latest/meta-data/"
_INSIDE = "169.254.169.254 is not on the public internet (169.254.169.254)"
_ROBOTS = Answer(b"User-agent: *\nDisallow:\n", kind=TEXT)


def elsewhere() -> Site:
    """Where off-site redirects lead: somebody else's website, whose contacts are not ours to take."""
    page = Answer(b'<title>A directory</title><a href="mailto:sales@directory.org">Advertise here</a>')
    listed = Answer(urlset([f"https://{ELSEWHERE}/", f"https://{ELSEWHERE}/contact/"]), kind=XML)
    return Site({"/": page, "/contact/": page, "/sitemap.xml": listed})


# -- the home page ----------------------------------------------------------------------------------------------------


def _home(answer: Answer, reason: str, lot: Lot) -> Built:
    """Nothing but a home page, and that is not one; `{host}` and `{domain}` in the reason are its own."""
    site = Site({"/": answer, "/robots.txt": _ROBOTS})
    return _dead(lot, with_www(lot, site), reason.format(host=lot.host, domain=lot.domain, root=lot.root))


def _dead(lot: Lot, sites: dict[str, Site], reason: str, workflow: str = "domain_metadata") -> Built:
    dead = frozenset({Dead(workflow, lot.domain, reason)})
    return Built(f"{lot.root}/", sites, {lot.domain: Expected(dead=dead)})


def _status(status: int, phrase: str) -> Trouble:
    return partial(_home, Answer(b"<h1>Sorry</h1>", status), f"HTTP {status} ({phrase})")


gone = _status(410, "Gone")
not_found = _status(404, "Not Found")
forbidden = _status(403, "Forbidden")
failing = _status(500, "Internal Server Error")


def overrun(lot: Lot) -> Built:
    """429 for ever, and it says how long to wait each time."""
    return _home(Answer(b"slow down", 429, TEXT, (("Retry-After", "1"),)), "HTTP 429 (Too Many Requests)", lot)


def silent(lot: Lot) -> Built:
    site = Site(every=Answer(b"", manner=Manner.SILENT))
    return _dead(lot, {lot.domain: site, lot.host: site}, f"{lot.domain} fell silent")


dripping = partial(_home, Answer(b"<html>" + b"." * 2000, manner=Manner.DRIP), "{host} was too slow: not done in time")
endless = partial(_home, Answer(b"<p>more</p>" * 10_000, manner=Manner.ENDLESS), "larger than 10,485,760 bytes")
cut_off = partial(_home, Answer(b"<html><body>", manner=Manner.CUT), "{host} broke off in the middle of its answer")
garbage = partial(
    _home,
    Answer(b"SSH-2.0-OpenSSH_9.2p1 Debian\r\n", manner=Manner.GARBAGE),
    "{host} hung up without an HTTP answer",
)


@cache
def _bomb() -> bytes:
    return gzip.compress(b"0" * 30_000_000, 9, mtime=0)


bomb = partial(
    _home,
    Answer(_bomb, headers=(("Content-Encoding", "gzip"),)),
    "a decompression bomb: more than 200 times its size when unpacked",
)
not_html = partial(
    _home, Answer(b"%PDF-1.7\n", kind="application/pdf"), "not a document of the wanted kind but application/pdf"
)
to_the_inside = partial(
    _home,
    redirect(METADATA_ADDRESS, 302),
    _INSIDE,
)


def circle(lot: Lot) -> Built:
    built = _home(redirect(f"{lot.root}/start", 302), "{root}/start redirects in a circle", lot)
    built.sites[lot.host].answers["/start"] = redirect(f"{lot.root}/", 302)
    return built


def endless_redirects(lot: Lot) -> Built:
    built = _home(redirect(f"{lot.root}/1", 302), "more than 5 redirects, last from {root}/4", lot)
    built.sites[lot.host].answers |= {f"/{n}": redirect(f"{lot.root}/{n + 1}", 302) for n in range(1, 9)}
    return built


def refused(lot: Lot) -> Built:
    built = _dead(lot, {}, f"no connection to {lot.domain}: connection refused")
    built.refused = frozenset({lot.domain, lot.host})
    return built


def unknown(lot: Lot) -> Built:
    built = _dead(lot, {}, f"there is no host {lot.domain}")
    built.unknown = frozenset({lot.domain, lot.host})
    return built


def without_tls(lot: Lot) -> Built:
    """http leads to https, and there is no TLS behind it."""
    hosts = frozenset({lot.domain, lot.host})
    built = _dead(lot, dict.fromkeys(hosts, Site()), f"TLS with {lot.domain} failed")
    built.without_tls = built.secure_only = hosts
    return built


def robots_fail(lot: Lot) -> Built:
    site = Site({"/robots.txt": Answer(b"busy", 503, TEXT)}, every=html_for_everything())
    return _dead(lot, with_www(lot, site), "robots.txt answers HTTP 503, so nothing is fetched for now")


def robots_forbid_all(lot: Lot) -> Built:
    site = Site({"/robots.txt": Answer(b"User-agent: *\nDisallow: /\n", kind=TEXT)}, every=html_for_everything())
    return _dead(lot, with_www(lot, site), f"robots.txt of {lot.domain} disallows /")


def home_elsewhere(lot: Lot) -> Built:
    """The domain was sold: everything leads to somebody else's site."""
    site = Site(moved_to=f"https://{ELSEWHERE}")
    return _dead(lot, {lot.domain: site, lot.host: site}, f"{lot.domain} leads to another website, {ELSEWHERE}")


# -- sitemaps ---------------------------------------------------------------------------------------------------------


def _mute(answers: dict[str, Answer], lot: Lot, every: Answer | None = None) -> Built:
    """A site that works, with contacts, and without a sitemap that leads to them."""
    pages = {"/": _page(lot, "<h1>Welcome</h1>"), "/contact/": _page(lot, mailto("info", lot.domain))}
    site = Site({"/robots.txt": _ROBOTS, **pages, **answers}, every=every)
    return Built(f"{lot.root}/", with_www(lot, site), {lot.domain: Expected()})


def no_sitemap(lot: Lot) -> Built:
    return _mute({}, lot)


def page_for_everything(lot: Lot) -> Built:
    return _mute({}, lot, html_for_everything())


def looping_indexes(lot: Lot) -> Built:
    return _mute(looping(lot.root), lot)


def bottomless_indexes(lot: Lot) -> Built:
    return _mute(bottomless(lot.root), lot)


def empty_sitemap(lot: Lot) -> Built:
    return _mute({"/sitemap.xml": Answer(b"", kind=XML), "/sitemap_index.xml": Answer(urlset([]), kind=XML)}, lot)


# -- one page ---------------------------------------------------------------------------------------------------------


def _beside(lot: Lot, path: str, answer: Answer, reason: str | None, *, robots: Answer = _ROBOTS) -> Built:
    """A small site that works, and one page that does not; `reason` is its own, None if it is merely Filtered."""
    about = Reach("<h1>About us</h1>") + write_email(mailto, "office", lot.domain) + write_phone(tel, lot.phone)
    answers = {"/": _page(lot, "<h1>Welcome</h1>"), "/about-us/": _page(lot, about.html), path: answer}
    listed = Answer(urlset(f"{lot.root}{name}" for name in answers), kind=XML)
    site = Site({**answers, "/robots.txt": robots, "/sitemap.xml": listed})
    dead = frozenset({Dead("page_curation", f"{lot.root}{path}", reason)} if reason else ())
    return Built(f"{lot.root}/", with_www(lot, site), {lot.domain: expect(about, dead=dead)})


def _page(lot: Lot, body: str) -> Answer:
    return Answer(partial(render, by_hand, lot.name, body, lot.seed))


def dead_link(lot: Lot) -> Built:
    return _beside(lot, "/contact/", Answer(b"<h1>No such page</h1>", 404), "HTTP 404 (Not Found)")


def forbidden_page(lot: Lot) -> Built:
    rules = Answer(b"User-agent: *\nDisallow: /contact\n", kind=TEXT)
    reason = f"robots.txt of {lot.host} disallows /contact/"
    return _beside(lot, "/contact/", _page(lot, mailto("info", lot.domain)), reason, robots=rules)


def cut_page(lot: Lot) -> Built:
    answer = Answer(mailto("info", lot.domain).encode(), manner=Manner.CUT)
    return _beside(lot, "/contact/", answer, f"{lot.host} broke off in the middle of its answer")


def huge_page(lot: Lot) -> Built:
    answer = Answer(partial(_huge, mailto("info", lot.domain)))
    return _beside(lot, "/contact/", answer, "larger than 10,485,760 bytes")


def _huge(text: str) -> bytes:
    return text.encode() + b"<p>more of the same</p>" * 500_000


def soft_404(lot: Lot) -> Built:
    answer = Answer(f"<title>Page not found</title><h1>Oops</h1>{mailto('info', lot.domain)}".encode())
    return _beside(lot, "/contact/", answer, None)


def off_site(lot: Lot) -> Built:
    return _beside(lot, "/contact/", redirect(f"https://{ELSEWHERE}/", 302), None)


def back_home(lot: Lot) -> Built:
    return _beside(lot, "/contact/", redirect(f"{lot.root}/", 302), None)


def picture(lot: Lot) -> Built:
    return _beside(lot, "/contact/", Answer(b"\x89PNG info@nobody.net", kind="image/png"), None)


def page_to_the_inside(lot: Lot) -> Built:
    return _beside(lot, "/contact/", redirect(METADATA_ADDRESS), _INSIDE)


# -- odd, and yet all of it is to be found ----------------------------------------------------------------------------


def _odd(lot: Lot, answer: Answer, found: Reach) -> Built:
    built = _beside(lot, "/contact/", answer, None)
    before = built.expected[lot.domain]
    built.expected[lot.domain] = Expected(before.emails | found.emails, before.phones | found.phones)
    return built


def _info(lot: Lot) -> Reach:
    return Reach("<h1>Contact</h1>") + write_email(mailto, "info", lot.domain)


def busy(lot: Lot) -> Built:
    found = _info(lot)
    built = _odd(lot, Answer(found.html.encode()), found)
    later = Answer(b"busy", 429, TEXT, (("Retry-After", "1"),))
    built.sites[lot.host].stumbles["/contact/"] = (1, later)
    return built


def slow(lot: Lot) -> Built:
    found = _info(lot)
    return _odd(lot, Answer(found.html.encode(), delay=1.0), found)


def moved_page(lot: Lot) -> Built:
    """Three hops within the site, the last to another spelling of the path."""
    found = _info(lot)
    built = _odd(lot, redirect("../Contact", 302), found)
    answers = built.sites[lot.host].answers
    answers["/Contact"] = redirect("//" + lot.host + "/kontakt.html", 308)
    answers["/kontakt.html"] = Answer(found.html.encode())
    return built


def nul_bytes(lot: Lot) -> Built:
    found = _info(lot)
    return _odd(lot, Answer(b"\x00<ti\x00tle>\x00a\x00</title>" + found.html.encode() + b"\x00\x00"), found)


def hostile_text(lot: Lot) -> Built:
    """Scripts, SQL, formulas and control characters where a text belongs; kept or not, they must harm nobody."""
    found = _info(lot)
    text = (
        "<title>=cmd|' /C calc'!A0 <script>alert(1)</script></title><h1>'); DROP TABLE contact; --</h1>"
        '<li class="team-member"><h3>"><img src=x onerror=alert(1)></h3><p class="role">\x1b[31mChief\x07</p>'
        f"{found.html}<p>\ud7ff\u202e gnirts</p></li>" + "<div>" * 3000
    )
    return _odd(lot, Answer(text.encode()), found)


def wrong_charset(lot: Lot) -> Built:
    found = write_email(mailto, "buero", lot.domain)
    body = f"<h1>B\u00fcro f\u00fcr Rohre</h1>{found.html}<p>{escape(shown(lot.phone))}</p>".encode("cp1252")
    return _odd(lot, Answer(body, kind=HTML), found)


def endless_rules(lot: Lot) -> Built:
    """A robots.txt without an end: the first 500 KiB count."""
    found = _info(lot)
    built = _odd(lot, Answer(found.html.encode()), found)
    built.sites[lot.host].answers["/robots.txt"] = endless_robots()
    return built


def sent_on(lot: Lot) -> Built:
    """A page that only sends its visitors on, as small websites do it."""
    found = _info(lot)
    built = _odd(lot, Answer(b"<meta http-equiv=Refresh content='0; URL=/kontakt.html'><p>One moment"), found)
    built.sites[lot.host].answers["/kontakt.html"] = Answer(found.html.encode())
    return built


def untyped(lot: Lot) -> Built:
    """Nobody says that it is HTML."""
    found = _info(lot)
    return _odd(lot, Answer(f"\n<!DOCTYPE html>{found.html}".encode(), kind=""), found)


def silent_gzip(lot: Lot) -> Built:
    """Compressed, and nobody says so."""
    found = _info(lot)
    return _odd(lot, Answer(gzip.compress(found.html.encode(), mtime=0)), found)


def odd_encoding(lot: Lot) -> Built:
    """A charset where the compression belongs."""
    found = _info(lot)
    return _odd(lot, Answer(found.html.encode(), headers=(("Content-Encoding", "UTF-8"),)), found)


challenge = partial(_home, Answer(b"<title>One moment</title><p>Checking your browser", 202), "HTTP 202 (Accepted)")
"""As a firewall answers whoever it takes for a robot."""
empty = _status(204, "No Content")


TROUBLES: tuple[Trouble, ...] = (
    refused, forbidden_page, no_sitemap, busy, silent, off_site, bomb, nul_bytes, unknown, looping_indexes, dead_link,
    to_the_inside, slow, robots_forbid_all, soft_404, page_for_everything, wrong_charset, failing, without_tls, picture,
    hostile_text, gone, moved_page, circle, huge_page, not_html, home_elsewhere, endless, back_home, dripping,
    bottomless_indexes, cut_page, endless_rules, robots_fail, page_to_the_inside, garbage, not_found, empty_sitemap,
    endless_redirects, overrun, cut_off, forbidden, sent_on, challenge, untyped, silent_gzip, odd_encoding, empty,
)  # fmt: skip
