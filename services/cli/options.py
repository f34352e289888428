"""The filters that `contact list` and `export contacts` share."""

from typing import Annotated

import typer

Domain = Annotated[str | None, typer.Option(help="Of this domain.")]
Curation = Annotated[str | None, typer.Option(help="New, Selected, Maybe, 'Not a Fit' or Archived.")]
EmailType = Annotated[str | None, typer.Option(help="corporate, free, service or unknown.")]
Since = Annotated[str | None, typer.Option(metavar="DATE", help="Found since then.")]
Search = Annotated[str | None, typer.Option(metavar="ID", help="Found by this search.")]
WithEmail = Annotated[bool | None, typer.Option("--with-email/--without-email", help="That have an email, or none.")]
WithPhone = Annotated[bool | None, typer.Option("--with-phone/--without-phone", help="That have a phone, or none.")]
Text = Annotated[str | None, typer.Option(help="With this in the email, phone, name, role or domain.")]
