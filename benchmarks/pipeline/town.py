"""`python -m benchmarks.pipeline.town SITES FILE`: working websites on loopback, until its input ends.

What there is, and what is to be found, is written to the file; every site is `http://www.NAME:PORT`.
"""

import json
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from services.simulation.healthy import UNREAD, healthy_site, ways
from services.simulation.lot import Lot
from services.simulation.reach import Person
from services.simulation.robots import crawl_delay, request_rate
from services.simulation.server import Reply, serving
from services.simulation.site import HTML, Answer, Site
from services.simulation.sitemaps import beside_a_bomb
from services.sitemaps.classify import Verdict, classify


@dataclass
class Town:
    sites: dict[str, Site] = field(default_factory=dict)

    def answer(self, method: str, target: str, headers: Mapping[str, str], body: bytes = b"") -> Reply:  # noqa: ARG002
        host = headers.get("host", "").partition(":")[0].lower()
        # a client that talks to a proxy sends the whole address
        path = target.partition("?")[0]
        site = self.sites.get(host)
        found = site.get(path) if site is not None else Answer(b"no such site", 404, "text/plain")
        return Reply(found.status, found.content, found.kind, found.headers)


def build(town: Town, count: int, port: int) -> dict[str, Any]:
    """As many sites; those that ask for pauses or attack are left out: nobody's speed shows there."""
    turns = [turn for turn in range(3 * count) if not {beside_a_bomb, crawl_delay, request_rate} & {*ways(turn)}]
    described = []
    for turn in turns[:count]:
        domain = f"plumber-{turn:04}.com"
        person = Person("Ada Jensen", "Owner")
        lot = Lot(turn, f"Plumber {turn}", domain, person, f"+1512441{turn:04}", f"sim{turn}", turn * 101, port)
        site, expected = healthy_site(lot, turn)
        pages = [path for path in site.answers if path.endswith("/") and path not in UNREAD]
        town.sites[lot.host] = site
        town.sites[domain] = Site(moved_to=lot.root)
        described.append(
            {
                "domain": domain,
                "root": lot.root,
                "pages": [f"{lot.root}{path}" for path in pages if classify(path).verdict is Verdict.READ],
                "listed_pages": sorted(_listed(site, lot.root)),
                "emails": sorted(expected.emails),
                "phones": sorted(expected.phones),
            }
        )
    return {"port": port, "sites": described}


def _listed(site: Site, root: str) -> set[str]:
    """What its sitemaps name: all its pages, and of one kind of site thousands of products too."""
    paths = {path for path, answer in site.answers.items() if answer.kind == HTML and path != "/robots.txt"}
    listed = {f"{root}{path}" for path in paths}
    if any(b"/products/item-" in answer.content for path, answer in site.answers.items() if "sitemap" in path):
        listed |= {f"{root}/products/item-{n}/" for n in range(4_000)}
    return listed


def main() -> None:
    count, output = int(sys.argv[1]), Path(sys.argv[2])
    town = Town()
    with serving(town) as url:
        output.write_text(json.dumps(build(town, count, int(url.rpartition(":")[2]))), "utf-8")
        sys.stdout.write("ready\n")
        sys.stdout.flush()
        sys.stdin.read()


if __name__ == "__main__":
    main()
