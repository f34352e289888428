"""Taking over the tables of the APScheduler system, in place: look first, then one workflow at a time.

Looking is read-only and takes no lock that the old system could feel. Adopting is one transaction, and dropping the
workflow again is the way back: the engine leaves the table as it found it.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

import psycopg
from psycopg import sql

from listener.errors import UserError

PREFIX = "legacy_"
"""Before the names, so that the workflows over the old tables can stand beside those over ours."""
ZOMBIE_MINUTES = 15
"""A row that has shown the processing word for longer than this has lost its worker."""

_LOOK_SECONDS = 60
_LOCK_SECONDS = 5
_AGES = ("queued_at", "updated_at", "created_at")
"""The engine's own order of preference; a test holds the two together."""


@dataclass(frozen=True)
class Old:
    """One workflow of the old system. A word with several spellings is the first that the column's type knows."""

    name: str
    table: str
    status: str
    error: str
    ready: str | None
    queued: Sequence[str] = ("Queued",)
    processing: Sequence[str] = ("Processing",)
    completed: Sequence[str] = ("Completed", "Complete")
    failed: Sequence[str] = ("Error", "Failed")
    schedule: str = "* * * * *"
    batch_size: int = 10
    max_instances: int = 1


OLD = (
    Old(
        "deep_scan",
        "places_staging",
        "deep_scan_status",
        "deep_scan_error",
        "status = 'Selected' AND deep_scan_status IS NULL",
        schedule="*/5 * * * *",
    ),
    Old(
        "domain_extraction",
        "local_businesses",
        "domain_extraction_status",
        "domain_extraction_error",
        "status = 'Selected' AND domain_extraction_status IS NULL",
        schedule="*/2 * * * *",
        batch_size=20,
    ),
    Old(
        "domain_metadata",
        "domains",
        "status",
        "last_error",
        None,
        queued=("pending",),
        processing=("processing",),
        completed=("completed", "complete"),
        failed=("error", "failed"),
        batch_size=50,
        max_instances=3,
    ),
    Old(
        "sitemap_analysis",
        "domains",
        "sitemap_analysis_status",
        "sitemap_analysis_error",
        "sitemap_curation_status = 'Selected' AND sitemap_analysis_status IS NULL",
        queued=("queued",),
        processing=("processing",),
        completed=("submitted",),
        failed=("failed", "error"),
    ),
    Old(
        "sitemap_import",
        "sitemap_files",
        "sitemap_import_status",
        "sitemap_import_error",
        "deep_scrape_curation_status = 'Selected' AND sitemap_import_status IS NULL",
        batch_size=20,
    ),
    Old(
        "page_curation",
        "pages",
        "page_processing_status",
        "page_processing_error",
        "page_curation_status = 'Selected' AND page_processing_status IS NULL",
    ),
)


@dataclass(frozen=True)
class Found:
    """An old table as it is in this database."""

    old: Old
    schema: str
    key: str
    age: str | None
    words: dict[str, str]

    @property
    def relation(self) -> sql.Identifier:
        return sql.Identifier(self.schema, self.old.table)


@dataclass(frozen=True)
class Shadow:
    """What adopting a workflow would do right now. Nothing has been changed to find out."""

    old: Old
    problem: str = ""
    """Why it cannot be adopted; the rest is empty then."""
    hint: str = ""
    queued: int = 0
    ready: int = 0
    zombies: int = 0
    young: int = 0
    """In the processing word, but not for long: maybe the old system is at work on them."""
    oldest_zombie: datetime | None = None
    failed: int = 0
    completed: int = 0
    next_keys: tuple[str, ...] = ()
    """What the first dispatch would mark Queued, in its order."""
    adopted: str = ""
    """The workflow that has taken it over already."""


def named(name: str) -> Old:
    """The old workflow of this name."""
    for old in OLD:
        if old.name == name:
            return old
    raise UserError(f"The old system had no workflow {name}.", f"It had: {', '.join(old.name for old in OLD)}.")


def look(url: str, old: Old, schema: str = "public", zombie_minutes: int = ZOMBIE_MINUTES) -> Shadow:
    """What would run. A read-only transaction; what stands in the way is part of the answer."""
    try:
        with session(url, _LOOK_SECONDS) as db, db.transaction():
            db.execute("SET TRANSACTION READ ONLY")
            found = _find(db, old, schema)
            return replace(_count(db, found, zombie_minutes), adopted=_adopted(db, found))
    except UserError as error:
        return Shadow(old, error.message, error.hint)


def adopt(
    url: str,
    old: Old,
    schema: str = "public",
    zombie_minutes: int = ZOMBIE_MINUTES,
    *,
    prefix: str = PREFIX,
    paused: bool = False,
) -> list[str]:
    """Make a queue of the old table and queue its zombies again, all or nothing; the facts, in sentences.

    Called for a workflow that is adopted already it only looks for zombies.
    """
    name = prefix + old.name
    with session(url, _LOOK_SECONDS) as db, db.transaction():
        if one(db, "SELECT to_regclass('scheduler.workflow')") is None:
            raise UserError("The engine is not installed in this database.", "Install it first: scrapersky migrate")
        found = _find(db, old, schema)
        facts = _register(db, name, found, paused=paused)
        return [*facts, *_requeue_zombies(db, name, found, zombie_minutes)]


def way_back(name: str) -> str:
    """The one statement that undoes `adopt`."""
    return f"SELECT scheduler.drop_workflow('{name}', force => true);"


def _adopted(db: psycopg.Connection, found: Found) -> str:
    if one(db, "SELECT to_regclass('scheduler.workflow')") is None:
        return ""
    name = one(
        db,
        "SELECT name FROM scheduler.workflow WHERE relation::oid = %s::regclass AND status_column = %s",
        _text(found),
        found.old.status,
    )
    return str(name or "")


def _register(db: psycopg.Connection, name: str, found: Found, *, paused: bool) -> list[str]:
    taken = one(db, "SELECT relation::oid = %s::regclass FROM scheduler.workflow WHERE name = %s", _text(found), name)
    if taken is False:
        raise UserError(
            f"Workflow {name} exists and works on another table.", "Choose another name for this one with --prefix."
        )
    if taken:
        return [f"workflow {name} is adopted already"]
    old = found.old
    # what creating triggers takes anyway: better refused now than half-way, in other words
    db.execute(sql.SQL("LOCK TABLE {} IN SHARE ROW EXCLUSIVE MODE").format(found.relation))
    facts = [
        _call(
            db,
            "create_workflow",
            name=name,
            relation=_text(found),
            status_column=old.status,
            error_column=old.error,
            ready=old.ready,
            **found.words,
            schedule=old.schedule,
            batch_size=old.batch_size,
            max_instances=old.max_instances,
        )
    ]
    if paused:
        facts.append(_call(db, "pause", name=name, reason="adopted from the old system, not started yet"))
    return facts


def _requeue_zombies(db: psycopg.Connection, name: str, found: Found, minutes: int) -> list[str]:
    old_enough = None if found.age is None else f"{found.age} < now() - interval '{minutes} minutes'"
    moved = _call(db, "requeue", name=name, predicate=old_enough, stranded=True)
    left = _count(db, found, minutes).young
    facts = [f"{moved} zombies in {found.words['processing']!r} queued again"]
    if left:
        facts.append(f"left alone, changed less than {minutes} minutes ago: {left}; adopt once more, later")
    return facts


def _count(db: psycopg.Connection, found: Found, minutes: int) -> Shadow:
    ready = sql.SQL(found.old.ready or "false")  # our own text, from the table above
    status = sql.Identifier(found.old.status)
    age = sql.Identifier(found.age) if found.age else sql.SQL("'-infinity'::timestamptz")
    word = {role: sql.Literal(text) for role, text in found.words.items()}
    query = sql.SQL(
        "SELECT count(*) FILTER (WHERE {status} = {queued}), count(*) FILTER (WHERE {ready}),"
        " count(*) FILTER (WHERE {status} = {processing} AND {age} < now() - make_interval(mins => {minutes})),"
        " count(*) FILTER (WHERE {status} = {processing} AND {age} >= now() - make_interval(mins => {minutes})),"
        " min(nullif({age}, '-infinity')) FILTER (WHERE {status} = {processing}),"
        " count(*) FILTER (WHERE {status} = {failed}), count(*) FILTER (WHERE {status} = {completed}) FROM {relation}"
    ).format(status=status, ready=ready, age=age, minutes=minutes, relation=found.relation, **word)
    row = rows(db, query)[0]
    room = max(found.old.batch_size - row[0], 0)
    following = sql.SQL("SELECT {key}::text FROM {relation} WHERE {ready} ORDER BY {order} LIMIT {room}").format(
        key=sql.Identifier(found.key),
        relation=found.relation,
        ready=ready,
        order=sql.Identifier(found.age or found.key),
        room=room,
    )
    keys = tuple(key for (key,) in rows(db, following))
    return Shadow(found.old, "", "", row[0], row[1], row[2], row[3], row[4], row[5], row[6], keys)


def _find(db: psycopg.Connection, old: Old, schema: str) -> Found:
    place = sql.Identifier(schema, old.table).as_string(None)
    columns = dict(
        rows(
            db,
            "SELECT a.attname, a.atttypid FROM pg_catalog.pg_attribute AS a"
            " WHERE a.attrelid = to_regclass(%s) AND a.attnum > 0 AND NOT a.attisdropped",
            place,
        )
    )
    if not columns:
        raise UserError(
            f"There is no table {old.table} in schema {schema}.",
            "Name the schema of the old system with --schema, or leave this workflow out.",
        )
    missing = [name for name in (old.status, old.error) if name not in columns]
    if missing:
        raise UserError(
            f"Table {old.table} has no column {' and no column '.join(missing)}.",
            f"ALTER TABLE {schema}.{old.table} " + ", ".join(f"ADD COLUMN {name} text" for name in missing) + ";",
        )
    key = one(
        db,
        "SELECT a.attname FROM pg_catalog.pg_index AS i JOIN pg_catalog.pg_attribute AS a"
        " ON a.attrelid = i.indrelid AND a.attnum = i.indkey[0]"
        " WHERE i.indrelid = to_regclass(%s) AND i.indisprimary AND i.indnkeyatts = 1",
        place,
    )
    if key is None:
        raise UserError(
            f"Table {old.table} has no primary key of one column.", f"ALTER TABLE {old.table} ADD PRIMARY KEY (id);"
        )
    times = one(db, "SELECT ARRAY['timestamptz'::regtype, 'timestamp'::regtype]::oid[]")
    age = next((name for name in _AGES if columns.get(name) in times), None)
    return Found(old, schema, key, age, _words(db, old, columns[old.status]))


def _words(db: psycopg.Connection, old: Old, kind: int) -> dict[str, str]:
    """The spelling this database uses of each word."""
    labels = [label for (label,) in rows(db, "SELECT enumlabel FROM pg_catalog.pg_enum WHERE enumtypid = %s", kind)]
    words = {}
    for role in ("queued", "processing", "completed", "failed"):
        spellings: Sequence[str] = getattr(old, role)
        if not labels:
            words[role] = spellings[0]  # a plain text column takes any word
            continue
        same = [label for spelling in spellings for label in labels if label.lower() == spelling.lower()]
        if not same:
            raise UserError(
                f"The type of {old.table}.{old.status} knows no word for {role}: it has {', '.join(labels)}.",
                f"ALTER TYPE {one(db, 'SELECT %s::regtype::text', kind)} ADD VALUE '{spellings[0]}';",
            )
        words[role] = same[0]
    return words


@contextmanager
def session(url: str, seconds: int) -> Iterator[psycopg.Connection]:
    """A connection whose errors are told in words, and which never waits long for a lock."""
    try:
        with psycopg.connect(
            url, autocommit=True, fallback_application_name="scrapersky adopt-legacy", prepare_threshold=None
        ) as db:
            db.execute(f"SET statement_timeout = '{seconds}s'")
            # behind a long transaction of the old system we would make everybody else wait as well
            db.execute(f"SET lock_timeout = '{_LOCK_SECONDS}s'")
            yield db
    except psycopg.errors.LockNotAvailable as error:
        raise UserError(
            "Somebody has locked the table for more than five seconds; nothing was changed.", "Try again later."
        ) from error
    except psycopg.errors.DatabaseError as error:
        raise UserError(
            f"The database refused: {error.diag.message_primary or error}. Nothing was changed.",
            error.diag.message_hint or "",
        ) from error


def _text(found: Found) -> str:
    return found.relation.as_string(None)


def _call(db: psycopg.Connection, function: str, **arguments: object) -> Any:
    given = sql.SQL(", ").join(
        sql.SQL("{} => {}").format(sql.Identifier(k), sql.Literal(v)) for k, v in arguments.items()
    )
    return one(db, sql.SQL("SELECT scheduler.{}({})").format(sql.Identifier(function), given))


def rows(db: psycopg.Connection, query: Any, *values: object) -> list[tuple[Any, ...]]:
    """All rows."""
    return db.execute(query, values or None).fetchall()


def one(db: psycopg.Connection, query: Any, *values: object) -> Any:
    """The first column of the first row, or None."""
    found = rows(db, query, *values)
    return found[0][0] if found else None
