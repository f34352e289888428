"""Prepared statements that go out together and come back together: one round trip, and one transaction.

psycopg's pipeline does the same with a cursor for each statement. For a claim of one item that was 0.27 ms of this
process's time between the doorbell and the first line of work, and is 0.10 this way.
"""

from collections.abc import Generator, Iterator, Sequence
from itertools import count
from typing import Any

import psycopg
from psycopg import errors, pq
from psycopg.adapt import Transformer
from psycopg.waiting import Ready, Wait

_MOST_PREPARED = 100
"""On one connection; a listener of a thousand workflows must not fill the server's memory with plans."""
_STALE = (errors.FeatureNotSupported, errors.InvalidSqlStatementName)
"""The plan's columns are not the table's any more; or somebody has discarded the plan."""

Rows = list[tuple[Any, ...]]
Asked = tuple[str, Sequence[str | None]]
"""A statement with $1, $2 …, and their values as text."""


class Plans:
    """What is prepared on one connection: the statement's text and its name there, the longest unused first."""

    def __init__(self) -> None:
        self.names: dict[str, bytes] = {}
        self._new: Iterator[int] = count()

    def name(self) -> bytes:
        return b"scrapersky_%d" % next(self._new)


async def ask(connection: psycopg.AsyncConnection[Any], plans: Plans, *asked: Asked) -> list[Rows]:
    """What each statement answers. All of them commit, or none does and the first error is raised."""
    encoding = connection.info.encoding
    fresh: dict[str, bytes] = {}
    for text, _ in asked:
        if text in plans.names:
            plans.names[text] = plans.names.pop(text)
        else:
            fresh[text] = plans.name()
    used = {text for text, _ in asked}
    old = [text for text in plans.names if text not in used][: max(0, len(plans.names) + len(fresh) - _MOST_PREPARED)]
    pgconn = connection.pgconn
    pgconn.enter_pipeline_mode()
    for text in old:
        pgconn.send_query_params(b"DEALLOCATE " + plans.names[text], None)
    for text, name in fresh.items():
        pgconn.send_prepare(name, text.encode(encoding))
    for text, values in asked:
        given = [None if value is None else value.encode(encoding) for value in values]
        pgconn.send_query_prepared(fresh.get(text) or plans.names[text], given)
    pgconn.pipeline_sync()
    results = await connection.wait(_answers(pgconn))

    removed, prepared, answered = _cut(results, len(old), len(fresh))
    for text, result in zip(old, removed, strict=False):
        if result.status == pq.ExecStatus.COMMAND_OK:
            plans.names.pop(text, None)
    for (text, name), result in zip(fresh.items(), prepared, strict=False):
        if result.status == pq.ExecStatus.COMMAND_OK:
            plans.names[text] = name
    for result in results:
        if result.status == pq.ExecStatus.FATAL_ERROR:
            error = errors.error_from_result(result, encoding)
            if isinstance(error, _STALE):
                plans.names.clear()
            raise error
    return [_rows(connection, result) for result in answered]


def _cut(results: list[pq.abc.PGresult], *lengths: int) -> list[list[pq.abc.PGresult]]:
    parts = []
    for length in lengths:
        parts.append(results[:length])
        results = results[length:]
    return [*parts, results]


def _answers(pgconn: pq.abc.PGconn) -> Generator[Wait, Ready | int, list[pq.abc.PGresult]]:
    """Send what is waiting, and read up to the sync: psycopg resumes it whenever the socket is ready."""
    while pgconn.flush():
        if (yield Wait.RW) & Ready.R:
            pgconn.consume_input()
    results: list[pq.abc.PGresult] = []
    while True:
        while pgconn.is_busy():
            yield Wait.R
            pgconn.consume_input()
        result = pgconn.get_result()
        if result is None:
            continue  # the end of one statement's answer
        if result.status == pq.ExecStatus.PIPELINE_SYNC:
            pgconn.exit_pipeline_mode()
            return results
        results.append(result)


def _rows(connection: psycopg.AsyncConnection[Any], result: pq.abc.PGresult) -> Rows:
    transformer = Transformer(connection)
    transformer.set_pgresult(result)
    return transformer.load_rows(0, result.ntuples, tuple)
