"""`scrapersky trace`: where a contact comes from."""

from typing import Annotated

import typer

from listener.cli.ask import AsJson, connected, print_rows, rows_of

TRACE = "SELECT * FROM scheduler.trace(%s)"
# In the order of their worth: on a narrow terminal the last are left out.
_SHOWN = {
    "step": "step",
    "kind": "kind",
    "what": "what",
    "status": "status",
    "done_at": "done",
    "attempts": "attempts",
    "error": "error",
    "id": "id",
    "workflow": "workflow",
    "created_at": "made",
    "created_by": "by",
}


def trace(
    contact: Annotated[str, typer.Argument(help="Its id or its email.")],
    as_json: AsJson = False,
) -> None:
    """Show the way from the search to a contact. Each step with its status, attempts and times.

    Example: scrapersky trace info@example.com
    """
    from services.directory import find_contact

    with connected() as connection:
        names, rows = rows_of(connection, TRACE, [find_contact(connection, contact)])
    print_rows(names, rows, as_json=as_json, headings=_SHOWN, rare=("error",))
