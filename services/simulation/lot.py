"""One business of the town before anything is built: and what its builder makes of it, with what is to be found."""

from dataclasses import dataclass, field

from services.simulation.reach import Person, Reach
from services.simulation.site import Site


@dataclass(frozen=True)
class Lot:
    number: int
    name: str
    domain: str
    """As DNS has it."""
    person: Person
    phone: str
    """E.164."""
    place_id: str
    seed: int
    port: int | None = None
    """Where its site says it is; None: https at the usual one."""

    @property
    def host(self) -> str:
        return f"www.{self.domain}"

    @property
    def root(self) -> str:
        return f"http://{self.host}:{self.port}" if self.port else f"https://{self.host}"


@dataclass(frozen=True, order=True)
class Dead:
    """One item that must end in the dead letter."""

    workflow: str
    subject: str
    """A place's id, a domain, or the address of a sitemap or page."""
    reason: str


@dataclass(frozen=True)
class Expected:
    """What the pipeline must find on one domain: each once, and nothing else."""

    emails: frozenset[str] = frozenset()
    phones: frozenset[str] = frozenset()
    dead: frozenset[Dead] = frozenset()


@dataclass
class Built:
    """A business with its website."""

    website: str | None
    """As Google has it."""
    sites: dict[str, Site] = field(default_factory=dict)
    """Host → website."""
    expected: dict[str, Expected] = field(default_factory=dict)
    """Domain → what is to be found."""
    dead: frozenset[Dead] = frozenset()
    """Of the business itself."""
    refused: frozenset[str] = frozenset()
    """Hosts where nobody listens."""
    unknown: frozenset[str] = frozenset()
    """Hosts that DNS does not know."""
    without_tls: frozenset[str] = frozenset()
    """Hosts that answer https in plain text."""
    secure_only: frozenset[str] = frozenset()
    """Hosts that lead http to https."""


def expect(*found: Reach, dead: frozenset[Dead] = frozenset()) -> Expected:
    return Expected(
        frozenset().union(*(one.emails for one in found)), frozenset().union(*(one.phones for one in found)), dead
    )


def with_www(lot: Lot, site: Site) -> dict[str, Site]:
    """The usual two hosts: the bare one leads to www."""
    return {lot.host: site, lot.domain: Site(moved_to=lot.root)}
