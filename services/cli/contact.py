"""`scrapersky contact`: contacts one by one. What it does is plain SQL on the table contact."""

from typing import Annotated, Any

import psycopg
import typer
from psycopg import sql

from listener.cli.ask import AsJson, Yes, acting, connected, print_json, print_rows, rows_of
from listener.cli.outline import Outline
from listener.cli.table import plain
from listener.cli.table import show as readable
from listener.errors import UserError
from services.cli import options

app = typer.Typer(cls=Outline, help="List, show, add, edit or delete contacts.", no_args_is_help=True)

LISTED = sql.SQL(
    "SELECT c.id, c.email, c.phone, c.name, c.role, d.domain, c.contact_curation_status AS curation, c.created_at"
    " FROM public.contact AS c JOIN public.domain AS d ON d.id = c.domain_id"
    " WHERE {} ORDER BY c.created_at, c.id LIMIT %(most)s"
)
SHOWN = """
SELECT c.*, d.domain FROM public.contact AS c JOIN public.domain AS d ON d.id = c.domain_id WHERE c.id = %s"""
ADDED = sql.SQL(
    "INSERT INTO public.contact (domain_id, {columns}, found_in, created_by) SELECT d.id, {values}, 'a person',"
    " coalesce(nullif(current_setting('scheduler.actor', true), ''), session_user)"
    " FROM public.domain AS d WHERE d.domain = %(domain)s ON CONFLICT DO NOTHING RETURNING id::text"
)
COLUMNS = {"curation": "contact_curation_status"}
"""Where an option is called otherwise than its column."""

UNREACHABLE = "A contact needs a way to reach it."

Which = Annotated[str, typer.Argument(metavar="CONTACT", help="Its id or its email.")]
Email = Annotated[str | None, typer.Option(help="Such as info@example.com.")]
EmailType = Annotated[str | None, typer.Option(help="corporate, free, service or unknown.")]
Phone = Annotated[str | None, typer.Option(help="International, such as +1 512 555 0100.")]
Name = Annotated[str | None, typer.Option(help="Of the person.")]
Role = Annotated[str | None, typer.Option(help="Of the person, such as owner.")]
Address = Annotated[str | None, typer.Option(help="Where letters go.")]
Notes = Annotated[str | None, typer.Option(help="Anything.")]
Curation = Annotated[str | None, typer.Option(help="New, Selected, Maybe, 'Not a Fit' or Archived.")]


@app.command()
def add(
    domain: Annotated[str, typer.Argument(help="The website it belongs to; it must be there already.")],
    email: Email = None,
    phone: Phone = None,
    name: Name = None,
    role: Role = None,
    address: Address = None,
    notes: Notes = None,
    email_type: EmailType = None,
    curation: Curation = None,
    as_json: AsJson = False,
) -> None:
    """Add a contact by hand and print its id.

    Example: scrapersky contact add example.com --email jo@example.com --name "Jo Smith" --role owner
    """
    from services.directory import check_contact

    given = {"email": email, "phone": phone, "name": name, "role": role, "address": address, "notes": notes}
    row = check_contact({**given, "email_type": email_type, "curation": curation})
    row = {key: value for key, value in row.items() if value is not None}
    if not (row.get("email") or row.get("phone")):
        raise UserError(UNREACHABLE, "Give --email or --phone.")
    site = domain.strip().lower().rstrip(".")
    if row.get("email"):
        row.setdefault("email_type", _type(str(row["email"]), site))
    statement = ADDED.format(
        columns=sql.SQL(", ").join(sql.Identifier(COLUMNS.get(key, key)) for key in row),
        values=sql.SQL(", ").join(sql.Placeholder(key) for key in row),
    )
    with acting() as connection:
        known = connection.execute("SELECT FROM public.domain WHERE domain = %s", [site.replace("\0", "")]).fetchone()
        if known is None:
            raise UserError(f"There is no domain {site!r}.", "'scrapersky import domains -' adds domains.")
        added = connection.execute(statement, {**row, "domain": site}).fetchone()
    if added is None:
        raise UserError(f"{site} has this contact already.", "'scrapersky contact edit' changes it.")
    if as_json:
        print_json({"id": added[0]})
    else:
        typer.echo(added[0])


@app.command()
def show(contact: Which, as_json: AsJson = False) -> None:
    """Everything that is known about a contact.

    Example: scrapersky contact show info@example.com --json
    """
    from services.directory import find_contact

    with connected() as connection:
        names, [row] = rows_of(connection, SHOWN, [find_contact(connection, contact)])
    if as_json:
        print_json(dict(zip(names, map(plain, row), strict=True)))
        return
    width = max(map(len, names))
    for name, value in zip(names, row, strict=True):
        if value is not None:
            typer.echo(f"{name.ljust(width)}  {readable(value)}")


@app.command()
def edit(
    contact: Which,
    email: Email = None,
    phone: Phone = None,
    name: Name = None,
    role: Role = None,
    address: Address = None,
    notes: Notes = None,
    email_type: EmailType = None,
    curation: Curation = None,
) -> None:
    """Change fields of a contact; '' clears one.

    Example: scrapersky contact edit info@example.com --role owner --curation Selected
    """
    from services.directory import check_contact, find_contact

    given = {"email": email, "phone": phone, "name": name, "role": role, "address": address, "notes": notes}
    row = check_contact({**given, "email_type": email_type, "curation": curation})
    if not row:
        raise UserError("There is nothing to change.", "'scrapersky contact edit --help' lists the fields.")
    if "curation" in row and row["curation"] is None:
        raise UserError("--curation cannot be empty.", "New is where every contact begins.")
    if "email" in row and row["email"] is None:
        row["email_type"] = None
    changes = sql.SQL(", ").join(
        sql.SQL("{} = {}").format(sql.Identifier(COLUMNS.get(key, key)), sql.Placeholder(key)) for key in row
    )
    with acting() as connection:
        key = find_contact(connection, contact)
        statement = sql.SQL("UPDATE public.contact SET {} WHERE id = %(id)s").format(changes)
        try:
            connection.execute(statement, {**row, "id": key})
        except psycopg.errors.UniqueViolation:
            raise UserError(
                f"Its domain has another contact with this {'email' if row.get('email') else 'phone'}.",
                "'scrapersky contact delete' takes one of the two away.",
            ) from None
        except psycopg.errors.CheckViolation:
            raise UserError(UNREACHABLE, "Leave it an email or a phone.") from None
    typer.echo(str(key))


@app.command()
def delete(
    contacts: Annotated[list[str], typer.Argument(metavar="CONTACT...", help="Ids or emails.")],
    yes: Yes = False,
) -> None:
    """Delete contacts. A page that is read again may find them again: Archived keeps one away for good.

    Example: scrapersky contact delete info@example.com --yes
    """
    from services.directory import find_contact

    with acting() as connection:
        keys = [find_contact(connection, contact) for contact in contacts]
        if not yes and not typer.confirm(f"Delete {len(keys)} contacts?", err=True):
            raise UserError("Nothing was deleted.")
        deleted = connection.execute("DELETE FROM public.contact WHERE id = ANY (%s)", [keys]).rowcount
    typer.echo(f"{deleted} deleted")


@app.command("list")
def list_(
    domain: options.Domain = None,
    curation: options.Curation = None,
    email_type: options.EmailType = None,
    since: options.Since = None,
    search: options.Search = None,
    with_email: options.WithEmail = None,
    with_phone: options.WithPhone = None,
    text: options.Text = None,
    most: Annotated[int, typer.Option("--limit", min=1, help="At most so many, the oldest first.")] = 100,
    as_json: AsJson = False,
) -> None:
    """Contacts, by any of these filters. 'scrapersky export contacts' gives all their fields.

    Example: scrapersky contact list --domain example.com
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
    with connected() as connection:
        names, rows = _listed(connection, LISTED.format(condition), {**values, "most": most})
    print_rows(names, rows, as_json=as_json, empty="No contact matches.")


def _listed(connection: Any, query: sql.Composed, values: dict[str, Any]) -> tuple[list[str], list[tuple[Any, ...]]]:
    cursor = connection.execute(query, values)
    return [column.name for column in cursor.description], cursor.fetchall()


def _type(email: str, site: str) -> str:
    """A person need not say that an address of the website's own domain is the company's."""
    host = email.rpartition("@")[2]
    return "corporate" if host == site or host.endswith(f".{site}") else "unknown"
