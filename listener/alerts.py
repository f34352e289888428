"""Alerts out of the database: a small JSON to a webhook when something begins or ends. Nobody's items wait for it.

The database says what there is to tell and gives each change to one listener only, however many there are. A webhook
that does not answer is tried again, by this or another listener, after 1, 2, 4 and 8 minutes; then never.
"""

import asyncio
import random

from listener import engine
from listener.database import Database
from listener.engine import Alert
from listener.faults import describe
from listener.logs import log_of
from listener.redact import know

SECONDS = 15.0
"""Between two looks."""
_POST_SECONDS = 10.0

_log = log_of("alerts")


class Alerts:
    """Looks now and then, and tells."""

    def __init__(self, database: Database, webhook: str) -> None:
        self._database = database
        self._webhook = webhook
        self._failing = False
        know(webhook)  # it may be as good as a password

    async def run(self) -> None:
        while True:
            try:
                await self._look()
            except Exception as error:
                if not self._failing:
                    _log.warning("cannot look for alerts", extra={"error": describe(error)})
                self._failing = True
            else:
                self._failing = False
            # listeners started together must not look together
            await asyncio.sleep(SECONDS * random.uniform(0.7, 1.3))  # noqa: S311 - spreads load

    async def _look(self) -> None:
        async with self._database.transaction() as transaction:
            alerts = await engine.take_alerts(transaction.connection)
        for alert in alerts:
            if await self._tell(alert):
                async with self._database.transaction() as transaction:
                    await engine.alert_sent(transaction.connection, alert.id)

    async def _tell(self, alert: Alert) -> bool:
        """Whether it arrived."""
        import httpx  # only where there is something to tell

        body = {
            "source": "scrapersky",
            "id": alert.id,
            "at": alert.at.isoformat(),
            "workflow": alert.workflow,
            "alert": alert.code,
            "event": alert.event,
            "text": alert.text,
            "fix": alert.fix,
        }
        fields = {"workflow": alert.workflow, "alert": alert.code, "change": alert.event}
        try:
            async with asyncio.timeout(_POST_SECONDS), httpx.AsyncClient(timeout=_POST_SECONDS) as client:
                answer = await client.post(self._webhook, json=body)
        except (httpx.HTTPError, httpx.InvalidURL, OSError) as error:
            _log.warning("the webhook does not answer", extra={**fields, "error": type(error).__name__})
            return False
        if not answer.is_success:
            _log.warning("the webhook refuses", extra={**fields, "status": answer.status_code})
            return False
        _log.info("told the webhook", extra=fields)
        return True
