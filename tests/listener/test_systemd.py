"""What systemd hears, on a socket of our own."""

import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from listener import systemd
from tests.listener.started import Bench
from tests.waiting import PATIENCE

Heard = Iterator[str]


@pytest.fixture
def notify_socket(tmp_path: Path) -> Iterator[socket.socket]:
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as receiver:
        receiver.bind(str(tmp_path / "notify"))
        receiver.settimeout(PATIENCE)
        yield receiver


def _until(receiver: socket.socket, line: str) -> list[str]:
    heard: list[str] = []
    while line not in heard:
        heard += receiver.recv(4096).decode().splitlines()
    return heard


@pytest.mark.slow
def test_ready_comes_after_the_first_sweep_then_the_watchdog_is_fed_and_the_end_announced(
    bench: Bench, notify_socket: socket.socket
) -> None:
    bench.adopt()
    process = bench.start(ready=False, NOTIFY_SOCKET=notify_socket.getsockname(), WATCHDOG_USEC="300000")
    _until(notify_socket, "READY=1")
    assert process.lines("ready")
    _until(notify_socket, "WATCHDOG=1")
    assert process.stop() == 0
    heard = _until(notify_socket, "STOPPING=1")
    assert "READY=1" not in heard


def test_an_abstract_socket_is_understood(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    name = f"scrapersky-test-{tmp_path.name}"
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as receiver:
        receiver.bind(f"\0{name}")
        monkeypatch.setenv("NOTIFY_SOCKET", f"@{name}")
        assert systemd.notify("READY=1", "STATUS=fine")
        assert receiver.recv(100) == b"READY=1\nSTATUS=fine"


def test_elsewhere_nothing_is_sent(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("NOTIFY_SOCKET", raising=False)
    assert not systemd.notify("READY=1")
    monkeypatch.setenv("NOTIFY_SOCKET", str(tmp_path / "nobody"))
    assert not systemd.notify("READY=1")


async def test_a_listener_that_is_not_well_does_not_feed_the_watchdog(
    monkeypatch: pytest.MonkeyPatch, notify_socket: socket.socket
) -> None:
    import asyncio

    monkeypatch.setenv("NOTIFY_SOCKET", notify_socket.getsockname())
    monkeypatch.setenv("WATCHDOG_USEC", "30000")
    monkeypatch.delenv("WATCHDOG_PID", raising=False)
    asked: list[bool] = []
    enough = asyncio.Event()

    def is_well() -> bool:
        asked.append(len(asked) == 3)
        if len(asked) > 3:
            enough.set()
        return asked[-1]

    task = asyncio.create_task(systemd.feed_watchdog(is_well))
    await enough.wait()
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    notify_socket.setblocking(False)
    assert notify_socket.recv(100) == b"WATCHDOG=1"
    with pytest.raises(BlockingIOError):
        notify_socket.recv(100)
