"""The shop before and after: makes its tables, adopts one, works off what is paid, and prints what came of it."""

import asyncio
from pathlib import Path

import psycopg
from invoice import invoice

from listener.cli.table import table
from listener.schema import find_url, migrate
from listener.testing import drain

HERE = Path(__file__).parent


def show(shop: psycopg.Connection, title: str) -> None:
    rows = shop.execute(
        "SELECT o.id, o.country, o.amount, o.state, i.total, o.note"
        " FROM shop.orders AS o LEFT JOIN shop.invoice AS i ON i.order_id = o.id ORDER BY o.id"
    ).fetchall()
    print(f"{title}\n")
    print(table(("id", "country", "amount", "state", "invoice", "note"), rows), end="\n\n")


def main() -> None:
    url = find_url()
    migrate(url)
    with psycopg.connect(url, autocommit=True) as shop:
        # a second run starts anew
        shop.execute("SELECT scheduler.drop_workflow(name) FROM scheduler.workflow WHERE name = 'invoice'")
        shop.execute("DROP SCHEMA IF EXISTS shop CASCADE")
        shop.execute((HERE / "shop.sql").read_text().encode())
        show(shop, "The shop as it was:")
        shop.execute((HERE / "adopt.sql").read_text().encode())
        asyncio.run(drain(url, invoice))
        show(shop, "Adopted, and a listener has run:")
        shop.execute("UPDATE shop.orders SET state = 'paid' WHERE id = 2")
        asyncio.run(drain(url, invoice))
        show(shop, "Order 2 is paid, by a plain UPDATE:")


if __name__ == "__main__":
    main()
