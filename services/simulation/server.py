"""A simulated service on a port of loopback."""

import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Protocol

_STOP_SECONDS = 0.05
"""How long it may take to notice that it should end."""


@dataclass(frozen=True)
class Reply:
    status: int
    body: bytes
    kind: str = "application/json; charset=UTF-8"
    headers: tuple[tuple[str, str], ...] = ()


class Service(Protocol):
    def answer(self, method: str, target: str, headers: Mapping[str, str], body: bytes = b"") -> Reply: ...


@contextmanager
def serving(service: Service, port: int = 0) -> Iterator[str]:
    """Answer on loopback while the block lasts; its value is the base URL."""

    class Handler(BaseHTTPRequestHandler):
        def _reply(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            reply = service.answer(self.command, self.path, dict(self.headers.items()), body)
            self.send_response(reply.status)
            self.send_header("Content-Type", reply.kind)
            for name, value in reply.headers:
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(reply.body)))
            self.end_headers()
            self.wfile.write(reply.body)

        do_GET = do_POST = _reply  # noqa: N815 - the library's names

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the library's name
            """Not on stderr."""

    with ThreadingHTTPServer(("127.0.0.1", port), Handler) as server:
        server.daemon_threads = True
        thread = threading.Thread(target=server.serve_forever, args=(_STOP_SECONDS,), daemon=True)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
            thread.join()
