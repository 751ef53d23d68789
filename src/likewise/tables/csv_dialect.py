"""The first line of a text file: where it ends, what separates its cells, whether it names columns."""

from __future__ import annotations

import re
from collections.abc import Sequence

__all__ = ["SEPARATORS", "find_separator", "first_line", "is_number", "looks_like_values", "split_cells"]

SEPARATORS = ",;\t|"
# A quoted cell (which may hold line ends), or anything else up to the end of the line.
_LINE = re.compile(r'(?:"(?:[^"]|"")*"|[^"\r\n]+|"(?![^"]*"))*')
_NUMBER = re.compile(r"[+-]?(\d+([.,]\d*)?|[.,]\d+)([eE][+-]?\d+)?")


def first_line(text: str) -> str:
    r"""Return the first line that is not empty, whatever ends it, with the line ends that are inside quotes.

    Examples
    --------
    >>> first_line('a;"b\nc"\r1;2\r')
    'a;"b\nc"'
    """
    found = _LINE.match(text.lstrip("\r\n"))
    return found.group() if found else ""


def split_cells(line: str, separator: str) -> list[str]:
    """Cut a line into cells; a quoted cell may hold the separator, and two quotes in it are one.

    Examples
    --------
    >>> split_cells('a, "b, c" ,', ",")
    ['a', 'b, c', '']
    """
    cells: list[str] = []
    start = 0
    part = re.compile(rf'[ ]*(?:"((?:[^"]|"")*)"[^{re.escape(separator)}]*|([^{re.escape(separator)}]*))')
    while True:
        found = part.match(line, start)
        if found is None:
            return cells
        quoted, plain = found.groups()
        cells.append(quoted.replace('""', '"') if quoted is not None else plain.strip())
        if found.end() >= len(line):
            return cells
        start = found.end() + 1


def find_separator(line: str, below: Sequence[str] = ()) -> str:
    """Return what cuts a line into the most cells, and the lines below it into as many.

    Parameters
    ----------
    line : str
        The first one.
    below : sequence of str
        Some that follow. A separator that cuts them otherwise than the first is one only if all do.

    Examples
    --------
    >>> find_separator("name;size, in m;age")
    ';'
    >>> find_separator("what; how; when,age", ["a,20", "b,30"])
    ','
    """

    def fits(separator: str) -> tuple[bool, int]:
        cells = len(split_cells(line, separator))
        return cells > 1 and all(len(split_cells(row, separator)) == cells for row in below), cells

    return max(SEPARATORS, key=fits)


def is_number(text: str) -> bool:
    """Whether a cell is written as a number, with a decimal point or comma.

    Examples
    --------
    >>> is_number("-1,5"), is_number("1e9"), is_number("nan"), is_number("x1")
    (True, True, False, False)
    """
    return _NUMBER.fullmatch(text.strip()) is not None


def looks_like_values(header: Sequence[str], below: Sequence[Sequence[str]]) -> bool:
    """Whether a first line is a row of values: many of its cells are numbers, as are the cells below them.

    Parameters
    ----------
    header : sequence of str
        Cells of the first line.
    below : sequence of sequence of str
        Cells of some lines that follow.

    Examples
    --------
    >>> looks_like_values(["39", "clerk", "5"], [["40", "cook", "6"]])
    True
    >>> looks_like_values(["age", "job", "2019"], [["40", "cook", "6"]])
    False
    """
    numbers = [at for at, name in enumerate(header) if is_number(name)]
    if numbers and len(numbers) == len(header):
        return True
    same = [at for at in numbers if any(at < len(row) and is_number(row[at]) for row in below)]
    return len(same) >= 2 and 3 * len(same) >= len(header)
