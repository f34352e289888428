"""`scrapersky export`: the way out."""

import csv
import json
import sys
from collections.abc import Iterator
from enum import StrEnum
from pathlib import Path
from typing import IO, Annotated, Any

import typer
from psycopg import sql

from listener.cli.ask import connected
from listener.cli.outline import Outline
from listener.cli.say import say
from listener.cli.table import plain
from services.cli import options

app = typer.Typer(cls=Outline, help="Write contacts as CSV or JSON.", no_args_is_help=True)

AT_ONCE = 2000
QUERY = sql.SQL("""
SELECT c.email, c.email_type, c.phone, c.name, c.role, b.name AS business, d.domain, c.address, b.city, b.country_code,
       c.socials, c.source_url, c.found_in, c.context, c.contact_curation_status AS curation, c.notes, c.created_at,
       c.id
FROM public.contact AS c
JOIN public.domain AS d ON d.id = c.domain_id
LEFT JOIN LATERAL (SELECT x.name, x.city, x.country_code FROM public.local_business AS x
                   WHERE x.domain_id = d.id ORDER BY x.created_at, x.id LIMIT 1) AS b ON true
WHERE {} ORDER BY d.domain, c.email, c.phone, c.id""")


class Format(StrEnum):
    CSV = "csv"
    JSON = "json"
    JSONL = "jsonl"


@app.callback()
def group() -> None:
    """A group of one, so that there can be more."""


@app.command()
def contacts(
    kind: Annotated[
        Format, typer.Option("--format", "-f", help="csv, json (one list) or jsonl (a line each).")
    ] = Format.CSV,
    output: Annotated[Path | None, typer.Option("--output", "-o", help="A file instead of standard output.")] = None,
    domain: options.Domain = None,
    curation: options.Curation = None,
    email_type: options.EmailType = None,
    since: options.Since = None,
    search: options.Search = None,
    with_email: options.WithEmail = None,
    with_phone: options.WithPhone = None,
    text: options.Text = None,
    as_json: Annotated[bool, typer.Option("--json", help="The same as --format json.")] = False,
) -> None:
    """Export contacts. In CSV no cell is a formula: what could be one begins with an apostrophe.

    Example: scrapersky export contacts --curation Selected --with-email -o contacts.csv
    """
    from services.directory import chosen

    condition, values = chosen(
        domain=domain,
        curation=curation,
        email_type=email_type,
        since=since,
        search=search,
        with_email=with_email,
        with_phone=with_phone,
        text=text,
    )
    write = {Format.CSV: _csv, Format.JSON: _json, Format.JSONL: _json_lines}[Format.JSON if as_json else kind]
    with connected() as connection, connection.transaction(), connection.cursor("export") as cursor:
        cursor.itersize = AT_ONCE
        cursor.execute(QUERY.format(condition), values)
        names = [column.name for column in cursor.description or ()]
        if output is None:
            count = write(sys.stdout, names, iter(cursor))
        else:
            with output.open("w", encoding="utf-8", newline="") as file:
                count = write(file, names, iter(cursor))
    say(f"{count} contacts")


def _csv(out: IO[str], names: list[str], rows: Iterator[tuple[Any, ...]]) -> int:
    from listener.spreadsheet import harmless

    writer = csv.writer(out, lineterminator="\r\n")
    writer.writerow(names)
    count = 0
    for row in rows:
        writer.writerow([harmless(_cell(value)) for value in row])
        count += 1
    return count


def _json(out: IO[str], names: list[str], rows: Iterator[tuple[Any, ...]]) -> int:
    count = 0
    out.write("[")
    for row in rows:
        out.write(("," if count else "") + "\n" + _object(names, row))
        count += 1
    out.write("\n]\n")
    return count


def _json_lines(out: IO[str], names: list[str], rows: Iterator[tuple[Any, ...]]) -> int:
    count = 0
    for row in rows:
        out.write(_object(names, row) + "\n")
        count += 1
    return count


def _object(names: list[str], row: tuple[Any, ...]) -> str:
    return json.dumps(dict(zip(names, map(plain, row), strict=True)), ensure_ascii=False)


def _cell(value: Any) -> str:
    if value is None:
        return ""
    return json.dumps(value, ensure_ascii=False) if isinstance(value, dict | list) else str(plain(value))
