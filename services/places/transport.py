"""One call to Google over HTTP."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass

import httpx

from services.places.errors import UnavailableError
from services.places.reading import parse
from services.places.records import Json

Http = httpx.AsyncClient


@dataclass(frozen=True)
class Reply:
    status: int
    body: Json


class Transport:
    """What fails before Google has said anything is the same for both APIs."""

    def __init__(self, http: Http, spend: Callable[[], Awaitable[None]] | None = None) -> None:
        self._http = http
        self._spend = spend
        """Asked before every call; it raises if there must be none."""

    async def call(
        self,
        method: str,
        url: str,
        *,
        params: Mapping[str, str] | None = None,
        headers: Mapping[str, str] | None = None,
        body: Json | None = None,
    ) -> Reply:
        if self._spend is not None:
            await self._spend()
        try:
            answer = await self._http.request(method, url, params=params, headers=headers, json=body)
        except httpx.TimeoutException as error:
            raise UnavailableError("Google Places did not answer in time") from error
        except httpx.RequestError as error:
            raise UnavailableError(f"Google Places cannot be reached ({type(error).__name__})") from error
        read = parse(answer.content)
        if read is None:
            raise UnavailableError(f"Google Places answered HTTP {answer.status_code} without readable JSON")
        return Reply(answer.status_code, read)
