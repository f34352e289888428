"""Names to addresses, many at a time."""

import asyncio
import socket
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from ipaddress import ip_address
from typing import Protocol

from services.fetch.address import Address

_THREADS = 32
"""asyncio's own pool has six threads on two cores: that many slow name servers would stop all look-ups."""


class Resolver(Protocol):
    async def resolve(self, host: str) -> Sequence[Address]:
        """All addresses of a name; raises socket.gaierror as getaddrinfo does."""

    def close(self) -> None: ...


class SystemResolver:
    """What this machine is configured to ask."""

    def __init__(self) -> None:
        self._threads = ThreadPoolExecutor(_THREADS, thread_name_prefix="resolve")

    async def resolve(self, host: str) -> Sequence[Address]:
        loop = asyncio.get_running_loop()
        found = await loop.run_in_executor(self._threads, _look_up, host)
        return [ip_address(text) for text in found]

    def close(self) -> None:
        self._threads.shutdown(wait=False, cancel_futures=True)


def _look_up(host: str) -> list[str]:
    entries = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)
    # a scope id (fe80::1%eth0) is no part of the address
    return list(dict.fromkeys(str(entry[4][0]).partition("%")[0] for entry in entries))
