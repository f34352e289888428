"""CSV as people and their spreadsheets write it: hostile. For the way out see listener/spreadsheet.py."""

import codecs
import csv
import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from typing import IO, Final

LONGEST_LINE: Final = 64 * 1024
MOST_LINES: Final = 20
"""A quoted cell may go over so many lines; a quote that is still open then was never meant as one."""

_DELIMITERS: Final = ",;\t|"
_MARKS: Final = ((codecs.BOM_UTF8, "utf-8-sig"), (codecs.BOM_UTF16_LE, "utf-16"), (codecs.BOM_UTF16_BE, "utf-16"))


@dataclass(frozen=True, slots=True)
class Record:
    """One row of a file: the line it begins at, and its cells, or why it has none."""

    line: int
    cells: list[str]
    problem: str | None = None


def read(file: IO[bytes]) -> Iterator[Record]:
    """The rows of a CSV file; the first is the header, if there is one. A bad line spoils itself and no other."""
    lines = _Lines(file)
    delimiter: str | None = None
    while (line := lines.next()) is not None:
        number, text = line
        if not text.strip():
            continue
        delimiter = delimiter or _delimiter(text)
        yield _record(number, text, lines, delimiter)


def _record(number: int, text: str, lines: "_Lines", delimiter: str) -> Record:
    problem, cells, taken = _objection(text), None, 0
    while problem is None and cells is None and taken <= MOST_LINES:
        ahead = lines.ahead(taken)
        if len(ahead) < taken or (ahead and _objection(ahead[-1])):
            break
        try:
            cells = next(csv.reader(["\n".join([text, *ahead])], delimiter=delimiter, strict=True))
        except csv.Error as error:
            problem = None if "unexpected end of data" in str(error) else f"not CSV: {error}"
            taken += 1
    if cells is None:
        return Record(number, [text[:80]], problem or "a quote is opened and never closed")
    lines.skip(taken)
    return Record(number, cells)


def _objection(text: str) -> str | None:
    if len(text) > LONGEST_LINE:
        return f"longer than {LONGEST_LINE} characters"
    if "\0" in text:
        return "it has a NUL character"
    if any("\ud800" <= character <= "\udfff" for character in text):
        return "it is not UTF-8: save the file as 'CSV UTF-8'"
    return None


def _delimiter(first: str) -> str:
    """The one the first line has most of; a comma, if it has none."""
    return max(_DELIMITERS, key=lambda mark: (first.count(mark), mark == ","))


class _Lines:
    """The lines of a file with their numbers, and a look ahead. A line of any length is read in bounded memory."""

    def __init__(self, file: IO[bytes]) -> None:
        self._source = enumerate(_decoded(file), 1)
        self._ahead: list[tuple[int, str]] = []

    def next(self) -> tuple[int, str] | None:
        return self._ahead.pop(0) if self._ahead else next(self._source, None)

    def ahead(self, count: int) -> list[str]:
        """The texts of the next so many lines, which stay where they are; fewer at the end of the file."""
        self._ahead += islice(self._source, max(0, count - len(self._ahead)))
        return [text for _, text in self._ahead[:count]]

    def skip(self, count: int) -> None:
        del self._ahead[:count]


def _decoded(file: IO[bytes]) -> Iterator[str]:
    head = file.read(3)
    encoding = next((name for mark, name in _MARKS if head.startswith(mark)), "utf-8")
    decoder = codecs.getincrementaldecoder(encoding)("surrogateescape" if encoding.startswith("utf-8") else "replace")
    rest = ""
    for chunk in _chunks(head, file):
        rest += decoder.decode(chunk, not chunk)
        *whole, rest = re.split(r"\r\n|\n|\r(?!$)", rest)
        yield from whole
        if len(rest) > LONGEST_LINE + 1:
            # what is beyond the limit is never looked at; the last character may be half of a line's end
            rest = rest[: LONGEST_LINE + 1] + rest[-1]
    if rest.rstrip("\r"):
        yield rest.rstrip("\r")


def _chunks(head: bytes, file: IO[bytes]) -> Iterator[bytes]:
    yield head
    while chunk := file.read(LONGEST_LINE):
        yield chunk
    yield b""
