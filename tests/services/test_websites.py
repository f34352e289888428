"""A wrong domain sends the whole pipeline to a stranger's website; a missing one loses the business."""

import pytest

from services.websites import Kind, site_of, website


@pytest.mark.parametrize(
    ("written", "domain"),
    [
        ("example.com", "example.com"),
        ("HTTP://WWW.Example.COM/Path?x=1#y", "example.com"),
        ("  https://example.com  ", "example.com"),
        ("//example.com/x", "example.com"),
        ("wwwexample.com", "wwwexample.com"),
        ("www.com", "www.com"),
        ("https://mywww.example.com", "example.com"),
        ("example.com:8080/a", "example.com"),
        ("http://user:secret@example.com:81/", "example.com"),
        ("user:secret@example.com/x", "example.com"),
        ("http://trusted.com@example.org/", "example.org"),
        ("https://shop.example.co.uk./x", "example.co.uk"),
        ("müller.de", "xn--mller-kva.de"),
        ("https://ＥＸＡＭＰＬＥ.com", "example.com"),  # noqa: RUF001
        ("日本語.jp", "xn--wgv71a119e.jp"),
        ("fußball.de", "xn--fuball-cta.de"),
        ("shop.myshopify.com", "shop.myshopify.com"),
        ("www.joe.wixsite.com/home", "joe.wixsite.com"),
        ("joe.github.io", "joe.github.io"),
        ("city.kawasaki.jp", "city.kawasaki.jp"),
        ("a.b.c.kobe.jp", "b.c.kobe.jp"),
        ("http:\\\\example.com\\x", "example.com"),
        ("https//example.com", "example.com"),
        ("http://https://example.com", "example.com"),
        ("http://ex%61mple.com", "example.com"),
        ("my_shop.example.com", "example.com"),
        ("exam\u200bple.com", "example.com"),
        ("joes.example", "joes.example"),
        ("https://www.google.de/url?q=https%3A%2F%2Fjoes.co.uk%2Fx&sa=D", "joes.co.uk"),
        ("https://www.google.com/url?sa=t&url=http://www.google.com/url?q=http://joes.de", "joes.de"),
        ("https://l.facebook.com/l.php?u=http%3A%2F%2Fjoes.com%2F&h=AT0", "joes.com"),
        ("https://www.google.com/amp/s/joes.com/page", "joes.com"),
        ("https://www.youtube.com/redirect?event=x&q=https%3A%2F%2Fwww.joes.com%2F", "joes.com"),
    ],
)
def test_the_domain_of_a_website(written: str, domain: str) -> None:
    found = website(written)
    assert (found.kind, found.domain) == (Kind.DOMAIN, domain), found.reason


@pytest.mark.parametrize(
    ("written", "kind", "reason"),
    [
        (None, Kind.NONE, "no website"),
        ("   ", Kind.NONE, "no website"),
        ("N/A", Kind.NONE, "no website"),
        ("https://", Kind.NONE, "no website"),
        ("https://www.facebook.com/joes", Kind.PLATFORM, "social network"),
        ("instagram.com/joes", Kind.PLATFORM, "social network"),
        ("https://goo.gl/maps/xyz", Kind.PLATFORM, "map service"),
        ("https://www.google.com/maps/place/Joe", Kind.PLATFORM, "Google"),
        ("https://maps.google.co.uk/?cid=1", Kind.PLATFORM, "Google"),
        ("https://sites.google.com/view/joe", Kind.PLATFORM, "Google"),
        ("https://www.yelp.de/biz/joe", Kind.PLATFORM, "directory"),
        ("linktr.ee/joes", Kind.PLATFORM, "page of links"),
        ("https://bit.ly/3x", Kind.PLATFORM, "shortened"),
        ("https://g.co/kgs/abc", Kind.PLATFORM, "map service"),
        ("https://book.squareup.com/appointments/x", Kind.PLATFORM, "booking or ordering"),
        ("https://joes.setmore.com", Kind.PLATFORM, "booking or ordering"),
        ("https://www.youtube.com/redirect?q=joes", Kind.PLATFORM, "social network"),
        ("myshopify.com", Kind.PLATFORM, "hosting platform"),
        ("https://www.squarespace.com/", Kind.PLATFORM, "hosting platform"),
        ("co.uk", Kind.INVALID, "public suffix"),
        ("http://93.184.216.34/", Kind.INVALID, "IP address"),
        ("http://[2001:db8::1]:80/", Kind.INVALID, "IP address"),
        ("2001:db8::1", Kind.INVALID, "IP address"),
        ("http://2130706433/", Kind.INVALID, "IP address"),
        ("0x7f000001", Kind.INVALID, "IP address"),
        ("127.1", Kind.INVALID, "IP address"),
        ("localhost", Kind.INVALID, "no dot"),
        ("not a website", Kind.INVALID, "no host name"),
        ("http://exa mple.com", Kind.INVALID, "no host name"),
        ("example.com,other.com", Kind.INVALID, "no host name"),
        ("a..b.com", Kind.INVALID, "no host name"),
        ("-a.com", Kind.INVALID, "no host name"),
        ("x_y.com", Kind.INVALID, "no host name"),
        ("xn--999999999.com", Kind.INVALID, "no host name"),
        ("index.html", Kind.INVALID, "no top-level domain"),
        ("http:///", Kind.INVALID, "no host name"),
        ("example.com:http", Kind.INVALID, "no port"),
        ("mailto:joe@joes.com", Kind.INVALID, "mailto"),
        ("joe@joes.com", Kind.INVALID, "e-mail"),
        ("javascript:alert(1)", Kind.INVALID, "javascript"),
        ("ftp://joes.com", Kind.INVALID, "ftp"),
        ("x" * 3000, Kind.INVALID, "longer"),
        ("\x00\x07", Kind.NONE, "no website"),
        ("https://www.google.com/url?q=" * 20 + "x.com", Kind.PLATFORM, "Google"),
    ],
)
def test_no_domain_and_why(written: str | None, kind: Kind, reason: str) -> None:
    found = website(written)
    assert found.domain is None
    assert found.kind is kind, found
    assert reason in found.reason


def test_the_site_of_a_url() -> None:
    assert site_of("https://www.joes.co.uk/contact") == "joes.co.uk"
    assert site_of("https://127.0.0.1/") is None


def test_two_customers_of_one_builder_are_two_domains() -> None:
    """Else the builder's own contacts would be taken for those of a thousand businesses."""
    written = [
        "https://joes.squarespace.com/",
        "www.anns.squarespace.com",
        "joes.business.site",
        "https://joes.wordpress.com",
    ]
    assert [website(one).domain for one in written] == [
        *("joes.squarespace.com", "anns.squarespace.com", "joes.business.site", "joes.wordpress.com")
    ]
    assert site_of("https://joes.weebly.com/contact") == "joes.weebly.com"
