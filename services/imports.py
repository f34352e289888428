"""Rows of a file become rows of a table. Each gets a result: added, duplicate, or invalid and why; the rest goes in."""

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import islice
from typing import IO, Any, Final

import psycopg
from psycopg import sql
from psycopg.types.json import Jsonb

from listener.errors import UserError
from services.sitemaps.urls import UnusableUrlError, normal_url
from services.spreadsheet import Record, read
from services.websites import Kind as WebsiteKind
from services.websites import site_of, website

BATCH: Final = 1000

Session = psycopg.Connection[tuple[Any, ...]]

_AUTHOR: Final = sql.SQL("coalesce(nullif(current_setting('scheduler.actor', true), ''), session_user)")
"""Who made a row that a person adds: named for this transaction, else the role."""


class Outcome(StrEnum):
    ADDED = "added"
    DUPLICATE = "duplicate"
    INVALID = "invalid"


@dataclass(frozen=True, slots=True)
class Result:
    line: int
    value: str
    outcome: Outcome
    why: str = ""


class InvalidError(ValueError):
    """Why this row cannot be imported."""


Row = dict[str, Any]
"""Column of the table → value."""


@dataclass(frozen=True)
class Source:
    """What a file of this kind holds, and how a row of it becomes a row of a table."""

    table: str
    key: tuple[str, ...]
    """What makes a row the same as another."""
    columns: dict[str, str]
    """Name in the header → our name. The first is the one a file without a header holds."""
    build: Callable[[Row], Row]
    selection: str | None = None
    """The curation column that makes a row Selected."""

    @property
    def of_domain(self) -> bool:
        """Whether its rows belong to a row of domain, which is found by its name."""
        return self.table != "domain" and "domain" in self.key

    @property
    def unique(self) -> tuple[str, ...]:
        return tuple("domain_id" if self.of_domain and name == "domain" else name for name in self.key)


def import_file(
    session: Session, source: Source, file: IO[bytes], *, author: str = "", select: bool = False
) -> Iterator[Result]:
    """Import a CSV file, a thousand rows a transaction, and tell the result of each row in order.

    `author` is who made the rows; empty stands for the session's role.
    """
    store = _Store(session, source, author, select)
    lines = _lines(source, file)
    while batch := list(islice(lines, BATCH)):
        yield from store.take(batch)


@dataclass(frozen=True, slots=True)
class _Line:
    """A row of the file: how it is called in the report, and what it comes to."""

    number: int
    value: str
    row: Row | InvalidError

    def came_to(self, outcome: Outcome, why: str = "") -> Result:
        return Result(self.number, self.value, outcome, why)


def _lines(source: Source, file: IO[bytes]) -> Iterator[_Line]:
    header: list[str] | None = None
    needed = next(iter(source.columns.values()))
    for record in read(file):
        if header is None:
            header = _header(source, record)
            if header is not None:
                continue
            header = [needed]
        at = header.index(needed)
        value = record.cells[at if at < len(record.cells) else 0] if record.cells else ""
        yield _Line(record.line, _printable(value), _row(source, header, record))


def _printable(text: str) -> str:
    """Bytes that are no UTF-8, and NUL, cannot be printed."""
    return text.replace("\0", "\ufffd").encode("utf-8", "replace").decode().strip()[:200]


def _header(source: Source, first: Record) -> list[str] | None:
    """Our names for the columns of the file; None if the first row is no header but the first value."""
    names = [source.columns.get(cell.strip().lower().replace(" ", "_"), "") for cell in first.cells]
    if not any(names):
        if len(names) > 1:
            raise UserError(
                f"The first line names no column that is known: {', '.join(first.cells)[:200]}.",
                f"Known are {', '.join(source.columns)}; the order does not matter, others are left out.",
            )
        return None
    needed = next(iter(source.columns.values()))
    if needed not in names:
        raise UserError(
            f"The first line names no column {needed}, which is needed.",
            f"Call it one of: {', '.join(name for name, ours in source.columns.items() if ours == needed)}.",
        )
    return names


def _row(source: Source, header: Sequence[str], record: Record) -> Row | InvalidError:
    if record.problem:
        return InvalidError(record.problem)
    if len(record.cells) > len(header):
        return InvalidError(f"it has {len(record.cells)} cells, but there are {len(header)} columns")
    given = {name: cell.strip() for name, cell in zip(header, record.cells, strict=False) if name and cell.strip()}
    try:
        return source.build(given)
    except InvalidError as error:
        return error


class _Store:
    """Takes rows of the file into the table, and remembers which it has had."""

    def __init__(self, session: Session, source: Source, author: str, select: bool) -> None:
        self._session = session
        self._source = source
        self._author = author
        self._extra = {source.selection: "Selected"} if select and source.selection else {}
        self._seen: set[tuple[Any, ...]] = set()

    def take(self, batch: list[_Line]) -> Iterator[Result]:
        results: dict[int, Result] = {}
        wanted: list[tuple[_Line, Row]] = []
        for line in batch:
            if isinstance(line.row, InvalidError):
                results[line.number] = line.came_to(Outcome.INVALID, str(line.row))
            elif (key := tuple(line.row[name] for name in self._source.key)) in self._seen:
                results[line.number] = line.came_to(Outcome.DUPLICATE, "it is in this file already")
            else:
                self._seen.add(key)
                wanted.append((line, {**line.row, **self._extra}))
        rows = [row for _, row in wanted]
        try:
            outcomes = self._insert(rows)
        except (psycopg.DataError, psycopg.IntegrityError):
            # the database refuses one of them: alone, each gets its own answer
            outcomes = [self._insert_alone(row) for row in rows]
        for (line, _), outcome in zip(wanted, outcomes, strict=True):
            results[line.number] = line.came_to(*outcome)
        yield from (results[line.number] for line in batch)

    def _insert_alone(self, row: Row) -> tuple[Outcome, str]:
        try:
            return self._insert([row])[0]
        except (psycopg.DataError, psycopg.IntegrityError) as error:
            return Outcome.INVALID, str(error.diag.message_primary)

    def _insert(self, rows: list[Row]) -> list[tuple[Outcome, str]]:
        source = self._source
        if not rows:
            return []
        with self._session.transaction():
            self._session.execute("SELECT set_config('scheduler.actor', %s, true)", [self._author])
            if source.of_domain:
                self._find_domains(rows)
            columns = [name for name in rows[0] if not (source.of_domain and name == "domain")]
            added = self._session.execute(
                sql.SQL(
                    "INSERT INTO public.{table} ({columns}, created_by) SELECT {columns}, {author}"
                    " FROM jsonb_populate_recordset(NULL::public.{table}, %s) ON CONFLICT DO NOTHING RETURNING {key}"
                ).format(
                    table=sql.Identifier(source.table),
                    columns=sql.SQL(", ").join(map(sql.Identifier, columns)),
                    author=_AUTHOR,
                    key=sql.SQL(", ").join(map(sql.Identifier, source.unique)),
                ),
                # in the order of their keys, so that two imports never wait for each other in a circle
                [Jsonb(sorted(rows, key=lambda row: [row[name] for name in source.key]))],
            ).fetchall()
        new = {tuple(map(str, key)) for key in added}
        return [
            (Outcome.ADDED, "")
            if tuple(str(row[name]) for name in source.unique) in new
            else (Outcome.DUPLICATE, f"{source.table} has it already")
            for row in rows
        ]

    def _find_domains(self, rows: list[Row]) -> None:
        """The keys of the domains the rows belong to; new ones are added, and queued for their metadata."""
        names = sorted({row["domain"] for row in rows})
        self._session.execute(
            sql.SQL(
                "INSERT INTO public.domain (domain, created_by) SELECT name, {} FROM unnest(%s::text[]) AS name"
                " ON CONFLICT DO NOTHING"
            ).format(_AUTHOR),
            [names],
        )
        found = self._session.execute(
            "SELECT domain, id::text FROM public.domain WHERE domain = ANY (%s)", [names]
        ).fetchall()
        keys: dict[str, str] = dict(found)
        for row in rows:
            row["domain_id"] = keys[row["domain"]]


def _domain(given: Row) -> Row:
    found = website(given.get("domain"))
    if found.kind is not WebsiteKind.DOMAIN:
        raise InvalidError(found.reason)
    return {"domain": found.domain, "country_code": _country(given.get("country_code"))}


def _place(given: Row) -> Row:
    key = given.get("place_id", "")
    if not re.fullmatch(r"[A-Za-z0-9_:-]{1,1024}", key):
        raise InvalidError("there is no place_id" if not key else "its place_id is none of Google's")
    return {
        **{name: given.get(name) for name in ("name", "address", "business_type")},
        "place_id": key,
        "latitude": _number(given, "latitude", -90, 90),
        "longitude": _number(given, "longitude", -180, 180),
        "rating": _number(given, "rating", 0, 5),
        "review_count": _number(given, "review_count", 0, 2**31 - 1, whole=True),
        "price_level": _number(given, "price_level", 0, 4, whole=True),
    }


def _located(given: Row) -> Row:
    """A URL and the domain it belongs to."""
    url = _url(given.get("url", ""))
    if "domain" in given:
        return {"url": url, "domain": _domain(given)["domain"]}
    domain = site_of(url)
    if domain is None:
        raise InvalidError("its host is not under a domain that someone can own")
    return {"url": url, "domain": domain}


def _sitemap(given: Row) -> Row:
    return {**_located(given), "found_by": "import"}


def _url(text: str) -> str:
    """In the one spelling that sitemaps are read in, so that an imported page is not a second row of a found one."""
    if not text:
        raise InvalidError("there is no URL")
    if re.search(r"[\s\x00-\x1f\x7f]", text):
        raise InvalidError("a URL has no blanks or control characters")
    if "@" in text.partition("://")[2].partition("/")[0]:
        raise InvalidError("it has a user name or password in it, which must not be stored")
    try:
        return normal_url(text)
    except UnusableUrlError as error:
        raise InvalidError(str(error)) from None


def _country(text: str | None) -> str | None:
    if text is None:
        return None
    if not re.fullmatch(r"[A-Za-z]{2}", text):
        raise InvalidError(f"{text[:20]!r} is not the two letters of a country")
    return text.upper()


def _number(given: Row, name: str, low: float, high: float, *, whole: bool = False) -> float | int | None:
    text = given.get(name)
    if text is None:
        return None
    try:
        value = int(text) if whole else float(text)
    except ValueError:
        raise InvalidError(f"its {name} {text[:20]!r} is no {'whole ' if whole else ''}number") from None
    if not low <= value <= high:
        raise InvalidError(f"its {name} is not from {low:g} to {high:g}")
    return value


SOURCES: Final = {
    "domains": Source(
        "domain",
        key=("domain",),
        columns={"domain": "domain", "website": "domain", "url": "domain", "country_code": "country_code"},
        build=_domain,
    ),
    "places": Source(
        "place",
        key=("place_id",),
        columns={
            name: name
            for name in (
                *("place_id", "name", "address", "business_type"),
                *("latitude", "longitude", "rating", "review_count", "price_level"),
            )
        },
        build=_place,
        selection="status",
    ),
    "sitemaps": Source(
        "sitemap_file",
        key=("domain", "url"),
        columns={"url": "url", "sitemap": "url", "loc": "url", "domain": "domain"},
        build=_sitemap,
        selection="deep_scrape_curation_status",
    ),
    "pages": Source(
        "page",
        key=("domain", "url"),
        columns={"url": "url", "page": "url", "loc": "url", "domain": "domain"},
        build=_located,
        selection="page_curation_status",
    ),
}
