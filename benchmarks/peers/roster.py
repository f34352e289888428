"""Who takes part: how each is installed, and how the database tells that its queue is empty."""

from dataclasses import dataclass
from typing import LiteralString

OURS = "SELECT EXISTS (SELECT FROM item WHERE status IN ('Queued', 'Processing'))"


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
    ),
    Peer(
        "dramatiq-pg",
        "peer_dramatiq_pg.py",
        ("dramatiq-pg", "psycopg2-binary"),
        "SELECT EXISTS (SELECT FROM dramatiq.queue WHERE state IN ('queued', 'consumed'))",
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
        ("pg-boss",),
        "SELECT EXISTS (SELECT FROM pgboss.job WHERE state < 'completed')",
    ),
)

ABSENT = {"absurd": "its packages carry a client, but not the SQL that it needs in the database"}
