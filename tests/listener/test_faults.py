"""What a listener makes of an error decides whether an item is given up for what was never its fault."""

from pathlib import Path

import psycopg
import pytest
from psycopg import errors

from listener.faults import is_bad_data, is_outage, is_passing, is_unreachable


@pytest.mark.parametrize(
    "error",
    [errors.DiskFull, errors.TooManyConnections, errors.IoError, errors.UndefinedFile, errors.AdminShutdown],
)
def test_no_item_is_blamed_for_a_server_that_cannot_work(error: type[psycopg.Error]) -> None:
    assert is_outage(error())
    assert is_passing(error())
    assert not is_bad_data(error())


def test_no_item_is_blamed_for_a_library_that_was_just_replaced(db: psycopg.Connection, tmp_path: Path) -> None:
    """As during an upgrade of packages under a running server, whose own code for it says nothing (XX000)."""
    if db.info.host not in ("127.0.0.1", "localhost"):
        pytest.skip("needs a file on the server")
    with pytest.raises(psycopg.Error) as caught:
        db.execute("CREATE FUNCTION f() RETURNS integer LANGUAGE c AS '/etc/hostname', 'f'")
    assert is_outage(caught.value), caught.value.sqlstate


def test_what_is_too_large_is_not_tried_again(db: psycopg.Connection) -> None:
    with pytest.raises(psycopg.Error) as caught:
        db.execute("SELECT lpad('x', 2000000000)")
    assert is_bad_data(caught.value)
    assert not is_passing(caught.value)


@pytest.mark.parametrize("error", [errors.LockNotAvailable, errors.QueryCanceled, errors.OutOfMemory])
def test_a_statement_that_may_be_the_items_own_fault_is_tried_but_not_for_ever(error: type[psycopg.Error]) -> None:
    assert is_passing(error())
    assert not is_outage(error())
    assert not is_unreachable(error())
