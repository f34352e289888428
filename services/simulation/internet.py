"""The whole simulated internet on one port of loopback: websites told apart by Host, Google under its own paths."""

from collections.abc import Mapping

from services.simulation.google import Google
from services.simulation.markup import Answer
from services.simulation.server import Reply
from services.simulation.world import World


class Internet:
    """Answers for every host of the world. Nothing else exists."""

    def __init__(self, world: World, google: Google) -> None:
        self._world = world
        self._google = google
        self.requests: list[tuple[str, str]] = []
        """Host and path of everything that was asked, so that good manners can be checked."""

    def answer(self, method: str, target: str, headers: Mapping[str, str], body: bytes = b"") -> Reply:
        host = next((value for name, value in headers.items() if name.lower() == "host"), "").partition(":")[0].lower()
        path = target.partition("?")[0]
        self.requests.append((host, path))
        if path.startswith(("/v1/places", "/maps/api/place/")):
            return self._google.answer(method, target, headers, body)
        site = self._world.sites.get(host)
        found = site.get(path) if site is not None else Answer(b"no such site", 404, "text/plain")
        return Reply(found.status, found.body, found.kind, found.headers)
