"""`scrapersky search`: the way in."""

from typing import Annotated

import typer

from listener.cli.ask import AsJson, acting, print_json
from listener.cli.say import say
from listener.cli.table import wrap
from listener.errors import UserError

INSERT = """
INSERT INTO public.place_search
    (business_type, location, latitude, longitude, radius, max_results, language, region, created_by)
VALUES (%(business_type)s, %(location)s, %(latitude)s, %(longitude)s, %(radius)s, %(most)s, %(language)s, %(region)s,
        coalesce(nullif(current_setting('scheduler.actor', true), ''), session_user))
RETURNING id::text"""


def search(
    business_type: Annotated[str, typer.Argument(metavar="WHAT", help="The kind of business, such as plumber.")],
    location: Annotated[str, typer.Argument(metavar="WHERE", help="The place, such as 'Austin, TX'.")],
    near: Annotated[str | None, typer.Option(metavar="LAT,LNG", help="Look around this point.")] = None,
    radius: Annotated[
        int | None, typer.Option(min=1, max=50000, metavar="METRES", help="How far around it; 10,000 if not said.")
    ] = None,
    most: Annotated[int, typer.Option("--max", min=1, max=60, help="At most so many places.")] = 60,
    language: Annotated[str | None, typer.Option(help="Of the answers, such as en.")] = None,
    region: Annotated[str | None, typer.Option(help="Two letters, such as US.")] = None,
    as_json: AsJson = False,
) -> None:
    """Search for businesses. The search is a row in place_search: a listener runs it, now or after a restart.

    Example: scrapersky search "plumber" "Austin, TX" --near 30.27,-97.74 --radius 20000
    """
    for name, text in (("WHAT", business_type), ("WHERE", location)):
        if not text.strip() or "\0" in text:
            raise UserError(f"{name} is empty.", 'Say it as in: scrapersky search "plumber" "Austin, TX"')
    if radius is not None and near is None:
        raise UserError("--radius needs a point to be around.", "Add --near LAT,LNG, such as --near 30.27,-97.74")
    latitude, longitude = _point(near)
    values = {
        "business_type": business_type.strip(),
        "location": location.strip(),
        "latitude": latitude,
        "longitude": longitude,
        "radius": radius,
        "most": most,
        "language": language,
        "region": region,
    }
    with acting() as connection:
        row = connection.execute(INSERT, values).fetchone()
    found = row[0] if row else None
    if as_json:
        print_json({"id": found, "status": "pending"})
    else:
        typer.echo(found)
        say(wrap(f"Queued: {business_type.strip()} in {location.strip()}. To ask: scrapersky why place_search {found}"))


def _point(near: str | None) -> tuple[float | None, float | None]:
    if near is None:
        return None, None
    try:
        latitude, longitude = (float(part) for part in near.split(","))
    except ValueError:
        raise UserError(f"{near!r} is not a point.", "Write it as LAT,LNG, such as 30.27,-97.74") from None
    if not (-90 <= latitude <= 90 and -180 <= longitude <= 180):
        raise UserError(f"{near} is not on the globe.", "Latitudes are -90 to 90, longitudes -180 to 180.")
    return latitude, longitude
