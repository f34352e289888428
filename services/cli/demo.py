"""`scrapersky demo`: from a search to contacts, against a simulated internet, in about a minute."""

import os
import shlex
import shutil
import signal
import subprocess
import sys
import textwrap
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, LiteralString

import psycopg
import typer

from listener.cli.db import Directory
from listener.cli.say import paint, say
from listener.cli.table import table, terminal_width
from listener.errors import UserError
from services.cli.live import Live

if TYPE_CHECKING:
    from services.simulation.world import World

KEY = "simulated-key"
FIRING_SECONDS = 90
"""pg_cron fires at the start of a minute; this is a minute and some patience. A listener as the clock may be late."""
STALLED_SECONDS = 60
"""So long without any change, and something is wrong."""
LOOK_SECONDS = 0.25
OLD_RATE = 30
"""Items a minute that the in-process timers of the old system managed, all workflows together."""
ENOUGH_ITEMS = 50
"""Fewer, as when the town was worked through before, make no rate."""
BY_HAND = 3, 4
"""Of the places found, so many are queued by the person at once, and the rest is left to the schedule."""

SETTINGS = "schedule, batch_size, max_instances, concurrency, max_attempts, backoff, breaker"
# in one look: an item that goes from one to the other between two would be in neither
MOVING: LiteralString = """
SELECT coalesce(sum(queued + processing), 0)::integer, coalesce(sum(waiting), 0)::integer FROM scheduler.queue_depth"""
FIRED: LiteralString = "SELECT last_clock FROM scheduler.state WHERE workflow = 'deep_scan' AND last_dispatch_at > %s"
DONE: LiteralString = "SELECT coalesce(sum(succeeded + failed + rejected), 0)::integer FROM scheduler.run"
SOME_PLACES: LiteralString = """
UPDATE place SET status = 'Selected' WHERE id IN (
    SELECT id FROM place WHERE status = 'New' AND starts_with(place_id, 'ChIJsim') ORDER BY place_id LIMIT %s)"""
BUSINESSES: LiteralString = "UPDATE local_business SET status = 'Selected' WHERE status = 'New'"
SITEMAPS: LiteralString = """
UPDATE sitemap_file SET deep_scrape_curation_status = 'Selected' WHERE deep_scrape_curation_status = 'New'"""
GATES: tuple[tuple[str, LiteralString], ...] = (("domain_extraction", BUSINESSES), ("sitemap_import", SITEMAPS))
"""The later hand-overs that wait for a person, and what that person does."""


def demo(
    directory: Directory = None,
    businesses: Annotated[int, typer.Option(help="How many businesses the simulated town has.", min=1, max=540)] = 60,
    seed: Annotated[int, typer.Option(help="Another number is another town.", min=1, max=999)] = 1,
    quick: Annotated[bool, typer.Option("--quick", help="Do not wait for pg_cron to fire; dispatch at once.")] = False,
) -> None:
    """Run the whole pipeline against a simulated internet. All on this machine; at the end it checks what was found.

    Starts a private PostgreSQL, the simulated websites and Google on loopback, and a real listener; plays the person
    who selects rows at the gates; shows every queue as it moves; compares the contacts and the dead letters in the
    database with those of the town. Ends by itself; run it again and nothing changes. Nothing is fetched from outside
    this machine.

    Example: scrapersky demo --businesses 300 && scrapersky status
    """
    from listener.postgres.home import local_directory
    from listener.postgres.port import first_free
    from listener.postgres.provide import provide
    from listener.schema import migrate
    from listener.web.server import DEFAULT_PORT
    from services.simulation.world import make_world

    provided = provide(directory, say=say)
    _step("Installing the engine and the pipeline's tables")
    migrate(provided.url, pipeline=True)
    world = make_world(seed, businesses)
    log = local_directory(directory) / "demo-listener.log"
    log.parent.mkdir(parents=True, exist_ok=True)
    with psycopg.connect(provided.url, autocommit=True) as db, _internet(world) as (google, replay):
        _require_own_database(db, world)
        port = first_free(DEFAULT_PORT)
        with _hurried(db), _listener(provided.url, google, replay, port, log) as listener:
            show = Show(db, listener, world, log, quick=quick)
            show.live.note(f"Watch it in a browser too: http://127.0.0.1:{port}/")
            show.run()
        _report(db, world, show)
        _verify(db, world)
    _say_goodbye(directory, log, private=provided.private is not None)


@dataclass
class Show:
    """The demo proper: the search, the person at the gates, and the view."""

    db: psycopg.Connection
    listener: "subprocess.Popen[bytes]"
    world: "World"
    log: Path
    quick: bool
    items: int = 0
    seconds: float = 0.0
    _moved: tuple[float, int] = (0.0, -1)
    _retried: float = 0.0
    live: Live = field(init=False)

    def __post_init__(self) -> None:
        self.live = Live(self.db)

    def run(self) -> None:
        begun, before = time.monotonic(), _one(self.db, DONE)
        self._search()
        firing = self._select_places()
        self._flow(firing)
        self.live.show()
        self.items, self.seconds = _one(self.db, DONE) - before, time.monotonic() - begun

    def _search(self) -> None:
        made = []
        for trade, town in self.world.searches:
            self.live.note(f'A person asks for "{trade}" in "{town}": that is a row in place_search', bold=True)
            made.append(
                _one(
                    self.db,
                    "INSERT INTO place_search (business_type, location) VALUES (%s, %s) RETURNING id",
                    *(trade, town),
                )
            )
        self._until(lambda: self._are_done(made), "the search")

    def _are_done(self, searches: list[Any]) -> bool:
        rows = self.db.execute(
            "SELECT status::text, error FROM place_search WHERE id = ANY (%s)", [searches]
        ).fetchall()
        for status, error in rows:
            if status == "failed":
                raise UserError(f"The search failed: {error}", f"See the listener's log, {self.log}.")
        return all(status == "complete" for status, _ in rows)

    def _select_places(self) -> Callable[[], bool]:
        """Some the person queues, the rest is the schedule's; what tells that the schedule has fired."""
        found = _one(self.db, "SELECT count(*) FROM place WHERE status = 'New' AND starts_with(place_id, 'ChIJsim')")
        if not found:
            self.live.note("All of its places were selected in an earlier demo; so nothing is to be done again.")
            return lambda: True
        now, later = found, 0
        if not self.quick:
            now = found * BY_HAND[0] // BY_HAND[1]
            later = found - now
        if now:
            self.db.execute(SOME_PLACES, [now])
            self.live.note(f"{found} places found. The person sets {now} to Selected and calls")
            self.live.note("  SELECT scheduler.dispatch('deep_scan');")
            self.db.execute("SELECT scheduler.dispatch('deep_scan')")
        if not later:
            return lambda: True
        begun = _one(self.db, "SELECT now()")
        self.db.execute(SOME_PLACES, [later])
        clock = (
            "pg_cron"
            if _one(self.db, "SELECT scheduler.cron_home()") != "missing"
            else "the listener (no pg_cron here)"
        )
        self.live.note(f"{later} more are set to Selected; {clock} queues them as the next minute begins")
        return lambda: self._has_fired(begun)

    def _has_fired(self, begun: Any) -> bool:
        clock = _one(self.db, FIRED, begun)
        if clock in (None, "person"):
            return False
        self.live.note(f"{clock} has fired: the rest is queued", bold=True)
        return True

    def _flow(self, firing: Callable[[], bool]) -> None:
        """Until nothing moves any more: every business and every sitemap that comes up is selected."""
        begun = time.monotonic()
        fired = firing()
        seen: set[str] = set()
        while True:
            self._look("" if fired else f"the clock fires in {60 - time.time() % 60:.0f} s")
            if not fired and firing():
                fired = True
            # before the gates: what still moves may bring something to them after the look at them
            busy, waiting = self.db.execute(MOVING).fetchone() or (0, 0)
            if self._select(seen) or busy:
                continue
            if waiting:
                self._retry()
            elif fired:
                return
            elif time.monotonic() - begun > FIRING_SECONDS:
                raise UserError(
                    "The clock did not fire within its minute.", "See: scrapersky doctor; or run the demo with --quick."
                )

    def _select(self, seen: set[str]) -> int:
        """The person at the gates: how many rows were there to be selected."""
        total = 0
        for workflow, selection in GATES:
            if (count := self.db.execute(selection).rowcount) > 0:
                self.db.execute("SELECT scheduler.dispatch(%s)", [workflow])
                if workflow not in seen:
                    self.live.note(f"At the gate before {workflow} the person selects whatever comes up")
                seen.add(workflow)
                total += count
        return total

    def _retry(self) -> None:
        """What failed and may be tried again is due after its backoff; here nobody waits for the minute's look."""
        if time.monotonic() - self._retried > 1:
            self._retried = time.monotonic()
            self.db.execute("SELECT scheduler.maintain()")

    def _until(self, reached: Callable[[], bool], what: str) -> None:
        while not reached():
            self._look(f"waits for {what}")

    def _look(self, waits_for: str) -> None:
        self.live.show(waits_for)
        if self.listener.poll() is not None:
            last = " ".join(self.log.read_text(errors="replace").splitlines()[-2:])[-500:]
            raise UserError(f"The listener ended with exit code {self.listener.returncode}: {last}", f"See {self.log}.")
        at, before = self._moved
        if (done := _one(self.db, DONE)) != before or waits_for.startswith("the clock"):
            self._moved = (time.monotonic(), done)
        elif time.monotonic() - at > STALLED_SECONDS:
            raise UserError(f"Nothing has moved for {STALLED_SECONDS} s.", "See: scrapersky status; scrapersky doctor.")
        time.sleep(LOOK_SECONDS)


def _require_own_database(db: psycopg.Connection, world: "World") -> None:
    """The demo's listener sees the simulated internet only, so real rows must not come before it."""
    real = _one(db, "SELECT count(*) FROM place WHERE NOT starts_with(place_id, 'ChIJsim')")
    real += _one(
        db,
        "SELECT count(*) FROM domain AS d WHERE d.domain <> ALL (%s)"
        " AND NOT EXISTS (SELECT FROM local_business AS b WHERE b.domain_id = d.id)",
        list(world.expected),
    )
    if real:
        raise UserError(
            "This database holds real places or domains; the demo would work on them with a simulated internet.",
            "Give it a database of its own: unset DATABASE_URL, or use --dir with an empty directory.",
        )


@contextmanager
def _internet(world: "World") -> Iterator[tuple[str, str]]:
    from services.simulation.google import Google
    from services.simulation.internet import connected

    google = Google(world.places, frozenset({KEY}), token_seconds=0, vanished=world.vanished)
    with connected(world, google) as (base_url, replay):
        _step(
            f"A town of {len(world.places)} businesses, {len(world.expected)} domains and a Google, all at {base_url}"
        )
        yield base_url, replay


@contextmanager
def _hurried(db: psycopg.Connection) -> Iterator[None]:
    """A town is worked through at once, and what fails is tried three times within seconds; all is put back in the end.

    The breaker is off: a third of this town is broken on purpose.
    """
    names = SETTINGS.split(", ")
    change = "SELECT scheduler.alter_workflow(%s, {})".format(", ".join(f"{name} => %s" for name in names)).encode()
    before = db.execute(f"SELECT name, {SETTINGS} FROM scheduler.workflow".encode()).fetchall()  # noqa: S608
    for workflow, *_ in before:
        db.execute(change, [workflow, "* * * * *", 500, 2, 50, 3, "1 second", False])
    try:
        yield
    finally:
        for row in before:
            db.execute(change, row)


@contextmanager
def _listener(url: str, google: str, replay: str, port: int, log: Path) -> Iterator["subprocess.Popen[bytes]"]:
    """A real `scrapersky listen`, which knows of nothing but the simulated internet, and serves the web page."""
    _step(f"A listener begins to serve all workflows (its log: {os.path.relpath(log)})")
    # nothing of a real setup: no key, no proxy, no pace; that is also why it starts in the folder of its log
    foreign = ("FETCH_", "GOOGLE_PLACES_", "LISTENER_", "DATABASE_", "WEB_", "LOG_")
    environment = {name: value for name, value in os.environ.items() if not name.startswith(foreign)}
    environment |= {
        "DATABASE_URL": url,
        "GOOGLE_PLACES_API_KEY": KEY,
        "GOOGLE_PLACES_BASE_URL": google,
        # these calls cost nothing, and must not use up a real budget
        "GOOGLE_PLACES_BUDGET": "simulation",
        "GOOGLE_PLACES_DAILY_CALLS": "1000000",
        "FETCH_REPLAY": replay,
        "FETCH_HOST_SECONDS": "0",
        "FETCH_READ_SECONDS": "3",
        "FETCH_TOTAL_SECONDS": "8",
        "WEB_PORT": str(port),
        "LOG_FORMAT": "json",
    }
    with log.open("wb") as output:
        process = subprocess.Popen(
            [sys.executable, "-c", "from listener.cli import main; main()", "listen"],
            env=environment,
            cwd=log.parent,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
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


def _report(db: psycopg.Connection, world: "World", show: Show) -> None:
    from services.simulation.compare import dead_letters

    _step("SELECT workflow, error, items FROM scheduler.errors: what failed, and why")
    dead = dead_letters(db, world)
    reasons: dict[tuple[str, str], list[str]] = {}
    for one in sorted(dead):
        reason = one.reason.replace(one.subject, "…")
        reasons.setdefault((one.workflow, reason), []).append(one.subject)
    rows = [(len(subjects), workflow, reason) for (workflow, reason), subjects in reasons.items()]
    typer.echo(table(["items", "workflow", "reason"], rows, width=terminal_width(), whole=["workflow"]))
    _step("SELECT … FROM contact: one of each way in which contacts were found")
    _show(
        db,
        """SELECT DISTINCT ON (c.found_in) c.found_in, coalesce(c.email, c.phone) AS contact, c.name, c.role
        FROM contact AS c JOIN domain AS d ON d.id = c.domain_id WHERE d.domain = ANY (%s)
        ORDER BY c.found_in, c.name NULLS LAST, d.domain LIMIT 20""",
        list(world.expected),
    )
    if show.items >= ENOUGH_ITEMS:
        rate = show.items / show.seconds * 60
        say(
            f"\n{show.items} items in {show.seconds:.0f} s: {rate:,.0f} a minute, {rate / OLD_RATE:.0f} times the"
            f" {OLD_RATE} of the old system"
        )


def _verify(db: psycopg.Connection, world: "World") -> None:
    """Exactly the town's contacts and dead letters: none missing, none invented, none twice."""
    from services.simulation.compare import differences

    _step("Found beside expected")
    wrong = differences(db, world)
    if wrong:
        raise UserError(
            "What was found is not what is there:\n  " + "\n  ".join(wrong[:30]),
            "This is a bug, unless the database holds the town of another version: then begin anew after"
            " `scrapersky db destroy`.",
        )
    good = (
        f"Exactly the town's {len(world.emails)} addresses, {len(world.phones)} phone numbers and {len(world.expected)}"
        f" domains, and its {len(world.dead)} dead letters for their reasons: none missing, none invented, none twice."
    )
    width = terminal_width()
    typer.echo(paint(textwrap.fill(good, width) if width else good, "green"))


def _say_goodbye(directory: Path | None, log: Path, *, private: bool) -> None:
    from listener.web.server import DEFAULT_PORT

    # Not every shell has .venv/bin in its path.
    command = "scrapersky" if shutil.which("scrapersky") else os.path.relpath(sys.argv[0])
    option = f" --dir {shlex.quote(str(directory))}" if directory else ""
    where = f"SCRAPERSKY_LOCAL={shlex.quote(str(directory))} " if directory else ""
    say("\nLook around:")
    say(f"  {where}{command} web              the dashboard, at http://127.0.0.1:{DEFAULT_PORT}/")
    say(f"  {where}{command} status           every workflow; also: top, dead, why")
    say(f"  {where}{command} export contacts  what was found, as CSV")
    say(f"  {command} db psql{option}          SQL")
    say(f"  {os.path.relpath(log)}   what the listener did")
    if private:
        say(f"PostgreSQL keeps running. Stop it with: {command} db stop{option}")


def _step(title: str) -> None:
    typer.echo("\n" + paint(title, None, bold=True))


def _one(db: psycopg.Connection, query: LiteralString, *values: object) -> Any:
    row = db.execute(query, values).fetchone()
    return row[0] if row else None


def _show(db: psycopg.Connection, query: LiteralString, *values: object) -> None:
    cursor = db.execute(query, values)
    names = [column.name for column in cursor.description or ()]
    typer.echo(table(names, cursor.fetchall(), width=terminal_width()))
