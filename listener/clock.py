"""The second clock: asks the database to dispatch what pg_cron should have. It refuses while pg_cron does its job."""

import asyncio
import random

from listener import engine
from listener.database import Database
from listener.faults import describe
from listener.logs import log_of
from listener.metrics import Metrics

_log = log_of("clock")


class Clock:
    """Ticks every few seconds; the database decides whether a slot is due and whether pg_cron is silent."""

    def __init__(self, database: Database, metrics: Metrics, seconds: float) -> None:
        self._database = database
        self._metrics = metrics
        self.seconds = seconds
        self._failing = False

    async def run(self) -> None:
        while True:
            try:
                await self.tick()
            except Exception as error:
                if not self._failing:
                    _log.warning("cannot tick", extra={"error": describe(error)})
                self._failing = True
            else:
                self._failing = False
            # listeners started together must not tick together
            await asyncio.sleep(self.seconds * random.uniform(0.7, 1.3))  # noqa: S311 - spreads load

    async def tick(self) -> None:
        async with self._database.transaction() as transaction:
            fired = await engine.tick(transaction.connection)
        self._metrics.ticks += 1
        for row in fired:
            self._metrics.dispatched += 1
            _log.info(
                "dispatched in place of pg_cron",
                extra={"workflow": row.workflow, "queued": row.queued, "note": row.note},
            )
