"""The kind of a table file, found from its content; compressed files are unpacked in memory, within limits."""

from __future__ import annotations

import codecs
import io
import os
import re
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, Literal, get_args

import numpy as np

from likewise.core.errors import FormatError, InputError, first_line_of
from likewise.core.files import check_file
from likewise.core.text import option, truncated

# Settings of the user about how a file is read.


Doubled = Literal["drop", "number"]


@dataclass(frozen=True)
class Reading:
    """How a file is read, if that cannot be seen.

    Parameters
    ----------
    encoding : str, optional
        Of the text: ``"latin-1"``, ``"cp1252"``, … By default UTF-8, or UTF-16 if a mark says so.
    decimal : {".", ","}, optional
        What stands before the decimals. By default it is seen from the cells.
    header : bool, optional
        Whether the first line names the columns. By default it is asked about if it looks like values.
    doubled : {"drop", "number"}, default="drop"
        Columns of the same name: later copies with the same values are dropped (different ones are an error), or all
        later ones get a number.
    ignore : tuple of str
        Columns to leave out, all of that name if there are several.
    categorical : tuple of str
        Columns whose numbers are codes; those of a text with leading zeros stay as they are written.

    Examples
    --------
    >>> Reading(encoding="latin-1").encoding
    'latin-1'
    >>> Reading(encoding="latin-99")
    Traceback (most recent call last):
    ...
    likewise.core.errors.InputError: encoding: 'latin-99' is not a text encoding that Python knows. Common ones: utf-8, latin-1, cp1252, utf-16.
    """

    encoding: str | None = None
    decimal: str | None = None
    header: bool | None = None
    doubled: Doubled = "drop"
    ignore: tuple[str, ...] = ()
    categorical: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if self.encoding is None:
            return
        try:
            known = codecs.lookup(self.encoding)
        except LookupError as error:
            raise InputError(
                f"{option('encoding')}: {self.encoding!r} is not a text encoding that Python knows. "
                "Common ones: utf-8, latin-1, cp1252, utf-16."
            ) from error
        # Some codecs of Python turn bytes into bytes, such as base64.
        if not getattr(known, "_is_text_encoding", True):
            raise InputError(f"{option('encoding')}: {self.encoding!r} is not an encoding of text.")


# What to do with missing cells.
Policy = Literal["auto", "keep", "drop", "category", "impute"]


@dataclass(frozen=True)
class TableChoices(Reading):
    """What the user says about a table."""

    only: tuple[str, ...] = ()
    keep: tuple[str, ...] = ()
    integer: tuple[str, ...] = ()
    columns: Path | None = None
    missing: str = "auto"  # one of Policy
    empty: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.missing not in get_args(Policy):
            allowed = ", ".join(map(repr, get_args(Policy)))
            raise InputError(f"{option('missing')} must be one of {allowed}, got {self.missing!r}.")

    @property
    def named(self) -> dict[str, tuple[str, ...]]:
        """Options that name columns, and the columns."""
        keys = ("ignore", "only", "keep", "categorical", "integer")
        return {option(key): getattr(self, key) for key in keys}


Kind = Literal["Parquet", "Arrow", "CSV", "JSON lines", "JSON", "Excel"]

HEAD = 65_536
# What a compressed file or a workbook may become.
LARGEST_UNPACKED = 2**30
_LEAST_BOOK = 2**25
_WRITE = "Save it as CSV, Parquet, Arrow, JSON lines or Excel."
_PACKED = {b"\x1f\x8b": "gzip", b"\x28\xb5\x2f\xfd": "zstd"}
_MARKS = ((b"PAR1", "Parquet"), (b"ARROW1", "Arrow"))
_OTHER = {
    b"\xd0\xcf\x11\xe0": "an old Excel workbook (.xls)",
    b"BZh": "compressed with bzip2; unpack it first",
    b"\xfd7zXZ": "compressed with xz; unpack it first",
    b"\x89HDF": "an HDF5 file",
    b"%PDF": "a PDF document",
    b"\x80\x04": "a pickle, which can run code when it is loaded",
    b"\x80\x05": "a pickle, which can run code when it is loaded",
    b"SQLite format 3": "a database",
    b"FEA1": "Feather of version 1",
}
_WEB = (b"<!doctype", b"<html", b"<?xml", b"<!--", b"<head", b"<body", b"<script", b"<table")
_WIDE = (b"\xff\xfe", b"\xfe\xff")


@dataclass(frozen=True, eq=False)
class MemoryFile:
    r"""A file that came without a path, such as an upload: read where it is, never written.

    Parameters
    ----------
    name : str
        For messages.
    data : bytes
    largest : int, default=2**30
        Bytes that it may become when it is unpacked.

    Examples
    --------
    >>> open_file(MemoryFile("people.txt", b"age,sex\n20,F\n")).kind
    'CSV'
    """

    name: str
    data: bytes
    largest: int = LARGEST_UNPACKED


@dataclass(frozen=True, eq=False)
class OpenedFile:
    """A file whose kind is known."""

    name: str
    kind: Kind
    source: Path | bytes
    room: int = LARGEST_UNPACKED

    def stream(self) -> Any:
        """Return what a reader takes: the path, or a stream of the unpacked content."""
        return self.source if isinstance(self.source, Path) else io.BytesIO(self.source)

    def opened(self) -> BinaryIO:
        """Return a stream of the unpacked content, to be closed."""
        return self.source.open("rb") if isinstance(self.source, Path) else io.BytesIO(self.source)

    def whole(self) -> bytes:
        """Return all bytes."""
        return self.source if isinstance(self.source, bytes) else self.source.read_bytes()

    def head(self, size: int = HEAD) -> bytes:
        """Return the first bytes."""
        with self.opened() as stream:
            return stream.read(size)


def open_file(path: Path | MemoryFile) -> OpenedFile:
    r"""Find out what a file is."""
    if isinstance(path, MemoryFile):
        return _opened(path.name, path.data[:HEAD], path.data, path.largest, path.largest)
    with check_file(path).open("rb") as stream:
        head = stream.read(HEAD)
    return _opened(path.name, head, path, LARGEST_UNPACKED, room_for(path.stat().st_size))


def _opened(name: str, head: bytes, source: Path | bytes, largest: int, room: int) -> OpenedFile:
    packing = next((how for mark, how in _PACKED.items() if head.startswith(mark)), None)
    if packing is None:
        return OpenedFile(name, _kind(name, head, source, largest), source, room)
    data = _unpacked(name, source, packing, min(largest, room))
    return OpenedFile(name, _kind(name, data[:HEAD], data, largest), data, room)


def _kind(name: str, head: bytes, source: Path | bytes, largest: int) -> Kind:
    if not head.strip():
        raise FormatError(f"{name} is empty. Pass a table with people in it.")
    for mark, kind in _MARKS:
        if head.startswith(mark):
            return kind  # type: ignore[return-value]
    if head.startswith(b"PK\x03\x04"):
        return _excel(name, source, largest)
    for mark, said in _OTHER.items():
        if head.startswith(mark):
            raise FormatError(f"{name} is {said}, not a table that likewise reads. {_WRITE}")
    start = head[:2048].lstrip(b"\xef\xbb\xbf \t\r\n")
    if start.lower().startswith(_WEB):
        raise FormatError(f"{name} is a web page, not a table. Download the file itself. {_WRITE}")
    if start.startswith(b"{"):
        return "JSON lines"
    if start.startswith(b"[") and start[1:].lstrip().startswith(b"{"):
        return "JSON"
    if b"\x00" in head and not head.startswith(_WIDE):
        raise FormatError(f"{name} is neither text nor a table that likewise knows. {_WRITE}")
    return "CSV"


def _excel(name: str, source: Path | bytes, largest: int) -> Kind:
    try:
        with zipfile.ZipFile(source if isinstance(source, Path) else io.BytesIO(source)) as archive:
            parts = archive.infolist()
    except (zipfile.BadZipFile, OSError, ValueError, NotImplementedError) as error:
        raise FormatError(f"{name} is a damaged zip archive or workbook: {error}. {_WRITE}") from error
    if not any(part.filename.startswith("xl/") for part in parts):
        raise FormatError(f"{name} is a zip archive. Unpack it first, and pass one table.")
    # Some minutes of reading may not be asked for by a small file; what people save is a tenth to a fiftieth when packed.
    most = min(largest, max(_LEAST_BOOK, 64 * sum(part.compress_size for part in parts)))
    if sum(part.file_size for part in parts) > most:
        raise FormatError(
            f"{name} is a workbook of more than {written_size(most)} when unpacked. Save it as Parquet or CSV."
        )
    return "Excel"


def _unpacked(name: str, source: Path | bytes, packing: str, largest: int) -> bytes:
    import pyarrow as pa

    packed = pa.OSFile(str(source), "rb") if isinstance(source, Path) else pa.BufferReader(source)
    try:
        with packed as file, pa.CompressedInputStream(file, packing) as stream:
            data: bytes = stream.read(largest + 1)
    except (OSError, ValueError) as error:
        raise FormatError(
            f"{name} is a damaged {packing} file: {first_line_of(error)}. Pack the table again."
        ) from error
    if len(data) > largest:
        raise FormatError(
            f"{name} holds more than {written_size(largest)}. Unpack it first, or save it as Parquet."
        )
    return data


# Limits on the memory of an untrusted table, checked before a parser allocates it.


# Bytes in memory: of any table, and of one that is large in its file already.
_LEAST_ROOM, _SPREAD = 2**29, 32
# A cell of any type in a data frame, at least.
CELL = 8
# A record of a JSON text as Python holds it, or one of its cells.
RECORD = 100
# Each column costs a tenth of a millisecond, whatever is in it.
_MOST_COLUMNS = 50_000
# Nested columns are refused anyway; parsers that call themselves for each level end in a crash first.
_DEEPEST = 16
_WORD = re.compile(rb'"(?:[^"\\]|\\.)*+"', re.DOTALL)
# Nothing stands in anything without one of these, in words or out of them.
_NESTED = re.compile(rb"\[|:\s*\{")
_KEY = re.compile(rb'"((?:[^"\\]|\\.)*+)"\s*:')
_BLOCK = 2**22


def room_for(size: int) -> int:
    """Return how many bytes a table may take in memory whose file has so many; LIKEWISE_TABLE_GB says another number."""
    given = os.environ.get("LIKEWISE_TABLE_GB", "")
    try:
        return int(float(given) * 2**30)
    except ValueError:
        return max(_LEAST_ROOM, _SPREAD * size)


def check_room(name: str, needed: int, room: int) -> None:
    """Raise if a table would take more memory than its file may ask for."""
    if needed > room:
        raise FormatError(
            f"{name} would take {written_size(needed)} in memory, and {written_size(room)} are allowed for a file of its size. "
            f"Take fewer rows or columns, or allow it: LIKEWISE_TABLE_GB={-(-needed // 2**30)}."
        )


def check_width(name: str, columns: int) -> None:
    """Raise if a table has more columns than anybody can look at."""
    if columns > _MOST_COLUMNS:
        raise FormatError(
            f"{name} has {columns:,} columns, and at most {_MOST_COLUMNS:,} are read. Save those that matter."
        )


def written_size(size: int) -> str:
    """Write a number of bytes as people do."""
    return f"{size / 2**30:.3g} GB" if size >= 2**30 else f"{size / 2**20:.3g} MB"


def nesting(text: bytes) -> int:
    """Return how deep arrays and objects of a JSON text stand in each other; it is not parsed for that."""
    start = depth = deepest = 0
    size = _BLOCK
    while start < len(text):
        end = start + size
        signs = _WORD.sub(b"", text[start:end])
        # A word that the block cuts in two is looked at again in the next one.
        rest = len(signs) - signs.find(b'"') if end < len(text) and b'"' in signs else 0
        if rest == size:
            size *= 2
            continue
        found = np.frombuffer(signs, dtype=np.uint8, count=len(signs) - rest)
        step = np.isin(found, (0x5B, 0x7B)).astype(np.int8) - np.isin(found, (0x5D, 0x7D)).astype(np.int8)
        deepest = max(deepest, depth + int(np.cumsum(step, dtype=np.int64).max(initial=0)))
        start, size, depth = end - rest, _BLOCK, depth + int(step.sum(dtype=np.int64))
    return deepest


def check_nesting(name: str, text: bytes) -> None:
    """Raise if a JSON text is nested deeper than any table is."""
    if _NESTED.search(text) and nesting(text) > _DEEPEST:
        raise FormatError(
            f"{name} is nested deeper than {_DEEPEST} levels. Save one plain record for each person."
        )


def check_keys(name: str, text: bytes, room: int) -> None:
    """Raise if the records of JSON lines have so many different names that a table of all of them would not fit.

    Of a long text some blocks are looked at.
    """
    starts = range(0, len(text), max(len(text) // 256, _BLOCK // 64))
    names = {word for start in starts for word in _KEY.findall(text, start, start + _BLOCK // 64)}
    check_room(name, CELL * len(names) * (text.count(b"\n") + 1), room)


def check_flat(name: str, schema: Any) -> None:
    """Raise if an Arrow schema has columns that hold lists or records, or too many."""
    import pyarrow as pa

    check_width(name, len(schema))
    nested = [field.name for field in schema if pa.types.is_nested(field.type)]
    if nested:
        raise FormatError(
            f"{name} has columns that hold lists or records: {truncated([repr(word) for word in nested])}. Spread them "
            "over plain columns."
        )


def read_parquet(name: str, stream: Any, room: int) -> Any:
    """Return the Arrow table of a Parquet file once it is known to fit.

    Words that a file stores once are read as they are stored, and written out for every row after they were counted.
    """
    import pyarrow.parquet as pq

    about = pq.ParquetFile(stream)
    metadata, schema = about.metadata, about.schema_arrow
    check_flat(name, schema)
    leaves = [metadata.schema.column(at) for at in range(metadata.num_columns)]
    widths = [max(leaf.length or 0, CELL) for leaf in leaves]
    stored = sum(metadata.row_group(at).total_byte_size for at in range(metadata.num_row_groups))
    fixed = metadata.num_rows * sum(widths)
    check_room(name, max(stored, fixed), room)
    words = [leaf.path for leaf in leaves if leaf.physical_type == "BYTE_ARRAY"]
    if not words:
        return about.read()
    if hasattr(stream, "seek"):
        stream.seek(0)
    table = pq.ParquetFile(stream, read_dictionary=words).read()
    needed = fixed
    for at, field in enumerate(schema):
        column = table.column(at)
        if str(column.type).startswith("dictionary"):
            needed += words_size(column)
            check_room(name, needed, room)
            if column.type != field.type:
                table = table.set_column(at, field.name, column.cast(field.type))
    return table


def words_size(column: Any) -> int:
    """Return how many bytes the words of an Arrow column take that are stored once and written out for every row."""
    import pyarrow.compute as pc

    kind, size = str(column.type), 0
    for chunk in column.chunks:
        if kind.startswith("dictionary<values=") and any(word in kind for word in ("string", "binary")):
            lengths = pc.binary_length(chunk.dictionary.cast("large_binary"))
            size += pc.sum(pc.take(lengths, chunk.indices)).as_py() or 0
        elif kind in ("string_view", "binary_view"):  # length, first signs, and where the rest stands
            views = np.frombuffer(chunk.buffers()[1], np.int32).reshape(-1, 4)
            size += int(views[chunk.offset : chunk.offset + len(chunk), 0].sum(dtype=np.int64))
    return size


def read_arrow(name: str, source: Any, room: int) -> Any:
    """Return the table of an Arrow file whose offsets lie inside of its buffers; nothing is mapped."""
    import pyarrow as pa

    with pa.OSFile(str(source)) if isinstance(source, Path) else pa.BufferReader(source) as stream:
        reader = pa.ipc.open_file(stream)
        check_flat(name, reader.schema)
        batches, needed = [], 0
        for at in range(reader.num_record_batches):
            batch = reader.get_batch(at)
            needed += max(batch.num_rows, 0) * CELL * max(batch.num_columns, 1)
            check_room(name, needed, room)
            batch.validate(full=True)
            batches.append(batch)
        return pa.Table.from_batches(batches, reader.schema)


@contextmanager
def memory_limit(room: int) -> Iterator[None]:
    """Run a block that may take so much more memory than there is now, if the system can hold a process to that.

    For what no look at a file tells, such as packed buffers. It counts for the whole process, so leave others some room.
    """
    try:
        import resource

        pages = int(Path("/proc/self/statm").read_text().split()[5])
        before = resource.getrlimit(resource.RLIMIT_DATA)
        wanted = pages * resource.getpagesize() + room
        if before[0] != resource.RLIM_INFINITY:
            wanted = min(wanted, before[0])
        resource.setrlimit(resource.RLIMIT_DATA, (wanted, before[1]))
    except (ImportError, OSError, ValueError, IndexError):
        yield
        return
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_DATA, before)
