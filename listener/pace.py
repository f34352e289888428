"""How fast a lane works, so that the next batch is claimed neither too late nor long before it is needed."""

import time


class Pace:
    """Counts what is done while there is something to do. Slow work never stocks up, so others find their share."""

    __slots__ = ("_busy", "_since", "done", "during_a_claim")

    def __init__(self) -> None:
        self.done = 0
        self.during_a_claim = 0
        """How many items this lane could do while it waits for a claim."""
        self._busy = 0.0
        self._since: float | None = None
        """Since when there is something to do; None: there is nothing."""

    def claimed(self, asked: float, batch_size: int) -> None:
        """A claim that was begun at `asked` has brought a batch."""
        now = time.monotonic()
        if self._since is not None:
            self._busy += now - self._since
        rate = self.done / max(self._busy, 0.0001)
        # Twice as many: a claim is sometimes slower, and waiting for it costs more than a few items in stock. At most
        # one more than a batch: the next is then asked for as soon as one is here.
        self.during_a_claim = min(batch_size + 1, int(2 * rate * (now - asked)))
        self.done, self._busy, self._since = 0, 0.0, now

    def idle(self) -> None:
        """Nothing is left to do until the next claim is back."""
        if self._since is not None:
            self._busy += time.monotonic() - self._since
            self._since = None
