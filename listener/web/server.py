"""The HTTP server: in a listener's event loop beside its lanes, or alone."""

import contextlib
import socket
from collections.abc import Iterator

import uvicorn

from listener.errors import UserError
from listener.logs import log_of
from listener.redact import know_url
from listener.settings import Settings
from listener.web import extension
from listener.web.access import Access, refuse_exposure
from listener.web.app import build
from listener.web.machine import Vitals
from listener.web.store import Store

DEFAULT_PORT = 8642
_MOST_REQUESTS = 50
"""At once; more are told to come back, so that a flood of requests costs the lanes next to nothing."""

_log = log_of("web")


class Web:
    """One site on one port."""

    def __init__(self, url: str, settings: Settings, vitals: Vitals | None = None) -> None:
        self._host = settings.web_host
        self._port = DEFAULT_PORT if settings.web_port is None else settings.web_port
        self._access = Access.read(settings.web_token, settings.web_users)
        refuse_exposure(self._host, self._access)
        know_url(settings.web_database_url)
        self._url = settings.web_database_url or url
        self._store = Store(self._url)
        self._socket: socket.socket | None = None
        config = uvicorn.Config(
            build(self._store, self._access, extension.discover(), vitals),
            http="h11",
            ws="none",
            lifespan="off",
            log_config=None,
            access_log=False,
            server_header=False,
            limit_concurrency=_MOST_REQUESTS,
            timeout_keep_alive=15,
            timeout_graceful_shutdown=2,
        )
        self._server = _Server(config)

    def bind(self) -> str:
        """Take the port, so that a wrong address is an error at start; where the page will be."""
        try:
            family, _, _, _, address = socket.getaddrinfo(self._host, self._port, type=socket.SOCK_STREAM)[0]
            self._socket = socket.socket(family, socket.SOCK_STREAM)
            self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            self._socket.bind(address)
        except OSError as error:
            raise UserError(
                f"The page cannot be served on {self._host}:{self._port}: {error.strerror or error}.",
                "Choose another address or port with WEB_HOST and WEB_PORT.",
            ) from error
        host = f"[{self._host}]" if ":" in self._host else self._host
        return f"http://{host}:{self._socket.getsockname()[1]}/"

    async def run(self) -> None:
        """Serve until stopped."""
        where = self.bind() if self._socket is None else ""
        if where:
            _log.info("serving the page", extra={"at": where})
        assert self._socket is not None  # noqa: S101 - just bound
        try:
            await self._store.open()
            await self._server.serve(sockets=[self._socket])
        finally:
            self._socket.close()
            self._socket = None
            await self._store.close()

    def stop(self) -> None:
        self._server.should_exit = True

    async def reload(self, url: str, settings: Settings) -> None:
        """Use other tokens and another database URL from now on; the address stays until a restart."""
        access = Access.read(settings.web_token, settings.web_users)
        refuse_exposure(self._host, access)
        self._access.become(access)
        know_url(settings.web_database_url)
        if (settings.web_database_url or url) != self._url:
            self._url = settings.web_database_url or url
            await self._store.replace(self._url)


class _Server(uvicorn.Server):
    """Signals are the listener's business."""

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield
