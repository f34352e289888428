"""Moving the rows of the APScheduler system into our own tables. The old tables are read and stay as they are.

What can be copied is read from the two tables: columns of the same name (or its known successor) whose types agree or
can be cast, rows that our constraints allow. Keys are kept, so moving again moves only what is new.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import psycopg
from psycopg import sql

from listener.errors import UserError
from services.legacy import OLD, one, rows, session

_SECONDS = 3600


@dataclass(frozen=True)
class Pair:
    old: str
    new: str
    renamed: Mapping[str, str] = field(default_factory=dict)
    """Our column → the old one's name."""


PAIRS = (
    Pair("places_staging", "place"),
    Pair("domains", "domain"),
    Pair("local_businesses", "local_business", {"name": "business_name", "website": "website_url"}),
    Pair("sitemap_files", "sitemap_file"),
    Pair("pages", "page"),
)
"""In the order in which they refer to each other."""


@dataclass(frozen=True)
class Moved:
    """What became of one old table."""

    pair: Pair
    moved: int
    already: int
    """Ours had a row of the same key or the same meaning."""
    refused: int
    """Rows that our constraints do not allow, such as a page without a domain."""
    left_out: tuple[str, ...]
    """Old columns that have no place here."""


@dataclass(frozen=True)
class _Column:
    name: str
    kind: str
    is_enum: bool
    needed: bool
    default: str | None


def move(url: str, schema: str, *, apply: bool) -> list[Moved]:
    """Copy everything in one transaction; without `apply` it is rolled back, so the numbers are exact either way."""
    if schema == "public":
        raise UserError(
            "The old tables must be in a schema of their own to be moved.",
            "ALTER SCHEMA public RENAME TO old; CREATE SCHEMA public; then: scrapersky migrate --pipeline",
        )
    with session(url, _SECONDS) as db, db.transaction(force_rollback=not apply):
        # then the server writes every name of a type or a default with its schema
        db.execute("SET LOCAL search_path = pg_catalog")
        if one(db, "SELECT to_regclass('public.place')") is None:
            raise UserError("Our own tables are not in this database.", "Create them: scrapersky migrate --pipeline")
        found = [pair for pair in PAIRS if _columns(db, schema, pair.old)]
        if not found:
            raise UserError(
                f"There are no old tables in schema {schema}.", "Name the schema of the old system with --schema."
            )
        return [_copy(db, schema, pair) for pair in found]


def _copy(db: psycopg.Connection, schema: str, pair: Pair) -> Moved:
    old = sql.Identifier(schema, pair.old)
    theirs = {column.name: column for column in _columns(db, schema, pair.old)}
    ours = _columns(db, "public", pair.new)
    taken = [
        (column, theirs[pair.renamed.get(column.name, column.name)])
        for column in ours
        if pair.renamed.get(column.name, column.name) in theirs
    ]
    taken = [(mine, their) for mine, their in taken if _castable(db, their, mine)]
    names = [mine.name for mine, _ in taken]
    row = sql.SQL("SELECT {} FROM {} AS o").format(
        sql.SQL(", ").join(
            sql.SQL("{} AS {}").format(_value(db, schema, pair, mine, their), sql.Identifier(mine.name))
            for mine, their in taken
        ),
        old,
    )
    allowed = sql.SQL(" AND ").join(list(_conditions(db, pair, ours, names)))
    total = one(db, sql.SQL("SELECT count(*) FROM {}").format(old))
    valid = one(db, sql.SQL("SELECT count(*) FROM ({}) AS r WHERE {}").format(row, allowed))
    columns = sql.SQL(", ").join(map(sql.Identifier, names))
    moved = db.execute(
        sql.SQL(
            "INSERT INTO {new} ({columns}) SELECT {columns} FROM ({row}) AS r WHERE {allowed} ON CONFLICT DO NOTHING"
        ).format(new=sql.Identifier("public", pair.new), columns=columns, row=row, allowed=allowed)
    ).rowcount
    used = {their.name for _, their in taken}
    return Moved(pair, moved, valid - moved, total - valid, tuple(name for name in theirs if name not in used))


def _value(db: psycopg.Connection, schema: str, pair: Pair, mine: _Column, their: _Column) -> sql.Composable:
    given: sql.Composable = sql.SQL("o.{}").format(sql.Identifier(their.name))
    if pair.new == "domain" and mine.name == "domain":
        given = sql.SQL("lower({})").format(given)
    if mine.name == "domain_id":
        # ours may know the domain under another key
        given = sql.SQL(
            "(SELECT n.id FROM public.domain AS n JOIN {} AS d ON n.domain = lower(d.domain) WHERE d.id = {})"
        ).format(sql.Identifier(schema, "domains"), given)
    elif mine.is_enum:
        given = _word(db, schema, pair, mine, their)
    else:
        given = sql.SQL("{}::{}").format(given, sql.SQL(mine.kind))
        if (parent := _parent(db, pair.new, mine.name)) is not None:
            given = sql.SQL("(SELECT p.{key} FROM {table} AS p WHERE p.{key} = {given})").format(
                key=sql.Identifier(parent[1]), table=sql.SQL(parent[0]), given=given
            )
    if mine.default is not None:
        given = sql.SQL("coalesce({}, {})").format(given, sql.SQL(mine.default))
    return given


def _word(db: psycopg.Connection, schema: str, pair: Pair, mine: _Column, their: _Column) -> sql.Composable:
    """Their word in our spelling. A row that is being worked on has nobody who works on it any more."""
    labels = [label for (label,) in rows(db, "SELECT enumlabel FROM pg_enum WHERE enumtypid = %s::regtype", mine.kind)]
    spelling = {label.lower(): label for label in labels}
    for one_way, other in (("complete", "completed"), ("error", "failed")):
        for word, same in ((one_way, other), (other, one_way)):
            if same in spelling:
                spelling.setdefault(word, spelling[same])
    for old in OLD:
        if (old.table, old.status) == (pair.old, their.name):
            spelling[old.processing[0].lower()] = spelling[old.queued[0].lower()]
    column = sql.Identifier(their.name)
    strange = rows(
        db,
        sql.SQL("SELECT DISTINCT {c}::text FROM {t} WHERE lower({c}::text) <> ALL ({known})").format(
            c=column, t=sql.Identifier(schema, pair.old), known=sql.Literal(list(spelling))
        ),
    )
    if strange:
        words = ", ".join(repr(word) for (word,) in strange)
        raise UserError(
            f"{pair.old}.{their.name} has {words}, for which {pair.new}.{mine.name} has no word. Nothing was moved.",
            f"Give those rows one of these first: {', '.join(labels)}",
        )
    cases = sql.SQL(" ").join(
        sql.SQL("WHEN {} THEN {}").format(sql.Literal(word), sql.Literal(ours)) for word, ours in spelling.items()
    )
    return sql.SQL("(CASE lower(o.{}::text) {} END)::{}").format(column, cases, sql.SQL(mine.kind))


def _conditions(db: psycopg.Connection, pair: Pair, ours: list[_Column], names: list[str]) -> Iterator[sql.Composable]:
    """What our table demands of a row, as far as the old one can meet it."""
    yield sql.SQL("true")
    for column in ours:
        if column.needed and column.name in names:
            yield sql.SQL("r.{} IS NOT NULL").format(sql.Identifier(column.name))
        elif column.needed and column.default is None:
            yield sql.SQL("false")  # it cannot be known
    checks = rows(
        db,
        "SELECT pg_get_expr(c.conbin, c.conrelid), (SELECT array_agg(a.attname::text) FROM pg_attribute AS a"
        "  WHERE a.attrelid = c.conrelid AND a.attnum = ANY (c.conkey))"
        " FROM pg_constraint AS c WHERE c.conrelid = to_regclass(%s) AND c.contype = 'c'",
        f"public.{pair.new}",
    )
    for expression, used in checks:
        if set(used or ()) <= set(names):
            yield sql.SQL("coalesce({}, true)").format(sql.SQL(expression))


def _columns(db: psycopg.Connection, schema: str, table: str) -> list[_Column]:
    return [
        _Column(*values)
        for values in rows(
            db,
            "SELECT a.attname, format_type(a.atttypid, a.atttypmod), t.typtype = 'e', a.attnotnull,"
            " pg_get_expr(d.adbin, d.adrelid)"
            " FROM pg_attribute AS a JOIN pg_type AS t ON t.oid = a.atttypid"
            " LEFT JOIN pg_attrdef AS d ON d.adrelid = a.attrelid AND d.adnum = a.attnum"
            " WHERE a.attrelid = to_regclass(%s) AND a.attnum > 0 AND NOT a.attisdropped ORDER BY a.attnum",
            sql.Identifier(schema, table).as_string(None),
        )
    ]


def _castable(db: psycopg.Connection, their: _Column, mine: _Column) -> bool:
    if mine.is_enum or mine.kind in {their.kind, "text"}:
        return True
    return bool(
        one(
            db,
            "SELECT EXISTS (SELECT FROM pg_cast WHERE castsource = %s::regtype AND casttarget = %s::regtype)",
            their.kind,
            mine.kind,
        )
    )


def _parent(db: psycopg.Connection, table: str, column: str) -> Any:
    """(table, column) that one of our columns refers to, or None."""
    found = rows(
        db,
        "SELECT c.confrelid::regclass::text, f.attname FROM pg_constraint AS c"
        " JOIN pg_attribute AS a ON a.attrelid = c.conrelid AND a.attnum = c.conkey[1]"
        " JOIN pg_attribute AS f ON f.attrelid = c.confrelid AND f.attnum = c.confkey[1]"
        " WHERE c.conrelid = to_regclass(%s) AND c.contype = 'f' AND cardinality(c.conkey) = 1 AND a.attname = %s",
        f"public.{table}",
        column,
    )
    return found[0] if found else None
