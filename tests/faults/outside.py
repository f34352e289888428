"""Faults of the world outside: APIs that are down, answers too large or not text, and hostile websites."""

import asyncio
import gzip
import io
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from tests.faults.scenario import Scene, fault
from tests.faults.stage import Stage
from tests.faults.verdict import Verdict
from tests.services.site import Script, Site, endless, page, redirect, site
from tests.sql.queue import call
from tests.waiting import wait_until

_FETCHING = "fetching = tests.faults.workflow:fetching"
_MEBIBYTE = 1024 * 1024


@fault("F21", "an API that answers 429 with Retry-After, then 500 to everything", quick=True)
def dead_api(scene: Scene) -> Verdict:
    with scene.stage(breaker=True, backoff="0.2 seconds") as stage:
        stage.cast()
        stage.sink.status, stage.sink.retry_after = 429, "1"
        stage.queue(8)
        wait_until(lambda: stage.sink.total >= 16, what="two tries each")
        early = stage.number("SELECT count(*) FROM scheduler.attempt WHERE retry_at < last_at + interval '0.9 second'")
        assert early == 0, f"{early} items wait less than Retry-After"
        stage.sink.status, stage.sink.retry_after = 500, None
        stage.queue(60)
        tripped = "SELECT count(*) FROM scheduler.state WHERE breaker_state = 'open'"
        wait_until(lambda: stage.number(tripped), what="the breaker to trip")
        wait_until(
            lambda: stage.number("SELECT count(*) FROM scheduler.run WHERE finished_at IS NULL") == 0,
            what="its runs to end",
        )
        before = stage.sink.total
        stage.last(3)
        calls = stage.sink.total - before
        assert calls <= 1, f"{calls} calls in 3 s to an API that is down"
        stage.sink.status = 204
        with stage.fault():
            call(stage.bench.db, "resume", name="chaos")
        verdict = stage.finish()
        verdict.notes.append(f"{calls} calls in 3 s while the breaker is open; no retry before Retry-After")
        return verdict


@fault("F22", "a result too large for PostgreSQL")
def huge(scene: Scene) -> Verdict:
    with scene.stage() as stage:
        stage.cast(1, env={"LISTENER_STATEMENT_SECONDS": "60"})
        stage.queue(5)
        (key,) = stage.queue(1, "result huge")
        with stage.fault():
            stage.queue(5)
            wait_until(lambda: stage.number("SELECT count(*) FROM scheduler.dead_letter"), what="it to be given up")
        verdict = stage.finish()
        calls = len(stage.sink.calls[f"chaos:{key}"])
        assert verdict.dead == 1, f"{verdict.dead} dead"
        assert calls == 1, f"called {calls} times: it can never be saved, and was tried again"
        verdict.notes.append(f"refused for good at once; listener at most {_most_memory(stage)} MiB")
        return verdict


@fault("F23", "NUL, lone surrogates and broken JSON in results", quick=True)
def bad_text(scene: Scene) -> Verdict:
    with scene.stage() as stage:
        stage.cast(1)
        kinds = ("nul", "surrogate", "nan", "escape")
        for kind in kinds:
            stage.queue(3)
            stage.queue(1, f"result {kind}")
        stage.over(probes=4)
        verdict = stage.finish()
        assert verdict.dead == len(kinds), f"{verdict.dead} dead of {len(kinds)} that cannot be stored"
        assert stage.sink.repeated == 0, "what can never be stored was tried again"
        return verdict


@fault("F24", "gzip bombs and a body without an end")
def bombs(scene: Scene) -> Verdict:
    bomb = _bomb(512)
    routes = {
        "/bomb": page(bomb, content_encoding="gzip"),
        "/endless": endless(b"x" * 65536),
        "/nested": page(gzip.compress(bomb), content_encoding="gzip, gzip"),
        "/fine": page(),
    }
    with _websites(scene, routes) as (stage, _):
        verdict = _fetch(stage, fine=5, bad=("/bomb", "/endless", "/nested"))
        memory = _most_memory(stage)
        assert memory < 256, f"{memory} MiB for bombs of 512 MiB"
        verdict.notes.append(f"listener at most {memory} MiB")
        return verdict


@fault("F25", "a redirect loop, and a redirect for every step")
def redirects(scene: Scene) -> Verdict:
    routes: dict[str, Script] = {f"/{n}": redirect(f"/{n + 1}") for n in range(100)}
    routes |= {"/loop": redirect("/loop"), "/fine": page()}
    with _websites(scene, routes) as (stage, there):
        verdict = _fetch(stage, fine=5, bad=("/loop", "/0"))
        most = sum(path != "/fine" and path != "/robots.txt" for path in there.paths)
        assert most <= 12, f"{most} requests for two items"
        verdict.notes.append(f"{most} requests for 2 items that only redirect")
        return verdict


@fault("F26", "addresses of the inside: metadata, loopback, spelt in many ways")
def inside(scene: Scene) -> Verdict:
    """The sentry is a listening port on loopback that nobody may ever connect to."""
    with _websites(scene, {"/fine": page()}) as (stage, _), _served({}) as sentry:
        port = sentry.port
        evil = (
            "http://169.254.169.254/latest/meta-data/",
            f"http://127.0.0.1:{port}/",
            f"http://[::1]:{port}/",
            f"http://0.0.0.0:{port}/",
            f"http://2130706433:{port}/",
            f"http://0x7f.1:{port}/",
            f"http://[::ffff:127.0.0.1]:{port}/",
            f"http://localhost:{port}/",
            "http://10.0.0.1/",
            "http://a.test:22/",
            "file:///etc/passwd",
        )
        verdict = _fetch(stage, fine=5, bad=evil)
        assert sentry.connections == 0, f"{sentry.connections} connections to the inside"
        verdict.notes.append(f"{len(evil)} addresses, 0 connections")
        return verdict


@fault("F27", "a server that sends one byte now and then, for ever")
def slowloris(scene: Scene) -> Verdict:
    routes = {"/slow": endless(b"x", pause=0.3), "/fine": page()}
    with _websites(scene, routes, FETCH_TOTAL_SECONDS="2") as (stage, _):
        began = time.monotonic()
        verdict = _fetch(stage, fine=5, bad=("/slow",))
        took = time.monotonic() - began
        assert took < 7, f"given up only after {took:.1f} s"
        verdict.notes.append(f"given up {took:.1f} s after it was queued; the deadline is 2 s")
        return verdict


# -- websites --------------------------------------------------------------------------------


@contextmanager
def _websites(scene: Scene, routes: Mapping[str, Script], **env: str) -> Iterator[tuple[Stage, Site]]:
    """A listener with the pipeline's own fetcher, for which the host a.test is served from here."""
    with _served(routes) as there, scene.stage(name="fetching", max_attempts=1) as stage:
        given = {"FETCH_REPLAY": f"a.test:80=127.0.0.1:{there.port}", "FETCH_HOST_SECONDS": "0", **env}
        stage.cast(1, entries=(_FETCHING,), env=given)
        yield stage, there


def _fetch(stage: Stage, *, fine: int, bad: tuple[str, ...]) -> Verdict:
    """Good pages and bad ones: the good ones complete, the bad ones end in the dead letter."""
    stage.over(probes=0)
    for address in bad:
        stage.queue(1, address if "://" in address else f"http://a.test{address}")
    stage.queue(fine, "http://a.test/fine")
    verdict = stage.finish()
    process = stage.listeners[0]
    assert process.running, process.log()
    assert verdict.dead == len(bad), f"{verdict.dead} dead of {len(bad)} bad addresses"
    return verdict


@contextmanager
def _served(routes: Mapping[str, Script]) -> Iterator[Site]:
    """A website in a thread of its own."""
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, name="website", daemon=True)
    thread.start()
    manager = site(routes)
    try:
        yield asyncio.run_coroutine_threadsafe(manager.__aenter__(), loop).result(10)
    finally:
        asyncio.run_coroutine_threadsafe(manager.__aexit__(None, None, None), loop).result(10)
        loop.call_soon_threadsafe(loop.stop)
        thread.join(10)
        loop.close()


def _bomb(mebibytes: int) -> bytes:
    """So much of nothing, in a thousandth of the space."""
    packed = io.BytesIO()
    with gzip.GzipFile(fileobj=packed, mode="wb") as file:
        for _ in range(mebibytes):
            file.write(bytes(_MEBIBYTE))
    return packed.getvalue()


def _most_memory(stage: Stage) -> int:
    status = Path(f"/proc/{stage.listeners[0].pid}/status").read_text()
    (peak,) = [line.split()[1] for line in status.splitlines() if line.startswith("VmHWM")]
    return int(peak) // 1024
