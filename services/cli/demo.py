"""`scrapersky demo`: from a search to contacts, against a simulated internet, in about two minutes."""

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, LiteralString

import psycopg
import typer

from listener.cli.db import Directory
from listener.cli.say import say
from listener.cli.table import table
from listener.errors import UserError

if TYPE_CHECKING:
    from services.simulation.world import World

KEY = "simulated-key"
FIRING_SECONDS = 80
"""pg_cron fires at the start of a minute; this is a minute and some patience."""
STALLED_SECONDS = 120
"""So long without any change, and something is wrong."""
OLD_RATE = 30
"""Items a minute that the in-process timers of the old system managed, all workflows together."""

PLACES: LiteralString = "SELECT count(*) FROM place"
PIPELINE: tuple[tuple[str, LiteralString], ...] = (
    ("place_search", "SELECT count(*) FROM place_search WHERE status = 'complete'"),
    ("place", PLACES),
    ("local_business", "SELECT count(*) FROM local_business"),
    ("domain", "SELECT count(*) FROM domain"),
    ("sitemap_file", "SELECT count(*) FROM sitemap_file"),
    ("page", "SELECT count(*) FROM page"),
    ("contact", "SELECT count(*) FROM contact"),
)
GATES: tuple[tuple[str, LiteralString], ...] = (
    ("deep_scan", "UPDATE place SET status = 'Selected' WHERE status = 'New'"),
    ("domain_extraction", "UPDATE local_business SET status = 'Selected' WHERE status = 'New'"),
    (
        "sitemap_import",
        """UPDATE sitemap_file SET deep_scrape_curation_status = 'Selected'
           WHERE deep_scrape_curation_status = 'New'""",
    ),
)
"""The hand-overs that wait for a person, and what that person does."""
BUSY: LiteralString = "SELECT sum(queued + processing + waiting)::integer FROM scheduler.queue_depth"
FIRED: LiteralString = (
    "SELECT count(*) FROM scheduler.state WHERE workflow = %s AND last_clock = 'pg_cron' AND last_dispatch_at > %s"
)
FOUND: LiteralString = (
    "SELECT d.domain, c.email, c.phone FROM contact AS c JOIN domain AS d ON d.id = c.domain_id ORDER BY 1, 2, 3"
)
DONE: LiteralString = "SELECT coalesce(sum(succeeded + failed + rejected), 0)::integer FROM scheduler.run"


def demo(
    directory: Directory = None,
    businesses: Annotated[int, typer.Option(help="How many businesses the simulated town has.", min=1, max=500)] = 30,
    seed: Annotated[int, typer.Option(help="Another number is another town.")] = 1,
    quick: Annotated[bool, typer.Option("--quick", help="Do not wait for pg_cron to fire; dispatch at once.")] = False,
) -> None:
    """Run the whole pipeline on this machine against a simulated internet, and check what it found.

    Starts a private PostgreSQL, the simulated websites and Google on loopback, and a real listener; plays the person
    who selects rows at the gates; compares the contacts in the database with those of the town. Ends by itself; run it
    again and nothing changes. Nothing is fetched from outside this machine.

    Example: scrapersky demo --businesses 60 && scrapersky status
    """
    from listener.postgres.provide import provide
    from listener.schema import migrate
    from services.simulation.world import make_world

    provided = provide(directory, say=say)
    _step("Installing the engine and the pipeline's tables")
    migrate(provided.url)
    world = make_world(seed, businesses)
    with psycopg.connect(provided.url, autocommit=True) as db, _internet(world) as address:
        _require_own_database(db)
        with _hurried(db), _listener(provided.url, address) as listener:
            started = time.monotonic()
            before = _one(db, DONE)
            _search(db, listener)
            _pass_gates(db, listener, quick=quick)
            seconds = time.monotonic() - started
            items = _one(db, DONE) - before
        _report(db, items, seconds)
        _compare(db, world)
    _say_goodbye(directory, private=provided.private is not None)


def _require_own_database(db: psycopg.Connection) -> None:
    """The demo's listener sees the simulated internet only, so real rows must not come before it."""
    if _one(db, "SELECT count(*) FROM place WHERE NOT starts_with(place_id, 'ChIJsim')"):
        raise UserError(
            "This database holds real places; the demo would work on them with a simulated internet.",
            "Give it a database of its own: unset DATABASE_URL, or use --dir with an empty directory.",
        )


@contextmanager
def _internet(world: "World") -> Iterator[str]:
    from services.simulation.google import Google
    from services.simulation.internet import Internet
    from services.simulation.server import serving

    with serving(Internet(world, Google(world.places, frozenset({KEY}), token_seconds=0))) as base_url:
        _step(f"A town of {len(world.places)} businesses and {len(world.expected)} websites, served from {base_url}")
        yield base_url.removeprefix("http://")


@contextmanager
def _hurried(db: psycopg.Connection) -> Iterator[None]:
    """A town is worked through at once, not ten rows every five minutes; the settings are put back in the end."""
    gated = [name for name, _ in GATES]
    settings = db.execute(
        "SELECT name, schedule, batch_size FROM scheduler.workflow WHERE name = ANY (%s)", [gated]
    ).fetchall()
    change: LiteralString = "SELECT scheduler.alter_workflow(%s, schedule => %s, batch_size => %s)"
    for name in gated:
        db.execute(change, [name, "* * * * *", 1000])
    try:
        yield
    finally:
        for name, schedule, batch_size in settings:
            db.execute(change, [name, schedule, batch_size])


@contextmanager
def _listener(url: str, address: str) -> Iterator["subprocess.Popen[bytes]"]:
    """A real `scrapersky listen`, which knows of nothing but the simulated internet."""
    path = Path.cwd() / ".local" / "demo-listener.log"
    path.parent.mkdir(exist_ok=True)
    _step(f"A listener begins to serve all workflows (its log: {os.path.relpath(path)})")
    environment: Mapping[str, str] = {
        **os.environ,
        "DATABASE_URL": url,
        "GOOGLE_PLACES_API_KEY": KEY,
        "GOOGLE_PLACES_BASE_URL": f"http://{address}",
        "FETCH_REPLAY": f"*={address}",
        "FETCH_HOST_SECONDS": "0",
        "LOG_FORMAT": "json",
    }
    with path.open("wb") as log:
        process = subprocess.Popen(
            [sys.executable, "-c", "from listener.cli import main; main()", "listen"],
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,  # Ctrl-C is for the demo, which then drains it
        )
    try:
        yield process
    finally:
        if process.poll() is None:
            process.send_signal(signal.SIGTERM)
            try:
                process.wait(40)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def _search(db: psycopg.Connection, listener: "subprocess.Popen[bytes]") -> None:
    from services.simulation.world import TOWN, TRADE

    _step(f'A person asks for "{TRADE}" in "{TOWN}": that is a row in place_search')
    row = db.execute(
        "INSERT INTO place_search (business_type, location) VALUES (%s, %s) RETURNING id", [TRADE, TOWN]
    ).fetchone()
    _until(db, listener, lambda: _is_done(db, row))
    say(f"{_one(db, PLACES)} places found")


def _is_done(db: psycopg.Connection, search: Any) -> bool:
    row = db.execute("SELECT status::text, error FROM place_search WHERE id = %s", search).fetchone()
    if row is not None and row[0] == "failed":
        raise UserError(f"The search failed: {row[1]}", "See the listener's log.")
    return row is not None and row[0] == "complete"


def _pass_gates(db: psycopg.Connection, listener: "subprocess.Popen[bytes]", *, quick: bool) -> None:
    """At each gate a person selects everything; the first time pg_cron marks it Queued, then a call of dispatch."""
    for number, (workflow, selection) in enumerate(GATES):
        selected = db.execute(selection).rowcount
        _step(f"At the gate before {workflow}: {selected} rows are set to Selected")
        if not selected:
            say("all of them were selected in an earlier demo")
        elif number == 0 and not quick and _one(db, "SELECT scheduler.cron_home()") == "here":
            _await_firing(db, workflow)
        else:
            _show(db, "SELECT * FROM scheduler.dispatch(%s)", workflow)
        _until(db, listener, lambda: not _one(db, BUSY))
        say(", ".join(f"{name} {_one(db, query)}" for name, query in PIPELINE))


def _await_firing(db: psycopg.Connection, workflow: str) -> None:
    begun = _one(db, "SELECT now()")
    say("pg_cron marks them Queued at the start of the next minute (up to 60 s) ...")
    deadline = time.monotonic() + FIRING_SECONDS
    with psycopg.connect(db.info.dsn, password=db.info.password, autocommit=True) as bell:
        bell.execute("LISTEN scrapersky")
        while not _one(db, FIRED, workflow, begun):
            if time.monotonic() > deadline:
                raise UserError(
                    "pg_cron did not fire within its minute.", "See: scrapersky doctor; or run the demo with --quick."
                )
            for _ in bell.notifies(timeout=1, stop_after=1):
                pass
    say("pg_cron fired")


def _until(db: psycopg.Connection, listener: "subprocess.Popen[bytes]", reached: Callable[[], bool]) -> None:
    """Wait as long as something moves."""
    moved, done = time.monotonic(), -1
    while not reached():
        if listener.poll() is not None:
            raise UserError(f"The listener ended with exit code {listener.returncode}.", "See its log.")
        if (now_done := _one(db, DONE)) != done:
            moved, done = time.monotonic(), now_done
        if time.monotonic() - moved > STALLED_SECONDS:
            raise UserError(f"Nothing has moved for {STALLED_SECONDS} s.", "See: scrapersky status; scrapersky doctor.")
        time.sleep(0.2)


def _report(db: psycopg.Connection, items: int, seconds: float) -> None:
    _step("SELECT * FROM scheduler.status")
    _show(db, "SELECT workflow, state, queued, processing, dead, p50, p95 FROM scheduler.status ORDER BY workflow")
    if _one(db, "SELECT count(*) FROM scheduler.dead_letter"):
        _step("SELECT * FROM scheduler.errors")
        _show(db, "SELECT workflow, items, dead, example FROM scheduler.errors")
    _step("SELECT … FROM contact: some of what was found")
    _show(
        db,
        "SELECT d.domain, c.email, c.phone, c.name, c.role, c.found_in FROM contact AS c JOIN domain AS d"
        " ON d.id = c.domain_id ORDER BY c.name NULLS LAST, d.domain, c.email LIMIT 8",
    )
    if items:
        rate = items / seconds * 60
        say(
            f"\n{items} items in {seconds:.0f} s, waiting for pg_cron included: {rate:,.0f} a minute,"
            f" {rate / OLD_RATE:.0f} times the {OLD_RATE} of the old system"
        )


def _compare(db: psycopg.Connection, world: "World") -> None:
    """Exactly the town's contacts: none missing, none invented, none twice."""
    rows = db.execute(FOUND).fetchall()
    emails = [(domain, email) for domain, email, _ in rows if email]
    phones = {(domain, phone) for domain, _, phone in rows if phone}
    wrong = [
        *(f"missing: {pair}" for pair in sorted((world.emails - set(emails)) | (world.phones - phones))),
        *(f"invented: {pair}" for pair in sorted((set(emails) - world.emails) | (phones - world.phones))),
        *(f"twice: {pair}" for pair in sorted({pair for pair in emails if emails.count(pair) > 1})),
    ]
    if wrong:
        raise UserError("The contacts are not those of the town:\n  " + "\n  ".join(wrong[:20]), "This is a bug.")
    typer.secho(
        f"Exactly the town's {len(world.emails)} addresses and {len(world.phones)} phone numbers: none missing, none"
        " invented, none twice.",
        fg=typer.colors.GREEN,
    )


def _say_goodbye(directory: Path | None, *, private: bool) -> None:
    option = f" --dir {directory}" if directory else ""
    # Not every shell has .venv/bin in its path.
    command = "scrapersky" if shutil.which("scrapersky") else os.path.relpath(sys.argv[0])
    say("\nLook around:")
    say(f"  {command} status")
    say(f"  {command} export contacts")
    say(f"  {command} db psql{option}")
    if private:
        say(f"PostgreSQL keeps running. Stop it with: {command} db stop{option}")


def _step(title: str) -> None:
    typer.secho(f"\n{title}", bold=True)


def _one(db: psycopg.Connection, query: LiteralString, *values: object) -> Any:
    row = db.execute(query, values).fetchone()
    return row[0] if row else None


def _show(db: psycopg.Connection, query: LiteralString, *values: object) -> None:
    cursor = db.execute(query, values)
    typer.echo(table([column.name for column in cursor.description or ()], cursor.fetchall()))
