"""`scrapersky top`: every workflow on one screen, live."""

import select
import shutil
import sys
import termios
import time
import tty
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Annotated, Any, LiteralString

import psycopg
import typer

from listener.cli.ask import AsJson, connected, print_json
from listener.cli.say import paint
from listener.cli.table import Estimate, cut, plain, printable, table, terminal_width
from listener.cli.watch import paint_status
from listener.errors import UserError

MINUTES = 20
"""As many columns has a sparkline, items finished in each of the last minutes, on a wide terminal."""
FEW_MINUTES = 6
WIDE = 112
BARS = "▁▂▃▄▅▆▇█"
NAMES = ("workflow", "state", "queued", "running", "dead", "/s", "", "eta", "oldest", "retry", "p95", "next")
"""In the order of their worth; the one without a name is the sparkline."""
SCRIPT_WIDTH = 120
ENTER = "\x1b[?1049h\x1b[?25l"
LEAVE = "\x1b[?25h\x1b[?1049l"
HOME = "\x1b[H"
REST_OF_LINE = "\x1b[K"
REST_OF_SCREEN = "\x1b[J"

# Finished so far: what maintain() has rolled up, and the runs it has not got to. Open runs count what they have done.
_FRAME: LiteralString = """
WITH minute AS (
    SELECT s.workflow, s.at, s.succeeded + s.failed + s.rejected AS items
    FROM scheduler.stat AS s WHERE s.grain = 'minute' AND s.at > now() - make_interval(mins => %(minutes)s)
    UNION ALL
    SELECT r.workflow, date_trunc('minute', coalesce(r.finished_at, now())), r.succeeded + r.failed + r.rejected
    FROM scheduler.workflow AS w
    JOIN scheduler.run AS r ON r.workflow = w.name AND (r.finished_at IS NULL OR NOT r.rolled_up)
), history AS (
    SELECT w.name AS workflow, array_agg(coalesce(m.items, 0) ORDER BY t.at) AS items
    FROM scheduler.workflow AS w
    CROSS JOIN generate_series(date_trunc('minute', now()) - make_interval(mins => %(minutes)s - 1),
                               date_trunc('minute', now()), '1 minute') AS t (at)
    LEFT JOIN (SELECT x.workflow, x.at, sum(x.items)::bigint AS items FROM minute AS x GROUP BY 1, 2) AS m
           ON m.workflow = w.name AND m.at = t.at
    GROUP BY 1
), finished AS (
    SELECT w.name AS workflow,
           coalesce((SELECT sum(s.succeeded + s.failed + s.rejected) FROM scheduler.stat AS s
                     WHERE s.workflow = w.name AND s.grain = 'day'), 0)
         + coalesce((SELECT sum(r.succeeded + r.failed + r.rejected) FROM scheduler.run AS r
                     WHERE r.workflow = w.name AND r.finished_at IS NOT NULL AND NOT r.rolled_up), 0)
         + coalesce((SELECT sum(r.succeeded + r.failed + r.rejected) FROM scheduler.run AS r
                     WHERE r.workflow = w.name AND r.finished_at IS NULL), 0) AS items
    FROM scheduler.workflow AS w
)
SELECT s.workflow, s.state, s.queued, s.queued_exact, s.processing AS running, s.waiting AS retry, s.dead,
       s.oldest_queued_age AS oldest, s.per_minute, s.eta, s.p95, s.next_dispatch AS next,
       s.note, h.items AS history, f.items AS finished
FROM scheduler.status AS s
JOIN history AS h ON h.workflow = s.workflow
JOIN finished AS f ON f.workflow = s.workflow
ORDER BY s.workflow
"""
_AROUND: LiteralString = """
SELECT current_database(), now(),
       (SELECT count(*) FROM scheduler.listeners WHERE state = 'alive'),
       (SELECT count(*) FROM scheduler.in_flight),
       (SELECT c.paused_at IS NOT NULL FROM scheduler.control AS c),
       scheduler.cron_home(), scheduler.cron_alive()
"""


@dataclass
class Frame:
    """One look at everything."""

    at: float
    rows: list[dict[str, Any]]
    around: tuple[Any, ...]
    rates: dict[str, float | None] = field(default_factory=dict)
    """Items a second since the frame before; None in the first."""


def top(
    interval: Annotated[
        float, typer.Option("--interval", "-i", min=0.2, max=3600, help="Seconds between looks.")
    ] = 2.0,
    once: Annotated[
        bool, typer.Option("--once", help="One look, then end; so too if the output is no terminal.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Watch all workflows live. Ends with q or Ctrl-C.

    Shows what waits and runs, items a second, the last 20 minutes, the oldest item, and when each queue will be empty.

    Examples: scrapersky top · scrapersky top --interval 10 · scrapersky top --once --json
    """
    if once or as_json or not sys.stdout.isatty():
        with connected() as connection:
            frame = look(connection, None)
        if as_json:
            print_json([{name: plain(value) for name, value in row.items()} for row in frame.rows])
        else:
            typer.echo("\n".join(draw(frame, terminal_width() or SCRIPT_WIDTH)))
        return
    with _screen() as wants_to_quit:
        try:
            _watch(interval, wants_to_quit)
        except KeyboardInterrupt:
            return


def look(connection: psycopg.Connection[tuple[Any, ...]], before: Frame | None) -> Frame:
    cursor = connection.execute(_FRAME, {"minutes": MINUTES})
    names = [column.name for column in cursor.description or ()]
    rows = [dict(zip(names, row, strict=True)) for row in cursor.fetchall()]
    around = connection.execute(_AROUND).fetchone()
    frame = Frame(time.monotonic(), rows, around or ())
    past = {row["workflow"]: row["finished"] for row in before.rows} if before else {}
    for row in rows:
        name = row["workflow"]
        if before is None or name not in past:
            frame.rates[name] = None
        else:
            # maintain() forgets old runs now and then; that is no negative work
            frame.rates[name] = max(0.0, float(row["finished"] - past[name]) / max(frame.at - before.at, 0.001))
    return frame


def draw(frame: Frame, width: int, height: int | None = None) -> list[str]:
    """The screen as lines, none wider than `width` and no more of them than `height`."""
    lines = [cut(_headline(frame), width), ""]
    if not frame.rows:
        lines.append("No workflow is registered yet.")
    else:
        minutes = MINUTES if width >= WIDE else FEW_MINUTES
        names = [name or f"{minutes} min" for name in NAMES]
        cells = [_cells(row, frame.rates[row["workflow"]], minutes) for row in frame.rows]
        lines += table(names, cells, width=width, paint=paint_status, whole=[f"{minutes} min", "state"]).splitlines()
        notes = [f"{row['workflow']}: {row['note']}" for row in frame.rows if row["note"] and _is_odd(row["state"])]
        lines += ["", *(cut(printable(note), width) for note in notes)] if notes else []
    if height is not None and len(lines) > height:
        lines = [*lines[: height - 1], f"… {len(lines) - height + 1} lines more"]
    return lines


def sparkline(items: list[int]) -> str:
    """The highest minute is a full bar; a minute with anything at all shows at least a little."""
    most = max(items, default=0)
    if most == 0:
        return " " * len(items)
    return "".join(" " if n == 0 else BARS[-(-n * len(BARS) // most) - 1] for n in items)


def _cells(row: dict[str, Any], rate: float | None, minutes: int) -> list[Any]:
    per_second = float(row["per_minute"]) / 60 if rate is None else rate
    eta = timedelta(seconds=round(row["queued"] / rate)) if rate and row["queued"] else row["eta"]
    queued = row["queued"] if row["queued_exact"] is not False else Estimate(row["queued"])
    return [
        *(row[name] for name in ("workflow", "state")),
        queued,
        *(row[name] for name in ("running", "dead")),
        round(per_second, 1 if per_second < 100 else None),
        sparkline([int(n) for n in row["history"][-minutes:]]),
        eta,
        *(row[name] for name in ("oldest", "retry", "p95", "next")),
    ]


def _headline(frame: Frame) -> str:
    database, at, listeners, in_flight, paused, home, alive = frame.around
    clock = "pg_cron" if alive else f"listeners (pg_cron is {'missing' if home == 'missing' else 'silent'})"
    parts = [
        f"{at:%H:%M:%S}",
        database,
        f"{listeners} listener{'' if listeners == 1 else 's'}",
        f"{in_flight} run{'' if in_flight == 1 else 's'} open",
        f"clock: {clock}",
    ]
    return " · ".join(parts) + (" · EVERYTHING IS PAUSED" if paused else "")


def _is_odd(state: str) -> bool:
    return state not in ("idle", "running", "waiting")


def _watch(interval: float, wants_to_quit: Callable[[float], bool]) -> None:
    """Draw until told to stop; a server that is away is waited for."""
    frame: Frame | None = None
    while True:
        try:
            with connected() as connection:
                while True:
                    frame = look(connection, frame)
                    _show(frame)
                    if wants_to_quit(interval):
                        return
        except UserError as error:
            if frame is None:
                raise
            _print_screen([*draw(frame, _columns()), "", paint(cut(error.message, _columns()), "red")])
            if wants_to_quit(interval):
                return


def _show(frame: Frame) -> None:
    size = shutil.get_terminal_size()
    lines = draw(frame, size.columns, size.lines - 2)
    lines[0] = paint(lines[0], None, bold=True)
    _print_screen([*lines, "", "q quits"])


def _print_screen(lines: list[str]) -> None:
    # over the old one instead of after clearing it, so that nothing flickers
    sys.stdout.write(HOME + "".join(f"{line}{REST_OF_LINE}\r\n" for line in lines[:-1]) + lines[-1] + REST_OF_LINE)
    sys.stdout.write(REST_OF_SCREEN)
    sys.stdout.flush()


def _columns() -> int:
    return shutil.get_terminal_size().columns


@contextmanager
def _screen() -> Iterator[Callable[[float], bool]]:
    """The terminal's second screen, left as it was found; yields a wait that ends early, and true, with q."""
    keyboard = sys.stdin if sys.stdin.isatty() else None
    before = termios.tcgetattr(keyboard) if keyboard else None

    def wants_to_quit(seconds: float) -> bool:
        end = time.monotonic() + seconds
        if keyboard is None:
            time.sleep(seconds)
            return False
        while (left := end - time.monotonic()) > 0:
            ready, _, _ = select.select([keyboard], [], [], left)
            if ready and keyboard.read(1) in ("q", "Q", "\x04", ""):
                return True
        return False

    sys.stdout.write(ENTER)
    try:
        if keyboard:
            tty.setcbreak(keyboard)
        yield wants_to_quit
    finally:
        if keyboard and before:
            termios.tcsetattr(keyboard, termios.TCSADRAIN, before)
        sys.stdout.write(LEAVE)
        sys.stdout.flush()
