"""Google Places on loopback, both APIs: field masks, paging, quotas, and every error in Google's own words.

Places are given in the current API's form, and the legacy form is made from it. What was asked is kept in `calls`, so
that a test can count what would have been paid for.
"""

import hashlib
import json
import re
import threading
import time
from collections import Counter, deque
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qsl, unquote

from services.simulation.google_forms import PLACE, SEARCH, MaskError, legacy_place, masked
from services.simulation.server import Manner, Reply

Json = dict[str, Any]
_DOMAIN = "googleapis.com"
_PAGE = 20
_MOST = 60
_MINUTE, _DAY = 60.0, 86_400.0


@dataclass(frozen=True)
class Call:
    api: str
    """search or details"""
    form: str
    """new or legacy"""
    mask: str
    subject: str
    """The query, or the place's id."""


class _RefusalError(Exception):
    def __init__(self, reply: Reply) -> None:
        super().__init__(reply.status)
        self.reply = reply


@dataclass
class Google:
    """A Google with these places. Thread-safe; `clock` can be moved."""

    places: list[Json]
    keys: frozenset[str] = frozenset({"test-key"})
    blocked: dict[str, str] = field(default_factory=dict)
    """Key → reason, such as API_KEY_SERVICE_BLOCKED, SERVICE_DISABLED or BILLING_DISABLED."""
    per_minute: int = 600
    per_day: int = 75_000
    token_seconds: float = 2.0
    """How long a legacy page token is not good yet."""
    clock: Callable[[], float] = time.monotonic
    trouble: deque[str] = field(default_factory=deque)
    """What happens to the next calls instead: an HTTP status such as 503, `truncated`, `silent` (no answer comes),
    `unknown` (the legacy API's UNKNOWN_ERROR), or empty for nothing."""
    calls: list[Call] = field(default_factory=list)
    """Those that would have been paid for."""
    vanished: frozenset[str] = frozenset()
    """Ids that a search still finds and whose details are gone."""

    def __post_init__(self) -> None:
        self._by_id = {place["id"]: place for place in self.places if place["id"] not in self.vanished}
        self._tokens: dict[str, tuple[str, str, int, float]] = {}
        self._spent: dict[str, deque[float]] = {"search": deque(), "details": deque()}
        self._lock = threading.Lock()

    def spent(self) -> Counter[str]:
        return Counter(call.api for call in self.calls)

    def answer(self, method: str, target: str, headers: Mapping[str, str], body: bytes = b"") -> Reply:
        """What Google says to this request; `target` is the path with its query."""
        path, _, query = target.partition("?")
        params = dict(parse_qsl(query, keep_blank_values=True))
        lower = {name.lower(): value for name, value in headers.items()}
        with self._lock:
            try:
                if path.startswith("/maps/api/place/"):
                    return self._troubled() or self._legacy(path, params)
                return self._troubled() or self._current(method, path, params, lower, body)
            except _RefusalError as refusal:
                return refusal.reply

    def _troubled(self) -> Reply | None:
        what = self.trouble.popleft() if self.trouble else ""
        match what:
            case "":
                return None
            case "truncated":
                return Reply(200, b'{"places": [{"id": "Ch')
            case "silent":
                return Reply(200, b"", manner=Manner.SILENT)
            case "unknown":
                return _status({"html_attributions": []}, "UNKNOWN_ERROR")
        return _error(int(what), _TROUBLES.get(what, "UNAVAILABLE"), "The service is unavailable.")

    # -- the current API ---------------------------------------------------------------------------------------------

    def _current(self, method: str, path: str, params: Json, headers: Mapping[str, str], body: bytes) -> Reply:
        mask = headers.get("x-goog-fieldmask") or params.get("$fields") or params.get("fields") or ""
        key = headers.get("x-goog-api-key") or params.get("key") or ""
        if method == "POST" and path == "/v1/places:searchText":
            self._check_key(key, "SearchText")
            return self._search_current(body, mask)
        if method == "GET" and (found := re.fullmatch(r"/v1/places/([^/]+)", path)):
            self._check_key(key, "GetPlace")
            return self._details_current(unquote(found[1]), mask)
        return Reply(404, b"<!DOCTYPE html><title>Error 404 (Not Found)!!1</title>")

    def _check_key(self, key: str, rpc: str) -> None:
        if not key:
            message = "Method doesn't allow unregistered callers (callers without established identity)."
            raise _RefusalError(_error(403, "PERMISSION_DENIED", message))
        if reason := self.blocked.get(key):
            message = _BLOCKED.get(reason, _METHOD_BLOCKED).format(rpc=rpc)
            raise _RefusalError(_error(403, "PERMISSION_DENIED", message, reason, {"service": "places.googleapis.com"}))
        if key not in self.keys:
            message = "API key not valid. Please pass a valid API key."
            raise _RefusalError(
                _error(400, "INVALID_ARGUMENT", message, "API_KEY_INVALID", {"service": "places.googleapis.com"})
            )

    def _search_current(self, body: bytes, mask: str) -> Reply:
        try:
            asked = json.loads(body)
        except ValueError:
            return _invalid("Invalid JSON payload received.")
        if not mask:
            return _invalid(_NO_MASK)
        if not str(asked.get("textQuery") or "").strip():
            return _invalid("Empty text_query.")
        if "locationBias" in asked and "locationRestriction" in asked:
            return _invalid("location_bias and location_restriction cannot both be set.")
        size = int(asked.get("pageSize") or asked.get("maxResultCount") or _PAGE)
        if size < 0:
            return _invalid("page_size must not be negative.")
        same = {name: value for name, value in asked.items() if name not in ("pageToken", "pageSize", "maxResultCount")}
        start = self._start(asked.get("pageToken"), json.dumps(same, sort_keys=True), "new")
        if start is None:
            return _invalid("Request parameters for paging requests must match the initial SearchText request.")
        try:
            found = self._matching(str(asked["textQuery"]))
            if not asked.get("includePureServiceAreaBusinesses"):
                found = [place for place in found if not place.get("pureServiceAreaBusiness")]
            whole = {"places": found, "nextPageToken": "x"}
            masked(whole, mask, SEARCH)
        except MaskError as error:
            return _bad_mask(error)
        if (refused := self._spend("search", "SearchText")) is not None:
            return refused
        self.calls.append(Call("search", "new", mask, str(asked["textQuery"])))
        end = min(start + min(size, _PAGE), _MOST)
        page: Json = {"places": whole["places"][start:end]}
        if end < min(len(whole["places"]), _MOST):
            page["nextPageToken"] = self._token(json.dumps(same, sort_keys=True), "new", end)
        # what is empty is left out: no match answers {}
        return _json(200, {name: value for name, value in masked(page, mask, SEARCH).items() if value})

    def _details_current(self, place_id: str, mask: str) -> Reply:
        if not mask:
            return _invalid(_NO_MASK)
        if not re.fullmatch(r"[\w-]{6,}", place_id):
            return _invalid(f"Not a valid Place ID: {place_id}")
        place = self._by_id.get(place_id)
        try:
            answer = masked(place or {}, mask, PLACE)
        except MaskError as error:
            return _bad_mask(error)
        if (refused := self._spend("details", "GetPlace")) is not None:
            return refused
        self.calls.append(Call("details", "new", mask, place_id))
        if place is None:
            message = "The Place ID is no longer valid. Please refresh cached Place IDs as per the documentation."
            return _error(404, "NOT_FOUND", message)
        return _json(200, answer)

    # -- the legacy API: always 200 -----------------------------------------------------------------------------------

    def _legacy(self, path: str, params: Json) -> Reply:
        what = path.removeprefix("/maps/api/place/")
        empty: Json = {"html_attributions": []} | ({"result": {}} if what.startswith("details") else {"results": []})
        key = params.get("key", "")
        if what not in ("textsearch/json", "details/json"):
            return Reply(404, b"<!DOCTYPE html>")
        if key in self.blocked:
            return _status(empty, "REQUEST_DENIED", "This API project is not authorized to use this API.")
        if key not in self.keys:
            return _status(empty, "REQUEST_DENIED", "The provided API key is invalid.")
        if what == "details/json":
            return self._details_legacy(params, empty)
        return self._search_legacy(params, empty)

    def _search_legacy(self, params: Json, empty: Json) -> Reply:
        if token := params.get("pagetoken"):
            query, start, good_at = self._legacy_token(token)
            if query is None or self.clock() < good_at:
                return _status(empty, "INVALID_REQUEST")
        elif not (query := str(params.get("query") or "").strip()):
            return _status(empty, "INVALID_REQUEST")
        else:
            start = 0
        if (refused := self._spend_legacy("search", empty)) is not None:
            return refused
        self.calls.append(Call("search", "legacy", "", query))
        found = self._matching(query)
        if not found:
            return _status(empty, "ZERO_RESULTS")
        answer = {
            "html_attributions": [],
            "results": [legacy_place(p, None) for p in found[start : start + _PAGE]],
            "status": "OK",
        }
        if start + _PAGE < min(len(found), _MOST):
            answer["next_page_token"] = self._token(query, "legacy", start + _PAGE)
        return _json(200, answer)

    def _details_legacy(self, params: Json, empty: Json) -> Reply:
        place_id = params.get("place_id", "")
        if not place_id:
            return _status(empty, "INVALID_REQUEST", "Missing the placeid or reference parameter.")
        place = self._by_id.get(place_id)
        try:
            result = legacy_place(place or {"id": ""}, params.get("fields"))
        except MaskError as error:
            message = f"Error while parsing 'fields' parameter: Unsupported field name '{error}'. "
            return _status(empty, "INVALID_REQUEST", message)
        if (refused := self._spend_legacy("details", empty)) is not None:
            return refused
        self.calls.append(Call("details", "legacy", params.get("fields", ""), place_id))
        if place_id in self.vanished:
            return _status(empty, "ZERO_RESULTS")
        if place is None:
            return _status(empty, "NOT_FOUND" if re.fullmatch(r"[\w-]{6,}", place_id) else "INVALID_REQUEST")
        return _json(200, {"html_attributions": [], "result": result, "status": "OK"})

    # -- what both share ---------------------------------------------------------------------------------------------

    def _matching(self, query: str) -> list[Json]:
        """ "plumber in Austin, TX": every word of the kind in its name or types, the location in its address."""
        kind, _, location = query.lower().rpartition(" in ") if " in " in query.lower() else (query.lower(), "", "")
        words = re.findall(r"\w+", kind)
        return [
            place
            for place in self.places
            if location.strip() in _address(place) and all(w in _kinds(place) for w in words)
        ]

    def _token(self, request: str, form: str, start: int) -> str:
        token = hashlib.sha256(f"{form} {request} {start} {len(self._tokens)}".encode()).hexdigest()
        self._tokens[token] = (form, request, start, self.clock() + self.token_seconds)
        return token

    def _start(self, token: str | None, request: str, form: str) -> int | None:
        """Where the page of a token begins; a token is good for its own request only."""
        if not token:
            return 0
        known = self._tokens.get(token)
        return known[2] if known is not None and known[:2] == (form, request) else None

    def _legacy_token(self, token: str) -> tuple[str | None, int, float]:
        form, request, start, good_at = self._tokens.get(token, ("", "", 0, 0.0))
        return (request if form == "legacy" else None), start, good_at

    def _over(self, api: str) -> str | None:
        """Which quota has no room for one more: minute or day; else one more is spent."""
        spent, now = self._spent[api], self.clock()
        while spent and spent[0] <= now - _DAY:
            spent.popleft()
        if len(spent) >= self.per_day:
            return "day"
        if sum(moment > now - _MINUTE for moment in spent) >= self.per_minute:
            return "minute"
        spent.append(now)
        return None

    def _spend(self, api: str, rpc: str) -> Reply | None:
        over = self._over(api)
        if over is None:
            return None
        name, limit = f"{rpc}Request", self.per_day if over == "day" else self.per_minute
        message = (
            f"Quota exceeded for quota metric '{name}' and limit '{name} per {over}' of service 'places.googleapis.com'"
            " for consumer 'project_number:123456789012'."
        )
        return _error(
            429,
            "RESOURCE_EXHAUSTED",
            message,
            "RATE_LIMIT_EXCEEDED",
            {
                "service": "places.googleapis.com",
                "consumer": "projects/123456789012",
                "quota_metric": f"places.googleapis.com/{name}",
                "quota_limit": f"{name}Per{over.capitalize()}PerProject",
                "quota_limit_value": str(limit),
                "quota_location": "global",
                "quota_unit": "1/d/{project}" if over == "day" else "1/min/{project}",
            },
        )

    def _spend_legacy(self, api: str, empty: Json) -> Reply | None:
        match self._over(api):
            case "day":
                return _status(empty, "OVER_QUERY_LIMIT", "You have exceeded your daily request quota for this API.")
            case "minute":
                return _status(empty, "OVER_QUERY_LIMIT", "You have exceeded your rate-limit for this API.")
        return None


_METHOD_BLOCKED = "Requests to this API places.googleapis.com method google.maps.places.v1.Places.{rpc} are blocked."
_BLOCKED = {
    "API_KEY_IP_ADDRESS_BLOCKED": "The provided API key has an IP address restriction.",
    "API_KEY_HTTP_REFERRER_BLOCKED": "Requests from referer <empty> are blocked.",
    "SERVICE_DISABLED": "Places API (New) has not been used in project 123456789012 before or it is disabled.",
    "BILLING_DISABLED": "This API method requires billing to be enabled.",
}
_TROUBLES = {"500": "INTERNAL", "504": "DEADLINE_EXCEEDED"}
_NO_MASK = (
    "FieldMask is a required parameter. See https://cloud.google.com/apis/docs/system-parameters on how to provide it."
)


def _address(place: Json) -> str:
    return str(place.get("formattedAddress", "")).lower()


def _kinds(place: Json) -> str:
    names: Iterable[str] = [place.get("displayName", {}).get("text", ""), *place.get("types", [])]
    return " ".join(names).replace("_", " ").lower()


def _json(status: int, body: Json) -> Reply:
    return Reply(status, json.dumps(body).encode())


def _status(empty: Json, status: str, message: str = "") -> Reply:
    return _json(200, {**({"error_message": message} if message else {}), **empty, "status": status})


def _invalid(message: str) -> Reply:
    return _error(400, "INVALID_ARGUMENT", message)


def _bad_mask(error: MaskError) -> Reply:
    violation = f"Error expanding 'fields' parameter. Cannot find matching fields for path '{error}'."
    details = [{"@type": "type.googleapis.com/google.rpc.BadRequest", "fieldViolations": [{"description": violation}]}]
    body = {
        "code": 400,
        "message": "Request contains an invalid argument.",
        "status": "INVALID_ARGUMENT",
        "details": details,
    }
    return _json(400, {"error": body})


def _error(code: int, status: str, message: str, reason: str = "", metadata: Json | None = None) -> Reply:
    error: Json = {"code": code, "message": message, "status": status}
    if reason:
        kind = "type.googleapis.com/google.rpc.ErrorInfo"
        error["details"] = [{"@type": kind, "reason": reason, "domain": _DOMAIN, "metadata": metadata or {}}]
    return _json(code, {"error": error})
