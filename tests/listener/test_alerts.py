"""A webhook is told by whichever listener looks first, and no item waits for it."""

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from listener import alerts
from listener.errors import UserError
from listener.settings import read
from tests.listener.started import Bench
from tests.sql.queue import one
from tests.waiting import wait_until


class Hook:
    """A web server that writes down what it is told."""

    def __init__(self, *statuses: int) -> None:
        self.told: list[dict[str, Any]] = []
        self.statuses = list(statuses)
        self.gate = threading.Event()
        self.gate.set()
        self.url = ""


@contextmanager
def hooked(*statuses: int) -> Iterator[Hook]:
    """One that answers with these statuses, then with 204."""
    hook = Hook(*statuses)

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            hook.told.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
            hook.gate.wait(20)
            self.send_response(hook.statuses.pop(0) if hook.statuses else 204)
            self.end_headers()

        def log_message(self, format: str, *args: Any) -> None: ...  # noqa: A002

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    hook.url = f"http://127.0.0.1:{server.server_port}/hook?key=secret-of-the-hook"
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield hook
    finally:
        hook.gate.set()
        server.shutdown()
        server.server_close()
        thread.join()


@pytest.fixture(autouse=True)
def _often(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(alerts, "SECONDS", 0.05)


def _open_breaker(bench: Bench) -> None:
    bench.db.execute("UPDATE scheduler.state SET breaker_state = 'open', breaker_until = now() + interval '1 hour'")


def test_two_listeners_tell_a_change_once(bench: Bench) -> None:
    bench.adopt()
    with hooked() as hook:
        for _ in range(2):
            bench.inside(alert_webhook_url=hook.url)
        _open_breaker(bench)
        wait_until(lambda: one(bench.db, "SELECT sent_at FROM scheduler.alert"), what="the alert")
        bench.db.execute("SELECT scheduler.resume('job')")
        wait_until(lambda: one(bench.db, "SELECT count(sent_at) FROM scheduler.alert") == 2, what="its end")
    assert [(told["alert"], told["event"], told["workflow"]) for told in hook.told] == [
        ("breaker_open", "raised", "job"),
        ("breaker_open", "cleared", "job"),
    ]
    assert "scheduler.resume('job')" in hook.told[0]["fix"]


def test_a_webhook_that_refuses_is_tried_again(bench: Bench) -> None:
    bench.adopt()
    with hooked(500) as hook:
        bench.inside(alert_webhook_url=hook.url)
        _open_breaker(bench)
        wait_until(lambda: len(hook.told) == 1, what="the first try")
        bench.db.execute("UPDATE scheduler.alert SET again_at = now()")
        wait_until(lambda: one(bench.db, "SELECT sent_at FROM scheduler.alert"), what="the second")
    assert len(hook.told) == 2


def test_items_do_not_wait_for_a_webhook_that_hangs(bench: Bench) -> None:
    bench.adopt(schedule="0 0 1 1 *")
    bench.db.execute("UPDATE scheduler.state SET breaker_state = 'probing'")
    with hooked() as hook:
        hook.gate.clear()
        bench.inside(alert_webhook_url=hook.url)
        wait_until(lambda: hook.told, what="a request that hangs")
        bench.queue("ok", "ok")
        bench.wait_for("Completed")


def test_an_address_that_is_none_is_refused_without_repeating_it() -> None:
    with pytest.raises(UserError) as refused:
        read({}, env_file=None, alert_webhook_url="ftp://hooks.example/secret-part")
    assert "ALERT_WEBHOOK_URL" in str(refused.value)
    assert "secret-part" not in str(refused.value)
