"""The world outside: an HTTP service that counts how often it was called for each item, and can be out of order."""

import threading
import time
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class Sink:
    def __init__(self) -> None:
        self.calls: defaultdict[str, list[float]] = defaultdict(list)
        """For each item, when it was called for, by the clock of the machine."""
        self.status = 204
        self.retry_after: str | None = None
        self._lock = threading.Lock()

    def hit(self, key: str) -> None:
        with self._lock:
            self.calls[key].append(time.time())

    @property
    def repeated(self) -> int:
        """Items that were asked for more than once."""
        return sum(len(moments) > 1 for moments in self.calls.values())

    @property
    def total(self) -> int:
        with self._lock:
            return sum(len(moments) for moments in self.calls.values())


@contextmanager
def sink_on_loopback() -> Iterator[tuple[Sink, str]]:
    sink = Sink()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            sink.hit(self.headers["Idempotency-Key"])
            self.send_response(sink.status)
            if sink.retry_after is not None:
                self.send_header("Retry-After", sink.retry_after)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the library's name
            """Not on stderr."""

    class Server(ThreadingHTTPServer):
        daemon_threads = True
        request_queue_size = 200

        def handle_error(self, request: object, client_address: object) -> None:
            """A listener that was killed in the middle of a call is what this is here for."""

    with Server(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
        thread.start()
        try:
            yield sink, f"http://127.0.0.1:{server.server_port}/"
        finally:
            server.shutdown()
            thread.join()
