"""The whole simulated internet on one port of loopback: websites told apart by Host, Google under its own paths."""

import socket
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from services.simulation.google import Google
from services.simulation.server import Reply, serving
from services.simulation.site import TEXT, Answer
from services.simulation.world import World


class Internet:
    """Answers for every host of the world. Nothing else exists."""

    def __init__(self, world: World, google: Google) -> None:
        self._world = world
        self._google = google
        self.requests: list[tuple[str, str]] = []
        """Host and path of everything that was asked, so that good manners can be checked."""

    def answer(self, method: str, target: str, headers: Mapping[str, str], body: bytes = b"") -> Reply:
        lowered = {name.lower(): value for name, value in headers.items()}
        host = lowered.get("host", "").partition(":")[0].lower()
        path = target.partition("?")[0]
        if path.startswith(("/v1/places", "/maps/api/place/")):
            return self._google.answer(method, target, headers, body)
        self.requests.append((host, path))
        found = self._find(host, path, secure=lowered.get("x-forwarded-proto") == "https")
        return Reply(found.status, found.content, found.kind, found.headers, found.manner, found.delay)

    def _find(self, host: str, path: str, *, secure: bool) -> Answer:
        site = self._world.sites.get(host)
        if site is None:
            return Answer(b"no such site", 404, TEXT)
        if host in self._world.secure_only and not secure:
            return Answer(b"", 301, headers=(("Location", f"https://{host}{path}"),))
        return site.get(path)


@contextmanager
def connected(world: World, google: Google) -> Iterator[tuple[str, str]]:
    """The world on loopback while the block lasts: the base URL of its Google, and the text of FETCH_REPLAY."""
    with _nobody() as closed, serving(Internet(world, google)) as base_url:
        yield base_url, world.replay(base_url.removeprefix("http://"), closed)


@contextmanager
def _nobody() -> Iterator[str]:
    """An address where connections are refused: a port that is taken and not listened on."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        yield f"127.0.0.1:{taken.getsockname()[1]}"
