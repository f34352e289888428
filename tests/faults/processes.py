"""Faults of the listeners themselves: killed, frozen, doubled, starved, poisoned, drained, and of two versions."""

import resource
import signal
import time
from pathlib import Path

import psycopg
from psycopg import sql

from tests.faults.scenario import Scene, fault
from tests.faults.stage import CHAOS, LEASE_SECONDS, Stage
from tests.faults.verdict import Verdict
from tests.sql.queue import one
from tests.waiting import wait_until


@fault("F1", "kill -9 after the reply, inside save, and during COMMIT", quick=True)
def killed(scene: Scene) -> Verdict:
    with scene.stage() as stage:
        linger(stage, "die in-commit", 1.0)
        # or the server might notice within its COMMIT that the client is gone, and give up: then the item is run again
        off = sql.SQL("ALTER DATABASE {} SET client_connection_check_interval = 0")
        stage.bench.db.execute(off.format(sql.Identifier(stage.bench.db.info.dbname)))
        stage.cast()
        struck: list[tuple[float, list[str]]] = []
        for task in ("die after-reply", "die in-save", "die in-commit"):
            stage.queue(9)
            (killer,) = stage.queue(1, task)
            stage.queue(10)
            wait_until(lambda: not all(process.running for process in stage.listeners), what=task)
            struck.append((time.time(), stage.keys_under_way()))
            for process in stage.revive():
                process.wait_line("ready")
            stage.over(probes=1, began=struck[-1][0])
        verdict = stage.finish()
        # its outcome was committed though nobody was left to hear of it
        assert len(stage.sink.calls[f"chaos:{killer}"]) == 1, "an item whose COMMIT was under way was called again"
        first = max(stage.first_done(keys) - moment for moment, keys in struck)
        verdict.notes.append(f"items of the dead done from {first:.1f} s after the kill")
        return verdict


@fault("F2", "SIGSTOP for longer than the lease, then SIGCONT", control=True)
def frozen(scene: Scene) -> Verdict:
    with scene.stage() as stage:
        stage.cast(1)
        stage.queue(20, "slow 0.5")
        stage.await_running(20)
        victim = stage.listeners[0]
        victim.signal(signal.SIGSTOP)
        stage.listeners.append(stage.start(1))
        stage.await_effects(20)
        with stage.fault(), psycopg.connect(stage.bench.url) as blocker:
            # its heartbeat must wait, or it would learn in time that its lease is gone
            blocker.execute("LOCK TABLE scheduler.listener IN ACCESS EXCLUSIVE MODE")
            victim.signal(signal.SIGCONT)
            victim.wait_line("results refused" if scene.fenced else "run finished")
        verdict = stage.finish()
        assert not scene.fenced or verdict.fenced, "the fence kept nothing out"
        return verdict


@fault("F18", "twenty listeners, all alike")
def twins(scene: Scene) -> Verdict:
    with scene.stage(max_instances=7) as stage:
        stage.cast(20, ready=False)
        stage.queue(400)
        for process in stage.listeners:
            process.wait_line("ready", deadline=90)
        most = 0
        stage.queue(400, "slow 0.05")
        while stage.number("SELECT count(*) FROM effect") < 800:
            most = max(most, stage.number("SELECT count(*) FROM scheduler.run WHERE finished_at IS NULL"))
        verdict = stage.finish()
        ids = stage.number("SELECT count(*) FROM scheduler.listener")
        assert ids == 20, f"{ids} identities of 20 listeners"
        assert most == 7, f"{most} runs at once, and 7 are allowed"
        verdict.notes.append(f"at most {most} runs at once of 7 allowed")
        return verdict


@fault("F19", "a handler three leases long, with its heartbeat and without", control=True)
def long_work(scene: Scene) -> Verdict:
    with scene.stage() as stage:
        stage.cast()
        stage.queue(5, f"slow {3 * LEASE_SECONDS}")
        stage.await_effects(5)
        assert stage.sink.repeated == 0, "a heartbeat did not keep its lease"
        stage.queue(5, f"slow {1.5 * LEASE_SECONDS}")
        stage.await_running(5)
        with stage.fault(), psycopg.connect(stage.bench.url) as blocker:
            # no heartbeat of anybody gets through
            blocker.execute("LOCK TABLE scheduler.listener IN ACCESS EXCLUSIVE MODE")
            stage.last(2 * LEASE_SECONDS)
        verdict = stage.finish()
        assert not scene.fenced or verdict.fenced, "nothing came late, so nothing was kept out"
        verdict.notes.append("without heartbeat run again, and fenced")
        return verdict


@fault("F20", "an item that kills every listener that takes it")
def poison(scene: Scene) -> Verdict:
    with scene.stage(max_attempts=3, batch_size=10) as stage:
        stage.cast()
        stage.queue(6)
        stage.queue(1, "abort")
        stage.queue(13)
        stage.await_effects(1)

        def is_over() -> bool:
            stage.revive()
            return stage.number("SELECT count(*) FROM scheduler.dead_letter") > 0

        wait_until(is_over, what="the killer to be found")
        stage.over()
        verdict = stage.finish()
        dead = stage.bench.db.execute("SELECT key FROM scheduler.dead_letter").fetchall()
        assert dead == [("7",)], f"in the dead letter: {dead}"
        verdict.notes.append("1 item dead, the others done")
        return verdict


@fault("F28", "SIGTERM under load, with slow work")
def drained(scene: Scene) -> Verdict:
    with scene.stage() as stage:
        stage.cast(env={"LISTENER_DRAIN_SECONDS": "1"})
        stage.queue(20, "slow 0.4")
        stage.queue(5, "slow 60")
        stage.queue(15, "slow 0.4")
        stage.await_effects(5)
        began = time.monotonic()
        for process in stage.listeners:
            process.signal(signal.SIGTERM)
        codes = [process.wait(30) for process in stage.listeners]
        took = time.monotonic() - began
        assert codes == [0, 0], f"exit codes {codes}"
        assert took < 10, f"drained in {took:.1f} s, and its patience is 1 s"
        assert stage.number("SELECT count(*) FROM scheduler.run WHERE finished_at IS NULL") == 0, "a run was left open"
        assert stage.number("SELECT count(*) FROM scheduler.attempt") == 0, "an attempt was spent"
        stage.bench.db.execute("UPDATE item SET task = 'ok'")
        with stage.fault():
            stage.cast(1)
        verdict = stage.finish()
        verdict.notes.append(f"drained in {took:.1f} s, exit 0, no attempt spent")
        return verdict


@fault("F29", "memory and file descriptors used up")
def starved(scene: Scene) -> Verdict:
    with scene.stage(max_attempts=2) as stage:
        stage.cast(1)
        process = stage.listeners[0]
        stage.queue(20)
        stage.await_effects(20)
        used = int(Path(f"/proc/{process.pid}/statm").read_text().split()[0]) * resource.getpagesize()
        limit = used + 300 * 1024 * 1024
        resource.prlimit(process.pid, resource.RLIMIT_AS, (limit, limit))
        most = len(list(Path(f"/proc/{process.pid}/fd").iterdir())) + 40
        resource.prlimit(process.pid, resource.RLIMIT_NOFILE, (most, most))
        stage.queue(3, "eat 1024")
        stage.queue(3, "open 100")
        with stage.fault():
            stage.queue(20)
        verdict = stage.finish()
        assert process.running, process.log()
        assert verdict.dead == 6, f"{verdict.dead} dead of the 6 that ask for too much"
        verdict.notes.append("6 greedy items dead, the process lives")
        return verdict


@fault("F30", "two versions of the program at once")
def two_versions(scene: Scene) -> Verdict:
    with scene.stage(listeners=2) as stage:
        stage.cast(1)
        stage.bench.adopt("later", table="coming", lease="3 seconds")
        stage.bench.queue(*["ok"] * 20, table="coming")
        stage.queue(40)
        stage.await_effects(40)
        waiting = "SELECT count(*) FROM coming WHERE status = 'Queued'"
        assert one(stage.bench.db, waiting) == 20, "the old version touched what it does not know"
        stage.bench.db.execute("ALTER TABLE effect ALTER item DROP NOT NULL")
        with stage.fault():
            stage.listeners.append(stage.start(1, entries=(CHAOS, "later = tests.faults.workflow:later")))
            stage.queue(40)
            wait_until(lambda: one(stage.bench.db, waiting) == 0, what="the new version")
        done = "SELECT count(*) FROM coming WHERE status = 'Completed'"
        wait_until(lambda: one(stage.bench.db, done) == 20, what="the new workflow's items")
        # both write into the same table of effects: those of the new one are counted and set aside
        gone = stage.bench.db.execute("DELETE FROM effect WHERE result = 'new'").rowcount
        assert gone == 20, f"{gone} effects of 20 new items"
        verdict = stage.finish()
        verdict.notes.append("misrouted 0")
        return verdict


def linger(stage: Stage, task: str, seconds: float) -> None:
    """The COMMIT of this kind of item's effect takes so long."""
    stage.bench.db.execute(
        "CREATE FUNCTION linger() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN"
        f"  IF (SELECT task FROM item WHERE id = NEW.item) = '{task}' THEN PERFORM pg_sleep({seconds}); END IF;"
        "   RETURN NULL; END $$;"
        "CREATE CONSTRAINT TRIGGER linger AFTER INSERT ON effect DEFERRABLE INITIALLY DEFERRED"
        " FOR EACH ROW EXECUTE FUNCTION linger()".encode()
    )
