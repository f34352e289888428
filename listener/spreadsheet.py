"""Text on its way into somebody's spreadsheet, where a cell may be taken for a program."""

import re
from typing import Final

# What a spreadsheet takes for a formula, full-width forms too; also behind blanks and quotes, which some strip.
_FORMULA: Final = re.compile(r"""^[\s'"]*[=+\-@\uff1d\uff0b\uff0d\uff20]|^[\t\r\n]""")
_E164: Final = re.compile(r"\+[1-9][0-9]{5,14}")


def harmless(value: str) -> str:
    """A cell that no spreadsheet runs as a formula. A phone number in E.164 is only digits and stays as it is."""
    return "'" + value if _FORMULA.match(value) and not _E164.fullmatch(value) else value
