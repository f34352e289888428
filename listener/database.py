"""The one way to the database: a small pool, short transactions, and on demand a session on the same connection."""

import asyncio
from collections import deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

import psycopg
from psycopg import conninfo
from psycopg_pool import AsyncConnectionPool

from listener.faults import is_unreachable
from listener.pooler import is_pooled
from listener.roundtrip import Plans

if TYPE_CHECKING:
    from sqlalchemy.ext.asyncio import AsyncEngine, AsyncSession

# A peer that vanished without a word is noticed within some twenty seconds.
_KEEPALIVE = {
    "connect_timeout": "10",
    "keepalives_idle": "5",
    "keepalives_interval": "3",
    "keepalives_count": "3",
    "tcp_user_timeout": "15000",
}
LOCK_SECONDS = 5
"""How long a statement of the listener waits for a lock: a queued ALTER TABLE must not hold up a lane for long."""
_CONNECTION_SECONDS = 4.0
"""The longest wait for a connection of the pool."""
_RECONNECT_SECONDS = 2.0
MOST_CONNECTIONS = 50
"""Of one pool. Up to 24 lanes have two each to themselves; a thousand must not ask for more than a server has."""
_PREPARE_AFTER = 3
"""Executions until a statement is prepared on the server, on direct connections only."""


def connection_string(url: str, role: str) -> str:
    """The URL with what every connection of ours needs; what it says itself wins."""
    given = conninfo.conninfo_to_dict(url)
    wanted: dict[str, Any] = {**_KEEPALIVE, "application_name": f"scrapersky {role}"}
    if "," in str(given.get("host", "")):
        # after a failover the first host may be a standby
        wanted["target_session_attrs"] = "read-write"
    return conninfo.make_conninfo(**{**wanted, **given})


class PooledConnection(psycopg.AsyncConnection[Any]):
    """A connection whose close() gives it back to its pool, also when it is broken.

    psycopg's own close_returns does so for healthy ones only: a connection that the server cut inside SQLAlchemy would
    keep its place in the pool for ever.
    """

    plans: Plans | None = None
    """What roundtrip.ask() has prepared here; None behind a pooler, where nothing can stay prepared."""

    async def close(self) -> None:
        pool = self._pool
        if self.closed and isinstance(pool, AsyncConnectionPool):
            await pool.putconn(self)
            self._pool = None
        else:
            await super().close()


@dataclass(frozen=True, slots=True)
class Transaction:
    """An open transaction: psycopg's connection and, if it was asked for, SQLAlchemy's session on it."""

    connection: psycopg.AsyncConnection[Any]
    opened_session: "AsyncSession | None" = None
    at_once: bool = False
    """Whether each statement, or each pipeline, commits by itself. Never behind a pooler, where the server's default
    isolation cannot be set."""
    plans: Plans | None = None
    """For roundtrip.ask(): then nothing but that may be executed here."""

    @property
    def session(self) -> "AsyncSession":
        if self.opened_session is None:
            raise RuntimeError("this transaction was opened without a session")
        return self.opened_session


class _Stack(deque[PooledConnection]):
    """The connection used last is used next: it is warm, and the others are seldom needed and closed."""

    def popleft(self) -> PooledConnection:
        return self.pop()


class Pool(AsyncConnectionPool[PooledConnection]):
    """psycopg_pool's, which has no setting for the order."""

    def __init__(self, *given: Any, **options: Any) -> None:
        super().__init__(*given, **options)
        self._pool = _Stack()


class Database:
    """Hands out transactions, all of them short. A lane asks for one or two at once, for three while it commits two
    large runs, and the tools for one."""

    def __init__(self, url: str, *, lanes: int, statement_seconds: float, role: str = "listener") -> None:
        self._role = role
        self._statement_seconds = statement_seconds
        self._most = min(2 * lanes + 3, MOST_CONNECTIONS)
        # A thousand lanes wait here, for as long as it takes: a wait inside the pool has an end, which then tells that
        # the server cannot be reached.
        self._places = asyncio.Semaphore(self._most)
        self._pool = self._make_pool(url)
        self._engine: AsyncEngine | None = None

    async def open(self) -> None:
        """Connect; raises what the server said if it does not let us in."""
        await self._pool.open()

    async def close(self) -> None:
        await self._pool.close(timeout=2)

    async def replace(self, url: str) -> None:
        """Use another URL from now on: a rotated password, a new host. Transactions under way end on the old one."""
        old, self._pool, self._engine = self._pool, self._make_pool(url), None
        await self._pool.open()
        await old.close(timeout=self._statement_seconds)

    @asynccontextmanager
    async def transaction(
        self, *, session: bool = False, at_once: bool = False, direct: bool = False
    ) -> AsyncIterator[Transaction]:
        """One short READ COMMITTED transaction: committed at the end of the block, rolled back on any error.

        The limit also holds where the server cannot enforce it: behind a pooler, or across a dead network.
        `at_once` is for a block that executes one statement, or one pipeline: BEGIN, statement and COMMIT then cost one
        round trip instead of three. `direct` is the same for roundtrip.ask(), where there is no pooler.
        """
        try:
            async with self._places, asyncio.timeout(2 * self._statement_seconds):
                if session:
                    async with self._with_session() as transaction:
                        yield transaction
                else:
                    async with self._pool.connection() as connection:
                        if direct and connection.plans is not None:
                            yield Transaction(connection, at_once=True, plans=connection.plans)
                            if connection.info.transaction_status != psycopg.pq.TransactionStatus.IDLE:
                                await connection.rollback()  # it was read some more
                        elif at_once and connection.prepare_threshold is not None:
                            async with _autocommit(connection):
                                yield Transaction(connection, at_once=True)
                        else:
                            yield Transaction(connection)
        except Exception as error:
            if is_unreachable(error):
                # one connection died: the others are looked at before they are handed out again
                with suppress(psycopg.Error):
                    await self._pool.check()
            raise

    @asynccontextmanager
    async def _with_session(self) -> AsyncIterator[Transaction]:
        from sqlalchemy.ext.asyncio import AsyncSession

        async with self._sqlalchemy().connect() as wrapped, wrapped.begin():
            raw = cast("psycopg.AsyncConnection[Any]", (await wrapped.get_raw_connection()).driver_connection)
            async with AsyncSession(bind=wrapped, expire_on_commit=False) as session:
                yield Transaction(raw, session)
                await session.flush()
            if raw.info.transaction_status != psycopg.pq.TransactionStatus.INTRANS:
                raise RuntimeError("the transaction was ended inside: save must neither commit nor roll back")

    def _sqlalchemy(self) -> "AsyncEngine":
        """SQLAlchemy takes its connections from our pool; imported only where a session is wanted."""
        if self._engine is None:
            from sqlalchemy.ext.asyncio import create_async_engine
            from sqlalchemy.pool import NullPool

            self._engine = create_async_engine(
                "postgresql+psycopg://",
                poolclass=NullPool,
                async_creator=self._pool.getconn,
                # SQLAlchemy takes every checkout for a new connection; this would be a query each time
                use_native_hstore=False,
            )
        return self._engine

    def _make_pool(self, url: str) -> Pool:
        return Pool(
            connection_string(url, self._role),
            connection_class=PooledConnection,
            kwargs={"prepare_threshold": None},
            min_size=1,
            max_size=self._most,
            max_idle=60,
            timeout=_CONNECTION_SECONDS,
            # The pool tries again ever more seldom, up to minutes apart. We give up early and ask anew, so that a
            # server that is back is noticed within a poll interval.
            reconnect_timeout=_RECONNECT_SECONDS,
            # whoever waits already is not left waiting for nothing
            reconnect_failed=AsyncConnectionPool.check,
            open=False,
            configure=self._configure,
            close_returns=True,
            name="scrapersky",
        )

    async def _configure(self, connection: PooledConnection) -> None:
        await connection.set_isolation_level(psycopg.IsolationLevel.READ_COMMITTED)
        if await is_pooled(connection):
            # behind a pooler session settings and prepared statements would fall to whoever comes next
            await connection.rollback()
            return
        await connection.execute(
            "SELECT set_config('statement_timeout', %s, false), set_config('lock_timeout', %s, false),"
            " set_config('idle_in_transaction_session_timeout', %s, false),"
            # for what is executed without BEGIN
            " set_config('default_transaction_isolation', 'read committed', false)",
            (f"{self._statement_seconds}s", f"{LOCK_SECONDS}s", f"{self._statement_seconds}s"),
        )
        await connection.commit()
        connection.prepare_threshold = _PREPARE_AFTER
        connection.plans = Plans()


@asynccontextmanager
async def _autocommit(connection: psycopg.AsyncConnection[Any]) -> AsyncIterator[None]:
    await connection.set_autocommit(True)
    try:
        yield
    finally:
        try:
            await connection.rollback()  # nothing, unless a pipeline was left half-way
            await connection.set_autocommit(False)
        except psycopg.Error:
            connection.pgconn.finish()  # broken or in an unknown state: the pool makes another
