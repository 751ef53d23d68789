"""The kind of a table file, found from its content; compressed files are unpacked in memory."""

from __future__ import annotations

import codecs
import io
import zipfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, Literal, get_args

from likewise.core.errors import FormatError, InputError
from likewise.core.files import check_file
from likewise.core.text import option
from likewise.data.table_limits import room_for, written_size

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
            f"{name} is a damaged {packing} file: {str(error).splitlines()[0]}. Pack the table again."
        ) from error
    if len(data) > largest:
        raise FormatError(
            f"{name} holds more than {written_size(largest)}. Unpack it first, or save it as Parquet."
        )
    return data
