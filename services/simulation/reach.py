"""The ways in which pages write addresses and phone numbers, and the things that only look like them.

Each way makes the markup and says, without reading it, what is to be found in it. A page is given as many ways as it
needs; every piece of noise may stand on any page.
"""

import base64
import codecs
from collections.abc import Callable
from dataclasses import dataclass
from html import escape


@dataclass(frozen=True)
class Person:
    name: str
    role: str

    @property
    def box(self) -> str:
        return self.name.split()[0].lower()


@dataclass(frozen=True)
class Reach:
    """A piece of a page, and what is to be found in it."""

    html: str
    emails: frozenset[str] = frozenset()
    phones: frozenset[str] = frozenset()

    def __add__(self, other: "Reach") -> "Reach":
        return Reach(f"{self.html}\n{other.html}", self.emails | other.emails, self.phones | other.phones)


EmailWay = Callable[[str, str], str]
"""(name of the mailbox, host) → markup."""
PhoneWay = Callable[[str, str], str]
"""(number in E.164, the number as its country writes it) → markup."""


def write_email(way: EmailWay, box: str, host: str) -> Reach:
    return Reach(way(box, host), frozenset({f"{box}@{host}"}))


def write_phone(way: PhoneWay, number: str) -> Reach:
    return Reach(way(number, shown(number)), phones=frozenset({number}))


def shown(number: str) -> str:
    """As people of its country write it, with the country's code where it is not the town's own."""
    if number.startswith("+1"):
        return f"({number[2:5]}) {number[5:8]}-{number[8:]}"
    return f"{number[:3]} {number[3:5]} {number[5:9]} {number[9:]}".rstrip()


# -- addresses --------------------------------------------------------------------------------------------------------


def mailto(box: str, host: str) -> str:
    return f'<p>Mail: <a href="mailto:{box}@{host}">{box}@{host}</a></p>'


def mailto_with_subject(box: str, host: str) -> str:
    return f'<a class="btn" href="mailto:{box}%40{host}?subject=Your%20quote&amp;cc=">Ask for a quote</a>'


def mailto_named(box: str, host: str) -> str:
    return f'<a href="MAILTO:%22The%20desk%22%20%3C{box}@{host}%3E">Write to the desk</a>'


def mailto_spaced(box: str, host: str) -> str:
    return f'<a href=" mailto:%20{box}@{host} ">Write</a>'


def plain(box: str, host: str) -> str:
    return f"<p>Or write to {box}@{host}. We answer within a day.</p>"


def capitals(box: str, host: str) -> str:
    return f"<p>E-MAIL: {box.upper()}@{host.upper()}</p>"


def next_sentence(box: str, host: str) -> str:
    return f"<p>Reach us at {box}@{host}.Call before you come.</p>"


def decimal_entities(box: str, host: str) -> str:
    return f"<p>Write to {''.join(f'&#{ord(letter)};' for letter in f'{box}@{host}')}</p>"


def hexadecimal_entities(box: str, host: str) -> str:
    coded = "".join(f"&#x{ord(letter):x};" for letter in f"mailto:{box}@{host}")
    return f'<a href="{coded}">Write to us</a>'


def named_entities(box: str, host: str) -> str:
    return f"<p>{box}&commat;{host.replace('.', '&period;')}</p>"


def square_brackets(box: str, host: str) -> str:
    return f"<p>{box} [at] {host.replace('.', ' [dot] ')}</p>"


def round_brackets(box: str, host: str) -> str:
    return f"<p>E-mail: {box}(at){host.replace('.', '(dot)')}</p>"


def curly_brackets(box: str, host: str) -> str:
    return f"<p>{box}{{at}}{host.replace('.', '{dot}')}</p>"


def angle_brackets(box: str, host: str) -> str:
    return f"<p>{box} &lt;at&gt; {host.replace('.', ' &lt;dot&gt; ')}</p>"


def at_in_brackets_only(box: str, host: str) -> str:
    return f"<p>{box} (@) {host}</p>"


def spoken(box: str, host: str) -> str:
    return f"<p>Just write: {box} at {host.replace('.', ' dot ')}</p>"


def german(box: str, host: str) -> str:
    return f"<p>{box} [ät] {host.replace('.', ' [punkt] ')}</p>"


def spanish(box: str, host: str) -> str:
    return f"<p>correo: {box} (arroba) {host.replace('.', ' (punto) ')}</p>"


def full_width(box: str, host: str) -> str:
    return f"<p>{box}＠{host}</p>"  # noqa: RUF001


def zero_width(box: str, host: str) -> str:
    return f"<p>{box[:1]}\u200b{box[1:]}\u200c@\u200b{host}</p>"


def soft_hyphens(box: str, host: str) -> str:
    return f"<p>{box}@{host[:3]}&shy;{host[3:]}</p>"


def split_by_tags(box: str, host: str) -> str:
    name, _, top = host.rpartition(".")
    return f"<p><b>{box}</b><!-- no robots --><i>@</i><span>{name}</span><!-- -->.<em>{top}</em></p>"


def decoys(box: str, host: str) -> str:
    hidden = '<span style="display:none">nospam.</span>'
    return f"<p>{box}@{hidden}{host}<span hidden>.invalid</span></p>"


def decoys_by_class(box: str, host: str) -> str:
    style = "<style>.aQz81{display:none}</style>"
    return f'{style}<p>{box}<span class="aQz81">-remove-this</span>@{host}</p>'


def reversed_text(box: str, host: str) -> str:
    backwards = f"{box}@{host}"[::-1]
    return f'<p><span style="unicode-bidi:bidi-override;direction:rtl">{backwards}</span></p>'


def cloudflare_span(box: str, host: str) -> str:
    code = cloudflare(f"{box}@{host}")
    return f'<p><span class="__cf_email__" data-cfemail="{code}">[email&#160;protected]</span></p>'


def cloudflare_link(box: str, host: str) -> str:
    code = cloudflare(f"{box}@{host}?subject=Hello")
    return f'<a href="/cdn-cgi/l/email-protection#{code}"><i class="fa fa-envelope"></i> Mail</a>'


def rot13(box: str, host: str) -> str:
    coded = codecs.encode(f"mailto:{box}@{host}", "rot13")
    turn = "c=>String.fromCharCode((c<='Z'?90:122)>=(c=c.charCodeAt(0)+13)?c:c-26)"
    script = f"this.href=this.dataset.h.replace(/[a-z]/gi,{turn})"
    return f'<a href="#" data-h="{coded}" onmouseover="{escape(script)}">Write to us</a>'


def shifted_letters(box: str, host: str) -> str:
    """As TYPO3 does it, one letter further each."""
    coded = "".join(_next(letter) for letter in f"mailto:{box}@{host}")
    return f"""<a href="javascript:linkTo_UnCryptMailto('{coded}');">write</a>"""


def spamspan(box: str, host: str) -> str:
    return (
        f'<span class="spamspan"><span class="u">{box}</span> [at] <span class="d">{host.replace(".", " [dot] ")}'
        "</span></span>"
    )


def data_user_and_domain(box: str, host: str) -> str:
    return f'<a class="mail" href="#" data-user="{box}" data-domain="{host}">Show the address</a>'


def data_with_top(box: str, host: str) -> str:
    name, _, top = host.rpartition(".")
    return f'<span class="cryptedmail" data-name="{box}" data-domain="{name}" data-tld="{top}"></span>'


def base64_script(box: str, host: str) -> str:
    coded = base64.b64encode(f'<a href="mailto:{box}@{host}">{box}@{host}</a>'.encode()).decode()
    return f'<script>document.write(atob("{coded}"))</script>'


def written_in_parts(box: str, host: str) -> str:
    return (
        f"<script>document.write('<a href=\"mailto:' + '{box}' + '@' + '{host}' + '\">' + 'Mail us' + '</a>');</script>"
    )


def written_with_names(box: str, host: str) -> str:
    return f"""<script>var user = "{box}"; var site = '{host}';
document.write("<a href='mailto:" + user + "@" + site + "'>" + user + "@" + site + "</a>");</script>"""


def json_ld(box: str, host: str) -> str:
    return (
        '<script type="application/ld+json">{"@context": "https://schema.org", "@graph": [{"@type": "WebSite", '
        '"name": "x"}, {"@type": "Organization", "contactPoint": {"@type": "ContactPoint", '
        f'"email": "mailto:{box}@{host}"}}}}]}}</script>'
        '<script type="application/ld+json">{ this block is broken, and must not hide the other</script>'
    )


def commented_json_ld(box: str, host: str) -> str:
    return (
        '<script type="application/ld+json">\n//<![CDATA[\n{"@context":"https://schema.org","@type":"LocalBusiness",'
        f'"email":"{box}@{host}",}}\n//]]>\n</script>'
    )


def microdata(box: str, host: str) -> str:
    return (
        '<div itemscope itemtype="https://schema.org/Plumber"><span itemprop="name">The shop</span>'
        f'<meta itemprop="email" content="{box}@{host}"></div>'
    )


def microformat(box: str, host: str) -> str:
    return f'<div class="h-card"><a class="u-email" href="mailto:{box}@{host}">mail</a></div>'


EMAIL_WAYS: tuple[EmailWay, ...] = (
    mailto, cloudflare_span, decimal_entities, square_brackets, json_ld, mailto_with_subject, plain, rot13,
    split_by_tags, written_in_parts, spamspan, reversed_text, data_user_and_domain, base64_script, decoys, zero_width,
    microdata, round_brackets, shifted_letters, hexadecimal_entities, cloudflare_link, spoken, full_width,
    written_with_names, named_entities, mailto_named, german, decoys_by_class, capitals, commented_json_ld,
    angle_brackets, data_with_top, spanish, soft_hyphens, at_in_brackets_only, mailto_spaced, microformat,
    curly_brackets, next_sentence,
)  # fmt: skip


# -- phone numbers ----------------------------------------------------------------------------------------------------


def tel(number: str, written: str) -> str:
    return f'<p>Call <a href="tel:{number}">{written}</a></p>'


def tel_as_written(number: str, written: str) -> str:
    return f'<a href="tel:{written.replace(" ", "%20") if number.startswith("+1") else number}">Call now</a>'


def tel_double_slash(number: str, written: str) -> str:
    return f'<a class="phone" href="tel://{number};ext=12"><span>{written}</span></a>'


def in_text(_: str, written: str) -> str:
    return f"<p>Phone: {written}</p>"


def in_a_sentence(_: str, written: str) -> str:
    return f"<p>Our dispatcher answers at {written}, day and night.</p>"


def dotted(number: str, written: str) -> str:
    text = f"{number[2:5]}.{number[5:8]}.{number[8:]}" if number.startswith("+1") else written
    return f"<div>t. {text}</div>"


def international(number: str, written: str) -> str:
    text = f"+1 {number[2:5]} {number[5:8]} {number[8:]}" if number.startswith("+1") else written
    return f"<ul><li>Tel.: {text}</li></ul>"


def in_json_ld(number: str, _: str) -> str:
    return (
        '<script type="application/ld+json">[{"@context": "https://schema.org", "@type": "LocalBusiness", "telephone": '
        f'"{number}", "address": {{"@type": "PostalAddress", "streetAddress": "100 Congress Ave", '
        '"addressLocality": "Austin", "addressCountry": "US"}}]</script>'
    )


def in_microdata(_: str, written: str) -> str:
    return (
        f'<div itemscope itemtype="https://schema.org/LocalBusiness"><span itemprop="telephone">{written}</span></div>'
    )


def callto(number: str, _: str) -> str:
    return f'<a href="callto:{number}">by Skype</a>'


PHONE_WAYS: tuple[PhoneWay, ...] = (
    tel, in_text, in_json_ld, tel_as_written, dotted, in_a_sentence, in_microdata, international, tel_double_slash,
    callto,
)  # fmt: skip


# -- people -----------------------------------------------------------------------------------------------------------


def team(people: list[Person], host: str) -> Reach:
    """Cards of people, as themes make them."""
    cards = "".join(
        f'<li class="team-member"><h3>{escape(one.name)}</h3><p class="role">{escape(one.role)}</p>'
        f'<a href="mailto:{one.box}@{host}">write</a></li>'
        for one in people
    )
    return Reach(f"<ul>{cards}</ul>", frozenset(f"{one.box}@{host}" for one in people))


# -- what is not there ------------------------------------------------------------------------------------------------

NOISE: tuple[str, ...] = (
    '<img src="/img/logo@2x.png" srcset="/img/logo@2x.png 2x, /img/logo@3x.webp 3x" alt="logo@2x.png">',
    "<p>Mails come from no-reply@mailer.example.com. Template: yourname@example.com, name@domain.com.</p>",
    "<p>Order 5125550123 of 2024, item 9781234567897, build react@18.2.0.</p>",
    '<script>Sentry.init({dsn: "https://0123456789abcdef0123456789abcdef@o12345.ingest.sentry.io/678"})</script>',
    "<p>0d1e2f3a4b5c6d7e8f900a1b2c3d4e5f@sentry.wixpress.com</p>",
    '<a href="mailto:?subject=Look%20at%20this&amp;body=https%3A%2F%2Fx.y">Share by mail</a>',
    '<a href="mailto:">Mail</a> <a href="tel:">Call</a> <a href="tel:+0">Call</a>',
    f'<a href="/cdn-cgi/l/email-protection#{"5118151e1d1c1102051403"}">[email&#160;protected]</a>',
    "<p>IBAN DE89 3704 0044 0532 0130 00, VAT DE 123456789, license TACLA 5124411234, EIN 12-3456789.</p>",
    '<form action="/send"><input type="email" placeholder="you@company.com"><textarea>me@gmail.com</textarea></form>',
    "<!-- the old address was webmaster@old-agency.net, call 512 441 9999 -->",
    '<p style="display:none">trap@spam-catcher.net 512-441-9998</p>',
    "<p>Fax: (512) 441-9997. Opened 2024-05-17, closed 17.05.2025, zip 78701-1234.</p>",
    "<p>Follow us: @plumbers@mastodon.social, meet us at example.com or look at home.html</p>",
    '<a href="https://www.facebook.com/sharer/sharer.php?u=x&amp;email=friend@sharing.net">Share</a>',
    '<script>window.__STATE__={"visitor":"5124419996","mail":"build@webpack-internal.net","v":"1.2.3"}</script>',
    '<div data-id="5124419995" data-config="{&quot;to&quot;:&quot;bot@forms-service.net&quot;}"></div>',
    "<p>Part no. 512-441-9994, coordinates 30.2672, -97.7431, invoice 2025-0001234567.</p>",
    "<style>@media print{.x:after{content:'print@styles.net'}}</style><noscript><img src='//t.co/?e=p@x.io'>",
    "<table><tr><td>12</td><td>5551234</td><td>100 200 300 400</td></tr></table>",
)
"""Names of images, ids of trackers, templates, versions, hidden traps, faxes and numbers of every other kind."""


def cloudflare(text: str) -> str:
    """As Cloudflare hides addresses: the first byte is XORed to the others."""
    return "5a" + "".join(f"{byte ^ 0x5A:02x}" for byte in text.encode())


def _next(letter: str) -> str:
    for low, high in ((0x2B, 0x3A), (0x40, 0x5A), (0x61, 0x7A)):
        if low <= ord(letter) <= high:
            return chr(low + (ord(letter) - low + 1) % (high - low + 1))
    return letter
