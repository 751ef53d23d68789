"""Limits on the memory of an untrusted table, checked before a parser allocates it."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from likewise.core.errors import FormatError
from likewise.core.text import truncated

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
