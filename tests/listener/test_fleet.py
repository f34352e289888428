"""Many listeners on one queue: no item is worked on twice, and limits hold exactly."""

import asyncio
import threading
from collections import Counter

import pytest

from listener import Tools, Workflow
from tests.listener.started import Bench
from tests.listener.workflows import Item
from tests.sql.queue import one
from tests.waiting import wait_until


class Watch:
    """Counts, over all listeners of this process, who works on what and how many at once."""

    def __init__(self) -> None:
        self.calls: Counter[int] = Counter()
        self.most = 0
        self._now = 0
        self._lock = threading.Lock()
        self.workflow = Workflow("job", Item, self._work)

    async def _work(self, item: Item, tools: Tools) -> None:
        with self._lock:
            self.calls[item.id] += 1
            self._now += 1
            self.most = max(self.most, self._now)
        await asyncio.sleep(0.002)
        with self._lock:
            self._now -= 1


@pytest.mark.slow
@pytest.mark.parametrize("listeners", [2, 20])
def test_no_item_is_worked_on_twice_and_the_limit_of_runs_is_exact(bench: Bench, listeners: int) -> None:
    watch = Watch()
    items = 300
    bench.adopt(max_instances=3, batch_size=5, concurrency=1)
    bench.queue(*["ok"] * items)
    fleet = [bench.inside(watch.workflow, listener_poll_seconds=0.1, ready=False) for _ in range(listeners)]
    bench.wait_for("Completed")
    assert watch.calls == dict.fromkeys(range(1, items + 1), 1)
    assert watch.most <= 3
    assert watch.most > 1
    wait_until(lambda: sum(listener.counts().succeeded for listener in fleet) == items, what="the counts")
    assert one(bench.db, "SELECT count(DISTINCT listener) FROM scheduler.run") > 1


def test_a_rate_limit_is_the_fleets_not_each_listeners(bench: Bench) -> None:
    bench.adopt(rate_limit=30, rate_period="1 hour", batch_size=7)
    bench.queue(*["ok"] * 100)
    fleet = [bench.inside(listener_poll_seconds=0.1) for _ in range(2)]
    wait_until(lambda: len(bench.effects()) == 30, what="the allowance")
    asked = {listener: listener.counts().asked for listener in fleet}
    wait_until(lambda: all(each.counts().asked > asked[each] + 3 for each in fleet), what="more tries")
    assert len(bench.effects()) == 30
    assert one(bench.db, "SELECT count(*) FROM item WHERE status = 'Queued'") == 70
