"""Ports on 127.0.0.1."""

import socket

from listener.errors import UserError

ADDRESS = "127.0.0.1"
# Below the ports that systems hand to outgoing connections (Linux from 32768, macOS from 49152): a client that knocks
# while the server restarts could otherwise be given the server's own port, and keep it.
FIRST = 25432
LAST = 32767


def is_free(port: int) -> bool:
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        # As PostgreSQL does: a port in TIME_WAIT is free, one with a listener is not.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((ADDRESS, port))
        except OSError:
            return False
        return True


def first_free(start: int = FIRST) -> int:
    for port in range(start, LAST + 1):
        if is_free(port):
            return port
    raise UserError(f"No free port on {ADDRESS} from {start} to {LAST}.", "Stop some servers and start again.")
