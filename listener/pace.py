"""How fast a lane works, so that the next batch is claimed neither too late nor long before it is needed."""

import time


class Pace:
    """Counts what is done between two claims. Slow work never stocks up, so other listeners find their share."""

    __slots__ = ("_since", "done", "during_a_claim")

    def __init__(self) -> None:
        self.done = 0
        self.during_a_claim = 0
        """How many items this lane does while it waits for a claim."""
        self._since = time.monotonic()

    def claimed(self, asked: float, batch_size: int) -> None:
        """A claim that was begun at `asked` has brought a batch."""
        now = time.monotonic()
        rate = self.done / max(now - self._since, 0.001)
        # twice as many: a claim is sometimes slower, and waiting for it costs more than a few items in stock
        self.during_a_claim = min(batch_size, int(2 * rate * (now - asked)))
        self.done, self._since = 0, now
