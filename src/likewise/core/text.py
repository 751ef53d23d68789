"""Plain-text tables for `print(result)`; the rich ones live in `report`."""

from __future__ import annotations

from collections.abc import Sequence

__all__ = ["text_table"]


def text_table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Lay out a small table: first column left, the others right.

    Examples
    --------
    >>> print(text_table(["", "before", "after"], [["AUC", "0.93", "0.51"]]))
         before  after
    AUC    0.93   0.51
    """
    cells = [list(header), *(list(row) for row in rows)]
    widths = [max(len(row[i]) for row in cells) for i in range(len(header))]
    lines = []
    for row in cells:
        first = row[0].ljust(widths[0])
        rest = (cell.rjust(width) for cell, width in zip(row[1:], widths[1:], strict=True))
        lines.append("  ".join([first, *rest]).rstrip())
    return "\n".join(lines)
