"""One question for many lanes: which of them have anything to claim?

A listener of a thousand workflows asks once a poll interval and not a thousand times; only lanes for which there is
something send a claim. A handful of lanes ask for themselves: one round trip less until the first item.
"""

import asyncio
import random
from collections.abc import Mapping

from listener import engine
from listener.database import Database
from listener.faults import describe
from listener.lane import Lane
from listener.logs import log_of

FEW = 24
"""So many lanes ask for themselves."""

_log = log_of("sweep")


class Sweep:
    """Asks for all lanes, a little more often than each would ask for itself."""

    def __init__(self, database: Database, lanes: Mapping[str, Lane], seconds: float) -> None:
        self._database = database
        self._lanes = lanes
        self.seconds = seconds
        self._wanted = asyncio.Event()
        self._failing = False

    def ask(self) -> None:
        """Ask now: at the start, and when the doorbell was out of order."""
        self._wanted.set()

    async def run(self) -> None:
        while True:
            try:
                # before the first lane asks for itself
                async with asyncio.timeout(self.seconds * random.uniform(0.6, 0.75)):  # noqa: S311 - spreads load
                    await self._wanted.wait()
            except TimeoutError:
                why = "poll"
            else:
                why = "start"
                self._wanted.clear()
            await self._round(why)

    async def _round(self, why: str) -> None:
        try:
            async with self._database.transaction() as transaction:
                found = await engine.claimable(transaction.connection, list(self._lanes))
        except Exception as error:
            # each lane asks for itself then, and says what is wrong
            if not self._failing:
                _log.warning("cannot ask for all lanes at once", extra={"error": describe(error)})
            self._failing = True
            found = set(self._lanes) if why == "start" else set()
        else:
            self._failing = False
            for name in self._lanes.keys() - found:
                self._lanes[name].pass_over()
        for name in found:
            self._lanes[name].ring(why)
