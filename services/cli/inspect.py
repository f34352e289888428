"""`scrapersky inspect`: what would be stored for one URL or file, and why. No database is touched."""

import json
from typing import Annotated, Any

import typer

from listener.cli.outline import Outline

app = typer.Typer(
    cls=Outline,
    help="Show what would be stored for one URL or file. As JSON, with evidence; touches no database.",
    no_args_is_help=True,
)

Target = Annotated[str, typer.Argument(help="A URL, or a file.", show_default=False)]
Address = Annotated[str, typer.Option("--url", help="Of a file: the address it was saved from.")]
Country = Annotated[str | None, typer.Option("--country", help="Two letters: whose phone numbers these are.")]


@app.command("page")
def page(target: Target, url: Address = "", country: Country = None) -> None:
    """Contacts and metadata of a page.

    Example: scrapersky inspect page contact.html --url https://joes.example/contact
    """
    from services import inspection

    _print(inspection.page(target, url, country))


@app.command("sitemap")
def sitemap(target: Target, url: Address = "") -> None:
    """The pages of a sitemap, each with its category and what becomes of it.

    Example: scrapersky inspect sitemap https://joes.example/sitemap.xml
    """
    from services import inspection

    _print(inspection.sitemap(target, url))


@app.command("robots")
def robots(target: Target, url: Address = "") -> None:
    """What a robots.txt allows us, the pause it asks for, and the sitemaps it names.

    Example: scrapersky inspect robots https://joes.example/contact
    """
    from services import inspection

    _print(inspection.robots(target, url))


@app.command("website")
def website(text: Annotated[str, typer.Argument(help="As somebody wrote it.", show_default=False)]) -> None:
    """The registrable domain of a website, or the reason there is none.

    Example: scrapersky inspect website "HTTP://www.Joes-Plumbing.co.uk/contact"
    """
    from services import inspection

    _print(inspection.website_of(text))


def _print(value: Any) -> None:
    typer.echo(json.dumps(value, indent=2, ensure_ascii=False))
