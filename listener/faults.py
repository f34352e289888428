"""What kind of trouble an error is. The answer decides whether to try again, split a batch, or give an item up."""

import asyncio
import functools
import inspect
import traceback
from collections.abc import Callable
from typing import Any

import psycopg

# No disk left, no connection left, files that cannot be read.
_CRIPPLED = ("53100", "53300", "58")
# Where PostgreSQL raises what its code alone does not tell apart: the notification queue is full (54000, as for values
# that are too large), and a library that new sessions cannot load (XX000) because its package was just replaced.
_CRIPPLED_IN = ("PreCommit_Notify", "internal_load_library")
_UNREACHABLE = ("08", "57P01", "57P02", "57P03", "57P05")
# Deadlock and serialization; resources; lock and statement timeouts; system errors; a server turned read-only.
_PASSING = ("40", "53", "55P03", "57", "58", "25006", "25P03")


def driver_error(error: BaseException) -> psycopg.Error | None:
    """psycopg's own error, also from inside SQLAlchemy's."""
    original = getattr(error, "orig", error)
    return original if isinstance(original, psycopg.Error) else None


def is_unreachable(error: BaseException) -> bool:
    """The connection or the server is gone; whether a COMMIT took effect is then unknown."""
    found = driver_error(error)
    if found is None:
        return isinstance(error, OSError) and not isinstance(error, TimeoutError)
    if found.sqlstate is None:
        return isinstance(found, psycopg.OperationalError | psycopg.InterfaceError)
    return found.sqlstate.startswith(_UNREACHABLE)


def is_outage(error: BaseException) -> bool:
    """The server is gone or cannot do its work, which is the fault of no item: trying again is all there is to do."""
    found = driver_error(error)
    return is_unreachable(error) or (
        found is not None
        and ((found.sqlstate or "").startswith(_CRIPPLED) or found.diag.source_function in _CRIPPLED_IN)
    )


def is_passing(error: BaseException) -> bool:
    """The same statement may well work in a moment."""
    if is_outage(error) or isinstance(error, TimeoutError):
        return True
    found = driver_error(error)
    return found is not None and (found.sqlstate or "").startswith(_PASSING)


def is_structural(error: BaseException) -> bool:
    """A missing table, column, function or right: every item would fail in the same way."""
    found = driver_error(error)
    return found is not None and (found.sqlstate or "").startswith(("42", "3F", "3D", "0A"))


def is_bad_data(error: BaseException) -> bool:
    """A value PostgreSQL cannot hold (NUL in text, a number or a document too large): trying again cannot help."""
    if isinstance(error, UnicodeError):
        return True
    found = driver_error(error)
    if found is None or is_outage(error):
        return False
    return (found.sqlstate or "").startswith(("22", "54")) or (
        found.sqlstate is None and isinstance(found, psycopg.DataError)
    )


def is_cancelled() -> bool:
    """Whether somebody wants the current task to end; what runs in it may also raise CancelledError on its own."""
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0


def describe(error: BaseException) -> str:
    """One line for a person, fit for a text column: no NUL, no lone surrogate."""
    found = driver_error(error)
    text = words(error) if found is None else str(found.diag.message_primary or found)
    name = type(found or error).__name__
    return storable(f"{name}: {text}" if text else name)


def where(error: BaseException, function: Callable[..., Any] | None) -> str | None:
    """The last line of this function's own file that the error came through, where one wants to look first."""
    while isinstance(function, functools.partial):
        function = function.func
    code = getattr(inspect.unwrap(function), "__code__", None) if function is not None else None
    if code is None:
        return None
    own = [frame for frame in traceback.extract_tb(error.__traceback__) if frame.filename == code.co_filename]
    return f"{own[-1].filename}:{own[-1].lineno} in {own[-1].name}" if own else None


def words(error: BaseException) -> str:
    """What an error says; nothing, if saying it fails too."""
    try:
        return str(error)
    except Exception:
        return ""


def storable(text: str) -> str:
    """Text as PostgreSQL can keep it. The engine cuts it to 1024 characters after taking secrets out."""
    return text[:8192].replace("\x00", "").encode("utf-8", "replace").decode()
