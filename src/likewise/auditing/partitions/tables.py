"""The unfair map of everybody as a folder of Parquet files that workers write: there as a whole, or not at all."""

from __future__ import annotations

import glob
import itertools
import shutil
import uuid
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
import pyarrow.fs as fs
import pyarrow.parquet as pq

from likewise.auditing.partitions.engine import Engine
from likewise.core.checks import IntArray
from likewise.core.errors import InputError
from likewise.data.tabular import TabularDomain

# Parquet files as one table of people, cut into parts that can be read on their own.


# Rows of a part: small row groups go together up to this, larger ones are cut.
PART_ROWS = 131_072
_BATCH = 65_536

Rows = tuple[pd.DataFrame, np.ndarray[Any, Any]]


@dataclass(frozen=True)
class Part:
    """Some neighbouring rows of one file."""

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
    """Parquet files as one table of people with a target column."""

    paths: tuple[str, ...]
    target: str
    favourable: Any = None

    @classmethod
    def find(cls, pattern: str | Path, y: Any) -> ParquetTable:
        """Find the files of a path, a folder or a glob pattern; `y` is the target's name or (name, favourable value)."""
        paths = parquet_files(str(pattern))
        if not paths:
            raise InputError(f"audit: no file fits {str(pattern)!r}. Check the path of the Parquet files.")
        target, favourable = y if isinstance(y, tuple) else (y, None)
        table = cls(paths, target, favourable)
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

    def parts(self, rows: int = PART_ROWS) -> tuple[Part, ...]:
        """Cut the table into parts of about `rows` rows, after a look at the end of every file."""
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

    def batches(self, part: Part) -> Iterator[pa.RecordBatch]:
        """Yield the rows of a part, some at a time, with the types of the first file."""
        seen = 0
        try:
            fragment = ds.ParquetFileFormat().make_fragment(
                part.path, fs.LocalFileSystem(), row_groups=list(part.groups)
            )
            scanned = fragment.to_batches(
                schema=self.schema, batch_size=_BATCH, batch_readahead=1, use_threads=False
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

    def pick(self, part: Part, numbers: IntArray) -> pa.Table:
        """Return some people of a part, with the target, by their rising numbers in the whole table."""
        local, seen, found = numbers - part.first, 0, []
        for batch in self.batches(part):
            inside = local[(local >= seen) & (local < seen + batch.num_rows)] - seen
            found.append(batch.take(pa.array(inside)))
            seen += batch.num_rows
        return pa.Table.from_batches(found)

    def take(self, numbers: IntArray) -> Rows:
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
        if self.favourable is not None:
            labels = (labels == self.favourable).astype(np.int64)
        return frame, labels.to_numpy()


def parts_of(numbers: IntArray, parts: Sequence[Part]) -> list[tuple[Part, IntArray]]:
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


# The first look at Parquet files: a sample of the people, and which values and ranges occur at all.


@dataclass(frozen=True, eq=False)
class Extent:
    """Which values, or from where to where, the columns of some rows have."""

    ranges: dict[str, tuple[float, float]] = field(default_factory=dict)
    values: dict[str, frozenset[Any]] = field(default_factory=dict)

    def with_batch(self, batch: pa.RecordBatch, listed: str | None = None) -> Extent:
        """Return the extent of these rows and those before; all values, None too, of a column that is listed."""
        ranges, values = {}, {}
        for name, column in zip(batch.schema.names, batch.columns, strict=True):
            kind = column.type
            if name == listed:
                values[name] = frozenset(pc.unique(column).to_pylist())
            elif pa.types.is_integer(kind) or pa.types.is_floating(kind):
                found = pc.min_max(column).as_py()
                if found["min"] is not None:
                    ranges[name] = (found["min"], found["max"])
            else:
                values[name] = frozenset(
                    value for value in pc.unique(column).to_pylist() if value is not None
                )
        return self.merge(Extent(ranges, values))

    def merge(self, other: Extent) -> Extent:
        """Return the extent of both."""
        ranges, values = dict(self.ranges), dict(self.values)
        for name, (low, high) in other.ranges.items():
            mine = ranges.get(name, (low, high))
            ranges[name] = (min(mine[0], low), max(mine[1], high))
        for name, seen in other.values.items():
            values[name] = values.get(name, frozenset()) | seen
        return Extent(ranges, values)

    def domain(self, sample: pd.DataFrame, immutable: tuple[str, ...] = ()) -> TabularDomain:
        """Return the domain of all that was seen; means and scales come from the sample."""
        ranges = {name: self.ranges[name] for name in sample.columns if name in self.ranges}
        values = {name: sorted(self.values[name]) for name in sample.columns if name in self.values}
        return TabularDomain.from_frame(
            sample, immutable=immutable, ranges=ranges or None, categories=values or None
        )


def survey(
    engine: Engine, table: ParquetTable, parts: Sequence[Part], draws: Sequence[IntArray], *, extent: bool
) -> tuple[list[Rows], Extent]:
    """Read samples of a table, and its extent where asked for, in one round."""
    numbers = np.unique(np.concatenate(list(draws)))
    inside = dict(parts_of(numbers, parts))
    items = [(part, inside.get(part, numbers[:0]), extent) for part in parts if extent or part in inside]
    found, seen = [], Extent()
    for rows, part_extent in engine.map(survey_part, table, items):
        found.append(rows)
        seen = seen.merge(part_extent)
    return [table.joined(found, np.searchsorted(numbers, draw)) for draw in draws], seen


def survey_part(table: ParquetTable, item: tuple[Part, IntArray, bool]) -> tuple[pa.Table, Extent]:
    """Return some people of a part, and its extent where asked for."""
    part, numbers, wanted = item
    rows = table.pick(part, numbers)
    extent = Extent()
    if wanted:
        for batch in table.batches(part):
            extent = extent.with_batch(batch, table.target)
    return rows, extent


class MapFolder:
    """A folder that gets its name when every part of the map is in it."""

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path).absolute()
        if self.path.exists() and not (self.path.is_dir() and not any(self.path.iterdir())):
            raise InputError(f"audit: {path} exists. Choose another folder for the unfair map, or remove it.")
        if not self.path.parent.is_dir():
            raise InputError(f"audit: the folder {self.path.parent} does not exist. Make it first.")
        self._temporary = self.path.parent / f".{self.path.name}-{uuid.uuid4().hex}"

    def open(self) -> Path:
        """Make the folder that parts are written to."""
        self._temporary.mkdir()
        return self._temporary

    def finish(self, parts: Sequence[Part]) -> None:
        """Give the folder its name, once the file of every part is seen in it."""
        found = len(list(self._temporary.glob("part-*.parquet")))
        if found != len(parts):
            raise InputError(
                f"audit: {len(parts)} files of the unfair map were written, but {found} are seen here. The folder "
                f"{self.path.parent} must be the same one on every machine."
            )
        if self.path.exists():
            self.path.rmdir()
        self._temporary.rename(self.path)

    def discard(self) -> None:
        """Remove what is not finished."""
        shutil.rmtree(self._temporary, ignore_errors=True)
