"""The websites of the simulated town: pages as real ones are, with their contacts written in every common way."""

import gzip
from collections.abc import Iterable
from dataclasses import dataclass, field
from html import escape

HTML = "text/html; charset=utf-8"
XML = "application/xml"
ELSEWHERE = "www.directory.org"


@dataclass(frozen=True)
class Answer:
    body: bytes
    status: int = 200
    kind: str = HTML
    headers: tuple[tuple[str, str], ...] = ()


@dataclass
class Site:
    """Path → answer; what is not here is not found."""

    answers: dict[str, Answer] = field(default_factory=dict)
    stumbles: dict[str, int] = field(default_factory=dict)
    """Path → how often it answers 503 before it answers."""
    moved_to: str | None = None
    """Everything is there instead, under the same path."""

    def get(self, path: str) -> Answer:
        if self.moved_to:
            return Answer(b"", 301, headers=(("Location", self.moved_to + path),))
        if self.stumbles.get(path, 0) > 0:
            self.stumbles[path] -= 1
            return Answer(b"busy", 503, "text/plain", (("Retry-After", "1"),))
        return self.answers.get(path) or Answer(_page("Not found", "<p>There is nothing here.</p>"), 404)


Made = tuple[Site, set[str], set[str]]


def make_site(shape: str, domain: str, name: str, person: str, phone: str) -> Made:
    """A website, the addresses and the phone numbers that are to be found on it."""
    if shape == "gone":
        return Site({"/": Answer(b"gone", 410, "text/plain")}), set(), set()
    root = f"https://www.{domain}"
    contact, emails, phones = _contact(shape, domain, person, phone)
    pages = {
        "/": _page(name, f"<h1>{escape(name)}</h1><p>Pipes and drains since 1987.</p>", shape),
        "/about-us/": _page(f"About {name}", "<h1>About us</h1><p>A family business.</p>"),
        "/contact/": _page(f"Contact {name}", contact),
        "/services/drain-cleaning/": _page("Drain cleaning", "<h1>Drain cleaning</h1>"),
        "/blog/2024/05/how-to-fix-a-tap/": _page("How to fix a tap", "<p>Write to tap@blog-readers.net</p>"),
    }
    if shape == "team":
        pages["/our-team/"] = _page("Our team", _team(domain, person))
        emails |= {f"{person.split()[0].lower()}@{domain}", f"office@{domain}"}
    site = Site({path: Answer(body) for path, body in pages.items()})
    robots = "User-agent: *\nAllow: /\n"
    listed = [f"{root}{path}" for path in pages] + [f"{root}/img/van.jpg", f"{root}/tag/taps/"]
    if shape == "forbidden":
        robots = "User-agent: *\nDisallow: /contact\n"
        emails, phones = set(), set()
    if shape == "off-site":
        site.answers["/contact/"] = Answer(b"", 302, headers=(("Location", f"https://{ELSEWHERE}/"),))
        emails, phones = set(), set()
    if shape == "busy":
        site.stumbles["/contact/"] = 1
    if shape == "no sitemap":
        emails, phones = set(), set()
    else:
        robots += f"Sitemap: {root}/sitemap.xml\n"
        site.answers |= _sitemaps(root, listed, nested=shape in ("mailto", "team"))
    site.answers["/robots.txt"] = Answer(robots.encode(), kind="text/plain")
    return site, emails, phones


def elsewhere() -> Site:
    """Where an off-site redirect leads: somebody else's website, whose contacts are not ours to take."""
    return Site({"/": Answer(_page("A directory", '<a href="mailto:sales@directory.org">Advertise here</a>'))})


def _contact(shape: str, domain: str, person: str, phone: str) -> tuple[str, set[str], set[str]]:
    """The contact page's body, and what is to be read off it."""
    shown = f"({phone[2:5]}) {phone[5:8]}-{phone[8:]}"
    call = f'<p>Call <a href="tel:{phone}">{shown}</a></p>'
    info = f"info@{domain}"
    match shape:
        case "cloudflare":
            hidden = f'<span class="__cf_email__" data-cfemail="{_cloudflare(info)}">[email&#160;protected]</span>'
            return f"<p>{hidden}</p>{call}", {info}, {phone}
        case "entities":
            coded = "".join(f"&#{ord(letter)};" for letter in info)
            return f"<p>Write to {coded}</p>{call}", {info}, {phone}
        case "spelled out":
            user, _, host = info.partition("@")
            return f"<p>{user} [at] {host.replace('.', ' [dot] ')}</p>{call}", {info}, {phone}
        case "structured":
            return _structured(info, person, phone), {info}, {phone}
        case "free mail":
            mail = f"{domain.split('.')[0].replace('-', '')}@gmail.com"
            return f'<p><a href="mailto:{mail}?subject=Hello">Mail us</a></p>{call}', {mail}, {phone}
        case "phone only":
            return f"<p>We do not read mail.</p>{call}", set(), {phone}
        case "nothing":
            return "<form action='/send'><input name='message'></form>", set(), set()
        case "noise":
            return f"{_NOISE}<p>{info}</p>", {info}, set()
    return f'<p><a href="mailto:{info}">{info}</a></p>{call}', {info}, {phone}


_NOISE = """
<img src="/img/logo@2x.png" alt="logo@2x.png">
<p>Mails come from no-reply@mailer.example.com. Template: yourname@example.com.</p>
<p>Order 5125550123 of 2024, item 9781234567897, build react@18.2.0.</p>
<script>Sentry.init({dsn: "https://0123456789abcdef0123456789abcdef@o12345.ingest.sentry.io/678"})</script>
"""


def _structured(email: str, person: str, phone: str) -> str:
    return f"""<h1>Contact</h1>
<script type="application/ld+json">{{"@context": "https://schema.org", "@type": "Plumber", "email": "{email}",
"telephone": "{phone}", "founder": {{"@type": "Person", "name": "{person}", "jobTitle": "Founder"}}}}</script>
<script type="application/ld+json">{{ this block is broken, and must not hide the other</script>"""


def _team(domain: str, person: str) -> str:
    first = person.split()[0].lower()
    return f"""<ul>
<li class="member"><h3>{escape(person)}</h3><p>Owner</p><a href="mailto:{first}@{domain}">write</a></li>
<li class="member"><h3>The office</h3><a href="mailto:OFFICE@{domain}">write</a></li></ul>"""


def _cloudflare(text: str) -> str:
    """As Cloudflare hides addresses: the first byte is XORed to the others."""
    return "5a" + "".join(f"{byte ^ 0x5A:02x}" for byte in text.encode())


def _page(title: str, body: str, shape: str = "") -> bytes:
    generator = '<meta name="generator" content="WordPress 6.6.2">' if shape in ("mailto", "team") else ""
    return f"""<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8"><title>{escape(title)}</title>{generator}
<meta name="description" content="Plumbers in Austin"></head>
<body><nav><a href="/">Home</a> <a href="/contact/">Contact</a></nav>{body}
<footer>Open Monday to Friday, 8 to 17</footer></body></html>""".encode()


def _sitemaps(root: str, urls: Iterable[str], *, nested: bool) -> dict[str, Answer]:
    """One sitemap, or an index with a compressed child as WordPress plugins make it."""
    rows = "".join(f"<url><loc>{escape(url)}</loc><lastmod>2026-01-02</lastmod></url>" for url in urls)
    pages = f'<?xml version="1.0"?><urlset xmlns="{_XMLNS}">{rows}</urlset>'.encode()
    if not nested:
        return {"/sitemap.xml": Answer(pages, kind=XML)}
    child = f"<sitemap><loc>{root}/page-sitemap.xml.gz</loc></sitemap>"
    index = f'<?xml version="1.0"?><sitemapindex xmlns="{_XMLNS}">{child}</sitemapindex>'
    return {
        "/sitemap.xml": Answer(index.encode(), kind=XML),
        "/page-sitemap.xml.gz": Answer(gzip.compress(pages, mtime=0), kind="application/gzip"),
    }


_XMLNS = "http://www.sitemaps.org/schemas/sitemap/0.9"
