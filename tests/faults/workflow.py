"""What the listeners under fault run: one call outside, a short wait, one row as its effect."""

import os
from dataclasses import dataclass

from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncSession

from listener import Done, Tools, Workflow


@dataclass
class Item:
    id: int


async def work(item: Item, tools: Tools) -> int:
    await tools.http.post(os.environ["SINK"], headers={"Idempotency-Key": tools.idempotency_key})
    # between the answer and the commit: here is where a fault hurts most
    await tools.clock.sleep((item.id * 7919 % 60) / 1000)
    return os.getpid()


async def save(session: AsyncSession, results: list[Done[Item, int]]) -> None:
    # no unique key: an effect that is written twice must be seen
    await session.execute(
        text("INSERT INTO effect (item, at) VALUES (:item, clock_timestamp())"),
        [{"item": done.item.id} for done in results],
    )


chaos = Workflow("chaos", Item, work, save)
