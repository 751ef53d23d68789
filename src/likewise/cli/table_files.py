"""Tables from files: CSV, Parquet and Arrow, told apart by their content; what is wrong is said in one sentence."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from likewise.core.errors import FormatError, InputError

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["read_table", "table_rows"]

# An empty cell and the common words for "nothing here". "None" is not among them: it is a category in many tables.
MISSING = ["", "NA", "N/A", "NaN", "nan", "null", "NULL", "<NA>"]
SEPARATORS = ",;\t|"
_HEAD = 65_536
_WRITE = "Save it as CSV (UTF-8), Parquet or Arrow."
_OTHER = {
    b"PK\x03\x04": "a zip archive or an Excel workbook",
    b"\xd0\xcf\x11\xe0": "an old Excel workbook",
    b"\x1f\x8b": "compressed with gzip; unpack it first",
    b"\x89HDF": "an HDF5 file",
    b"%PDF": "a PDF document",
    b"\x80\x04": "a pickle, which can run code when it is loaded",
    b"\x80\x05": "a pickle, which can run code when it is loaded",
    b"SQLite format 3": "a database",
}


def read_table(path: Path, *, columns: Sequence[str] | None = None) -> pd.DataFrame:
    """Read a table of people.

    Parameters
    ----------
    path : Path
        CSV with a header (separated by comma, semicolon, tab or bar), Parquet, or Arrow (IPC file or Feather).
    columns : sequence of str, optional
        Read these only, where the format allows it.

    Returns
    -------
    DataFrame

    Raises
    ------
    FormatError
        The file is no table, or a damaged one.
    """
    kind = _kind(path)
    try:
        frame = _READERS[kind](path, columns)
    except (FormatError, InputError):
        raise
    except (OSError, ValueError, TypeError, KeyError, NotImplementedError, MemoryError) as error:
        raise FormatError(f"{path.name} is no readable {kind} table: {_first_line(error)}") from error
    if len(frame) == 0:
        raise InputError(f"{path.name} has no rows. Pass a table with people in it.")
    return frame


def table_rows(path: Path) -> int | None:
    """Return the number of rows where the file says so without being read (Parquet), else None."""
    if _kind(path) != "Parquet":
        return None
    import pyarrow.parquet as pq

    try:
        return int(pq.ParquetFile(path).metadata.num_rows)
    except (OSError, ValueError) as error:
        raise FormatError(f"{path.name} is no readable Parquet table: {_first_line(error)}") from error


def _kind(path: Path) -> str:
    if not path.exists():
        raise InputError(f"There is no file {str(path)!r}. Check the path.")
    if not path.is_file():
        raise InputError(f"{str(path)!r} is a folder or a device. Pass one file.")
    with path.open("rb") as stream:
        head = stream.read(_HEAD)
    if not head.strip():
        raise FormatError(f"{path.name} is empty. Pass a table with people in it.")
    if head.startswith(b"PAR1"):
        return "Parquet"
    if head.startswith((b"ARROW1", b"FEA1")):
        return "Arrow"
    for mark, said in _OTHER.items():
        if head.startswith(mark):
            raise FormatError(f"{path.name} is {said}, not a table that likewise reads. {_WRITE}")
    start = head[:2048].lstrip(b"\xef\xbb\xbf \t\r\n").lower()
    if start.startswith(
        (b"<!doctype", b"<html", b"<?xml", b"<!--", b"<head", b"<body", b"<script", b"<table")
    ):
        raise FormatError(f"{path.name} is a web page, not a table. Download the file itself. {_WRITE}")
    if start.startswith((b'{"', b"[{", b"[\n", b"{\n")):
        raise FormatError(f"{path.name} is JSON, not a table that likewise reads. {_WRITE}")
    if b"\x00" in head:
        raise FormatError(f"{path.name} is no text and no table that likewise knows. {_WRITE}")
    return "CSV"


def _read_csv(path: Path, columns: Sequence[str] | None) -> pd.DataFrame:
    import pandas as pd

    separator, header = _header(path)
    _check_header(path, header)
    try:
        frame = pd.read_csv(
            path,
            sep=separator,
            encoding="utf-8-sig",
            keep_default_na=False,
            na_values=MISSING,
            skipinitialspace=True,
            usecols=None if columns is None else [name for name in header if name in set(columns)],
        )
    except UnicodeDecodeError as error:
        raise FormatError(
            f"{path.name} is not UTF-8 text ({error.reason} at byte {error.start}). {_WRITE}"
        ) from error
    except pd.errors.ParserError as error:
        raise FormatError(
            f"{path.name} is no rectangular CSV: {_first_line(error)}. Every row must have {len(header)} cells; "
            "quote cells that contain the separator."
        ) from error
    if not isinstance(frame.index, pd.RangeIndex):
        raise FormatError(
            f"{path.name} has more cells in its rows than names in its header ({len(header)}). Name every column."
        )
    return frame


def _header(path: Path) -> tuple[str, list[str]]:
    """Find the separator that cuts the first line into the most columns, and the names."""
    with path.open("rb") as stream:
        line = stream.readline(1_000_000)
    try:
        text = line.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise FormatError(
            f"{path.name} is not UTF-8 text ({error.reason} at byte {error.start}). {_WRITE}"
        ) from error
    cut = {
        sep: next(csv.reader(io.StringIO(text), delimiter=sep, skipinitialspace=True), [])
        for sep in SEPARATORS
    }
    separator = max(SEPARATORS, key=lambda sep: len(cut[sep]))
    return separator, cut[separator]


def _check_header(path: Path, header: Sequence[str]) -> None:
    twice = sorted({name for name in header if header.count(name) > 1})
    if twice:
        raise FormatError(f"{path.name} has two columns of the same name: {twice[0]!r}. Rename one.")
    blank = [i + 1 for i, name in enumerate(header) if not name.strip()]
    if blank:
        raise FormatError(
            f"{path.name} has no name for column {blank[0]} in its first line. Name every column."
        )
    if all(_is_number(name) for name in header):
        raise FormatError(
            f"{path.name} has only numbers in its first line, so it has no header. Put the column names there."
        )


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _read_parquet(path: Path, columns: Sequence[str] | None) -> pd.DataFrame:
    import pyarrow.parquet as pq

    file = pq.ParquetFile(path)
    known = file.schema_arrow.names
    table = file.read(columns=None if columns is None else [name for name in known if name in set(columns)])
    return _from_arrow(table, path)


def _read_arrow(path: Path, columns: Sequence[str] | None) -> pd.DataFrame:
    from pyarrow import feather

    known = None if columns is None else list(columns)
    return _from_arrow(feather.read_table(path, columns=known, memory_map=True), path)


def _from_arrow(table: Any, path: Path) -> pd.DataFrame:
    import pyarrow as pa

    names = table.column_names
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise FormatError(f"{path.name} has two columns of the same name: {twice[0]!r}. Rename one.")
    nested = [field.name for field in table.schema if pa.types.is_nested(field.type)]
    if nested:
        raise FormatError(
            f"{path.name}: column {nested[0]!r} holds lists or records. Spread it over plain columns."
        )
    # The index that pandas once stored is no column of the table.
    frame: pd.DataFrame = table.replace_schema_metadata(None).to_pandas()
    return frame.drop(columns=[name for name in frame.columns if str(name).startswith("__index_level_")])


def _first_line(error: BaseException) -> str:
    lines = str(error).strip().splitlines() or [type(error).__name__]
    return lines[0].rstrip(".")[:300]


_READERS = {"CSV": _read_csv, "Parquet": _read_parquet, "Arrow": _read_arrow}
