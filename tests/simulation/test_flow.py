"""The demo's person at the gates leaves when nothing moves and nothing has come up since the last look."""

from typing import Any, cast

import pytest

from services.cli import demo
from services.simulation.world import World


class Town:
    """A database in which one item is running; it ends after so many statements, and brings one row to a gate."""

    def __init__(self, ends_after: int) -> None:
        self._left = ends_after
        self.running, self.new = 1, 0
        self.rowcount = 0
        self._row: tuple[Any, ...] = ()

    def execute(self, query: str, _values: object = ()) -> "Town":
        if query == demo.SITEMAPS:
            # selected and queued; here nothing comes of it
            self.rowcount, self.new = self.new, 0
        elif query == demo.MOVING:
            self._row = (self.running, 0)
        else:
            self.rowcount = 0
        self._left -= 1
        if self._left == 0:
            self.running, self.new = 0, 1
        return self

    def fetchone(self) -> tuple[Any, ...]:
        return self._row


@pytest.mark.parametrize("ends_after", range(1, 10))
def test_nothing_that_comes_up_at_the_last_moment_is_left_behind(
    ends_after: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    town = Town(ends_after)
    show = demo.Show(cast(Any, town), cast(Any, None), World(), cast(Any, None), quick=True)
    monkeypatch.setattr(show, "_look", lambda _waits_for: None)
    monkeypatch.setattr(show.live, "note", lambda _text: None)
    show._flow(lambda: True)
    assert (town.running, town.new) == (0, 0)
