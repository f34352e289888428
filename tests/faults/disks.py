"""Disks that are full: the tables' own, and that of the server's log. Both are small file systems in memory."""

import os
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import psycopg
from psycopg import errors

from listener import schema
from listener.postgres.account import Account
from listener.postgres.throwaway import throwaway
from tests.faults.scenario import NotHere, Scene, fault
from tests.faults.stage import staged
from tests.faults.verdict import Verdict
from tests.waiting import wait_until


@fault("F9", "a tablespace without a byte left")
def full_tables(scene: Scene) -> Verdict:
    with small_disk(40) as folder, ExitStack() as stack:
        place = folder / "tables"
        place.mkdir(mode=0o700)
        Account.unprivileged().give(place)
        with psycopg.connect(scene.cluster.url("postgres"), autocommit=True) as db:
            db.execute(f"CREATE TABLESPACE small LOCATION '{place}'".encode())
            stack.callback(_execute, scene.cluster.url("postgres"), "DROP TABLESPACE small")
            db.execute("CREATE DATABASE cramped TABLESPACE small")
            stack.callback(scene.cluster.drop_database, "cramped")
        url = scene.cluster.url("cramped")
        schema.migrate(url, pipeline=False)
        stage = stack.enter_context(staged(scene.cluster, url=url, fenced=scene.fenced, terms={"max_attempts": 5}))
        stage.cast()
        stage.queue(40, "slow 0.3")
        stage.queue(300)
        stage.await_effects(5)
        with psycopg.connect(url, autocommit=True) as filler:
            _fill(filler)
            wait_until(lambda: any("No space left" in p.log() for p in stage.listeners), what="the disk to matter")
            stage.last(4)
            with stage.fault(probes=0):
                filler.execute("DROP TABLE filler")
        stage.queue(5)
        verdict = stage.finish()
        assert verdict.dead == 0, f"{verdict.dead} items dead of a full disk"
        return verdict


@fault("F10", "no room for the server's log: it stops, and starts again once there is")
def full_log(scene: Scene) -> Verdict:
    with small_disk(96) as folder, ExitStack() as stack:
        cluster = stack.enter_context(
            throwaway(durable=True, settings={"max_wal_size": "48MB", "min_wal_size": "32MB", "wal_level": "replica"})
        )
        cluster.cluster.stop()
        log = cluster.cluster.home.data / "pg_wal"
        moved = folder / "pg_wal"
        account = Account.unprivileged()
        done = account.run(["/bin/sh", "-c", 'cp -a "$1" "$2" && rm -r "$1" && ln -s "$2" "$1"', "sh", log, moved])
        assert done.returncode == 0, done.stderr
        cluster.cluster.start(cluster.server)
        stage = stack.enter_context(staged(cluster, fenced=scene.fenced))
        stage.cast()
        stage.queue(300, "slow 0.3")
        stage.await_effects(20)
        committed = stage.number("SELECT count(*) FROM effect")
        with psycopg.connect(stage.bench.url, autocommit=True) as hog:
            hog.execute("SELECT pg_create_physical_replication_slot('nobody', true)")
            try:
                hog.execute("CREATE TABLE junk (x text)")
                while True:
                    hog.execute("INSERT INTO junk SELECT repeat(md5(n::text), 60) FROM generate_series(1, 2000) AS n")
            except psycopg.OperationalError:
                pass  # the server has stopped
        wait_until(lambda: cluster.cluster.pid is None or not _answers(stage.bench.url), what="the server to stop")
        cluster.cluster.stop("immediate")
        subprocess.run(["mount", "-o", "remount,size=512m", folder], check=True)
        cluster.cluster.start(cluster.server)
        stage.bench.reconnect()
        with stage.fault():
            stage.bench.db.execute("SELECT pg_drop_replication_slot('nobody')")
            assert stage.number("SELECT count(*) FROM effect") >= committed, "what was committed is gone"
        return stage.finish()


@contextmanager
def small_disk(mebibytes: int) -> Iterator[Path]:
    """A file system of that size, which the server's account may write to."""
    if os.geteuid() != 0:
        raise NotHere("needs root, to mount a small file system")
    folder = Path(tempfile.mkdtemp(prefix="scrapersky-disk-", dir="/tmp"))
    account = Account.unprivileged()
    options = f"size={mebibytes}m,mode=0700,uid={account.uid},gid={account.gid}"
    done = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", options, "tmpfs", folder], capture_output=True, text=True, check=False
    )
    if done.returncode != 0:
        folder.rmdir()
        raise NotHere(f"cannot mount a small file system: {done.stderr.strip()}")
    try:
        yield folder
    finally:
        # lazily: a server that is being removed may hold it for another moment
        subprocess.run(["umount", "--lazy", folder], check=True)
        folder.rmdir()


def _fill(db: psycopg.Connection) -> None:
    db.execute("CREATE TABLE filler (x text)")
    for rows in (2000, 100, 4, 1):
        try:
            while True:
                db.execute("INSERT INTO filler SELECT repeat('x', 1500) FROM generate_series(1, %s)", [rows])
        except errors.DiskFull:
            pass


def _answers(url: str) -> bool:
    try:
        psycopg.connect(url, connect_timeout=2).close()
    except psycopg.OperationalError:
        return False
    return True


def _execute(url: str, statement: str) -> None:
    with psycopg.connect(url, autocommit=True) as db:
        db.execute(statement.encode())
