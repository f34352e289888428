"""A real `scrapersky` process on a terminal of a given size."""

import fcntl
import os
import pty
import select
import signal
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Iterator
from contextlib import contextmanager

from tests.waiting import PATIENCE

# what is started in a shell's background, such as the tests, ignores Ctrl-C and hands that down; a terminal does not
_COMMAND = """
import signal
signal.signal(signal.SIGINT, signal.default_int_handler)
from listener.cli import main
main()
"""


class Terminal:
    def __init__(self, columns: int, lines: int, arguments: tuple[str, ...], environment: dict[str, str]) -> None:
        self._screen, inside = pty.openpty()
        fcntl.ioctl(inside, termios.TIOCSWINSZ, struct.pack("HHHH", lines, columns, 0, 0))
        self._process = subprocess.Popen(
            [sys.executable, "-c", _COMMAND, *arguments],
            stdin=inside,
            stdout=inside,
            stderr=inside,
            start_new_session=True,
            env={
                **{name: value for name, value in os.environ.items() if name not in ("COLUMNS", "LINES", "NO_COLOR")},
                "TERM": "xterm-256color",
                **environment,
            },
        )
        os.close(inside)
        self.shown = ""

    def read_until(self, text: str) -> str:
        """What was shown so far, once this text is in it."""
        while text not in self.shown:
            assert self._read(), f"it ended without {text!r}: {self.shown!r}"
        return self.shown

    def type(self, keys: str) -> None:
        os.write(self._screen, keys.encode())

    def interrupt(self) -> None:
        """Ctrl-C, as the terminal would pass it on."""
        self._process.send_signal(signal.SIGINT)

    def wait(self) -> int:
        """Everything it still shows, then its exit code."""
        deadline = time.monotonic() + PATIENCE
        while self._read():
            assert time.monotonic() < deadline, "it does not end"
        return self._process.wait(PATIENCE)

    def close(self) -> None:
        if self._process.poll() is None:
            self._process.kill()
            self._process.wait()
        os.close(self._screen)

    def _read(self) -> bool:
        ready, _, _ = select.select([self._screen], [], [], PATIENCE)
        assert ready, f"nothing more within {PATIENCE} s after {self.shown!r}"
        try:
            piece = os.read(self._screen, 65536)
        except OSError:  # how Linux says that the other side was closed
            return False
        self.shown += piece.decode(errors="replace")
        return bool(piece)


@contextmanager
def terminal(*arguments: str, columns: int = 80, lines: int = 24, **environment: str) -> Iterator[Terminal]:
    started = Terminal(columns, lines, arguments, environment)
    try:
        yield started
    finally:
        started.close()
