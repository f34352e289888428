"""What must never be connected to, whatever a URL, DNS or a redirect says."""

import ssl
from ipaddress import ip_address
from pathlib import Path
from typing import Any

import pytest
import trustme

from services.crawl import visit
from services.fetch import (
    BrokenAnswerError,
    ConnectTimeoutError,
    DeadHostError,
    FetchError,
    InvalidUrlError,
    RefusedAddressError,
    RefusedPortError,
    RefusedSchemeError,
    TlsError,
)
from services.fetch.address import is_public
from tests.services.site import FakeResolver, fetching, page, raw, redirect, site

TRICKS = [
    "http://127.0.0.1:{port}/",
    "HTTP://127.0.0.1:{port}/",
    "http://127.0.0.1.:{port}/",
    "http://0.0.0.0:{port}/",
    "http://0:{port}/",
    "http://127.1:{port}/",
    "http://2130706433:{port}/",
    "http://0x7f000001:{port}/",
    "http://0x7f.0.0.1:{port}/",
    "http://0177.0.0.1:{port}/",
    "http://127.0.0.0x1:{port}/",
    "http://127%2e0%2e0%2e1:{port}/",
    "http://１２７.０.０.１:{port}/",  # noqa: RUF001 - that is the trick
    "http://①②⑦.⓪.⓪.①:{port}/",
    "http://127。0。0。1:{port}/",
    "http://[::1]:{port}/",
    "http://[::]:{port}/",
    "http://[0:0:0:0:0:0:0:1]:{port}/",
    "http://[::ffff:127.0.0.1]:{port}/",
    "http://[::ffff:7f00:1]:{port}/",
    "http://[::127.0.0.1]:{port}/",
    "http://[64:ff9b::7f00:1]:{port}/",
    "http://[2002:7f00:1::]:{port}/",
    "http://localhost:{port}/",
    "http://localhost.:{port}/",
    "http://user:secret@127.0.0.1:{port}/",
    "http://public.test@127.0.0.1:{port}/",
    "http://127.0.0.1:{port}\\@public.test/",
    "http://public.test\\@127.0.0.1:{port}/",
    "http://private.test:{port}/",
    "http://mixed.test:{port}/",
    "http://mapped.test:{port}/",
    "http://169.254.169.254:{port}/latest/meta-data/",
]


@pytest.mark.parametrize("url", TRICKS)
async def test_no_trick_with_addresses_causes_a_single_connection(url: str) -> None:
    names = FakeResolver(
        private_test=["127.0.0.1"],
        mixed_test=["93.184.215.14 127.0.0.1"],
        mapped_test=["::ffff:127.0.0.1"],
        localhost=["127.0.0.1"],
    )
    async with site({"/": page()}) as inside:
        async with fetching(resolver=names, ports=(80, 443, inside.port)) as fetcher:
            with pytest.raises((RefusedAddressError, InvalidUrlError, DeadHostError)) as refused:
                await fetcher.get(url.format(port=inside.port))
        assert inside.connections == 0
    assert "secret" not in str(refused.value)
    assert refused.value.retryable is False


@pytest.mark.parametrize("host", ["2130706433", "0x7f000001", "0x7f.1", "127.1", "127.0.0.0x1", "1.2.3.4.5"])
async def test_an_address_in_disguise_is_not_even_looked_up(host: str) -> None:
    # whatever a resolver makes of it
    names = FakeResolver(**{host.replace(".", "_"): ["93.184.215.14"]})
    async with fetching(resolver=names) as fetcher:
        with pytest.raises(RefusedAddressError, match="in disguise"):
            await fetcher.get(f"http://{host}/")
    assert names.asked == []


@pytest.mark.parametrize(
    ("url", "error"),
    [
        ("http://a.test:5432/", RefusedPortError),
        ("https://a.test:22/", RefusedPortError),
        ("file:///etc/passwd", RefusedSchemeError),
        ("ftp://a.test/", RefusedSchemeError),
        ("gopher://127.0.0.1:5432/_x", RefusedSchemeError),
        ("javascript:alert(1)", RefusedSchemeError),
        ("//a.test/", RefusedSchemeError),
        ("a.test", RefusedSchemeError),
        ("", RefusedSchemeError),
        ("http://", InvalidUrlError),
        ("http:///path", InvalidUrlError),
        ("http://a.test:99999/", RefusedPortError),
        ("http://[::1/", InvalidUrlError),
        ("http://a b.test/", FetchError),
        ("http://xn--\u0001.test/", FetchError),
        ("http://a.test/" + "x" * 9000, InvalidUrlError),
    ],
)
async def test_what_is_no_website_is_refused_in_words(url: str, error: type[FetchError]) -> None:
    async with fetching(resolver=FakeResolver()) as fetcher:
        with pytest.raises(error) as refused:
            await fetcher.get(url)
    assert refused.value.retryable is False
    assert str(refused.value)


@pytest.mark.parametrize("to", ["http://127.0.0.1:{port}/", "//127.0.0.1:{port}/", "http://inside.example:{port}/"])
async def test_a_redirect_to_the_inside_is_not_followed(to: str) -> None:
    async with site({"/": page()}) as inside, site({"/": redirect(to.format(port=inside.port))}) as outside:
        names = FakeResolver(inside_example=["127.0.0.1"])
        async with fetching(outside, resolver=names, ports=(80, inside.port)) as fetcher:
            with pytest.raises(RefusedAddressError):
                await fetcher.get("http://a.test/")
        assert (outside.connections, inside.connections) == (1, 0)


async def test_a_page_that_sends_its_visitors_inside_is_not_followed() -> None:
    async with site({"/": page()}) as inside:
        onward = page(f"<meta http-equiv=refresh content='0;url=http://127.0.0.1:{inside.port}/'>")
        async with site({"/": onward}) as outside, fetching(outside, ports=(80, inside.port)) as fetcher:
            with pytest.raises(RefusedAddressError):
                await visit(fetcher, "http://a.test/")
        assert (outside.connections, inside.connections) == (1, 0)


async def test_a_redirect_to_another_port_or_scheme_is_refused() -> None:
    routes = {"/port": redirect("http://b.example:5432/"), "/file": redirect("file:///etc/passwd")}
    async with site(routes) as outside, fetching(outside, resolver=FakeResolver()) as fetcher:
        with pytest.raises(RefusedPortError, match="redirects on, but port 5432"):
            await fetcher.get("http://a.test/port")
        with pytest.raises(RefusedSchemeError, match="not file"):
            await fetcher.get("http://a.test/file")


async def test_a_name_is_looked_up_once_and_the_checked_address_is_the_one_connected_to() -> None:
    async with site({"/": page("checked")}) as checked, site({"/": page("rebound")}, host="127.0.0.2") as rebound:
        names = FakeResolver(a_test=["127.0.0.1", "127.0.0.2"])
        async with fetching(resolver=names, allow_private=True, ports=(checked.port, rebound.port)) as fetcher:
            fetched = await fetcher.get(f"http://a.test:{checked.port}/")
        assert fetched.text() == "checked"
        assert names.asked == ["a.test"]
        assert checked.requests[0].host == f"a.test:{checked.port}"


async def test_a_name_that_turns_private_later_is_refused_then() -> None:
    async with site({"/": page()}) as inside:
        names = FakeResolver(a_test=["127.0.0.1"])
        async with fetching(resolver=names, allow_private=True, ports=(inside.port,)) as fetcher:
            await fetcher.get(f"http://a.test:{inside.port}/")
        async with fetching(resolver=names, ports=(inside.port,)) as fetcher:
            with pytest.raises(RefusedAddressError, match=r"a\.test is not on the public internet \(127\.0\.0\.1\)"):
                await fetcher.get(f"http://a.test:{inside.port}/")
        assert inside.connections == 1


async def test_the_next_address_is_tried_when_one_does_not_answer() -> None:
    async with site({"/": page()}) as there:
        names = FakeResolver(a_test=["127.0.0.9 127.0.0.1"])
        async with fetching(resolver=names, allow_private=True, ports=(there.port,)) as fetcher:
            assert (await fetcher.get(f"http://a.test:{there.port}/")).status == 200


async def test_proxies_of_the_environment_are_ignored(monkeypatch: pytest.MonkeyPatch) -> None:
    async with site({"/": page()}) as there, site({"/": page()}) as proxy:
        for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "HTTPS_PROXY"):
            monkeypatch.setenv(name, f"http://127.0.0.1:{proxy.port}")
        async with fetching(there) as fetcher:
            await fetcher.get("http://a.test/")
        assert (there.connections, proxy.connections) == (1, 0)


async def test_a_proxy_of_the_settings_is_used_and_names_are_still_checked() -> None:
    async with site({"http://a.example/": page("through the proxy")}) as proxy:
        names = FakeResolver(a_example=["93.184.215.14"], b_example=["10.0.0.1"])
        async with fetching(resolver=names, proxy_url=f"http://127.0.0.1:{proxy.port}") as fetcher:
            assert (await fetcher.get("http://a.example/")).text() == "through the proxy"
            with pytest.raises(RefusedAddressError):
                await fetcher.get("http://b.example/")
        assert proxy.connections == 1


async def test_credentials_are_never_sent_and_cookies_never_kept() -> None:
    async with site({"/": page(set_cookie="session=1; Path=/")}) as there:
        async with fetching(there) as fetcher:
            named = await fetcher.get("http://user:secret@a.test/")
            fetched = await fetcher.get("http://a.test/#part")
        assert not [request for request in there.requests if {"authorization", "cookie"} & request.headers.keys()]
    assert named.url == named.final_url == fetched.final_url == "http://a.test/"


@pytest.fixture(scope="module")
def authority() -> trustme.CA:
    return trustme.CA()


@pytest.fixture
def trusted(authority: trustme.CA, tmp_path: Path) -> Path:
    path = tmp_path / "ca.pem"
    authority.cert_pem.write_to_path(str(path))
    return path


def identity(authority: trustme.CA, *names: str) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert(*names).configure_cert(context)
    return context


async def test_tls_is_verified_for_the_name_although_the_address_is_connected_to(
    authority: trustme.CA, trusted: Path
) -> None:
    async with site({"/": page()}, tls=identity(authority, "good.test")) as there:
        names = FakeResolver(good_test=["127.0.0.1"], other_test=["127.0.0.1"])
        given: dict[str, Any] = {"resolver": names, "allow_private": True, "ports": (there.port,)}
        async with fetching(ca_file=trusted, **given) as fetcher:
            assert (await fetcher.get(f"https://good.test:{there.port}/")).status == 200
            assert there.server_names == ["good.test"]
            with pytest.raises(TlsError, match=r"certificate is not valid .*other\.test"):
                await fetcher.get(f"https://other.test:{there.port}/")
        async with fetching(**given) as fetcher:
            with pytest.raises(TlsError, match="unable to get local issuer certificate"):
                await fetcher.get(f"https://good.test:{there.port}/")
        assert len(there.requests) == 1


async def test_no_tls_and_a_silent_or_broken_tls_are_told_apart(authority: trustme.CA, trusted: Path) -> None:
    cut_short = raw(b"HTTP/1.1 200 X\r\nContent-Length: 10\r\n\r\nabc")
    async with site() as there, site({"/": cut_short}, tls=identity(authority, "b.test")) as broken:
        rules = f"a.test=tls:127.0.0.1:{there.port}, b.test=tls:127.0.0.1:{broken.port}"
        async with fetching(replay=rules, ca_file=trusted, connect_seconds=0.3) as fetcher:
            with pytest.raises(ConnectTimeoutError):
                await fetcher.get("https://a.test/")
            there.greeting = b"HTTP/1.1 400 Bad Request\r\n\r\n"
            with pytest.raises(TlsError, match=r"TLS with a\.test failed: (wrong version number|record layer failure)"):
                await fetcher.get("https://a.test/")
            with pytest.raises(BrokenAnswerError):
                await fetcher.get("https://b.test/")


async def test_a_replayed_host_is_served_from_elsewhere_under_its_own_name_and_no_other_host_is() -> None:
    async with site({"/": page()}) as there:
        rules = f"*.example.test:443=127.0.0.1:{there.port}, shop.test=127.0.0.1:{there.port}, gone.test=nowhere"
        async with fetching(replay=rules, resolver=FakeResolver(b_test=["127.0.0.1"])) as fetcher:
            with pytest.raises(DeadHostError):
                await fetcher.get("https://gone.test/")
            await fetcher.get("https://a.example.test/")
            await fetcher.get("http://SHOP.test:8080/")
            with pytest.raises(RefusedAddressError):
                await fetcher.get("http://b.test/")
            with pytest.raises(DeadHostError):
                await fetcher.get("http://a.example.test/")  # the rule is for port 443
        seen = [(request.host, request.headers["x-forwarded-proto"]) for request in there.requests]
        assert seen == [("a.example.test", "https"), ("shop.test:8080", "http")]


PRIVATE = """
    0.1.2.3 10.1.2.3 100.64.0.1 100.127.255.255 127.8.9.1 169.254.169.254 172.16.0.1 172.31.255.255 192.0.0.8 192.0.2.1
    192.88.99.1 192.168.1.1 198.18.0.1 198.51.100.1 203.0.113.1 224.0.0.1 239.255.255.255 240.0.0.1 255.255.255.255
    :: ::1 ::ffff:8.8.8.8 64:ff9b::808:808 64:ff9b:1::1 100::1 2001::1 2001:db8::1 2002:808:808::1 3fff::1 fc00::1
    fd12::1 fe80::1 fec0::1 ff02::1 4000::1
"""
PUBLIC = "8.8.8.8 93.184.215.14 100.63.255.255 172.32.0.1 2606:4700::1 2a00:1450::1"


def test_what_is_the_public_internet_and_what_is_not() -> None:
    assert [text for text in PRIVATE.split() if is_public(ip_address(text))] == []
    assert [text for text in PUBLIC.split() if not is_public(ip_address(text))] == []
