"""Query results as text, the way psql shows them."""

from collections.abc import Sequence
from decimal import Decimal
from typing import Any


def table(names: Sequence[str], rows: Sequence[Sequence[Any]]) -> str:
    """Columns as wide as their widest value, numbers to the right."""
    cells = [["" if value is None else str(value) for value in row] for row in rows]
    columns = range(len(names))
    widths = [max(len(text) for text in [names[i], *(row[i] for row in cells)]) for i in columns]
    numeric = [bool(rows) and all(isinstance(row[i], int | float | Decimal) for row in rows) for i in columns]
    lines = [[names[i].ljust(widths[i]) for i in columns], ["-" * width for width in widths]]
    lines += [[row[i].rjust(widths[i]) if numeric[i] else row[i].ljust(widths[i]) for i in columns] for row in cells]
    return "\n".join("  ".join(line).rstrip() for line in lines)
