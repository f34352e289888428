"""robots.txt as sites have it. None of these forbids what the town wants found; those that do are trouble."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from services.simulation.server import Manner
from services.simulation.site import HTML, NOT_FOUND, TEXT, Answer, redirect


@dataclass(frozen=True)
class Rules:
    answer: Answer | None
    """None: there is no such file."""
    names_sitemap: bool = True


RobotsWay = Callable[[str, str], Rules]
"""(root of the site, address of its sitemap) → its robots.txt."""


def _text(lines: str, **more: str) -> Rules:
    return Rules(Answer(lines.encode(), kind=more.get("kind", TEXT)), "sitemap:" in lines.lower())


def allow_all(_: str, sitemap: str) -> Rules:
    return _text(f"User-agent: *\nAllow: /\n\nSitemap: {sitemap}\n")


def disallow_parts(_: str, sitemap: str) -> Rules:
    rules = "User-agent: *\nDisallow: /wp-admin/\nAllow: /wp-admin/admin-ajax.php\nDisallow: /*?s=\nDisallow: /cart$\n"
    return _text(f"{rules}Sitemap: {sitemap}\n")


def crawl_delay(_: str, sitemap: str) -> Rules:
    return _text(f"User-agent: *\nCrawl-delay: 0.2\nDisallow:\nSitemap: {sitemap}")


def request_rate(_: str, sitemap: str) -> Rules:
    return _text(f"User-agent: *\nRequest-rate: 5/1s\nDisallow: /private\nSitemap: {sitemap}")


def html_instead(_: str, __: str) -> Rules:
    return Rules(
        Answer(b"<!DOCTYPE html><html><body>User-agent: * Disallow: /</body></html>", kind=HTML), names_sitemap=False
    )


def not_found(_: str, __: str) -> Rules:
    return Rules(Answer(NOT_FOUND, 404), names_sitemap=False)


def forbidden(_: str, __: str) -> Rules:
    """A 4xx means: no rules."""
    return Rules(Answer(b"forbidden", 403, TEXT), names_sitemap=False)


def huge(_: str, sitemap: str) -> Rules:
    """Over the 500 KiB that are read; what forbids everything comes after them."""
    return Rules(Answer(partial(_huge, sitemap), kind=TEXT))


def _huge(sitemap: str) -> bytes:
    many = "".join(f"Disallow: /archive/{n:07}\n" for n in range(24_000))
    return f"Sitemap: {sitemap}\nUser-agent: *\n{many}Disallow: /\n".encode()


def byte_order_mark(_: str, sitemap: str) -> Rules:
    return _text(f"\ufeffUser-agent: *\r\nDisallow: /tmp\r\nSitemap: {sitemap}\r\n")


def several_agents(_: str, sitemap: str) -> Rules:
    return _text(
        "User-agent: GPTBot\nUser-agent: CCBot\nDisallow: /\n\nUser-agent: *\nDisallow: /contact\n\n"
        f"User-agent: ScraperSky\nUser-agent: OtherBot\nDisallow: /private/\n\nSitemap: {sitemap}\n"
    )


def our_name_in_capitals(_: str, sitemap: str) -> Rules:
    return _text(f"user-agent: SCRAPERSKY\nallow: /\n\nuser-agent: *\ndisallow: /\nsitemap: {sitemap}\n")


def comments_and_junk(_: str, sitemap: str) -> Rules:
    return _text(
        "# hello robots, write to robots@nobody.net\nThis is no rule\nUser-agent: * # all\nDisallow: # nothing\n"
        f"Host: x\nClean-param: utm\nSitemap:{sitemap} # ours\nSitemap: not a url\n"
    )


def longest_match(_: str, sitemap: str) -> Rules:
    return _text(f"User-agent: *\nDisallow: /\nAllow: /\nDisallow: /internal/\nSitemap: {sitemap}\n")


def empty(_: str, __: str) -> Rules:
    return Rules(Answer(b"", kind=TEXT), names_sitemap=False)


def several_sitemaps(root: str, sitemap: str) -> Rules:
    return _text(f"User-agent: *\nAllow: /\nSitemap: {sitemap}\nSitemap: {root}/old-sitemap.xml\nSitemap: {sitemap}\n")


def circle(root: str, __: str) -> Rules:
    """One that leads nowhere is none."""
    return Rules(redirect(f"{root}/robots.txt", 302), names_sitemap=False)


def wrong_type(_: str, sitemap: str) -> Rules:
    return _text(f"User-agent: *\nAllow: /\nSitemap: {sitemap}\n", kind="application/octet-stream")


ROBOTS_WAYS: tuple[RobotsWay, ...] = (
    allow_all, disallow_parts, html_instead, several_agents, not_found, byte_order_mark, crawl_delay, huge, forbidden,
    our_name_in_capitals, comments_and_junk, longest_match, empty, several_sitemaps, request_rate, circle, wrong_type,
)  # fmt: skip


def endless() -> Answer:
    return Answer(b"Disallow: /nothing-to-see-here\n" * 2000, kind=TEXT, manner=Manner.ENDLESS)
