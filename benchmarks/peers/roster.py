"""Who takes part: how each is installed, and how the database tells that its queue is empty."""

from dataclasses import dataclass
from typing import LiteralString

# By the two partial indexes that there are anyway. Ordered, or the planner, who last saw every item Queued, reads the
# whole table each time, and slows the drain that is being measured.
OURS = (
    "SELECT EXISTS (SELECT FROM (SELECT FROM item WHERE status = 'Queued' ORDER BY updated_at LIMIT 1) AS q)"
    " OR EXISTS (SELECT FROM scheduler.run WHERE finished_at IS NULL)"
)


@dataclass(frozen=True)
class Peer:
    name: str
    script: str
    """In adapters/; what it is set to, and why, stands at its top."""
    requires: tuple[str, ...]
    """What pip or npm installs for it."""
    left: LiteralString
    """True while items are unfinished."""
    variant: str = ""
    share: float = 1.0
    """Of the items of a drain: a slow one shows its pace with fewer, and nobody waits for minutes."""

    @property
    def module(self) -> str:
        return self.requires[0].partition("@")[0]

    @property
    def is_node(self) -> bool:
        return self.script.endswith(".mjs")

    @property
    def is_ours(self) -> bool:
        return not self.requires


PEERS = (
    Peer("scrapersky", "ours", (), OURS),
    Peer("scrapersky, no processing word", "ours", (), OURS, variant="light"),
    Peer(
        "procrastinate",
        "peer_procrastinate.py",
        ("procrastinate", "psycopg[binary,pool]"),
        "SELECT EXISTS (SELECT FROM procrastinate_jobs WHERE status IN ('todo', 'doing'))",
        share=0.05,
    ),
    Peer(
        "pgqueuer",
        "peer_pgqueuer.py",
        ("pgqueuer", "asyncpg", "uvloop"),
        "SELECT EXISTS (SELECT FROM pgqueuer)",
    ),
    Peer(
        "chancy",
        "peer_chancy.py",
        ("chancy", "psycopg[binary,pool]"),
        "SELECT EXISTS (SELECT FROM chancy_jobs WHERE state NOT IN ('succeeded', 'failed'))",
        share=0.2,
    ),
    Peer(
        "awa",
        "peer_awa.py",
        ("awa-pg",),
        "SELECT EXISTS (SELECT FROM awa.jobs WHERE state::text NOT IN ('completed', 'failed', 'cancelled'))",
    ),
    Peer(
        "dbos",
        "peer_dbos.py",
        ("dbos",),
        "SELECT EXISTS (SELECT FROM dbos.workflow_status WHERE status IN ('ENQUEUED', 'PENDING'))",
        share=0.02,
    ),
    Peer(
        "dramatiq-pg",
        "peer_dramatiq_pg.py",
        ("dramatiq-pg", "psycopg2-binary"),
        "SELECT EXISTS (SELECT FROM dramatiq.queue WHERE state IN ('queued', 'consumed'))",
        share=0.02,
    ),
    Peer(
        "absurd",
        "peer_absurd.py",
        ("absurd-sdk", "absurdctl", "psycopg[binary,pool]"),
        "SELECT EXISTS (SELECT FROM absurd.r_noop WHERE state IN ('pending', 'running', 'sleeping'))",
        share=0.05,
    ),
    Peer(
        "pgmq",
        "peer_pgmq.py",
        ("pgmq", "psycopg[binary,pool]"),
        "SELECT EXISTS (SELECT FROM pgmq.q_noop)",
    ),
    Peer(
        "graphile-worker",
        "peer_graphile_worker.mjs",
        ("graphile-worker", "pg"),
        "SELECT EXISTS (SELECT FROM graphile_worker._private_jobs)",
    ),
    Peer(
        "pg-boss",
        "peer_pg_boss.mjs",
        # later ones need a package that not every registry has; from 12 on it needs Node 22
        ("pg-boss@12.34", "node@22"),
        "SELECT EXISTS (SELECT FROM pgboss.job WHERE state < 'completed')",
    ),
)
