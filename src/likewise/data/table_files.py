"""Tables from files of any common format, with one-sentence errors and a note of every change."""

from __future__ import annotations

import io
import json
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from likewise.core.errors import FormatError, InputError, LikewiseError, first_line_of, require
from likewise.core.frames import check_columns
from likewise.core.text import distinct_names, option, truncated
from likewise.data.opening import (
    CELL,
    LARGEST_UNPACKED,
    RECORD,
    MemoryFile,
    OpenedFile,
    Reading,
    check_flat,
    check_keys,
    check_nesting,
    check_room,
    memory_limit,
    open_file,
    read_arrow,
    read_parquet,
    words_size,
)
from likewise.data.text_tables import read_text

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True, eq=False)
class ReadTable:
    """A table from a file.

    Parameters
    ----------
    frame : DataFrame
        With unique column names.
    notes : tuple of str
        What was changed on the way, a line each.

    Examples
    --------
    >>> import pandas as pd
    >>> ReadTable(pd.DataFrame({"age": [20, 30]})).notes
    ()
    """

    frame: pd.DataFrame
    notes: tuple[str, ...] = ()


def read_table(path: Path | MemoryFile, reading: Reading | None = None) -> ReadTable:
    r"""Read a table of people.

    Parameters
    ----------
    path : Path or MemoryFile
        CSV with a header (separated by comma, semicolon, tab or bar), Parquet, Arrow (IPC file or Feather), JSON
        lines, JSON records or Excel; any of them compressed with gzip or zstd.
    reading : Reading, optional
        What the user says about the file.

    Returns
    -------
    ReadTable

    Raises
    ------
    FormatError
        The file is not a table, or is damaged.

    Examples
    --------
    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "people.csv"
    >>> _ = path.write_text("age;height;age\n20;1,5;20\n30;1,75;30\n")
    >>> found = read_table(path)
    >>> found.frame.to_dict("list"), found.notes[1]
    ({'age': [20, 30], 'height': [1.5, 1.75]}, "dropped columns that repeat another of the same name and values: 'age'.")
    """
    reading = reading or Reading()
    file = open_file(path)
    try:
        with memory_limit(8 * file.room) if isinstance(path, Path) else nullcontext():
            frame, notes = _READERS[file.kind](file, reading)
    except LikewiseError:
        raise
    except MemoryError as error:
        raise FormatError(
            f"{path.name} takes more memory than a file of its size may. Take fewer rows or columns, or allow it: "
            f"LIKEWISE_TABLE_GB={-(-2 * file.room // 2**30)}."
        ) from error
    except (Exception, RecursionError) as error:
        # Parsers of other libraries raise whatever they like on a damaged file.
        raise FormatError(
            f"{path.name} is not a readable {file.kind} table: {first_line_of(error)}."
        ) from error
    frame.columns = [str(name) for name in frame.columns]
    frame = _without_row_numbers(unique_names(frame, reading, path.name, notes), notes)
    if len(frame) == 0:
        raise InputError(f"{path.name} has no rows. Pass a table with people in it.")
    if frame.shape[1] == 0:
        raise InputError(f"{path.name} has no columns that are left. Pass a table with people in it.")
    # A parser leaves every column apart, which makes each later change of a wide table slow.
    return ReadTable(frame.copy(), tuple(notes))


def table_rows(path: Path | MemoryFile) -> int | None:
    """Return the number of rows if the file says so without being read (Parquet), else None."""
    file = open_file(path)
    if file.kind != "Parquet":
        return None
    import pyarrow.parquet as pq

    try:
        return int(pq.ParquetFile(file.stream()).metadata.num_rows)
    except (OSError, ValueError) as error:
        raise FormatError(f"{path.name} is not a readable Parquet table: {first_line_of(error)}.") from error


def unique_names(frame: pd.DataFrame, reading: Reading, name: str, notes: list[str]) -> pd.DataFrame:
    """Leave out columns to be ignored, drop those that repeat another, or number columns of the same name."""
    check_columns(frame.loc[:, ~frame.columns.duplicated()], reading.ignore, owner=name, name="table")
    frame = frame.loc[:, ~frame.columns.isin(list(reading.ignore))] if reading.ignore else frame
    if not frame.columns.has_duplicates:
        return frame
    names = [str(column) for column in frame.columns]
    if reading.doubled == "number":
        new = distinct_names(names, "{} ({})")
        changed = [word for word, old in zip(new, names, strict=True) if word != old]
        notes.append(
            f"columns of the same name were numbered: {truncated([repr(word) for word in changed])}."
        )
        return frame.set_axis(new, axis=1)
    first: dict[str, int] = {}
    drop: list[int] = []
    differ: list[int] = []
    for at, column in enumerate(names):
        if first.setdefault(column, at) == at:
            continue
        same = frame.iloc[:, at].equals(frame.iloc[:, first[column]])
        (drop if same else differ).append(at)
    if differ:
        shown = truncated([repr(word) for word in dict.fromkeys(names[at] for at in differ)])
        raise FormatError(
            f"{name} has columns of the same name with different values: {shown}. Number them "
            f"({option('doubled', 'number')}), leave them out ({option('ignore', 'NAME')}), or rename them; "
            f"{option('header', 'no')} if the first line holds values."
        )
    shown = truncated([repr(word) for word in dict.fromkeys(names[at] for at in drop)])
    notes.append(f"dropped columns that repeat another of the same name and values: {shown}.")
    left = set(range(len(names))).difference(drop)
    return frame.iloc[:, sorted(left)]


def _without_row_numbers(frame: pd.DataFrame, notes: list[str]) -> pd.DataFrame:
    """Leave out a first column without a name that counts the rows, as pandas writes its index."""
    import numpy as np

    if frame.shape[1] < 2 or frame.columns[0] != "column 1" or frame.iloc[:, 0].dtype.kind != "i":
        return frame
    if not np.array_equal(frame.iloc[:, 0].to_numpy(), np.arange(len(frame))):
        return frame
    notes[:] = [note for note in notes if "has no name" not in note]
    notes.append("left out the first column: it has no name and numbers the rows.")
    return frame.iloc[:, 1:]


def _read_parquet(file: OpenedFile, reading: Reading) -> tuple[pd.DataFrame, list[str]]:
    return from_arrow(read_parquet(file.name, file.stream(), file.room), file.name, file.room), []


def _read_arrow(file: OpenedFile, reading: Reading) -> tuple[pd.DataFrame, list[str]]:
    return from_arrow(read_arrow(file.name, file.source, file.room), file.name, file.room), []


def _read_json_lines(file: OpenedFile, reading: Reading) -> tuple[pd.DataFrame, list[str]]:
    import pyarrow.json as paj

    text = file.whole()
    check_nesting(file.name, text)
    check_keys(file.name, text, file.room)
    # One block, since a line may not straddle two; no threads, since those of a failed parse can abort the process.
    block = paj.ReadOptions(use_threads=False, block_size=min(len(text) + 1, 2**31 - 1))
    return from_arrow(paj.read_json(io.BytesIO(text), read_options=block), file.name, file.room), []


def _read_json(file: OpenedFile, reading: Reading) -> tuple[pd.DataFrame, list[str]]:
    import pyarrow as pa

    text = file.whole()
    check_room(file.name, RECORD * sum(text.count(sign) for sign in (b"{", b"[", b",")), file.room)
    check_nesting(file.name, text)
    records = json.loads(text.decode(reading.encoding or "utf-8-sig"))
    if not all(isinstance(record, dict) for record in records):
        raise FormatError(f"{file.name} is JSON, but no list of records. Save one record for each person.")
    names = {name: None for record in records for name in record}
    check_room(file.name, CELL * len(records) * len(names), file.room)
    return from_arrow(pa.Table.from_pylist(records), file.name, file.room), []


def _read_excel(file: OpenedFile, reading: Reading) -> tuple[pd.DataFrame, list[str]]:
    import pandas as pd

    openpyxl: Any = require("openpyxl", extra="excel", why="Reading an Excel workbook")
    book = openpyxl.load_workbook(file.stream(), read_only=True, data_only=True, keep_links=False)
    try:
        sheets = book.sheetnames
        cells = pd.DataFrame(_sheet_rows(book.worksheets[0], file), dtype=object).fillna(float("nan"))
    finally:
        book.close()
    if cells.empty:
        raise FormatError(f"{file.name} has nothing in its first sheet {sheets[0]!r}.")
    notes = [] if len(sheets) == 1 else [f"read the first of {len(sheets)} sheets, {sheets[0]!r}."]
    if reading.header is False:
        names = [f"column {at + 1}" for at in range(cells.shape[1])]
        return cells.set_axis(names, axis=1).infer_objects(), notes
    first = cells.iloc[0]
    names = [f"column {at + 1}" if pd.isna(name) else str(name) for at, name in enumerate(first)]
    return cells.iloc[1:].set_axis(names, axis=1).reset_index(drop=True).infer_objects(), notes


# A row may claim any number, and all before it would be filled in: a sheet has no more than these.
_MOST_ROWS = 2**20


def _sheet_rows(sheet: Any, file: OpenedFile) -> list[list[Any]]:
    """Return the cells up to the last row and column that have any; one far away would fill in all before it."""
    rows: list[list[Any]] = []
    end = width = 0
    sheet.reset_dimensions()  # what it says of them itself may be wrong
    for cells in sheet.iter_rows(max_row=_MOST_ROWS):
        row = [_cell_value(cell) for cell in cells]
        while row and row[-1] is None:
            row.pop()
        rows.append(row)
        if row:
            end, width = len(rows), max(width, len(row))
            check_room(file.name, CELL * end * width, file.room)
    return [row + [None] * (width - len(row)) for row in rows[:end]]


def _cell_value(cell: Any) -> Any:
    """A whole number as such, and nothing for an empty cell or an error such as #DIV/0!."""
    value = None if cell.data_type == "e" or cell.value == "" else cell.value
    return int(value) if isinstance(value, float) and value.is_integer() else value


def from_arrow(table: Any, name: str, room: int = LARGEST_UNPACKED) -> pd.DataFrame:
    """Return an Arrow table in the types of `pandas.read_parquet`; columns of lists or records are refused, and more than fits."""
    check_flat(name, table.schema)
    try:
        table.validate(full=True)  # Arrow reads text that is not UTF-8, and fails on it much later
    except ValueError as error:
        raise FormatError(f"{name} is damaged: {first_line_of(error)}.") from error
    words = sum(map(words_size, table.columns))
    check_room(name, CELL * table.num_rows * table.num_columns + words, room)
    names = list(table.column_names)
    # The index that pandas once stored is not a column of the table. Numbers stand in for names, which may be doubled.
    for at, field in enumerate(table.schema):
        if "binary" in str(field.type):
            table.column(at).cast("large_binary").cast("large_string")  # refuses bytes that are not text
    plain = table.rename_columns([str(at) for at in range(len(names))]).replace_schema_metadata(None)
    frame: pd.DataFrame = plain.to_pandas()
    for at, dtype in _nullable_types(table.schema).items():
        frame[str(at)] = dtype.__from_arrow__(table.column(at))
    frame.columns = names
    return frame.loc[:, [not str(word).startswith("__index_level_") for word in names]]


def _nullable_types(schema: Any) -> dict[int, Any]:
    """Return the types of columns that pandas noted with a table, since Arrow does not tell a boolean from a bool."""
    import pandas as pd
    import pyarrow as pa

    try:
        noted = {one["field_name"]: one["numpy_type"] for one in (schema.pandas_metadata or {})["columns"]}
    except (ValueError, KeyError, TypeError):  # no note, or one that is not by pandas
        return {}
    found = {}
    for at, column in enumerate(schema):
        try:
            dtype = pd.api.types.pandas_dtype(noted.get(column.name))
        except (ValueError, TypeError):
            continue
        words = pa.types.is_string(column.type) or pa.types.is_large_string(column.type)
        if isinstance(dtype, pd.StringDtype):
            fits = words
        elif isinstance(dtype, pd.ArrowDtype):
            fits = dtype.pyarrow_dtype == column.type
        else:
            # Another file of the table may have made a wider type of it.
            numbers = getattr(dtype, "numpy_dtype", None)
            fits = numbers is not None and pa.from_numpy_dtype(numbers) == column.type
        if fits:
            found[at] = dtype
    return found


_READERS = {
    "CSV": read_text,
    "Parquet": _read_parquet,
    "Arrow": _read_arrow,
    "JSON lines": _read_json_lines,
    "JSON": _read_json,
    "Excel": _read_excel,
}
