"""Faults between listener and server: sessions terminated, networks cut, slow and flapping, notifications lost."""

from contextlib import closing

import psycopg

from tests.faults.scenario import Scene, fault
from tests.faults.stage import LEASE_SECONDS, POLL_SECONDS
from tests.faults.verdict import Verdict
from tests.waiting import wait_until


@fault("F3", "the server ends LISTEN, claim and heartbeat sessions")
def terminated(scene: Scene) -> Verdict:
    with scene.stage() as stage:
        stage.cast()
        cut = 0
        for number, role in enumerate(("doorbell", "listener", "heartbeat") * 2):
            stage.queue(20)
            stage.await_effects(number * 20 + 5)
            with stage.fault(probes=1):
                cut += stage.bench.terminate_backends(role)
        verdict = stage.finish()
        wait_until(lambda: stage.bench.backends("doorbell") == 2, what="both to listen again")
        assert cut >= 12, f"{cut} sessions ended, two of each kind, twice"
        verdict.notes.append(f"{cut} sessions ended")
        return verdict


@fault("F5", "a silent partition for longer than the lease", control=True)
def partitioned(scene: Scene) -> Verdict:
    with scene.stage() as stage:
        stage.cast(1)
        stage.queue(20, "slow 1")
        stage.await_running(20)
        proxy = stage.proxies[0]
        proxy.mode = "stall"
        stage.listeners.append(stage.start(1))
        stage.await_effects(20)
        stage.queue(20)
        stage.last(LEASE_SECONDS)
        with stage.fault():
            proxy.mode = "pass"
        if not scene.fenced:
            stage.listeners[0].wait_line("run finished")
        verdict = stage.finish()
        held = stage.number("SELECT count(*) FROM pg_stat_activity WHERE state = 'idle in transaction'")
        assert held == 0, "the partition left a transaction open"
        assert not scene.fenced or verdict.fenced, "nothing came late, so nothing was kept out"
        return verdict


@fault("F6", "a network of 500 ms, then one that breaks every 2 kB")
def slow_and_flapping(scene: Scene) -> Verdict:
    with scene.stage() as stage:
        stage.cast()
        stage.queue(40)
        stage.await_effects(10)
        for proxy in stage.proxies:
            proxy.delay, proxy.mode = 0.25, "slow"
        stage.queue(20)
        stage.last(4)
        for proxy in stage.proxies:
            proxy.mode = "flap"
        for _ in range(8):
            stage.queue(10)
            stage.last(0.5)
        with stage.fault():
            for proxy in stage.proxies:
                proxy.mode = "pass"
        verdict = stage.finish()
        cut = sum(proxy.cut for proxy in stage.proxies)
        assert cut, "the network never broke"
        verdict.notes.append(f"broke {cut} times")
        return verdict


@fault("F14", "a listening session that reads nothing fills the notification queue")
def full_of_notifications(scene: Scene) -> Verdict:
    with scene.stage() as stage:
        stage.cast()
        usage = "SELECT pg_notification_queue_usage()"
        with closing(psycopg.connect(stage.bench.url)) as sick:
            sick.execute("LISTEN scrapersky")
            sick.commit()
            sick.execute("SELECT 1")  # and stays in this transaction
            flood = "SELECT count(pg_notify('scrapersky', repeat('x', 7900) || n)) FROM generate_series(1, 40000) AS n"
            stage.bench.db.execute(flood)
            used = stage.bench.db.execute(usage).fetchone()
            assert used is not None
            assert used[0] > 0.03, f"the queue is used to {used[0]:.1%}"
            stage.queue(40)
            stage.await_effects(40)
            stage.queue(20)
            with stage.fault():
                stage.bench.db.execute("SELECT pg_terminate_backend(%s)", [sick.info.backend_pid])
        verdict = stage.finish()
        wait_until(lambda: stage.bench.db.execute(usage).fetchone() == (0,), what="the queue to drain")
        verdict.notes.append(f"queue {used[0]:.1%} full of payloads for nobody, then drained")
        return verdict


@fault("F15", "notifications that never arrive", quick=True)
def unheard(scene: Scene) -> Verdict:
    with scene.stage(listeners=2) as stage:
        stage.cast(1, env={"DATABASE_LISTEN_URL": stage.url(1)})
        stage.proxies[1].mode = "stall"  # silent, and looks alive
        for number in range(3):
            with stage.fault(probes=3):
                pass
            stage.await_effects(3 * number + 3)
        verdict = stage.finish()
        assert stage.bench.backends("doorbell") == 1, "the doorbell was to be silent, not gone"
        assert verdict.again < POLL_SECONDS + 1, f"found by polling only after {verdict.again:.1f} s"
        verdict.notes.append(f"found by polling within {verdict.again:.1f} s, poll interval {POLL_SECONDS:.0f} s")
        stage.proxies[1].mode = "pass"
        return verdict
