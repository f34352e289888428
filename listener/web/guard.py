"""What every request passes: is it meant for us, who asks, may they, and which headers protect the answer."""

from urllib.parse import quote

from starlette.datastructures import MutableHeaders
from starlette.requests import HTTPConnection
from starlette.responses import JSONResponse, PlainTextResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from listener.web.access import Access, Person, is_loopback

COOKIE = "scrapersky_session"

_OPEN = ("/health", "/ready", "/sign-in", "/static/")
_FOR_MACHINES = ("/metrics", "/api/")
_HEADERS = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self';"
    " connect-src 'self'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), microphone=(), geolocation=()",
}


class Guard:
    """An ASGI layer around the whole site."""

    def __init__(self, app: ASGIApp, access: Access) -> None:
        self._app = app
        self.access = access

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return
        connection = HTTPConnection(scope)
        person = self._person(connection)
        scope.setdefault("state", {})["person"] = person

        async def protected(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in _HEADERS.items():
                    headers.setdefault(name, value)
                headers.setdefault("Cache-Control", "no-store")
            await send(message)

        answer = self._refusal(connection, person) or self._app
        await answer(scope, receive, protected)

    def _person(self, connection: HTTPConnection) -> Person | None:
        scheme, _, token = connection.headers.get("authorization", "").partition(" ")
        if scheme.lower() == "bearer":
            return self.access.person_with(token.strip())
        cookie = connection.cookies.get(COOKIE)
        return self.access.person_of(cookie) if cookie else None

    def _refusal(self, connection: HTTPConnection, person: Person | None) -> Response | None:
        path = connection.url.path
        if self.access.is_open and not is_loopback(connection.url.hostname or ""):
            # a name that somebody else's DNS points at this machine must not read the page through a browser here
            return PlainTextResponse("Without a token this page answers only to localhost.\n", 421)
        if connection.scope["method"] not in ("GET", "HEAD") and connection.headers.get("sec-fetch-site") not in (
            None,
            "same-origin",
            "none",
        ):
            return PlainTextResponse("Another site sent this request.\n", 403)
        if path.startswith(_OPEN) or person is not None:
            return None
        if self.access.is_open:
            return None if not path.startswith("/api/") else _unknown("Set WEB_TOKEN, and send it as a bearer token.")
        if path.startswith(_FOR_MACHINES):
            return _unknown("Send the token: Authorization: Bearer …")
        wanted = path + (f"?{connection.url.query}" if connection.url.query else "")
        return RedirectResponse(f"/sign-in?next={quote(wanted, safe='/')}", 303)


def _unknown(hint: str) -> JSONResponse:
    return JSONResponse({"error": "not signed in", "hint": hint}, 401, {"WWW-Authenticate": "Bearer"})
