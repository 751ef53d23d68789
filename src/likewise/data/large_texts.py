"""A text table that is larger than memory, written as Parquet some rows at a time.

Types are those that the whole table would have in memory: a first pass over the file finds them, a second one writes.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from likewise.core.errors import FormatError, InputError
from likewise.core.text import option
from likewise.data.opening import OpenedFile, Reading
from likewise.data.table_files import unique_names
from likewise.data.text_tables import OpenedText, TextColumn, decimals_of, number_notes, numbers_by, open_text

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pandas as pd

# Rows that are read at once.
ROWS = 65_536


class _NotNumbersError(Exception):
    """A column of text that could be numbers by what was seen of it, and is not."""


def write_parts(file: OpenedFile, reading: Reading, path: Path) -> tuple[int, bool, tuple[str, ...]]:
    """Write a text table as a Parquet file; return how many rows it has, whether a header, and what was changed."""
    text, notes = open_text(file, reading)
    decimals = decimals_of(reading.decimal, text.separator)
    found, rows = [TextColumn() for _ in text.names], 0
    numbered = text.names[0] == "column 1" and len(text.names) > 1
    for frame in text.frames(ROWS):
        for at, column in enumerate(found):
            column.look(frame.iloc[:, at], decimals)
        numbered = numbered and np.array_equal(frame.iloc[:, 0], np.arange(rows, rows + len(frame)))
        rows += len(frame)
    if not rows:
        raise InputError(f"{file.name} has no rows. Pass a table with people in it.")
    kinds = [("str", "") if at in text.words else column.settled() for at, column in enumerate(found)]
    while True:
        try:
            said = _write(text, kinds, decimals, path, reading, numbered)
        except _NotNumbersError as error:
            kinds[error.args[0]] = ("str", "")
        else:
            ways = {name: way for name, (_, way) in zip(text.names, kinds, strict=True) if way}
            notes = [note for note in notes if not numbered or "has no name" not in note]
            return rows, text.header, (*notes, *said, *number_notes(ways))


def _write(
    text: OpenedText,
    kinds: Sequence[tuple[str, str]],
    decimals: bool | None,
    path: Path,
    reading: Reading,
    numbered: bool,
) -> list[str]:
    """Write all rows; return what was said of names."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    writer, said = None, list[str]()
    try:
        for frame in _typed(text, kinds, decimals):
            said = []
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
                numbers = numbers_by(way, column, decimals)
                if numbers is None:
                    raise _NotNumbersError(at)
                column = numbers.astype(np.dtype(dtype))
            columns.append(column)
        yield pd.concat(columns, axis=1, keys=range(len(kinds))).set_axis(frame.columns, axis=1)
