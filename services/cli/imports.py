"""`scrapersky import`: rows of a file become rows of a table."""

import csv
import sys
from collections import Counter
from enum import StrEnum
from typing import Annotated

import typer

from listener.cli.ask import AsJson, acting, connected, print_json
from listener.cli.say import say

SOME_INVALID = 3
"""The exit code when rows were left out."""


class Kind(StrEnum):
    DOMAINS = "domains"
    PLACES = "places"
    SITEMAPS = "sitemaps"
    PAGES = "pages"


def import_(
    kind: Annotated[Kind, typer.Argument(help="What the rows are.")],
    file: Annotated[typer.FileBinaryRead, typer.Argument(help="A CSV file, or - for standard input.")],
    select: Annotated[
        bool, typer.Option("--select", help="Make them Selected, so that they go on without a person.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Import a CSV file of domains, places, sitemaps or pages. Prints what became of each row.

    It was added, is a duplicate, or is invalid and why; then the rest goes in all the same, and the exit code is 3.

    The first line names the columns: domain (or website) and country_code; place_id, name, address, business_type,
    latitude, longitude, rating, review_count, price_level; url and domain. A file with one column needs no such line.
    A new domain is queued for its metadata at once.

    Example: scrapersky import domains leads.csv > result.csv
    """
    from listener.spreadsheet import harmless
    from services.imports import SOURCES, import_file

    counts: Counter[str] = Counter()
    with acting() as connection:
        author = connection.execute("SELECT current_setting('scheduler.actor')").fetchone()
    # not in one transaction: two long imports would wait for each other, or worse
    with connected() as connection:
        results = import_file(connection, SOURCES[kind], file, author=author[0] if author else "", select=select)
        if as_json:
            told = list(results)
            counts.update(result.outcome for result in told)
            rows = [{"line": r.line, "value": r.value, "result": r.outcome, "why": r.why or None} for r in told]
            print_json({"counts": counts, "rows": rows})
        else:
            report = csv.writer(sys.stdout, lineterminator="\n")
            report.writerow(["line", "result", "value", "why"])
            for result in results:
                counts[result.outcome] += 1
                report.writerow([result.line, result.outcome, harmless(result.value), harmless(result.why)])
    say(f"{kind}: {counts['added']} added, {counts['duplicate']} duplicate, {counts['invalid']} invalid")
    if counts["invalid"]:
        raise typer.Exit(SOME_INVALID)
