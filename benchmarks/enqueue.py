"""What it costs an application to queue one item in a transaction of its own, by pgbench, beside a bare UPDATE."""

import os
import re
import statistics
import subprocess
import tempfile
from pathlib import Path
from typing import LiteralString

import psycopg
from psycopg import sql

from benchmarks.queue import Places
from benchmarks.scale import Figures, Say, Scale
from listener.postgres.server import best, find

CLIENTS = (1, 32)
_ROUNDS = 5
_ROWS = 400_000
"""So many that no round comes to the end of them."""

# the key by a counter: each row once, whoever asks
_UPDATE = (
    "UPDATE {table} SET status = 'Queued'"
    " WHERE id = (SELECT id FROM {table}_ids WHERE n = (SELECT nextval('{table}_n')));"
)


def enqueue(db: psycopg.Connection, scale: Scale, say: Say) -> Figures:
    server = best(find())
    program = server.program("pgbench") if server else None
    if program is None or not program.exists():
        say("No pgbench here: single enqueues are not measured.")
        return {}
    rows = _ROWS if scale.enqueue_seconds > 1 else 20_000
    # the same table and indexes without the engine's triggers; without its index, too; with what each doorbell needs
    tables = ("enqueue_bare", "enqueue_unindexed", "enqueue_dispatch", "enqueue_commit")
    for table in tables:
        _prepare(db, table, rows)
    figures: Figures = {}
    for clients in CLIENTS:
        say(f"Queueing items one by one, {clients} client{'s' if clients > 1 else ''} ...")
        rates: dict[str, list[float]] = {table: [] for table in tables}
        for _ in range(_ROUNDS if scale.enqueue_seconds > 1 else 1):
            for table in tables:
                rates[table].append(_rate(db, program, table, clients, scale.enqueue_seconds))
        medians = {table: statistics.median(found) for table, found in rates.items()}
        figures |= {f"{table}_{clients}_per_second": rate for table, rate in medians.items()}
        figures[f"enqueue_dispatch_to_bare_{clients}_ratio"] = medians["enqueue_dispatch"] / medians["enqueue_bare"]
        figures[f"enqueue_commit_to_bare_{clients}_ratio"] = medians["enqueue_commit"] / medians["enqueue_bare"]
        figures[f"enqueue_bare_to_unindexed_{clients}_ratio"] = medians["enqueue_bare"] / medians["enqueue_unindexed"]
    return figures


def _prepare(db: psycopg.Connection, table: str, rows: int) -> None:
    def do(text: LiteralString) -> None:
        db.execute(
            sql.SQL(text).format(
                table=sql.Identifier(table),
                ids=sql.Identifier(f"{table}_ids"),
                n=sql.Identifier(f"{table}_n"),
                rows=sql.Literal(rows),
            )
        )

    Places(db, table, queued=0, finished=rows, paused=True, doorbell="commit" if "commit" in table else "dispatch")
    if table in ("enqueue_bare", "enqueue_unindexed"):
        db.execute("SELECT scheduler.drop_workflow(%s)", [table])
    if table == "enqueue_bare":
        do("CREATE INDEX ON {table} (created_at) WHERE status = 'Queued'")
    do("CREATE TABLE {ids} AS SELECT row_number() OVER (ORDER BY created_at) AS n, id FROM {table}")
    do("ALTER TABLE {ids} ADD PRIMARY KEY (n)")
    do("CREATE SEQUENCE {n} CACHE 1000")
    do("VACUUM ANALYZE {ids}")


def _rate(db: psycopg.Connection, program: Path, table: str, clients: int, seconds: int) -> float:
    with tempfile.NamedTemporaryFile("w", suffix=".sql") as script:
        script.write(_UPDATE.format(table=table))
        script.flush()
        info = db.info
        server = ["-h", info.host, "-p", str(info.port), "-U", info.user, info.dbname]
        load = ["-c", str(clients), "-j", "2" if clients > 1 else "1", "-T", str(seconds), "-f", script.name]
        done = subprocess.run(
            [str(program), "-n", "-M", "prepared", *load, *server],
            env={**os.environ, "PGPASSWORD": info.password},
            capture_output=True,
            text=True,
            check=True,
        )
    found = re.search(r"tps = ([\d.]+)", done.stdout)
    if not found:
        raise AssertionError(f"pgbench did not say how fast it was: {done.stdout}")
    return float(found[1])
