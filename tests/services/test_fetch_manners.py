"""How we behave on other people's servers: robots.txt, pace, pauses, and one honest name."""

import asyncio

import pytest

from listener import Clock, Retry
from listener.tools import Toolbox, Tools
from services.fetch import (
    BusyError,
    ConnectError,
    DeadHostError,
    DisallowedError,
    Fetcher,
    FetchError,
    FetchSettings,
    Robots,
    RobotsError,
    StatusError,
    fetcher,
    verdicts,
)
from tests.services.site import FakeClock, FakeResolver, Script, endless, fetching, page, redirect, site


def robots(text: str) -> Script:
    return page(text, content_type="text/plain")


RULES = robots("""User-agent: *
Disallow: /private

User-agent: ScraperSky
Disallow: /secret
Allow: /secret/door
Crawl-delay: 7
Sitemap: https://a.test/one.xml
Sitemap: https://a.test/two.xml
""")


async def test_what_robots_txt_disallows_us_is_not_fetched() -> None:
    routes = {"/robots.txt": RULES, "/private": page(), "/secret": page(), "/secret/door": page()}
    async with site(routes) as there, fetching(there, robots=True, clock=FakeClock()) as fetcher:
        with pytest.raises(DisallowedError, match=r"robots\.txt of a\.test disallows /secret") as refused:
            await fetcher.get("http://a.test/secret")
        assert refused.value.retryable is False
        await fetcher.get("http://a.test/secret/door")
        await fetcher.get("http://a.test/private")  # meant for those who are not named
        assert there.paths == ["/robots.txt", "/secret/door", "/private"]


async def test_a_redirect_leads_nowhere_its_own_robots_txt_forbids() -> None:
    routes = {"a.test/": redirect("http://b.test/secret"), "b.test/robots.txt": RULES, "b.test/secret": page()}
    async with site(routes) as there, fetching(there, robots=True) as fetcher:
        with pytest.raises(DisallowedError):
            await fetcher.get("http://a.test/")
        assert "/secret" not in there.paths


async def test_the_crawl_delay_is_kept_up_to_what_is_reasonable() -> None:
    clock = FakeClock()
    routes = {"a.test/robots.txt": RULES, "b.test/robots.txt": robots("User-agent: *\nCrawl-delay: 9000"), "/": page()}
    async with site(routes) as there, fetching(there, robots=True, clock=clock, host_seconds=1.0) as fetcher:
        for _ in range(3):
            await fetcher.get("http://a.test/")
        assert clock.slept == [7.0, 7.0]
        for _ in range(2):
            await fetcher.get("http://b.test/")
        assert clock.slept == [7.0, 7.0, 30.0]


async def test_robots_txt_is_fetched_once_for_all_who_ask_and_again_the_next_day() -> None:
    clock, routes = FakeClock(), {"/robots.txt": RULES, "/": page()}
    async with site(routes) as there, fetching(there, robots=True, clock=clock, patience_seconds=3600) as f:
        await asyncio.gather(*(f.get("http://a.test/") for _ in range(10)))
        assert there.paths.count("/robots.txt") == 1
        clock.moment += 24 * 3600
        await f.get("http://a.test/")
        assert there.paths.count("/robots.txt") == 2


async def test_one_who_gives_up_does_not_take_robots_txt_from_the_others() -> None:
    asked, gate = asyncio.Event(), asyncio.Event()

    async def late(writer: asyncio.StreamWriter) -> None:
        asked.set()
        await gate.wait()
        await RULES(writer)

    async with site({"/robots.txt": late, "/": page()}) as there, fetching(there, robots=True) as fetcher:
        first, second = (asyncio.create_task(fetcher.get("http://a.test/")) for _ in range(2))
        await asked.wait()
        first.cancel()
        gate.set()
        assert (await second).status == 200
        with pytest.raises(asyncio.CancelledError):
            await first


@pytest.mark.parametrize(
    "answer",
    [
        page(b"", 404),
        page(b"", 403),
        page("<!DOCTYPE html><title>Home</title>\nUser-agent: *\nDisallow: /"),
        redirect("/robots.txt"),
        redirect("http://127.0.0.1:1/robots.txt"),
        page(b""),
        page(b"\xff\xfe\x00Disallow", content_type="application/octet-stream"),
    ],
    ids=["404", "403", "html", "circle", "inside", "empty", "garbage"],
)
async def test_a_site_without_usable_rules_allows_everything(answer: Script) -> None:
    async with site({"/robots.txt": answer, "/": page()}) as there, fetching(there, robots=True) as fetcher:
        assert (await fetcher.get("http://a.test/")).status == 200


async def test_rules_that_were_moved_to_a_dead_host_are_none_and_the_site_is_not_called_dead() -> None:
    routes = {"/robots.txt": redirect("http://gone.example/robots.txt"), "/": page()}
    async with site(routes) as there, fetching(there, robots=True, resolver=FakeResolver()) as fetcher:
        assert (await fetcher.get("http://a.test/")).status == 200


async def test_rules_that_cannot_be_read_now_stop_everything_for_now() -> None:
    clock = FakeClock()
    routes = {"/robots.txt": page(b"", 503), "/": page()}
    async with site(routes) as there, fetching(there, robots=True, clock=clock) as fetcher:
        for _ in range(5):
            with pytest.raises(RobotsError, match=r"robots\.txt answers HTTP 503") as error:
                await fetcher.get("http://a.test/")
        assert error.value.retryable
        assert there.paths == ["/robots.txt"]
        there.routes["/robots.txt"] = page(b"", 404)
        clock.moment += 61
        assert (await fetcher.get("http://a.test/")).status == 200


async def test_a_dead_host_is_called_dead_and_not_a_trouble_of_robots_txt() -> None:
    async with fetching(resolver=FakeResolver(), robots=True) as fetcher:
        with pytest.raises(DeadHostError):
            await fetcher.get("http://a.test/")


async def test_a_huge_robots_txt_is_read_as_far_as_the_standard_asks() -> None:
    head = b"HTTP/1.1 200 X\r\n\r\nUser-agent: *\nDisallow: /private\n"
    routes = {"/robots.txt": endless(b"# more\n" * 1000, head), "/": page()}
    async with site(routes) as there, fetching(there, robots=True) as fetcher:
        await fetcher.get("http://a.test/")
        with pytest.raises(DisallowedError):
            await fetcher.get("http://a.test/private")


async def test_a_rule_that_is_cut_in_half_at_the_limit_forbids_nothing() -> None:
    line, whole = b"Disallow: /a", 500 * 1024
    head = b"User-agent: *\n"
    filling = b"#" * (whole - len(head) - len(line) - len(b"\n") + len(b"a")) + b"\n"
    routes = {"/robots.txt": page(head + filling + line), "/": page()}
    async with site(routes) as there, fetching(there, robots=True) as fetcher:
        assert (await fetcher.get("http://a.test/")).status == 200


async def test_the_sitemaps_of_robots_txt_are_told() -> None:
    async with site({"/robots.txt": RULES}) as there, fetching(there) as fetcher:
        rules = await fetcher.robots("http://a.test/some/page")
        none = await fetcher.robots("http://a.test:8080/")
    assert (rules.found, rules.sitemaps) == (True, ("https://a.test/one.xml", "https://a.test/two.xml"))
    assert rules.crawl_delay == 7.0
    assert none.found  # the same site here, but asked for itself
    assert there.paths == ["/robots.txt", "/robots.txt"]


def test_a_request_rate_counts_as_a_delay() -> None:
    assert Robots.read("User-agent: *\nRequest-rate: 1/20", "ScraperSky").crawl_delay == 20.0


async def test_requests_to_one_host_keep_their_distance_and_other_hosts_do_not_wait() -> None:
    clock = FakeClock()
    routes = {"/": page(), "/on": redirect("/")}
    async with site(routes) as there, fetching(there, clock=clock, host_seconds=2.0) as fetcher:
        for host in ("a.test", "b.test", "a.test"):
            await fetcher.get(f"http://{host}/")
        assert clock.slept == [2.0]
        clock.moment += 10
        await fetcher.get("http://a.test/on")
        assert clock.slept == [2.0]  # a redirect within the host is one visit


async def test_a_turn_too_far_away_is_tried_again_later_by_each_at_another_time() -> None:
    clock = FakeClock()
    async with (
        site({"/": page()}) as there,
        fetching(there, clock=clock, host_seconds=20.0, patience_seconds=5.0) as fetcher,
    ):
        await fetcher.get("http://a.test/")
        later = []
        for _ in range(3):
            with pytest.raises(Retry, match=r"a\.test has its share") as busy, verdicts():
                await fetcher.get("http://a.test/")
            later.append(busy.value.after)
            assert not busy.value.spend  # our own manners are not its failure
        assert (later, clock.slept, there.connections) == ([20.0, 40.0, 60.0], [], 1)
        clock.moment += 20
        assert (await fetcher.get("http://a.test/")).status == 200


async def test_one_of_many_is_put_off_sooner_and_one_on_the_way_is_not() -> None:
    clock = FakeClock()
    routes = {"/": page(), "/on": redirect("http://b.test/")}
    async with site(routes) as there, fetching(there, clock=clock, host_seconds=20.0) as fetcher:
        for host in ("a.test", "b.test"):
            await fetcher.get(f"http://{host}/")
        with pytest.raises(BusyError):
            await fetcher.get("http://a.test/on", patience=5.0)
        clock.moment += 16
        assert (await fetcher.get("http://a.test/on", patience=5.0)).final_url == "http://b.test/"
        assert clock.slept == [4.0]  # for the one; by then it was the other's turn
        for _ in range(2):
            await fetcher.get("http://b.test/", patience=None)
        assert clock.slept == [4.0, 20.0, 20.0]
        assert (await fetcher.get("http://a.test/on", patience=5.0)).final_url == "http://b.test/"
        assert clock.slept == [4.0, 20.0, 20.0, 20.0]  # the redirect's host, although it is far away


class Crowd:
    """A page on which everybody waits until `size` are there."""

    def __init__(self, size: int) -> None:
        self._barrier = asyncio.Barrier(size)

    async def __call__(self, writer: asyncio.StreamWriter) -> None:
        async with self._barrier:
            pass
        await page()(writer)


async def test_one_host_never_has_more_visitors_than_allowed_and_all_together_neither() -> None:
    async with site({"/": Crowd(2)}) as there, fetching(there, host_concurrency=2) as fetcher:
        await asyncio.gather(*(fetcher.get("http://a.test/") for _ in range(10)))
        assert (there.busiest, there.connections) == (2, 10)
    async with site({"/": Crowd(5)}) as there, fetching(there, concurrency=5) as fetcher:
        await asyncio.gather(*(fetcher.get(f"http://h{number}.test/") for number in range(20)))
        assert there.busiest == 5


async def test_a_hundred_at_a_time_are_no_trouble() -> None:
    # a hundred are there at the same moment, or this never ends
    async with site({"/": Crowd(100), "/robots.txt": robots("")}) as there:
        async with fetching(there, concurrency=100, robots=True) as fetcher:
            answers = await asyncio.gather(*(fetcher.get(f"http://h{number % 100}.test/") for number in range(200)))
        assert [answer.status for answer in answers] == [200] * 200


async def test_a_host_that_asks_for_a_pause_gets_it_from_everybody() -> None:
    clock = FakeClock()
    async with site({"/": page(b"", 429, retry_after="90")}) as there, fetching(there, clock=clock) as fetcher:
        with pytest.raises(StatusError) as asked:
            await fetcher.get("http://a.test/")
        assert asked.value.retry_after == 90.0
        clock.moment += 30
        with pytest.raises(BusyError, match=r"a\.test asked for a pause \(HTTP 429\)") as busy:
            await fetcher.get("http://a.test/")
        assert (busy.value.retry_after, there.connections) == (60.0, 1)
        clock.moment += 61
        there.routes["/"] = page()
        assert (await fetcher.get("http://a.test/")).status == 200


async def test_a_host_that_is_down_is_not_knocked_at_without_end() -> None:
    clock = FakeClock()
    async with site({"/": page()}) as there:
        port = there.port
    async with fetching(replay=f"a.test=127.0.0.1:{port}", clock=clock) as fetcher:
        errors: list[type[FetchError]] = []
        for _ in range(6):
            with pytest.raises(FetchError) as error:
                await fetcher.get("http://a.test/")
            errors.append(error.type)
        assert errors == [ConnectError] * 3 + [BusyError] * 3
        assert "connection refused" in str(error.value)
        clock.moment += 61
        with pytest.raises(ConnectError):
            await fetcher.get("http://a.test/")


async def test_we_say_who_we_are() -> None:
    name = "ScraperSky/9 (+https://example.org/bot)"
    async with site({"/": page()}) as there, fetching(there, user_agent=name) as fetcher:
        await fetcher.get("http://a.test/")
        assert there.requests[0].headers["user-agent"] == name
        assert fetcher.settings.robot == "ScraperSky"


async def test_all_workflows_of_a_listener_share_one_fetcher_which_ends_with_it() -> None:
    box = Toolbox(clock=Clock())
    settings = FetchSettings(user_agent="Mine/1")
    one = fetcher(Tools(box, "domain_metadata", settings, "1", 1))
    other = fetcher(Tools(box, "page_curation", None, "2", 1))
    assert one is other
    assert one.settings.user_agent == "Mine/1"
    await box.close()
    again = fetcher(Tools(box, "page_curation", None, "2", 1))
    assert isinstance(again, Fetcher)
    assert again is not one
    await box.close()
