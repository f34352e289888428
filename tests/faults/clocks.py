"""Clocks that are wrong: the listener's own, which must not matter, and the database's, by which leases are counted."""

from tests import unpacked
from tests.faults.scenario import NotHere, Scene, fault
from tests.faults.stage import LEASE_SECONDS, Stage
from tests.faults.verdict import Verdict


@fault("F7", "listeners whose clocks are an hour fast and an hour slow")
def skewed(scene: Scene) -> Verdict:
    library = unpacked.find(unpacked.FAKETIME)
    if library is None:
        raise NotHere("needs libfaketime (on Debian and Ubuntu: the package faketime)")
    with scene.stage() as stage:
        for number, skew in enumerate(("+1h", "-1h")):
            # only the time of day: no machine's monotonic clock is wrong by an hour
            fake = {"LD_PRELOAD": str(library), "FAKETIME": skew, "FAKETIME_DONT_FAKE_MONOTONIC": "1"}
            stage.listeners.append(stage.start(number, ready=True, env=fake))
        stage.queue(40, f"slow {LEASE_SECONDS / 10}")
        stage.queue(5, f"slow {1.5 * LEASE_SECONDS}")
        stage.await_effects(20)
        with stage.fault():
            pass
        verdict = stage.finish()
        assert stage.sink.repeated == 0, "an item was run twice because a clock was wrong"
        stamps = {line["ts"][:13] for process in stage.listeners for line in process.lines("ready")}
        assert len(stamps) == 2, f"the clocks were not skewed: {stamps}"
        return verdict


@fault("F8", "the database's clock jumps ahead: leases end while work goes on", quick=True, control=True)
def jumped(scene: Scene) -> Verdict:
    with scene.stage() as stage:
        stage.cast()
        for number in range(4):
            stage.queue(15, "slow 0.3")
            stage.await_effects(number * 15 + 3)
            with stage.fault(probes=0):
                _expire(stage)
        verdict = stage.finish()
        assert not scene.fenced or verdict.fenced, "nothing came late, so nothing was kept out"
        return verdict


def _expire(stage: Stage) -> None:
    stage.bench.db.execute(
        "UPDATE scheduler.run SET lease_until = now() - interval '1 second' WHERE finished_at IS NULL"
    )
