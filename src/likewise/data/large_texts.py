"""A text table that is larger than memory, written as Parquet some rows at a time.

Types are those that the whole table would have in memory: a first pass over the file finds them, a second one writes.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from likewise.core.errors import FormatError, InputError
from likewise.core.frames import check_columns
from likewise.core.text import option
from likewise.data.opening import OpenedFile, Reading
from likewise.data.table_files import unique_names
from likewise.data.text_tables import (
    MARKED_MISSING,
    WAYS,
    OpenedText,
    decimals_of,
    numbers_by,
    open_text,
    said_of_numbers,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pandas as pd

# Rows that are read at once.
ROWS = 65_536


@dataclass
class _Column:
    """What the cells of a column are, some rows after the other."""

    kinds: set[str] = field(default_factory=set)
    gaps: bool = False
    # Ways in which all its text so far can be read as numbers.
    ways: set[str] = field(default_factory=lambda: set(WAYS))
    whole: bool = True
    cells: int = 0
    marks: int = 0

    def look(self, column: pd.Series[Any], decimals: bool | None) -> None:
        """Take in some more rows."""
        known = column.dropna()
        self.gaps |= len(known) < len(column)
        self.cells += len(known)
        if not len(known):
            return
        kind = column.dtype.kind if column.dtype.kind in "biuf" else "O"
        if kind == "O" and isinstance(known.iloc[0], (bool, np.bool_)):
            kind = "b"
        self.kinds.add(kind)
        if kind == "b":
            self.ways = set()
        elif kind != "O":
            # Every number must have the unit.
            self.ways.discard("unit")
            self.whole &= kind != "f"
        elif self.ways:
            read = {way: numbers_by(way, column, decimals, part=True) for way in sorted(self.ways)}
            self.ways = {way for way, numbers in read.items() if numbers is not None}
            self.whole &= all(numbers is None or numbers.dtype.kind != "f" for numbers in read.values())
            self.marks += int(known.str.strip().str.lower().isin(MARKED_MISSING).sum())

    def settled(self) -> tuple[str, str]:
        """Return the type of the whole column, and the way in which text is read as numbers, if it is."""
        if self.kinds == {"b"}:
            return "bool", ""
        number = "int64" if self.whole and not self.gaps else "float64"
        if "O" in self.kinds or "b" in self.kinds:
            found = self.ways if "O" in self.kinds else set()
            if "marks" in found and not 0 < self.marks <= 0.9 * self.cells:
                found = found - {"marks"}
            way = next((way for way in WAYS if way in found), "")
            return ("float64" if way == "marks" else number if way else "str"), way
        return ("uint64" if self.kinds == {"u"} and not self.gaps else number), ""


class _NotNumbersError(Exception):
    """A column of text that could be numbers by what was seen of it, and is not."""


def write_parts(
    file: OpenedFile, reading: Reading, path: Path, *, ignore: Sequence[str] = ()
) -> tuple[int, bool, tuple[str, ...]]:
    """Write a text table as a Parquet file; return how many rows it has, whether a header, and what was changed."""
    text, notes = open_text(file, reading)
    decimals = decimals_of(reading.decimal, text.separator)
    found, rows = [_Column() for _ in text.names], 0
    numbered = text.names[0] == "column 1" and len(text.names) > 1
    for frame in text.frames(ROWS):
        for at, column in enumerate(found):
            column.look(frame.iloc[:, at], decimals)
        numbered = numbered and np.array_equal(frame.iloc[:, 0], np.arange(rows, rows + len(frame)))
        rows += len(frame)
    if not rows:
        raise InputError(f"{file.name} has no rows. Pass a table with people in it.")
    kinds = [column.settled() for column in found]
    while True:
        try:
            said = _write(text, kinds, decimals, path, reading, ignore, numbered)
        except _NotNumbersError as error:
            kinds[error.args[0]] = ("str", "")
        else:
            ways = {name: way for name, (_, way) in zip(text.names, kinds, strict=True) if way}
            notes = [note for note in notes if not numbered or "has no name" not in note]
            return rows, text.header, (*notes, *said, *said_of_numbers(ways))


def _write(
    text: OpenedText,
    kinds: Sequence[tuple[str, str]],
    decimals: bool | None,
    path: Path,
    reading: Reading,
    ignore: Sequence[str],
    numbered: bool,
) -> list[str]:
    """Write all rows; return what was said of names."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    writer, said = None, list[str]()
    try:
        for frame in _typed(text, kinds, decimals):
            said = []
            known = frame.loc[:, ~frame.columns.duplicated()]
            check_columns(known, ignore, owner=text.file.name, name="table")
            frame = frame.loc[:, ~frame.columns.isin(list(ignore))]
            frame = unique_names(frame, reading, text.file.name, said)
            if numbered and frame.columns[0] == "column 1":
                frame = frame.iloc[:, 1:]
                said.append("left out the first column: it has no name and numbers the rows.")
            table = pa.Table.from_pandas(frame, preserve_index=False)
            schema = pa.schema([(f.name, _arrow(f.type)) for f in table.schema])
            writer = writer or pq.ParquetWriter(path, schema)
            if table.column_names != writer.schema.names:
                raise FormatError(
                    f"{text.file.name} has columns of the same name with different values. Number them "
                    f"({option('doubled', 'number')}), leave them out ({option('ignore', 'NAME')}), or rename them."
                )
            writer.write_table(table.cast(writer.schema))
    finally:
        if writer is not None:
            writer.close()
    return said


def _arrow(kind: Any) -> Any:
    import pyarrow as pa

    words = pa.types.is_null(kind) or pa.types.is_large_string(kind) or pa.types.is_string(kind)
    return pa.string() if words else kind


def _typed(
    text: OpenedText, kinds: Sequence[tuple[str, str]], decimals: bool | None
) -> Iterator[pd.DataFrame]:
    """Yield rows in the types that the columns have in the whole table."""
    import pandas as pd

    as_text = {at: "str" if way or dtype == "bool" else dtype for at, (dtype, way) in enumerate(kinds)}
    for frame in text.frames(ROWS, as_text):
        columns = []
        for at, (dtype, way) in enumerate(kinds):
            column: Any = frame.iloc[:, at]
            if dtype == "bool":
                column = column.str.lower().map({"true": True, "false": False}).astype("boolean")
            elif way:
                numbers = numbers_by(way, column, decimals, part=True)
                if numbers is None:
                    raise _NotNumbersError(at)
                column = numbers.astype(np.dtype(dtype))
            columns.append(column)
        yield pd.concat(columns, axis=1, keys=range(len(kinds))).set_axis(frame.columns, axis=1)
