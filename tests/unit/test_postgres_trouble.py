"""What PostgreSQL's programs print, as one paragraph for the person at the keyboard."""

from pathlib import Path

import pytest

from listener.postgres.trouble import explain, is_taken_port, is_winding_down

WHERE = Path("/somewhere/.local/postgres")

TRANSLATIONS = [
    ('initdb: error: could not write file "x": No space left on device', "is full", "Free some space"),
    ("could not extend file: Disk quota exceeded", "is full", "Free some space"),
    ("FATAL: could not create shared memory segment: Cannot allocate memory", "no shared memory", "--shm-size"),
    ("FATAL: could not resize shared memory segment", "no shared memory", "--shm-size"),
    ("could not create directory: Read-only file system", "read-only file system", "--dir"),
    ('pg_ctl: invalid data in PID file "/x/postmaster.pid"', "is damaged", "data/postmaster.pid"),
    ('FATAL:  lock file "postmaster.pid" is empty', "is damaged", "data/postmaster.pid"),
    ('FATAL:  bogus data in lock file "postmaster.pid"', "is damaged", "data/postmaster.pid"),
    ("pg_ctl: could not open log file: Permission denied", "permission denied", "--dir"),
]


@pytest.mark.parametrize(("output", "message", "hint"), TRANSLATIONS, ids=[row[0][-20:] for row in TRANSLATIONS])
def test_a_known_trouble_is_named_with_the_way_out(output: str, message: str, hint: str) -> None:
    error = explain("start", f"some banner\n{output}\nexamine the log output\n", WHERE)
    assert error.message.startswith("PostgreSQL could not start")
    assert message in error.message
    assert hint in error.hint


def test_a_full_disk_is_named_by_the_place_it_holds() -> None:
    assert str(WHERE) in explain("create a cluster", "No space left on device", WHERE).message


def test_an_unknown_trouble_shows_the_last_lines_and_where_the_rest_is() -> None:
    error = explain("start", "\n".join(f"line {number}" for number in range(1, 30)), WHERE)
    assert "line 29" in error.message
    assert "line 20" not in error.message
    assert "server.log" in error.hint


def test_no_output_at_all_is_still_an_error() -> None:
    assert "could not start" in explain("start", "", WHERE).message


def test_a_taken_port_is_told_from_other_trouble() -> None:
    taken = 'LOG:  could not bind IPv4 address "127.0.0.1": Address already in use'
    assert is_taken_port(taken)
    assert not is_taken_port("could not bind IPv4 address: Permission denied")
    assert not is_winding_down(taken)


def test_a_server_that_winds_down_is_told_from_other_trouble() -> None:
    assert is_winding_down("FATAL: pre-existing shared memory block (key 1, ID 2) is still in use")
    assert not is_winding_down("FATAL: could not create shared memory segment")
