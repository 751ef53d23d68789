"""A table that a browser sent: held against the limits before it is read, and its columns listed for a choice."""

from __future__ import annotations

import io
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from likewise.core.errors import FormatError, InputError, LikewiseError
from likewise.serving.limits import Limits
from likewise.tables import MemoryFile, look_at_columns, read_table
from likewise.tables.opening import OpenedFile, open_file

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["Upload", "open_upload"]

# Different values that are listed of a column, for the choice of the one that counts as 1.
_VALUES = 12
_LONGEST_NAME = 200
_SMALLER = "Take fewer people, or use the command line: likewise audit."


@dataclass(frozen=True, eq=False)
class Upload:
    """An uploaded table that can be audited.

    Parameters
    ----------
    number : int
    file : MemoryFile
        With its bytes; nothing is written.
    people : int
    columns : list of dict
        ``name``, ``kind``, ``values`` (as text, of columns with few), ``missing``.
    notes : tuple of str
        What the reader changed.
    """

    number: int
    file: MemoryFile
    people: int
    columns: list[dict[str, Any]]
    notes: tuple[str, ...] = ()

    def document(self) -> dict[str, Any]:
        """Return it as plain JSON, without its rows."""
        return {
            "table": self.number,
            "name": self.file.name,
            "people": self.people,
            "columns": self.columns,
            "notes": list(self.notes),
        }


def open_upload(number: int, name: str, data: bytes, limits: Limits) -> Upload:
    r"""Read a table that a browser sent.

    Parameters
    ----------
    number : int
    name : str
        What the browser calls the file; only shown.
    data : bytes
    limits : Limits

    Raises
    ------
    InputError, FormatError
        It is too large, or no CSV or Parquet table.

    Examples
    --------
    >>> found = open_upload(1, "people.csv", b"age,sex\n20,F\n30,M\n40,M\n", Limits())
    >>> found.people, [column["name"] for column in found.columns]
    (3, ['age', 'sex'])
    """
    short = "".join(c if c.isprintable() else " " for c in name).strip()[:_LONGEST_NAME] or "the table"
    file = MemoryFile(short, data, largest=limits.unpacked_bytes)
    opened = open_file(file)
    if opened.kind == "CSV":
        _check_text(opened, limits)
    elif opened.kind == "Parquet":
        _check_parquet(opened, limits)
    else:
        raise FormatError(f"{short} is {opened.kind}. Upload CSV or Parquet.")
    found = read_table(file)
    _check_size(short, len(found.frame), found.frame.shape[1], limits)
    columns = [_column(found.frame[look.name], look.plan.kind) for look in look_at_columns(found.frame)]
    return Upload(number, file, len(found.frame), columns, found.notes)


def _column(series: pd.Series[Any], kind: str) -> dict[str, Any]:
    different = series.dropna().unique()
    few = len(different) <= _VALUES
    return {
        "name": str(series.name),
        "kind": kind,
        "values": sorted(_written(value) for value in different.tolist()) if few else None,
        "missing": int(series.isna().sum()),
    }


def _written(value: Any) -> str:
    whole = isinstance(value, float) and value.is_integer()
    return str(int(value) if whole else value)[:_LONGEST_NAME]


def _check_size(name: str, people: int, columns: int, limits: Limits) -> None:
    for what, found, most in (
        ("people", people, limits.people),
        ("columns", columns, limits.columns),
        ("cells", people * columns, limits.cells),
    ):
        if found > most:
            raise InputError(
                f"{name} has {found:,} {what}, and this server takes {most:,} at most. {_SMALLER}"
            )


def _check_text(file: OpenedFile, limits: Limits) -> None:
    """Count lines and cells before a parser makes columns of them; lines inside of quotes count too."""
    assert isinstance(file.source, bytes)  # it came without a path
    text = file.source
    lines = max(text.count(b"\n"), text.count(b"\r"))
    header = text[: _first_end(text)]
    cells = 1 + max(header.count(sign) for sign in (b",", b";", b"\t", b"|"))
    _check_size(file.name, max(lines - 1, 0), cells, limits)


def _first_end(text: bytes) -> int:
    ends = [at for at in (text.find(b"\n"), text.find(b"\r")) if at >= 0]
    return min(ends, default=len(text))


def _check_parquet(file: OpenedFile, limits: Limits) -> None:
    """Look at what a Parquet file says of itself, and at the words it repeats, before it is unpacked."""
    import pyarrow as pa
    import pyarrow.compute as pc
    import pyarrow.parquet as pq

    assert isinstance(file.source, bytes)  # it came without a path
    try:
        about = pq.ParquetFile(io.BytesIO(file.source))
        metadata = about.metadata
        _check_size(file.name, metadata.num_rows, metadata.num_columns, limits)
        size = sum(metadata.row_group(k).total_byte_size for k in range(metadata.num_row_groups))
        if size > limits.unpacked_bytes:
            raise _too_large(file.name, limits)
        leaves = [metadata.schema.column(k) for k in range(metadata.num_columns)]
        words = [leaf.path for leaf in leaves if leaf.physical_type == "BYTE_ARRAY"]
        if not words:
            return
        # Words that repeat are stored once, and would be written out for every row.
        stored = pq.ParquetFile(io.BytesIO(file.source), read_dictionary=words).read(columns=words)
        total = 0
        for column in stored.columns:
            for chunk in column.chunks:
                if isinstance(chunk, pa.DictionaryArray):
                    lengths = pc.binary_length(chunk.dictionary.cast(pa.large_binary()))
                    total += pc.sum(pc.take(lengths, chunk.indices)).as_py() or 0
        if total > limits.unpacked_bytes:
            raise _too_large(file.name, limits)
    except LikewiseError:
        raise
    except (pa.ArrowException, OSError, ValueError, KeyError) as error:
        line = (str(error).strip().splitlines() or [type(error).__name__])[0]
        raise FormatError(f"{file.name} is no readable Parquet table: {line[:200].rstrip('.')}.") from error


def _too_large(name: str, limits: Limits) -> InputError:
    return InputError(
        f"{name} holds more than {limits.unpacked_bytes / 2**20:g} MB when unpacked. {_SMALLER}"
    )
