"""The simulated Google answers as the real one does, in both forms."""

import json
from typing import Any

import pytest

from services.simulation.google import Google
from services.simulation.server import Manner
from services.simulation.world import make_world

KEY = {"X-Goog-Api-Key": "test-key"}


def _search(google: Google, headers: dict[str, str] | None = None, **body: Any) -> tuple[int, dict[str, Any]]:
    mask = {"X-Goog-FieldMask": "places.id,nextPageToken"}
    asked = json.dumps({"textQuery": "plumber in Austin, TX", **body}).encode()
    reply = google.answer("POST", "/v1/places:searchText", {**KEY, **mask, **(headers or {})}, asked)
    return reply.status, json.loads(reply.body)


def test_businesses_that_only_visit_their_customers_are_found_if_asked_for() -> None:
    shop, visitor = make_world(1, 2).places
    google = Google([shop, visitor | {"pureServiceAreaBusiness": True}])
    assert [place["id"] for place in _search(google)[1]["places"]] == [shop["id"]]
    assert len(_search(google, includePureServiceAreaBusinesses=True)[1]["places"]) == 2


def _legacy(google: Google, what: str, **params: str) -> dict[str, Any]:
    query = "&".join(f"{name}={value}" for name, value in {"key": "test-key", **params}.items())
    answer: dict[str, Any] = json.loads(google.answer("GET", f"/maps/api/place/{what}/json?{query}", {}).body)
    return answer


def test_no_more_than_sixty_places_come_however_the_pages_are_cut() -> None:
    places = [dict(place, formattedAddress="Austin, TX") for place in make_world(1, 90).places]
    google, found, token = Google(places), 0, None
    while True:
        _, answer = _search(google, pageSize=7, **({"pageToken": token} if token else {}))
        found += len(answer["places"])
        if (token := answer.get("nextPageToken")) is None:
            break
    assert found == 60


def test_a_token_is_good_for_its_own_request_only() -> None:
    google = Google(make_world(1, 60).places)
    _, first = _search(google)
    status, answer = _search(google, pageToken=first["nextPageToken"], minRating=4)
    assert (status, answer["error"]["status"]) == (400, "INVALID_ARGUMENT")


@pytest.mark.parametrize(
    ("reason", "word"), [("SERVICE_DISABLED", "disabled"), ("API_KEY_IP_ADDRESS_BLOCKED", "IP address")]
)
def test_a_blocked_key_is_told_why(reason: str, word: str) -> None:
    status, answer = _search(Google([], blocked={"test-key": reason}))
    assert status == 403
    assert word in answer["error"]["message"]
    assert answer["error"]["details"][0]["reason"] == reason


def test_trouble_comes_in_the_words_of_each_form() -> None:
    google = Google([])
    google.trouble.extend(["504", "unknown", "silent"])
    assert _search(google)[1]["error"]["status"] == "DEADLINE_EXCEEDED"
    assert _legacy(google, "textsearch", query="x")["status"] == "UNKNOWN_ERROR"
    assert google.answer("GET", "/v1/places/x", KEY).manner is Manner.SILENT


def test_a_place_that_vanished_is_found_by_a_search_and_has_no_details() -> None:
    town = make_world(1, 30)
    assert town.vanished
    google = Google(town.places, vanished=town.vanished)
    (gone, *_) = town.vanished
    _, answer = _search(google, includePureServiceAreaBusinesses=True)
    assert gone in [place["id"] for place in answer["places"]]
    reply = google.answer("GET", f"/v1/places/{gone}", {**KEY, "X-Goog-FieldMask": "id"})
    assert reply.status == 404
    assert _legacy(google, "details", place_id=gone)["status"] == "ZERO_RESULTS"
