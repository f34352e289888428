"""How rows become the items `work` is given: a mapped class, a dataclass, a pydantic model or a dict."""

import dataclasses
from collections.abc import Callable, Iterable, Sequence
from typing import Any, LiteralString, Protocol
from uuid import UUID

import psycopg
from psycopg import sql
from psycopg.abc import AdaptContext

from listener import engine
from listener.database import Transaction
from listener.engine import CLAIMED_KEYS, CLAIMED_PLACES, Claim, Terms, text_array
from listener.errors import UserError
from listener.faults import describe, driver_error


class UnloadableError(Exception):
    """One row that does not fit its type; the others are not held up by it."""


Loaded = dict[str, Any]
"""Items by key; a row that does not fit is an `UnloadableError` in its place, one that is gone is absent."""


class Loader(Protocol):
    needs_session: bool

    @property
    def knows_table(self) -> bool:
        """Whether it can ask for the rows of a claim together with the claim itself."""

    async def claim(self, transaction: Transaction, workflow: str, listener: UUID) -> tuple[Claim | None, Loaded]: ...

    async def load(self, transaction: Transaction, terms: Terms, keys: Sequence[str]) -> Loaded: ...


def loader_for(item: type[Any]) -> Loader:
    """The loader for a workflow's item type; refuses types it cannot build from a row."""
    if issubclass(item, dict):
        return RowLoader(None, lambda names: lambda values: item(zip(names, values, strict=True)))
    if dataclasses.is_dataclass(item) and not _mapper(item):
        return RowLoader(_dataclass_columns(item), lambda names: _keyword_builder(item, names))
    if hasattr(item, "model_validate"):
        return RowLoader(_pydantic_columns(item), lambda names: _pydantic_builder(item, names))
    if _mapper(item):
        return MappedLoader(item)
    raise UserError(
        f"{item.__name__} cannot be built from a row.",
        "Use a SQLAlchemy mapped class, a dataclass, a pydantic model, or dict.",
    )


class NoLoader:
    """For a type that cannot be built from a row: its lane says so, and the others run."""

    needs_session = False
    knows_table = False

    def __init__(self, error: UserError) -> None:
        self._error = error

    async def claim(self, transaction: Transaction, workflow: str, listener: UUID) -> tuple[Claim | None, Loaded]:
        return await _claim_and_load(self, transaction, workflow, listener)

    async def load(self, *_: Any) -> Loaded:
        raise self._error


class RowLoader:
    """Plain rows, and only the columns the type asks for."""

    needs_session = False
    _terms: Terms | None = None
    """Of the last claim that loaded well, so that the next can ask for its rows in the same breath."""
    _claimed_rows = ""
    """How it asks for them."""

    def __init__(
        self,
        columns: dict[str, bool] | None,
        build: Callable[[list[str]], Callable[[Sequence[Any]], Any]],
    ) -> None:
        self._wanted = columns
        """Column → whether it must be there; None for all the table has."""
        self._build = build
        self._columns_of: dict[str, list[str]] = {}

    @property
    def knows_table(self) -> bool:
        return self._terms is not None

    async def claim(self, transaction: Transaction, workflow: str, listener: UUID) -> tuple[Claim | None, Loaded]:
        connection, known, plans = transaction.connection, self._terms, transaction.plans
        if known is None or plans is None:
            claim, items = await _claim_and_load(self, transaction, workflow, listener)
            if claim is not None and claim.run is None and known is None:
                # so that the first item, whenever it comes, finds all prepared
                await self.load(transaction, claim.terms, [])
            return claim, items
        names = self._columns_of[known.relation]
        try:
            claim, rows = await engine.claim_with(connection, plans, workflow, listener, self._claimed_rows)
        except Exception:
            self._forget()
            raise
        if claim is None or claim.run is None:
            return claim, {}
        if not _is_same_table(claim.terms, known):
            self._forget()
            return claim, await self.load(transaction, claim.terms, claim.keys)
        items = self._items(names, rows)
        missing = [key for key in claim.keys if key not in items]
        if missing:
            # gone, or moved since they were claimed; another row may be in their place
            found = await self.load(transaction, claim.terms, missing)
            if found and not items:
                self._ask_by(CLAIMED_KEYS, transaction, claim.terms)
            items |= found
        return claim, items

    async def load(self, transaction: Transaction, terms: Terms, keys: Sequence[str]) -> Loaded:
        try:
            names = await self._columns(transaction, terms.relation)
            cursor = psycopg.AsyncRawCursor(transaction.connection)
            await cursor.execute(_select(cursor, terms, names, "$1::text[]"), (text_array(keys),))
            rows = await cursor.fetchall()
        except Exception:
            self._forget()
            raise
        if self._terms is None:
            self._ask_by(CLAIMED_PLACES, transaction, terms)
        return self._items(names, rows)

    def _ask_by(self, wanted: LiteralString, transaction: Transaction, terms: Terms) -> None:
        """How the next claims ask for their rows: where they are, as long as that finds any."""
        names, by_place = self._columns_of[terms.relation], wanted == CLAIMED_PLACES
        self._terms = terms
        self._claimed_rows = _select(transaction.connection, terms, names, wanted, by_place=by_place)

    def _items(self, names: list[str], rows: list[tuple[Any, ...]]) -> Loaded:
        build = self._build(names)
        return {row[0]: _attempt(build, row[1:]) for row in rows}

    def _forget(self) -> None:
        """The table may have changed under us."""
        self._columns_of.clear()
        self._terms = None

    async def _columns(self, transaction: Transaction, relation: str) -> list[str]:
        if relation not in self._columns_of:
            cursor = await transaction.connection.execute(
                "SELECT attname FROM pg_catalog.pg_attribute"
                " WHERE attrelid = %s::regclass AND attnum > 0 AND NOT attisdropped ORDER BY attnum",
                (relation,),
            )
            self._columns_of[relation] = self._choose([row[0] for row in await cursor.fetchall()], relation)
        return self._columns_of[relation]

    def _choose(self, present: list[str], relation: str) -> list[str]:
        if self._wanted is None:
            return present
        missing = [name for name, required in self._wanted.items() if required and name not in present]
        if missing:
            raise UserError(
                f"Table {relation} has no column {', '.join(missing)}, which the item's type needs.",
                f"Its columns: {', '.join(present)}.",
            )
        return [name for name in self._wanted if name in present]


class MappedLoader:
    """Instances of a SQLAlchemy class, detached: `work` has no database, so what it needs must be loaded eagerly."""

    needs_session = True
    knows_table = False

    def __init__(self, item: type[Any]) -> None:
        self._item = item

    async def claim(self, transaction: Transaction, workflow: str, listener: UUID) -> tuple[Claim | None, Loaded]:
        return await _claim_and_load(self, transaction, workflow, listener)

    async def load(self, transaction: Transaction, terms: Terms, keys: Sequence[str]) -> Loaded:
        from sqlalchemy.orm import configure_mappers

        configure_mappers()  # a mistake in the mapping is no fault of the rows
        try:
            return await self._select(transaction, terms, keys)
        except Exception as error:
            if driver_error(error) is not None:
                raise
            # a value no Python enum or type has: find the row it is in
            loaded: Loaded = {}
            for key in keys:
                try:
                    loaded |= await self._select(transaction, terms, [key])
                except Exception as single:
                    if driver_error(single) is not None:
                        raise
                    loaded[key] = UnloadableError(describe(single))
            return loaded

    async def _select(self, transaction: Transaction, terms: Terms, keys: Sequence[str]) -> Loaded:
        from sqlalchemy import Text, bindparam, inspect, literal_column, select, text
        from sqlalchemy.dialects.postgresql import ARRAY

        session = transaction.session
        table = inspect(self._item).local_table
        preparer = session.get_bind().dialect.identifier_preparer
        key = f"{preparer.format_table(table)}.{preparer.quote_identifier(terms.key_column)}"
        condition = text(f"{key} = ANY (CAST(:scheduler_keys AS text[])::{terms.key_type}[])").bindparams(
            bindparam("scheduler_keys", list(keys), type_=ARRAY(Text))
        )
        answer = await session.execute(select(self._item, literal_column(f"{key}::text")).where(condition))
        loaded = {row[1]: row[0] for row in answer.unique()}
        session.expunge_all()
        return loaded


async def _claim_and_load(
    loader: Loader, transaction: Transaction, workflow: str, listener: UUID
) -> tuple[Claim | None, Loaded]:
    claim = await engine.claim(transaction.connection, workflow, listener)
    if claim is None or claim.run is None:
        return claim, {}
    return claim, await loader.load(transaction, claim.terms, claim.keys)


def _is_same_table(terms: Terms, other: Terms) -> bool:
    return (terms.relation, terms.key_column, terms.key_type) == (other.relation, other.key_column, other.key_type)


def _select(
    context: AdaptContext, terms: Terms, names: Iterable[str], wanted: LiteralString, *, by_place: bool = False
) -> str:
    # a subquery, so that the planner is not told of a thousand keys and takes the index
    query = sql.SQL("SELECT {key}::text{columns} FROM {table} WHERE {by} = ANY ((SELECT {wanted})::{type}[])").format(
        wanted=sql.SQL(wanted),
        key=sql.Identifier(terms.key_column),
        by=sql.SQL("ctid") if by_place else sql.Identifier(terms.key_column),
        columns=sql.SQL("").join(sql.SQL(", ") + sql.Identifier(name) for name in names),
        # both were printed by the server from regclass and regtype, quoted as they must be
        table=sql.SQL(terms.relation),
        type=sql.SQL("tid" if by_place else terms.key_type),
    )
    return query.as_string(context)


def _attempt(build: Callable[[Sequence[Any]], Any], values: Sequence[Any]) -> Any:
    try:
        return build(values)
    except Exception as error:
        return UnloadableError(describe(error))


def _dataclass_columns(item: type[Any]) -> dict[str, bool]:
    missing = dataclasses.MISSING
    return {
        field.name: field.default is missing and field.default_factory is missing
        for field in dataclasses.fields(item)
        if field.init
    }


def _keyword_builder(item: type[Any], names: list[str]) -> Callable[[Sequence[Any]], Any]:
    fields = [field for field in dataclasses.fields(item) if field.init]
    if [field.name for field in fields] == names and not any(field.kw_only for field in fields):
        return lambda values: item(*values)
    return lambda values: item(**dict(zip(names, values, strict=True)))


def _pydantic_columns(item: Any) -> dict[str, bool]:
    return {
        (field.validation_alias if isinstance(field.validation_alias, str) else name): field.is_required()
        for name, field in item.model_fields.items()
    }


def _pydantic_builder(item: Any, names: list[str]) -> Callable[[Sequence[Any]], Any]:
    return lambda values: item.model_validate(dict(zip(names, values, strict=True)))


def _mapper(item: type[Any]) -> bool:
    """Asked without importing SQLAlchemy for those who do not use it."""
    return hasattr(item, "__mapper__")
