"""The contract a workflow author writes against: one `Workflow`, what `work` may raise, what `save` is given.

Nothing heavy is imported here, so that `from listener import Workflow` costs nothing.
"""

import functools
import inspect
import re
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Generic, TypeVar, overload

if TYPE_CHECKING:
    from pydantic_settings import BaseSettings
    from sqlalchemy.ext.asyncio import AsyncSession
    from sqlalchemy.orm import Session

    from listener.tools import Tools

Item = TypeVar("Item")
Result = TypeVar("Result")

_CALLED_WITH = {"work": ("item", "tools"), "save": ("session", "results")}

NAME = re.compile(r"[a-z][a-z0-9_]{0,39}")
"""The same rule as scheduler.workflow.name."""


class Retry(Exception):  # noqa: N818 - an instruction, not an error
    """It may work later: the item is tried again after `after`, or after the workflow's own backoff.

    The attempt counts; after `max_attempts` the item is in the dead letter. With `spend=False` it does not, and the
    breaker takes no notice: for an item that only has to wait for its turn, as at a rate limit. It must come some time.
    """

    def __init__(self, reason: str = "", *, after: timedelta | float | None = None, spend: bool = True) -> None:
        super().__init__(reason or "to be tried again")
        self.after = _seconds(after)
        self.spend = spend


class Reject(Exception):  # noqa: N818
    """It will never work: the item goes to the dead letter at once."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)


class Hold(Exception):  # noqa: N818
    """Something every item of this workflow needs is unavailable: a quota used up, an API that is down.

    The item goes back to Queued with no attempt spent, and the whole workflow, on every listener, waits for `after`.
    """

    def __init__(self, reason: str, *, after: timedelta | float = 60) -> None:
        super().__init__(reason)
        self.after: float = _seconds(after) or 0.0


@dataclass(slots=True)
class Final(Generic[Result]):
    """A result whose item ends in another word than the workflow's completed one: `return Final("Filtered", page)`."""

    word: str
    result: Result = None  # type: ignore[assignment]


@dataclass(slots=True)
class Done(Generic[Item, Result]):
    """One finished item, as `save` gets it."""

    item: Item
    result: Result
    key: str
    """The item's key, as text."""
    attempt: int
    """1 for the first try."""
    word: str | None = None
    """The final word, if `work` returned a `Final`; None stands for the workflow's completed word."""


@dataclass(frozen=True, init=False)
class Workflow(Generic[Item, Result]):
    """One workflow's code: how a row becomes an item, what is done with it, and what is written in the end.

    `item` is the type in which `work` gets the row: a SQLAlchemy mapped class, a dataclass, a pydantic model, or
    `dict`. `work` is called without any database connection; a plain function runs in a thread. `save` gets a batch
    of finished items in the very transaction that records their status; leave it out if there is nothing to write.
    Everything else (table, schedule, limits) is a row in `scheduler.workflow`.
    """

    name: str
    item: type[Item]
    work: Callable[[Item, "Tools"], Any]
    save: Callable[..., Any] | None = None
    settings: "type[BaseSettings] | None" = None
    """The workflow's own settings, checked when the listener starts; `tools.settings` is an instance."""
    env_prefix: str = ""
    """Environment variables that seed its schedule: <prefix>INTERVAL_MINUTES, BATCH_SIZE, MAX_INSTANCES."""
    retired_env_prefixes: tuple[str, ...] = field(default=())
    """Prefixes once used for this; setting one is refused with the name of its successor."""

    @overload
    def __init__(
        self,
        name: str,
        item: type[Item],
        work: Callable[[Item, "Tools"], Awaitable[Result | Final[Result]]],
        save: "Callable[[AsyncSession, list[Done[Item, Result]]], Awaitable[None]] | None" = None,
        *,
        settings: "type[BaseSettings] | None" = None,
        env_prefix: str | None = None,
        retired_env_prefixes: tuple[str, ...] = (),
    ) -> None: ...

    @overload
    def __init__(
        self,
        name: str,
        item: type[Item],
        work: Callable[[Item, "Tools"], Result | Final[Result]],
        save: "Callable[[Session, list[Done[Item, Result]]], None] | None" = None,
        *,
        settings: "type[BaseSettings] | None" = None,
        env_prefix: str | None = None,
        retired_env_prefixes: tuple[str, ...] = (),
    ) -> None: ...

    def __init__(
        self,
        name: str,
        item: type[Item],
        work: Callable[..., Any],
        save: Callable[..., Any] | None = None,
        *,
        settings: "type[BaseSettings] | None" = None,
        env_prefix: str | None = None,
        retired_env_prefixes: tuple[str, ...] = (),
    ) -> None:
        if not NAME.fullmatch(name):
            raise ValueError(
                f"{name!r} is no name of a workflow: use lower-case letters, digits and _, at most 40 characters"
            )
        for what, function in (("work", work), ("save", save)):
            if function is not None or what == "work":
                _check_function(f"{what} of workflow {name}", function, _CALLED_WITH[what])
        if not isinstance(item, type):
            raise TypeError(f"the item of workflow {name} must be a class (a mapped class, a dataclass, dict, ...)")
        assign = functools.partial(object.__setattr__, self)
        assign("name", name)
        assign("item", item)
        assign("work", work)
        assign("save", save)
        assign("settings", settings)
        assign("env_prefix", f"{name.upper()}_SCHEDULER_" if env_prefix is None else env_prefix)
        assign("retired_env_prefixes", retired_env_prefixes)


def is_async(function: Callable[..., Any]) -> bool:
    """Whether calling it gives something to await; sees through functools.partial and callable objects."""
    while isinstance(function, functools.partial):
        function = function.func
    return inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(getattr(function, "__call__", None))  # noqa: B004


def refuse_coroutine(what: str, result: Any, *, awaited: bool = False) -> None:
    """What is still to be awaited has done nothing yet, and nobody would ever run it."""
    if inspect.isawaitable(result):
        if inspect.iscoroutine(result):
            result.close()
        if awaited:
            raise TypeError(f"{what} returned something that is still to be awaited: write 'return await ...'")
        raise TypeError(f"{what} is a plain function, but returned something to await: declare it with 'async def'")


def _check_function(what: str, function: Any, called_with: tuple[str, ...]) -> None:
    """A mistake here would fail every item, so it is said where the workflow is defined."""
    if not callable(function):
        raise TypeError(f"{what} must be a function, not {function!r}")
    if inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function):
        raise TypeError(f"{what} must return its result, not yield it")
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):
        return  # written in C
    try:
        signature.bind(*called_with)
    except TypeError:
        raise TypeError(f"{what} is called with ({', '.join(called_with)}), but takes {signature}") from None


def _seconds(value: timedelta | float | None) -> float | None:
    seconds = value.total_seconds() if isinstance(value, timedelta) else value
    if seconds is not None and not 0 <= seconds < float("inf"):
        raise ValueError(f"after must not be negative or endless, but was {value!r}")
    return seconds
