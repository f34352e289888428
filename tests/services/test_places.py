"""Both of Google's APIs: what is kept, what is paid for, and which error means what."""

import logging
from datetime import UTC, datetime

import httpx
import pytest
from pydantic import SecretStr

from listener import Hold, Reject, Retry
from listener.redact import redact
from services.places import (
    BadRequestError,
    DayQuotaError,
    GoneError,
    KeyRefusedError,
    MinuteQuotaError,
    NoKeyError,
    Places,
    PlacesError,
    Query,
    UnavailableError,
    places,
    verdicts,
)
from services.places.current import DETAILS_MASK, SEARCH_MASK
from services.places.errors import until_next_day
from services.simulation.google import Google
from services.simulation.server import Reply, serving
from tests.services.world import NoWait, place, plumbers, settings, tools_with

BOTH = pytest.mark.parametrize("api", ["new", "legacy"])
AUSTIN = Query("plumber in Austin, TX")


def connected(http: httpx.AsyncClient, url: str, api: str = "new", **given: object) -> Places:
    return places(tools_with(http, settings(url, api=api, **given), NoWait()))


@BOTH
async def test_a_search_brings_every_page_and_each_place_once(http: httpx.AsyncClient, api: str) -> None:
    google = plumbers(45)
    google.token_seconds = 0
    with serving(google) as url:
        found = await connected(http, url, api).search(AUSTIN)
    assert [p.place_id for p in found.places] == [f"ChIJplumber{n:04}" for n in range(1, 46)]
    assert (found.pages, google.spent()["search"]) == (3, 3)
    first = found.places[0]
    assert (first.name, first.address) == ("Plumber 1", "1 Main St, Austin, TX 78701, USA")
    assert (first.business_type, first.types) == ("plumber", ["plumber", "point_of_interest"])
    assert (first.latitude, first.longitude, first.rating) == (30.25, -97.75, 4.5)
    assert (first.review_count, first.price_level) == (87, 2)


@BOTH
async def test_a_search_is_not_paid_for_beyond_its_cap(http: httpx.AsyncClient, api: str) -> None:
    google = plumbers(100)
    google.token_seconds = 0
    with serving(google) as url:
        client = connected(http, url, api)
        assert len((await client.search(AUSTIN)).places) == 60
        few = await client.search(Query(AUSTIN.text, max_results=15))
    assert (len(few.places), few.pages) == (15, 1)
    assert google.spent()["search"] == 4


@BOTH
async def test_no_result_is_an_answer(http: httpx.AsyncClient, api: str) -> None:
    with serving(plumbers(1)) as url:
        found = await connected(http, url, api).search(Query("florist in Austin, TX"))
    assert (found.places, found.pages) == ([], 1)


@BOTH
async def test_details_are_the_same_from_both_apis(http: httpx.AsyncClient, api: str) -> None:
    with serving(plumbers(1)) as url:
        details = await connected(http, url, api).details("ChIJplumber0001")
    parts = details.parts
    assert (parts.street, parts.city, parts.state) == ("1 Main Street", "Austin", "TX")
    assert (parts.postal_code, parts.country, parts.country_code) == ("78701", "United States", "US")
    assert (details.phone, details.website) == ("+1 512-555-0100", "https://plumber1.example.test/")
    assert details.opening_hours == {
        "periods": [{"open": {"day": 1, "hour": 9, "minute": 0}, "close": {"day": 1, "hour": 17, "minute": 30}}],
        "weekdays": ["Monday: 9:00 AM - 5:30 PM"],
    }
    assert (details.business_status, details.utc_offset_minutes, details.price_level) == ("OPERATIONAL", -360, 2)
    assert (details.categories, details.review_count) == (["plumber", "point_of_interest"], 87)


@BOTH
async def test_a_place_of_which_google_knows_little_is_kept_with_gaps(http: httpx.AsyncClient, api: str) -> None:
    bare = {"id": "ChIJbare0001", "displayName": {"text": "Bare"}, "formattedAddress": "Austin", "types": ["plumber"]}
    round_the_clock = place(2, regularOpeningHours={"periods": [{"open": {"day": 0, "hour": 0, "minute": 0}}]})
    with serving(Google([bare, round_the_clock])) as url:
        client = connected(http, url, api)
        details = await client.details("ChIJbare0001")
        always = await client.details("ChIJplumber0002")
    assert (details.name, details.website, details.rating, details.opening_hours) == ("Bare", None, None, None)
    assert always.opening_hours == {"periods": [{"open": {"day": 0, "hour": 0, "minute": 0}}], "weekdays": []}


async def test_businesses_without_a_door_of_their_own_are_found_too(http: httpx.AsyncClient) -> None:
    at_customers = place(2, pureServiceAreaBusiness=True, location=None)
    with serving(Google([place(1), at_customers])) as url:
        found = await connected(http, url).search(AUSTIN)
    assert [(one.place_id, one.latitude) for one in found.places] == [
        ("ChIJplumber0001", 30.25), ("ChIJplumber0002", None),
    ]  # fmt: skip


async def test_an_answer_that_cannot_be_unpacked_is_googles_trouble(http: httpx.AsyncClient) -> None:
    class Damaged:
        def answer(self, *_: object) -> Reply:
            return Reply(200, b"not gzip", headers=(("Content-Encoding", "gzip"),))

    with serving(Damaged()) as url, pytest.raises(UnavailableError, match="cannot be reached"):
        await connected(http, url).search(AUSTIN)


async def test_a_street_is_written_as_its_country_writes_it(http: httpx.AsyncClient) -> None:
    components = [
        {"longText": "5", "shortText": "5", "types": ["street_number"]},
        {"longText": "Hauptstraße", "shortText": "Hauptstr.", "types": ["route"]},
    ]
    german = place(1, formattedAddress="Hauptstraße 5, 10115 Berlin, Germany", addressComponents=components)
    with serving(Google([german])) as url:
        details = await connected(http, url).details("ChIJplumber0001")
    assert details.parts.street == "Hauptstraße 5"


async def test_nothing_is_asked_for_that_is_not_stored(http: httpx.AsyncClient) -> None:
    google = plumbers(1)
    with serving(google) as url:
        client = connected(http, url)
        found = await client.search(AUSTIN)
        await client.details("ChIJplumber0001")
    assert [call.mask for call in google.calls] == [SEARCH_MASK, DETAILS_MASK]
    dear = ("reviews", "photos", "editorialSummary", "nationalPhoneNumber", "*")
    assert not {*SEARCH_MASK.replace("places.", "").split(","), *DETAILS_MASK.split(",")} & {*dear}
    assert "websiteUri" not in found.places[0].raw


@BOTH
async def test_text_that_postgresql_cannot_keep_is_made_fit(http: httpx.AsyncClient, api: str) -> None:
    odd = place(1, displayName={"text": "A\x00B \ud800C"})
    with serving(Google([odd])) as url:
        found = await connected(http, url, api).search(AUSTIN)
    name = found.places[0].name
    assert name == "AB ?C"
    assert "\x00" not in str(found.places[0].raw)


NOON = datetime(2026, 11, 18, 20, tzinfo=UTC)  # noon in California


@pytest.mark.parametrize(
    ("api", "changes", "error", "verdict", "says"),
    [
        ("new", {"keys": frozenset()}, KeyRefusedError, Hold, "API_KEY_INVALID: API key not valid"),
        ("legacy", {"keys": frozenset()}, KeyRefusedError, Hold, "REQUEST_DENIED: The provided API key is invalid"),
        ("new", {"blocked": {"test-key": "API_KEY_SERVICE_BLOCKED"}}, KeyRefusedError, Hold, "are blocked"),
        ("new", {"blocked": {"test-key": "BILLING_DISABLED"}}, KeyRefusedError, Hold, "BILLING_DISABLED"),
        ("legacy", {"blocked": {"test-key": "x"}}, KeyRefusedError, Hold, "not authorized"),
        ("new", {"places": []}, GoneError, Reject, "NOT_FOUND: The Place ID is no longer valid"),
        ("legacy", {"places": []}, GoneError, Reject, "NOT_FOUND"),
        ("new", {"per_minute": 0}, MinuteQuotaError, Hold, "per minute"),
        ("legacy", {"per_minute": 0}, MinuteQuotaError, Hold, "OVER_QUERY_LIMIT"),
        ("new", {"per_day": 0}, DayQuotaError, Hold, "per day"),
        ("legacy", {"per_day": 0}, DayQuotaError, Hold, "daily request quota"),
        ("new", {"trouble": ["500"]}, UnavailableError, Retry, "INTERNAL"),
        ("legacy", {"trouble": ["503"]}, UnavailableError, Retry, "HTTP 503"),
        ("new", {"trouble": ["truncated"]}, UnavailableError, Retry, "without readable JSON"),
    ],
)
async def test_every_refusal_of_google_is_told_apart(
    http: httpx.AsyncClient, api: str, changes: dict[str, object], error: type[PlacesError], verdict: type, says: str
) -> None:
    google = plumbers(1)
    for name, value in changes.items():
        getattr(google, name).extend(value) if name == "trouble" else setattr(google, name, value)
    google.__post_init__()
    with serving(google) as url:
        client = connected(http, url, api)
        with pytest.raises(error) as caught:
            await client.details("ChIJplumber0001")
    assert says in str(caught.value)
    assert "123456789012" not in str(caught.value)
    assert isinstance(caught.value.verdict(NOON), verdict)


async def test_a_malformed_id_is_refused_for_good_in_googles_words(http: httpx.AsyncClient) -> None:
    with serving(plumbers(1)) as url:
        with pytest.raises(GoneError, match="Not a valid Place ID"):
            await connected(http, url).details("a/b?c")
        with pytest.raises(BadRequestError):
            await connected(http, url, "legacy").details("a/b")


def test_a_minute_is_waited_for_a_minute_and_a_day_until_midnight_in_california() -> None:
    minute, day = MinuteQuotaError("m").verdict(NOON), DayQuotaError("d").verdict(NOON)
    assert minute.after == 60
    assert day.after == until_next_day(NOON) == 12 * 3600 + 60


async def test_without_a_key_nothing_is_called_and_no_item_is_spent(http: httpx.AsyncClient) -> None:
    for key in (None, SecretStr(" ")):
        with pytest.raises(Hold, match="GOOGLE_PLACES_API_KEY"), verdicts(NOON):
            connected(http, "http://127.0.0.1:1", api_key=key)
    with pytest.raises(NoKeyError):
        connected(http, "http://127.0.0.1:1", api_key=None)


async def test_a_google_that_is_down_is_tried_again(http: httpx.AsyncClient) -> None:
    with serving(plumbers(1)) as url:
        pass
    with pytest.raises(UnavailableError, match="cannot be reached"):
        await connected(http, url).details("ChIJplumber0001")


async def test_the_next_page_of_the_legacy_api_is_waited_for(http: httpx.AsyncClient) -> None:
    google, clock = plumbers(25), NoWait()
    google.clock = lambda: sum(clock.slept)
    google.token_seconds = 3.5
    with serving(google) as url:
        found = await places(tools_with(http, settings(url, api="legacy"), clock)).search(AUSTIN)
    assert (len(found.places), found.pages, clock.slept) == (25, 2, [2.0, 2.0])
    assert google.spent()["search"] == 2


async def test_a_page_token_that_never_works_is_tried_again_later(http: httpx.AsyncClient) -> None:
    google = plumbers(25)
    google.clock = lambda: 0.0
    with serving(google) as url, pytest.raises(UnavailableError, match="does not become ready"):
        await connected(http, url, "legacy").search(AUSTIN)


@BOTH
async def test_the_key_never_reaches_a_log_or_an_error(
    http: httpx.AsyncClient, api: str, caplog: pytest.LogCaptureFixture
) -> None:
    secret = "q7-not-a-google-looking-secret"
    caplog.set_level(logging.DEBUG)
    with serving(plumbers(1)) as url, pytest.raises(KeyRefusedError) as caught:
        await connected(http, url, api, api_key=SecretStr(secret)).details("ChIJplumber0001")
    assert secret not in str(caught.value)
    assert secret not in repr(settings(url, api_key=SecretStr(secret)))
    # every line of the listener's log goes through redact
    assert not [line for line in caplog.messages if secret in redact(line)]
