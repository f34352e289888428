"""Pages over tables of results: which of them exist, filtered rows, exports that no spreadsheet runs as a program."""

import csv
import io
import json
import re
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass
from typing import Any

from psycopg import sql

from listener.spreadsheet import harmless
from listener.web.extension import Table
from listener.web.store import Reader, Row
from listener.web.words import plain

PAGE = 100


@dataclass(frozen=True)
class View:
    """A table as it is in this database."""

    table: Table
    columns: tuple[str, ...]
    choices: dict[str, tuple[str, ...]]
    """Values of the columns that have an enum type."""
    numeric: frozenset[str] = frozenset()
    decisions: tuple[str, ...] = ()
    """The words that ticked rows can be given; none where the table is not curated."""


@dataclass(frozen=True)
class Filter:
    """What the person wants to see."""

    text: str
    chosen: dict[str, str]

    @classmethod
    def read(cls, view: View, query: Mapping[str, str]) -> "Filter":
        chosen = {column: query[column] for column in view.choices if query.get(column)}
        return cls(query.get("q", "").strip()[:200], chosen)


async def existing(reader: Reader, tables: list[Table]) -> list[Table]:
    """Those that are there and that scheduler_monitor may read."""
    rows = await reader.rows(
        "SELECT r.name FROM unnest(%s::text[]) AS r (name)"
        " WHERE coalesce(has_table_privilege(to_regclass(r.name), 'SELECT'), false)",
        [table.relation for table in tables],
    )
    allowed = {row["name"] for row in rows}
    return [table for table in tables if table.relation in allowed]


async def view_of(reader: Reader, table: Table) -> View | None:
    rows = await reader.rows(
        """SELECT a.attname AS name, y.typcategory = 'N' AS numeric,
                  ARRAY(SELECT e.enumlabel::text FROM pg_enum AS e WHERE e.enumtypid = a.atttypid
                        ORDER BY e.enumsortorder) AS words
           FROM pg_attribute AS a JOIN pg_type AS y ON y.oid = a.atttypid
           WHERE a.attrelid = to_regclass(%s) AND a.attnum > 0 AND NOT a.attisdropped
             AND has_column_privilege(a.attrelid, a.attnum, 'SELECT')""",
        table.relation,
    )
    words = {row["name"]: tuple(row["words"]) for row in rows}
    columns = tuple(column for column in table.columns if column in words)
    if not columns:
        return None
    choices = {column: words[column] for column in table.choices if words.get(column)}
    decisions = words.get(table.decided or "", ()) if table.key in words else ()
    return View(table, columns, choices, frozenset(row["name"] for row in rows if row["numeric"]), decisions)


async def page(reader: Reader, view: View, wanted: Filter, offset: int) -> list[Row]:
    """One row more than a page, so that the caller knows whether there is a next one."""
    return await reader.rows(
        sql.SQL("{} LIMIT {} OFFSET {}").format(_query(view, wanted), sql.Literal(PAGE + 1), sql.Literal(offset))
    )


def rows(reader: Reader, view: View, wanted: Filter) -> AsyncIterator[Row]:
    return reader.stream(_query(view, wanted))


def _query(view: View, wanted: Filter) -> sql.Composed:
    conditions: list[sql.Composable] = [
        sql.SQL("t.{}::text = {}").format(sql.Identifier(column), sql.Literal(word))
        for column, word in wanted.chosen.items()
    ]
    if wanted.text and view.table.search:
        pattern = sql.Literal("%" + re.sub(r"([\\%_])", r"\\\1", wanted.text) + "%")
        hits = [
            sql.SQL("t.{}::text ILIKE {}").format(sql.Identifier(column), pattern)
            for column in view.table.search
            if column in view.columns
        ]
        conditions.append(sql.SQL("({})").format(sql.SQL(" OR ").join(hits)))
    shown = dict.fromkeys((*view.columns, view.table.key) if view.decisions and view.table.key else view.columns)
    query = sql.SQL("SELECT {} FROM {} AS t").format(
        sql.SQL(", ").join(sql.SQL("t.{}").format(sql.Identifier(column)) for column in shown),
        sql.Identifier(*view.table.relation.split(".")),
    )
    if conditions:
        query += sql.SQL(" WHERE ") + sql.SQL(" AND ").join(conditions)
    if view.table.newest in view.columns:
        query += sql.SQL(" ORDER BY t.{} DESC").format(sql.Identifier(view.table.newest))
    return query


# -- exports -----------------------------------------------------------------------------------------------------------


async def as_csv(view: View, found: AsyncIterator[Row]) -> AsyncIterator[str]:
    yield _line(view.columns)
    async for row in found:
        yield _line([harmless("" if row[column] is None else plain(row[column])) for column in view.columns])


async def as_json(view: View, found: AsyncIterator[Row]) -> AsyncIterator[str]:
    """An array with one object a line."""
    before = "[\n"
    async for row in found:
        shown: dict[str, Any] = {column: row[column] for column in view.columns}
        yield before + json.dumps(shown, ensure_ascii=False, default=str)
        before = ",\n"
    yield "\n]\n" if before == ",\n" else "[]\n"


def _line(values: Any) -> str:
    out = io.StringIO()
    csv.writer(out, lineterminator="\r\n").writerow(values)
    return out.getvalue()
