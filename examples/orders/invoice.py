"""An invoice for each paid order."""

from dataclasses import dataclass
from decimal import Decimal

from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncSession

from listener import Done, Final, Reject, Tools, Workflow

TAX = {"AT": Decimal("0.20"), "DE": Decimal("0.19")}


@dataclass
class Order:
    id: int
    country: str
    amount: Decimal


async def work(order: Order, tools: Tools) -> Decimal | Final[Decimal]:
    if order.amount <= 0:
        raise Reject(f"an order over {order.amount} cannot be invoiced")
    if order.country not in TAX:
        return Final("by hand")
    return (order.amount * (1 + TAX[order.country])).quantize(Decimal("0.01"))


async def save(session: AsyncSession, results: list[Done[Order, Decimal]]) -> None:
    invoices = [{"order": done.item.id, "total": done.result} for done in results if done.word is None]
    if invoices:
        await session.execute(text("INSERT INTO shop.invoice VALUES (:order, :total)"), invoices)


invoice = Workflow("invoice", Order, work, save)
