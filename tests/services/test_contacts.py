"""Contacts are what people pay for: none missed that a reader sees, none invented, none of nobody."""

import random

import phonenumbers
import pytest

from services.contacts import PageContacts, contacts, phones
from services.contacts.emails import type_of
from services.contacts.extract import MOST_CONTACTS
from services.html import read_page

URL = "https://www.joes.com/contact"


def read(body: str, *, url: str = URL, country: str | None = "US", head: str = "") -> PageContacts:
    source = f"<!doctype html><html lang=en><head>{head}</head><body>{body}</body></html>"
    return contacts(read_page(source, url, explain=True), country=country)


def cloudflare(text: str, key: int = 0x51) -> str:
    return f"{key:02x}" + "".join(f"{byte ^ key:02x}" for byte in text.encode())


@pytest.mark.parametrize(
    ("body", "rule"),
    [
        ('<a href="mailto:ann@joes.com">x</a>', "mailto"),
        ('<a href="MAILTO:%61nn%40joes.com?subject=hi&cc=x">x</a>', "mailto"),
        ('<a href="mailto:Ann%20%3Cann@joes.com%3E">x</a>', "mailto"),
        ("<p>Write to Ann@Joes.com.</p>", "text"),
        ("<p>ann@joes.com.Call us</p>", "text"),
        ("<span>E-Mail:ann@joes.com</span><span>Phone: 1</span>", "text"),
        ("<p>%20ann@joes.com</p>", "text"),
        ("<p>&#97;nn&#64;joes&#x2e;com</p>", "text"),
        ("<p>ann&commat;joes&period;com</p>", "text"),
        ("<p>a<b>nn</b>@<i>joes</i>.com</p>", "text"),
        ("<p>ann<!-- no -->@joes<wbr>.com</p>", "text"),
        ("<p>ann\u200b@joes\u00ad.com</p>", "text"),
        ("<p>ann＠joes．com</p>", "text"),  # noqa: RUF001
        ('<p>an<span style="display: none">XX</span>n@joes.com</p>', "text"),
        ("<style>.nospam{ color:red; display:none }</style><p>an<span class=nospam>XX</span>n@joes.com</p>", "text"),
        ("<p>ann [at] joes [dot] com</p>", "bracketed"),
        ("<p>ann(at)joes.com</p>", "bracketed"),
        ("<p>ann {arroba} joes {punto} com</p>", "bracketed"),
        ("<p>ann &lt;at&gt; joes (dot) com</p>", "bracketed"),
        ("<p>ann[@]joes.com</p>", "bracketed"),
        ("<p>mail ann at joes dot com today</p>", "spoken"),
        (f'<span data-cfemail="{cloudflare("ann@joes.com")}">[email&#160;protected]</span>', "cloudflare"),
        (f'<a href="/cdn-cgi/l/email-protection#{cloudflare("ann@joes.com?subject=x")}">x</a>', "cloudflare"),
        (
            '<span class="spamspan"><span class="u">ann</span> @ <span class="d">joes [dot] com</span></span>',
            "spamspan",
        ),
        ('<a data-user="ann" data-domain="joes.com">x</a>', "data attributes"),
        ('<a data-name="ann" data-domain="joes" data-tld="com">x</a>', "data attributes"),
        ('<span style="unicode-bidi:bidi-override;direction:rtl">moc.seoj@nna</span>', "reversed"),
        ('<span style="direction: rtl">moc.seoj@nna</span>', "reversed"),
        ('<a href="mailto://ann@joes.com">x</a>', "mailto"),
        ('<script type="application/ld+json">{"@type":"Person","email":"MAILTO:Ann@Joes.com"}</script>', "json-ld"),
        ("<a onclick=\"go('znvygb:naa@wbrf.pbz')\">x</a>", "rot13"),
        ("<a href=\"javascript:linkTo_UnCryptMailto('nbjmup;booAkpft/dpn');\">x</a>", "shifted letters"),
        ('<a href="javascript:linkTo_UnCryptMailto(%27nbjmup+booAkpft/dpn%27);">x</a>', "shifted letters"),
        ("<script>go(atob('YW5uQGpvZXMuY29t'))</script>", "base64"),
        ("<script>document.write('<a href=\"mailto:'+'ann'+'@'+'joes.com'+'\">')</script>", "script"),
        ("<script>var u = 'ann', h = \"joes.com\"; document.write(u + '&#64;' + h)</script>", "script"),
        ('<script type="application/ld+json">{"@type":"Person","email":"mailto:ann@joes.com"}</script>', "json-ld"),
        ('<div itemscope itemtype="https://schema.org/Person"><b itemprop="email">ann@joes.com</b></div>', "microdata"),
    ],
)
def test_an_address_is_found_however_it_is_written(body: str, rule: str) -> None:
    found = read(body)
    assert found.emails == ["ann@joes.com"], found.refused
    assert rule in {evidence.rule for evidence in found.contacts[0].evidence}


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        ("<p>no-reply@joes.com</p>", "no-reply"),
        ("<p>donotreply@joes.com</p>", "no-reply"),
        ("<p>you@example.com</p>", "placeholder"),
        ("<p>your.name@joes.com</p>", "placeholder"),
        ("<p>info@yourdomain.com</p>", "placeholder"),
        ("<p>your@email.com</p>", "placeholder"),
        ("<p>git@joes.com:shop.git</p>", "repository"),
        ("<p>logo@2x.png</p>", "image"),
        ("<p>photo@joes.jpg</p>", "top-level"),
        ("<p>0123456789abcdef01234567@sentry.io</p>", "tracker"),
        ("<p>0123456789abcdef0123456789abcdef@joes.com</p>", "tracker"),
        ("<p>@ann@joes.social</p>", "handle"),
        ("<p>https://user:pass@joes.com/x</p>", "URL"),
        (f'<a href="/cdn-cgi/l/email-protection#{cloudflare("IDOLM@STER")}">x</a>', "no dot"),
        ('<div style="display:none">trap@joes.com <a href="mailto:trap@joes.com">x</a></div>', "do not see"),
        ("<p hidden>trap@joes.com</p>", "do not see"),
        ("<p>joe@joes.com@evil.com</p>", "more than one"),
    ],
)
def test_noise_is_refused_with_the_reason(body: str, reason: str) -> None:
    found = read(body)
    assert found.emails == []
    assert any(reason in refused.reason for refused in found.refused), found.refused


@pytest.mark.parametrize(
    "body",
    [
        "<p>visit us at example.com or find us at joes.com</p>",
        "<p>npm install vue@2.6.12 and pkg@1.2.3</p>",
        "<script>var x = 'ann@joes.com'</script><style>@media print{}</style>",
        '<a href="mailto:?subject=Look&body=at">share</a><a href="mailto:">x</a>',
        "<p>@handle and https://medium.com/@joe.miller and maps/@30.1,-97.2,14z</p>",
        "<textarea>ann@joes.com</textarea>",
        "<p>we meet at noon (at the house)</p>",
        "<p>contact us at joes dot com, look at joes dot com or find it at joes dot com</p>",
        '<p style="direction:rtl">moc.rehto@nna</p>',
        "<p>UUID 123e4567-e89b-12d3-a456-426614174000, 48.137154 11.575382, 4111 1111 1111 1111</p>",
        "<p>512 473 1234 USD, 512.473.1234 €, 512 473 1234 sq ft</p>",
        "<p>Lot 512-473-1234, ISBN 978-3-16-148410-0, #512-473-1234, order 5124731234</p>",
    ],
)
def test_nothing_is_invented(body: str) -> None:
    assert read(body).contacts == []


@pytest.mark.parametrize(
    ("body", "country", "url", "number"),
    [
        ('<a href="tel:+1-512-472-1234">call</a>', None, URL, "+15124721234"),
        ('<a href="tel:(512)%20472-1234;ext=5">call</a>', "US", URL, "+15124721234"),
        ("<p>(512) 472-1234</p>", "US", URL, "+15124721234"),
        ("<p>Call 5124721234 now</p>", "US", URL, "+15124721234"),
        ("<p>Tel: 030 901820</p>", None, "https://joes.de/", "+4930901820"),
        ("<p>+49 (0)30 901820</p>", "US", URL, "+4930901820"),
        ("<p>0049 30 901820</p>", "US", URL, "+4930901820"),
        ("<p>Phone number: 020 7946 0958</p>", "UK", URL, "+442079460958"),
        ("<p>512<b>-472-</b>1234</p>", "US", URL, "+15124721234"),
        ("<p>(512) 472-1234x55</p>", "US", URL, "+15124721234"),
    ],
)
def test_a_phone_number_is_kept_as_e164(body: str, country: str | None, url: str, number: str) -> None:
    found = read(body, country=country, url=url)
    assert found.phones == [number], found.refused
    assert found.contacts[0].email is None


@pytest.mark.parametrize(
    "body",
    [
        "<p>Fax: 512-472-1234</p>",
        "<p>Order 5124721234</p>",
        "<p>5124721234</p>",
        "<p>License # 512-472-1234</p>",
        "<p>VAT 512 472 1234</p>",
        "<p>2024-01-15 2023/12/01 01.02.2024</p>",
        "<p>Tel: 123-456-7890</p>",
        "<p>Tel: 555-5555</p>",
        "<p>Tel: 512-472-12345678</p>",
        "<p>10 20 30 40 50 60 70</p>",
        '<img src="x" width="5124721234"><a href="/p/5124721234">x</a>',
        '<a href="tel:123">x</a>',
    ],
)
def test_an_id_is_not_a_phone_number(body: str) -> None:
    assert read(body).phones == []


def test_without_a_country_only_international_numbers_are_believed() -> None:
    found = read("<p>Tel 512-472-1234, +44 20 7946 0958</p>", country=None)
    assert found.phones == ["+442079460958"]
    assert any("which country" in refused.reason for refused in found.refused)


def test_everybody_on_the_page_is_found_with_name_role_and_phone() -> None:
    found = read(
        """
        <div class="team-member"><h3>Jane Smith</h3><p class=role>Office Manager</p>
          <a href="mailto:jane@joes.com">write</a> <a href="tel:512-472-5678">call</a></div>
        <div class="team-member"><h3>Dr. Max von Berg</h3><p>Dentist</p><p>max@joes.com</p></div>
        <p><a href="mailto:bob@joes.com">Bob Miller</a></p>
        <p>info@joes.com <a href="mailto:ann@gmail.com">write us</a> and (512) 472-1234</p>
        """,
        head="""<script type="application/ld+json">{"@graph":[{"@type":"Plumber","name":"Joe's","employee":
          {"@type":"Person","name":"Joe Miller","jobTitle":"Owner","email":"joe@joes.com","telephone":"+15124729999"}}]}
          </script>""",
    )
    rows = [(one.email, one.phone, one.name, one.role) for one in found.contacts]
    assert rows == [
        ("joe@joes.com", "+15124729999", "Joe Miller", "Owner"),
        ("jane@joes.com", "+15124725678", "Jane Smith", "Office Manager"),
        ("bob@joes.com", None, "Bob Miller", None),
        ("ann@gmail.com", None, None, None),
        ("max@joes.com", None, "Dr. Max von Berg", "Dentist"),
        ("info@joes.com", None, None, None),
        (None, "+15124721234", None, None),
    ]
    assert "info@joes.com write us and (512) 472-1234" in found.contacts[5].context


def test_email_types() -> None:
    kinds = [type_of(f"{address}", "joes.com").value for address in (
        "jane@joes.com", "info@joes.com", "kontakt@other.de", "jane@gmail.com", "jane@other.com"
    )]  # fmt: skip
    assert kinds == ["corporate", "service", "service", "free", "unknown"]


def test_social_profiles_but_no_share_buttons() -> None:
    found = read(
        """<a href="https://www.facebook.com/sharer/sharer.php?u=x">s</a><a href="//www.facebook.com/joes/?ref=1">f</a>
        <a href="https://twitter.com/intent/tweet">t</a><a href="https://x.com/joes">x</a>
        <a href="https://www.linkedin.com/company/joes/">l</a><a href="https://www.youtube.com/watch?v=1">y</a>
        <a href="https://www.instagram.com/p/abc/">i</a><a href="https://notfacebook.com/joes">n</a>""",
        head='<script type="application/ld+json">{"sameAs":["https://www.instagram.com/joes"]}</script>',
    )
    assert {name: one.value for name, one in found.socials.items()} == {
        "instagram": "https://instagram.com/joes",
        "facebook": "https://facebook.com/joes",
        "twitter": "https://x.com/joes",
        "linkedin": "https://linkedin.com/company/joes",
    }


def test_the_postal_address() -> None:
    found = read("<address>1 Main Street<br>Austin, TX 78701<br>Tel: 512-472-1234<br>info@joes.com</address>")
    assert found.address is not None
    assert found.address.value["text"] == "1 Main Street Austin, TX 78701"


def test_two_numbers_on_both_sides_of_a_slash_are_two() -> None:
    assert read("<p>Tel: 030 901820 / 030 901821</p>", country="DE").phones == ["+4930901820", "+4930901821"]


@pytest.mark.parametrize(
    ("body", "country"),
    [
        ("08/2024-09/2025", "DE"),
        ("Mo-Fr 09.00 - 18.00", "IT"),
        ("1985 1986 1987", "AT"),
        ("192.168.1.1", "AT"),
        ("TX 78701-1234", "FR"),
        ("78701 - 78799", "GB"),
        ("BLZ 100 500 00 Kto 190 401 80", "AT"),
        ("Preis 1.299.000 EUR", "AT"),
        ("512/473/1234", "DE"),
    ],
)
def test_where_numbers_begin_with_0_another_one_must_be_called_a_phone(body: str, country: str) -> None:
    """Almost every row of digits is a valid number of some country."""
    assert read(f"<p>{body}</p>", country=country).phones == []


def test_an_address_of_a_profile_holds_nothing_that_a_database_refuses() -> None:
    found = read('<a href="https://facebook.com/joes%00plumbing%0a">f</a>')
    assert found.socials["facebook"].value == "https://facebook.com/joesplumbing"


def test_a_page_is_read_the_same_way_every_time() -> None:
    body = "".join(f"<p>person{n}@joes.com (512) 472-{1000 + n}</p>" for n in range(50))
    assert [(c.email, c.phone) for c in read(body).contacts] == [(c.email, c.phone) for c in read(body).contacts]


@pytest.mark.parametrize(
    "body",
    [
        "<div>" * 200_000 + "x@y.com",
        "<b>" * 50_000 + "x</b>y" * 20_000,
        "<div hidden>" * 100_000,
        "@" * 200_000,
        "a@" * 100_000,
        "a" * 1_000_000 + "@" + "b." * 200_000,
        "<p>" + "1 " * 400_000,
        "(at) " * 100_000,
        " at " * 100_000 + " dot ",
        '<a href="mailto:a@joes.com">x</a>' * 20_000,
        '<div class="card">' + '<a href="mailto:a@joes.com">x</a>' * 5_000 + "</div>",
        '<script type="application/ld+json">' + "[" * 200_000 + "</script>",
        '<script type="application/ld+json">' + '{"a":' * 900 + "1" + "}" * 900 + "</script>",
        '<script type="application/ld+json">' + '"' + " ," * 300_000 + "</script>",
        "<script>document.write(" + "'a'+" * 100_000 + ")@</script>",
        "<script>@ var " + " " * 300_000 + "document.write(x)</script>",
        "<address>" + "x" * 500_000 + "</address>",
        '<p itemscope itemprop="a">' * 3_000,
        "<div></x>" * 200_000,
        "".join(f"<b x{n}>" for n in range(100_000)),
        "<a " + "".join(f"x{n} " for n in range(200_000)) + ">x</a>",
        "<a " + "".join(f'x{n}=">" ' for n in range(200_000)) + ">x</a>",
        "".join(f"<body x{n}=1>" for n in range(100_000)),
        "<select>" + "<option>" * 200_000,
        '<div class="card"><b>' + "Ing " * 14 + '1</b><a href="mailto:a@joes.com">' + "Ing " * 14 + "1</a></div>",
        '<a href="mailto:a@joes.com">' + "Dr Ing " * 8 + "1</a>",
        "<style>" + ".x{display:none}" * 50_000 + "</style>" + "<b class=y>y</b>" * 20_000,
        "z" * 2_000_000,
        "\x00<p>\ud800".encode("utf-8", "replace").decode() * 1000,
    ],
)
@pytest.mark.slow
def test_a_hostile_page_is_read_to_its_end(body: str) -> None:
    """Searches that are not linear would take minutes here; that it ends is the test."""
    assert len(read(body).contacts) <= MOST_CONTACTS


def test_one_place_is_one_evidence() -> None:
    """A link is found by what it leads to, and again by each mark of a hidden address on it."""
    link = '<a href="mailto:ann@joes.com" data-email="ann@joes.com" data-user=ann data-domain=joes.com>x</a>'
    (contact,) = read(link).contacts
    assert [one.rule for one in contact.evidence] == ["mailto", "data attributes"]


def test_a_number_is_valid_if_phonenumbers_says_so() -> None:
    dice = random.Random(1)
    for region in sorted(phonenumbers.SUPPORTED_REGIONS):
        example = phonenumbers.example_number(region)
        assert example is not None
        written = example.national_number or 0
        for end in (10**digits for digits in range(7)):
            number = phonenumbers.PhoneNumber(example.country_code, written // end * end + dice.randrange(end))
            expected = phonenumbers.is_valid_number(number)
            assert phones.is_valid(number) is expected, number


@pytest.mark.parametrize("quoted", ["x{n}='>'", 'x{n}=">"', 'x{n}= ">"', """x{n}='"">' """, 'x{n}=">" ' + "y" * 1_990])
def test_quotes_cannot_hide_that_a_tag_has_thousands_of_attributes(quoted: str) -> None:
    """Each is compared with all before it: a page of 190 KB took seconds."""
    tag = " ".join(f"a{n} " + (quoted.format(n=n) if n % 200 == 0 else "") for n in range(8_000))
    links = read_page(f"<p><a {tag}>x</a>").tree.css("a")
    assert max((len(link.attributes) for link in links), default=0) < 3_000


def test_a_large_page_that_is_no_attack_is_read_to_its_end() -> None:
    rows = "".join(f"<tr><td class='c'>{n}<td><a href='/p{n}'>x</a><br><p>y<li>z</tr>" for n in range(30_000))
    assert read(f"<table>{rows}</table><p>ann@joes.com</p>").emails == ["ann@joes.com"]
    image = '<img src="data:image/png;base64,' + "AAAA" * 20_000 + '" alt=">">'
    script = "<script>var x={" + ",".join(f'"a{n}":{n} < 3' for n in range(3_000)) + "}</script>"
    assert read(f"{image}{script}<p>ann@joes.com</p>").emails == ["ann@joes.com"]
