"""A random mix of faults against real listeners, the same for the same seed, and what came of it."""

import random
import signal
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import datetime

import psycopg

from listener.postgres.throwaway import Throwaway
from tests.faults.stage import BOUND, CHAOS, LEASE_SECONDS, Stage, staged
from tests.faults.verdict import Blow, Verdict


@dataclass
class Report:
    seed: int
    fenced: bool
    verdict: Verdict = field(default_factory=Verdict)
    seconds: float = 0.0
    story: list[str] = field(default_factory=list)
    """What the listeners said after a fault from which it took too long to recover."""

    @property
    def faults(self) -> Counter[str]:
        return Counter(blow.name for blow in self.verdict.blows)


class Trouble:
    """What can be done to a listener or to the server in the middle of its work."""

    def __init__(self, stage: Stage, entries: Sequence[str] = (CHAOS,)) -> None:
        self._stage = stage
        self._entries = entries

    def kill(self, number: int) -> None:
        """kill -9, and a supervisor that starts it again."""
        self._stage.listeners[number].kill()
        self._stage.listeners[number] = self._stage.start(number, entries=self._entries)

    def freeze(self, number: int) -> None:
        """Longer than its lease, so that others have its items when it wakes."""
        self._stage.listeners[number].signal(signal.SIGSTOP)
        self._stage.last(LEASE_SECONDS + 1.5)
        self._stage.listeners[number].signal(signal.SIGCONT)

    def cut(self, _number: int) -> None:
        for role in ("listener", "doorbell", "heartbeat"):
            self._stage.bench.terminate_backends(role)

    def partition(self, number: int) -> None:
        self._stage.proxies[number].mode = "stall"
        self._stage.last(LEASE_SECONDS + 1)
        self._stage.proxies[number].mode = "pass"

    def reset(self, number: int) -> None:
        self._stage.proxies[number].reset()

    def slow(self, number: int) -> None:
        self._stage.proxies[number].mode = "slow"
        self._stage.last(1)
        self._stage.proxies[number].mode = "pass"

    def flap(self, number: int) -> None:
        self._stage.proxies[number].mode = "flap"
        self._stage.last(2)
        self._stage.proxies[number].mode = "pass"

    def lock(self, _number: int) -> None:
        with psycopg.connect(self._stage.bench.url) as blocker:
            blocker.execute("LOCK TABLE item IN ACCESS EXCLUSIVE MODE")
            self._stage.last(0.7)

    def mute(self, _number: int) -> None:
        """Nobody's heartbeat gets through for longer than a lease."""
        with psycopg.connect(self._stage.bench.url) as blocker:
            blocker.execute("LOCK TABLE scheduler.listener IN ACCESS EXCLUSIVE MODE")
            self._stage.last(LEASE_SECONDS + 0.5)

    def jump(self, _number: int) -> None:
        """The database's clock jumps ahead: every lease is over."""
        self._stage.bench.db.execute(
            "UPDATE scheduler.run SET lease_until = now() - interval '1 second' WHERE finished_at IS NULL"
        )

    def restart(self, _number: int) -> None:
        self._stage.cluster.restart("fast")
        self._stage.bench.reconnect()

    def crash(self, _number: int) -> None:
        self._stage.cluster.restart("immediate")
        self._stage.bench.reconnect()

    def refuse(self, _number: int) -> None:
        """The service outside has a bad second."""
        self._stage.sink.status = 503
        self._stage.last(1)
        self._stage.sink.status = 204

    def drain(self, number: int) -> None:
        self._stage.listeners[number].signal(signal.SIGTERM)
        self._stage.listeners[number].wait()
        self._stage.listeners[number] = self._stage.start(number, entries=self._entries)

    @property
    def kinds(self) -> dict[str, Callable[[int], None]]:
        # the order is part of what a seed means
        names = "kill freeze cut partition reset slow flap lock mute jump restart crash refuse drain"
        return {name: getattr(self, name) for name in names.split()}


TASK = "slow 0.2"
"""Long enough that a fault finds its listener at work."""
CONTROL = ("freeze", "partition", "mute", "jump")
"""What the fence is for."""


def run_mix(
    cluster: Throwaway, seed: int, *, items: int = 300, listeners: int = 3, faults: int = 8, fenced: bool = True
) -> Report:
    """One seed: so many faults while so many items are worked on, then everything is left to recover."""
    chance = random.Random(seed)
    report = Report(seed, fenced)
    started = time.monotonic()
    with staged(cluster, listeners=listeners, fenced=fenced) as stage:
        trouble = Trouble(stage).kinds
        stage.cast(ready=False)
        share = items // (faults + 1)
        for number in range(faults):
            # in step with the work, and against one that has items in its hands
            stage.queue(share, TASK)
            stage.await_running()
            kind = chance.choice(list(trouble) if fenced else CONTROL)
            victim = chance.choice(stage.busy() or range(listeners))
            # how long a process takes to start is not what is measured
            stage.await_ready_besides(victim)
            with stage.fault(probes=1, name=kind):
                trouble[kind](victim)
            # every other time the next fault comes while this one's damage is not yet repaired
            if number % 2:
                stage.await_done(stage.blows[-1].left)
        stage.queue(share, TASK)
        report.verdict = stage.finish()
        for blow in report.verdict.blows:
            if blow.again > BOUND:
                report.story += _story(stage, blow)
    report.seconds = time.monotonic() - started
    return report


def _story(stage: Stage, blow: Blow) -> list[str]:
    """Second by second, counted from the end of the fault."""
    told = [f"{blow.name}: {blow.began - blow.ended:+.2f} s to 0, all that was left run again at {blow.again:+.2f} s"]
    lines = []
    for number, process in enumerate(stage.bench.processes):
        for line in process.lines():
            at = datetime.fromisoformat(line["ts"]).timestamp() - blow.ended
            if blow.began - blow.ended - 1 < at < blow.again + 1:
                lines.append((at, number, line))
    for at, number, line in sorted(lines, key=lambda entry: entry[0]):
        rest = {name: line[name] for name in ("run", "found", "succeeded", "items", "error", "refused") if name in line}
        told.append(f"{at:+7.2f} listener {number}: {line['event']} {rest or ''}")
    return told
