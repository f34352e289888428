"""A statement that must wait for another session: seen in the server's lock table, never guessed by time."""

from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from typing import TypeVar

import psycopg

from tests.sql.queue import one
from tests.waiting import wait_until

T = TypeVar("T")


@contextmanager
def blocked(watcher: psycopg.Connection, waiting: psycopg.Connection, act: Callable[[], T]) -> Iterator[Future[T]]:
    """Runs `act`, which uses the session `waiting`, in a thread; the block is entered once it waits for a lock.

    The block must free it. What it returned is in the future.
    """
    with ThreadPoolExecutor(1) as thread:
        future = thread.submit(act)
        wait_until(lambda: future.done() or is_blocked(watcher, waiting), what="the statement to wait for a lock")
        assert not future.done(), f"it did not wait: {future.result()!r}"
        yield future


def is_blocked(watcher: psycopg.Connection, session: psycopg.Connection) -> bool:
    return bool(one(watcher, "SELECT cardinality(pg_blocking_pids(%s)) > 0", session.info.backend_pid))
