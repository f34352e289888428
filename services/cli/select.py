"""`scrapersky select`: what a person thinks of many rows at once."""

from typing import Annotated

import typer

from listener.cli.ask import AsJson, Yes, acting, print_rows, rows_of
from listener.errors import UserError

CURATE = "SELECT * FROM scheduler.curate(%s, %s, %s, most => %s, dry_run => %s)"


def select(
    table: Annotated[str, typer.Argument(help="place, local_business, domain, sitemap_file, page or contact.")],
    where: Annotated[str, typer.Option(help="Which rows, as in SQL; 'true' for all.")],
    word: Annotated[str, typer.Option("--as", help="What they become.")] = "Selected",
    most: Annotated[int | None, typer.Option("--limit", min=1, help="Only so many, the oldest first.")] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only count.")] = False,
    yes: Yes = False,
    as_json: AsJson = False,
) -> None:
    """Mark every row a filter finds as Selected, or another word. Counts what that did.

    Selected rows are queued by the next dispatch, failed ones once more; those queued or running are left alone.

    Example: scrapersky select place --where "rating >= 4 AND review_count > 20" --dry-run
    """
    if not (dry_run or yes):
        with acting() as connection:
            _, [counted] = rows_of(connection, CURATE, [table, where, word, most, True])
        if counted[0] and not typer.confirm(f"{counted[0]} rows of {table} match. Make them {word}?", err=True):
            raise UserError("Nothing was changed.")
    with acting() as connection:
        names, rows = rows_of(connection, CURATE, [table, where, word, most, dry_run])
    print_rows(names, rows, as_json=as_json)
