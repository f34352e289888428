"""What systemd wants to hear, without a dependency: one datagram to $NOTIFY_SOCKET."""

import asyncio
import os
import socket
import time
from collections.abc import Callable


def notify(*lines: str) -> bool:
    """Send lines such as `READY=1`; False where nobody listens, as everywhere but under systemd."""
    address = os.environ.get("NOTIFY_SOCKET")
    if not address:
        return False
    try:
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sender:
            # a leading @ stands for the zero byte of an abstract address
            sender.connect("\0" + address[1:] if address.startswith("@") else address)
            sender.sendall("\n".join(lines).encode())
    except OSError:
        return False
    return True


def reloading() -> bool:
    return notify("RELOADING=1", f"MONOTONIC_USEC={time.monotonic_ns() // 1000}")


async def feed_watchdog(is_well: Callable[[], bool]) -> None:
    """Ping at a third of WatchdogSec while all is well. It runs in the event loop, so a blocked loop is not well."""
    microseconds = int(os.environ.get("WATCHDOG_USEC") or 0)
    if not microseconds or os.environ.get("WATCHDOG_PID", str(os.getpid())) != str(os.getpid()):
        return
    while True:
        if is_well():
            notify("WATCHDOG=1")
        await asyncio.sleep(microseconds / 3_000_000)
