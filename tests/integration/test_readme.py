"""The first thing anybody sees is true: the session of README.md is executed, and prints what the page says."""

import re
import sys
from collections.abc import Iterator
from types import ModuleType
from typing import Any

import psycopg
import pytest

from listener.testing import drain
from tests.docs.pages import ROOT, blocks
from tests.integration.test_tour import agrees

README = ROOT / "README.md"


def calls(code: str) -> Iterator[tuple[str, list[str]]]:
    """Each statement of a block, and the lines of comment below it: what it is said to print."""
    statement: list[str] = []
    said: list[str] = []
    for line in code.splitlines():
        if line.startswith("-- "):
            said.append(line.removeprefix("-- "))
            continue
        if statement and statement[-1].rstrip().endswith(";"):
            yield "\n".join(statement), said
            statement, said = [], []
        if line.strip():
            statement.append(line)
    yield "\n".join(statement), said


def printed(cursor: psycopg.Cursor[tuple[Any, ...]]) -> str:
    """A single value as it is, more under the names of the columns."""
    if cursor.description is None:
        return ""
    rows = [["" if value is None else str(value) for value in row] for row in cursor.fetchall()]
    if len(cursor.description) == 1:
        return "\n".join(row[0] for row in rows)
    return "\n".join(" | ".join(row) for row in [[column.name for column in cursor.description], *rows])


async def test_the_session_prints_what_the_page_says(
    db: psycopg.Connection, database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    module = ModuleType("letters_of_the_readme")
    monkeypatch.setitem(sys.modules, module.__name__, module)
    compared = 0
    for block in blocks(README):
        if block.kind == "python":
            exec(block.code, vars(module))
            continue
        assert block.kind == "sql"
        for statement, said in calls(block.code):
            shown = printed(db.execute(statement.encode()))
            if said:
                assert agrees(said, shown), f"{statement}\n{shown}"
                compared += 1
            if re.search(r"scheduler\.dispatch\(", statement):
                await drain(database, vars(module)["letters"])
    assert compared > 8
