"""A web page on a free port, in a thread of the test's own process."""

import asyncio
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import httpx

from listener.settings import Settings
from listener.web.server import Web

TOKEN = "operators-own-token-1"
READER = "readers-own-token-22"


@contextmanager
def serving(url: str, **given: Any) -> Iterator[str]:
    """The address of a page over this database; with WEB_TOKEN and a reader, unless told otherwise."""
    values = {"web_port": 0, "web_token": TOKEN, "web_users": f"carol:{READER}:read", **given}
    web = Web(url, Settings(_env_file=None, **values))  # type: ignore[call-arg]
    address = web.bind()
    loop = asyncio.new_event_loop()

    def run() -> None:
        asyncio.set_event_loop(loop)
        loop.run_until_complete(web.run())
        loop.close()

    thread = threading.Thread(target=run, name="web", daemon=True)
    thread.start()
    try:
        yield address.rstrip("/")
    finally:
        loop.call_soon_threadsafe(web.stop)
        thread.join(20)


class Visitor:
    """What a browser does without a screen: keeps cookies, fills in forms."""

    def __init__(self, client: httpx.Client) -> None:
        self.client = client

    def get(self, path: str, **headers: str) -> httpx.Response:
        return self.client.get(path, headers=headers)

    def sign_in(self, token: str = TOKEN, next_page: str = "/") -> httpx.Response:
        return self.client.post("/sign-in", data={"token": token, "next": next_page})

    def form_token(self) -> str:
        """What the pages of this session put into their forms."""
        found = re.search(r'name="form_token" value="([0-9a-f]+)"', self.get("/listeners").text)
        return found[1] if found else ""

    def act(self, action: str, form_token: str | None = None, /, **fields: Any) -> httpx.Response:
        """Confirm an action; with the session's own form token unless another is given."""
        proof = self.form_token() if form_token is None else form_token
        return self.client.post(f"/do/{action}", data={"form_token": proof, **fields})
