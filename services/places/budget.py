"""What Google may cost a day: every call is taken out of the budget in the database before it is made."""

from datetime import datetime

from listener import Tools
from services.places.errors import BudgetError

# exact over all listeners, by Google's own day; what the calls of an attempt that failed cost is spent all the same
_RESERVE = "SELECT granted, resumes_at, reason FROM scheduler.reserve(%s, 1, %s)"


class Budget:
    """The daily calls of all listeners together. Without a database, as in a test, nothing is counted."""

    def __init__(self, tools: Tools, name: str, first_limit: int) -> None:
        self._tools = tools
        self._name = name
        self._first_limit = first_limit

    async def spend(self) -> None:
        """One call; raises BudgetError if today has none left."""
        row = await self._tools.ask(_RESERVE, self._name, self._first_limit)
        if row is not None and not row[0]:
            resumes_at: datetime | None = row[1]
            raise BudgetError(str(row[2]), resumes_at)
