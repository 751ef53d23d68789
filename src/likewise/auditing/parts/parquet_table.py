"""Parquet files as one table of people, cut into parts that can be read on their own."""

from __future__ import annotations

import glob
import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.fs as fs
import pyarrow.parquet as pq

from likewise.auditing.support.frontier import Ints
from likewise.core.errors import InputError

__all__ = ["PART_ROWS", "ParquetTable", "Part", "Rows", "parquet_files", "parts_of"]

# Rows of a part: small row groups go together up to this, larger ones are cut.
PART_ROWS = 131_072
_BATCH = 65_536

Rows = tuple[pd.DataFrame, np.ndarray[Any, Any]]


@dataclass(frozen=True)
class Part:
    """Some neighbouring rows of one file.

    Parameters
    ----------
    index : int
        Number of the part.
    path : str
        The file.
    groups : tuple of int
        The row groups to read.
    start, stop : int
        Which of their rows.
    first : int
        Number of the first of them in the whole table.
    """

    index: int
    path: str
    groups: tuple[int, ...]
    start: int
    stop: int
    first: int

    @property
    def rows(self) -> int:
        """How many rows they are."""
        return self.stop - self.start


@dataclass(frozen=True)
class ParquetTable:
    """Parquet files as one table of people with a target column.

    Parameters
    ----------
    paths : tuple of str
        The files, in order.
    target : str
        Name of the target column.
    positive : object, optional
        The target's value that counts as 1, all others as 0; without it the target is used as it is.
    """

    paths: tuple[str, ...]
    target: str
    positive: Any = None

    @classmethod
    def find(cls, pattern: str | Path, y: Any) -> ParquetTable:
        """Find the files of a path, a folder or a glob pattern; `y` is the target's name or (name, positive value)."""
        paths = parquet_files(str(pattern))
        if not paths:
            raise InputError(f"audit: no file fits {str(pattern)!r}. Check the path of the Parquet files.")
        target, positive = y if isinstance(y, tuple) else (y, None)
        table = cls(paths, target, positive)
        if not isinstance(target, str) or target not in table.schema.names:
            raise InputError(
                f"audit: 'y' must name the target column of the Parquet files, got {target!r}. "
                f"Their columns: {', '.join(table.schema.names[:30])}."
            )
        return table

    @cached_property
    def schema(self) -> pa.Schema:
        """Columns and types: those of the first file."""
        return _footer(self.paths[0]).schema_arrow

    @property
    def n_rows(self) -> int:
        """Number of people."""
        return sum(part.rows for part in self.parts())

    def parts(self, rows: int = PART_ROWS) -> tuple[Part, ...]:
        """Cut the table into parts of about `rows` rows, after a look at the end of every file.

        Raises
        ------
        InputError
            A file is not there, cannot be read, or lacks a column of the first one.
        """
        parts: list[Part] = []
        first, wanted = 0, set(self.schema.names)
        for path in self.paths:
            footer = _footer(path)
            lacking = sorted(wanted - set(footer.schema_arrow.names))
            if lacking:
                raise InputError(f"audit: {path} has no column {lacking[0]!r}, which {self.paths[0]} has.")
            sizes = [footer.metadata.row_group(k).num_rows for k in range(footer.metadata.num_row_groups)]
            for groups, start, stop in _cuts(sizes, rows):
                parts.append(Part(len(parts), path, groups, start, stop, first))
                first += stop - start
        return tuple(parts)

    def batches(self, part: Part, columns: Sequence[str] | None = None) -> Iterator[pa.RecordBatch]:
        """Yield the rows of a part, some at a time, with the types of the first file."""
        seen = 0
        try:
            fragment = ds.ParquetFileFormat().make_fragment(
                part.path, fs.LocalFileSystem(), row_groups=list(part.groups)
            )
            given = None if columns is None else list(columns)
            scanned = fragment.to_batches(
                schema=self.schema, columns=given, batch_size=_BATCH, batch_readahead=1, use_threads=False
            )
            for batch in scanned:
                low, high = max(part.start - seen, 0), min(part.stop - seen, batch.num_rows)
                seen += batch.num_rows
                if low < high:
                    yield batch.slice(low, high - low)
                if seen >= part.stop:
                    return
        except (pa.ArrowException, OSError) as error:
            raise InputError(f"audit: {part.path} cannot be read: {error}") from error
        if seen < part.stop:
            raise InputError(
                f"audit: {part.path} has fewer rows than before. Do not write to it during an audit."
            )

    def chunks(self, part: Part, rows: int) -> Iterator[Rows]:
        """Yield people and labels of a part, at most `rows` at a time."""
        waiting: list[pa.RecordBatch] = []
        room = rows
        for batch in self.batches(part):
            while batch.num_rows:
                head = batch.slice(0, room)
                waiting.append(head)
                room -= head.num_rows
                batch = batch.slice(head.num_rows)
                if not room:
                    yield self._split(pa.Table.from_batches(waiting))
                    waiting, room = [], rows
        if waiting:
            yield self._split(pa.Table.from_batches(waiting))

    def pick(self, part: Part, numbers: Ints) -> pa.Table:
        """Return some people of a part, with the target, by their rising numbers in the whole table."""
        local, seen, found = numbers - part.first, 0, []
        for batch in self.batches(part):
            inside = local[(local >= seen) & (local < seen + batch.num_rows)] - seen
            found.append(batch.take(pa.array(inside)))
            seen += batch.num_rows
        return pa.Table.from_batches(found)

    def take(self, numbers: Ints) -> Rows:
        """Return some people by number, in the order asked for, one part in memory at a time."""
        order = np.argsort(numbers, kind="stable")
        wanted = parts_of(numbers[order], self.parts())
        return self.joined([self.pick(part, some) for part, some in wanted], np.argsort(order, kind="stable"))

    def joined(self, picked: Sequence[pa.Table], order: Any = None) -> Rows:
        """Return people and labels that `pick` gave, one below the other or in an order."""
        table = pa.concat_tables(picked).unify_dictionaries()
        return self._split(table if order is None else table.take(pa.array(order)))

    def _split(self, table: pa.Table) -> Rows:
        frame = table.to_pandas(use_threads=False)
        labels = frame.pop(self.target)
        if self.positive is not None:
            labels = (labels == self.positive).astype(np.int64)
        return frame, labels.to_numpy()


def parts_of(numbers: Ints, parts: Sequence[Part]) -> list[tuple[Part, Ints]]:
    """Say which of some rising row numbers lie in which part."""
    ends = np.searchsorted(numbers, [part.first + part.rows for part in parts])
    starts = np.concatenate([[0], ends[:-1]]).astype(np.int64)
    return [
        (part, numbers[low:high]) for part, low, high in zip(parts, starts, ends, strict=True) if low < high
    ]


def parquet_files(pattern: str) -> tuple[str, ...]:
    """Return the files of a path, a folder (all files below that end in .parquet) or a glob pattern, sorted."""
    if Path(pattern).is_dir():
        found = [str(path) for path in Path(pattern).glob("**/*.parquet")]
    else:
        found = glob.glob(pattern, recursive=True)  # noqa: PTH207 (the pattern may be absolute)
    # A worker of an engine may have another working directory.
    return tuple(sorted(str(Path(path).absolute()) for path in found))


def _footer(path: str) -> pq.ParquetFile:
    try:
        return pq.ParquetFile(path)
    except FileNotFoundError as error:
        raise InputError(f"audit: there is no file {path!r}. A part of the table is missing.") from error
    except (pa.ArrowException, OSError) as error:
        raise InputError(f"audit: {path} is no readable Parquet file: {error}") from error


def _cuts(sizes: Sequence[int], rows: int) -> Iterator[tuple[tuple[int, ...], int, int]]:
    """Yield row groups, start and stop: small groups together, large ones in equal pieces."""
    waiting: list[int] = []
    for k, size in enumerate(sizes):
        held = sum(sizes[g] for g in waiting)
        if waiting and held + size > rows:
            yield tuple(waiting), 0, held
            waiting, held = [], 0
        if size > rows:
            edges = np.linspace(0, size, -(-size // rows) + 1).astype(int).tolist()
            yield from (((k,), low, high) for low, high in itertools.pairwise(edges))
        elif size:
            waiting.append(k)
    if waiting:
        yield tuple(waiting), 0, sum(sizes[g] for g in waiting)
