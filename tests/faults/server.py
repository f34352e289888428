"""Faults of the server: restarts and crashes in bad moments, held snapshots, timeouts, locks, and unloadable code."""

import threading
from pathlib import Path
from typing import LiteralString

import psycopg

from listener.database import LOCK_SECONDS
from tests.faults.processes import linger
from tests.faults.scenario import Scene, fault
from tests.faults.verdict import Verdict
from tests.sql.queue import call
from tests.waiting import wait_until


@fault("F4", "restarts, fast and immediate, in the middle of a claim and of a COMMIT", quick=True)
def restarted(scene: Scene) -> Verdict:
    with scene.stage() as stage:
        linger(stage, "linger", 0.8)
        # the claim of such an item takes a while too
        stage.bench.db.execute(
            "CREATE FUNCTION dawdle() RETURNS trigger LANGUAGE plpgsql AS"
            " $$ BEGIN PERFORM pg_sleep(0.8); RETURN NEW; END $$;"
            "CREATE TRIGGER dawdle BEFORE UPDATE ON item FOR EACH ROW WHEN (NEW.status = 'Processing' AND"
            " NEW.task = 'dawdle') EXECUTE FUNCTION dawdle()"
        )
        stage.cast()
        for mode in ("fast", "immediate"):
            for task, busy in (("linger", "commit"), ("dawdle", "%scheduler.claim%")):
                stage.queue(10)
                stage.queue(1, task)
                stage.await_query(busy)
                with stage.fault():
                    scene.cluster.restart(mode)
                    stage.bench.reconnect()
                stage.await_done(stage.blows[-1].left)
        return stage.finish()


@fault("F11", "a snapshot held for as long as a thousand items take")
def held_snapshot(scene: Scene) -> Verdict:
    with scene.stage(batch_size=50, concurrency=50) as stage:
        # the median of the last twenty runs, in milliseconds
        pace: LiteralString = (
            "SELECT percentile_cont(0.5) WITHIN GROUP (ORDER BY extract(epoch FROM finished_at - started_at) * 1000)"
            " FROM scheduler.run WHERE id > (SELECT max(id) - 20 FROM scheduler.run)"
        )
        stage.cast(1)
        stage.queue(1000)
        stage.await_effects(1000)
        before = stage.number(pace)
        with stage.fault(), psycopg.connect(stage.bench.url) as holder:
            holder.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
            holder.execute("SELECT count(*) FROM item")
            stage.queue(1000)
            stage.await_effects(2000)
            held = stage.number(pace)
        verdict = stage.finish()
        assert held < 5 * before, f"a run of 50 took {before} ms, and {held} ms under the snapshot"
        verdict.notes.append(f"a run of 50: {before} ms before, {held} ms under the snapshot")
        return verdict


@fault("F12", "the table locked for longer than lock_timeout and the lease")
def timeouts(scene: Scene) -> Verdict:
    with scene.stage(lease=f"{LOCK_SECONDS + 1} seconds") as stage:
        stage.cast(env={"LISTENER_STATEMENT_SECONDS": "10"})
        stage.queue(40, "slow 0.3")
        stage.await_effects(5)
        with stage.fault(), psycopg.connect(stage.bench.url) as blocker:
            blocker.execute("LOCK TABLE item IN ACCESS EXCLUSIVE MODE")
            stage.last(2 * LOCK_SECONDS + 2)
        verdict = stage.finish()
        said = [line["error"] for process in stage.listeners for line in process.lines() if "error" in line]
        assert any("lock timeout" in text for text in said), said
        spent = stage.number("SELECT count(*) FROM scheduler.run WHERE rescued > 0")
        assert spent == 0, "waiting for a lock was counted as an attempt"
        return verdict


@fault("F13", "rows locked by a person, and an ALTER TABLE queued behind them")
def queued_alter(scene: Scene) -> Verdict:
    with scene.stage() as stage:
        stage.cast()
        call(stage.bench.db, "pause", name="chaos", reason="to lock some rows first")
        with psycopg.connect(stage.bench.url) as person:
            locked = stage.queue(5)
            person.execute("SELECT FROM item WHERE id = ANY (%s) FOR UPDATE", [locked])
            call(stage.bench.db, "resume", name="chaos")
            stage.queue(20)
            stage.await_effects(20)  # passed over, and nobody waits for them
            waiter = threading.Thread(target=_alter, args=(stage.bench.url,))
            waiter.start()
            stage.await_query("ALTER TABLE item%")
            stage.last(3)
            person.rollback()
            waiter.join()
        stage.over()
        return stage.finish()


def _alter(url: str) -> None:
    with psycopg.connect(url, autocommit=True) as db:
        # what a careful migration sets: better to fail than to hold everybody up
        db.execute("SET lock_timeout = '10s'")
        db.execute("ALTER TABLE item ADD COLUMN noted text")


@fault("F32", "a library of the server that new sessions cannot load")
def unloadable(scene: Scene) -> Verdict:
    """Stands in for package files replaced under a running server: PL/pgSQL cannot be loaded until they are right."""
    with scene.stage() as stage:
        stage.cast()
        stage.queue(20, "slow 0.5")
        stage.await_running(20)
        broken = Path(stage.bench.folder) / "not-a-library.so"
        broken.write_bytes(b"\x7fELF, but no more than that")
        for path in (*list(broken.parents)[:1], broken):
            path.chmod(0o755)
        handler = "UPDATE pg_proc SET probin = %s WHERE proname IN ('plpgsql_call_handler', 'plpgsql_inline_handler')"
        stage.bench.db.execute(handler, [str(broken)])
        for role in ("listener", "heartbeat"):
            stage.bench.terminate_backends(role)
        wait_until(lambda: any("load library" in process.log() for process in stage.listeners), what="the complaint")
        stage.last(4)
        with stage.fault(probes=0):
            stage.bench.db.execute(handler, ["$libdir/plpgsql"])
        stage.queue(5)
        verdict = stage.finish()
        said = {str(line.get("error")) for process in stage.listeners for line in process.lines() if "error" in line}
        verdict.notes.append(f"{len(said)} kinds of complaint, all ended by themselves")
        return verdict
