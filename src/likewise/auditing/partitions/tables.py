"""Parquet files as one table of people that is read part by part, and what has to be known of the whole of it first."""

from __future__ import annotations

import glob
import itertools
import shutil
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.fs as fs
import pyarrow.parquet as pq

from likewise.auditing.partitions.engine import Engine
from likewise.core.checks import BoolArray, IntArray
from likewise.core.errors import InputError
from likewise.core.frames import with_columns
from likewise.data.table_files import from_arrow

# Rows of a part: small row groups go together up to this, larger ones are cut.
PART_ROWS = 131_072
_BATCH = 65_536
# A column with more different words, or numbers, has no witness for each of them in the sample.
MOST_WORDS, MOST_NUMBERS = 4_096, 256
# Columns whose values are counted at once.
_COUNTED = 8

_NOBODY: IntArray = np.zeros(0, dtype=np.int64)


class Rows(NamedTuple):
    """People, their labels, and which of their sensitive cells were missing before they were filled."""

    frame: pd.DataFrame
    y: Any
    absent: pd.DataFrame | None = None


@dataclass(frozen=True)
class Part:
    """Some neighbouring rows of one file, and how many people and rows of the table come before them."""

    index: int
    path: str
    groups: tuple[int, ...]
    start: int
    stop: int
    first: int
    row: int
    rows: int


@dataclass(frozen=True, eq=False)
class Sample:
    """People of a table, among them the first of every value, the ends of every number and a missing cell of each column."""

    rows: Rows
    # Who was drawn at random, not looked for.
    random: BoolArray


@dataclass(frozen=True, eq=False)
class ParquetTable:
    """Parquet files as one table of people with a target column, or without one.

    `dtypes` are those that columns have in the whole table: a part without missing cells may have others. `clean` empties
    the cells that the user calls missing, `prepare` makes people of rows; `dropped` are the rows of people who are left out.
    """

    paths: tuple[str, ...]
    target: str | None
    favourable: Any = None
    # Columns that are not read.
    ignore: tuple[str, ...] = ()
    dtypes: Mapping[str, Any] = field(default_factory=dict)
    clean: Callable[[pd.DataFrame], pd.DataFrame] | None = None
    prepare: Callable[[pd.DataFrame, Any], Rows] | None = None
    sample: Sample | None = None
    dropped: IntArray = field(default_factory=_NOBODY.copy)

    @classmethod
    def find(cls, pattern: str | Path, y: Any) -> ParquetTable:
        """Find the files of a path, a folder or a glob pattern; `y` is the target's name or (name, favourable value)."""
        paths = parquet_files(str(pattern))
        if not paths:
            raise InputError(f"audit: no file fits {str(pattern)!r}. Check the path of the Parquet files.")
        target, favourable = y if isinstance(y, tuple) else (y, None)
        table = cls(paths, target, favourable)
        if not isinstance(target, str) or target not in table.names:
            got = repr(target) if isinstance(target, str) else f"a {type(target).__name__}"
            raise InputError(
                f"audit: 'y' must name the target column of the Parquet files, got {got}. "
                f"Their columns: {', '.join(table.names[:30])}."
            )
        return table

    @cached_property
    def names(self) -> tuple[str, ...]:
        """Columns of the files, in the order in which they occur; the index that pandas once stored is not one."""
        found = dict.fromkeys(name for path in self.paths for name in _footer(path).schema_arrow.names)
        return tuple(name for name in found if not name.startswith("__index_level_"))

    @cached_property
    def schema(self) -> pa.Schema:
        """Columns that are read, in types that hold those of all files."""
        wanted = [name for name in self.names if name not in self.ignore]
        first, *others = (_schema_of(path, wanted) for path in self.paths)
        try:
            # A file in which a column is empty, or holds whole numbers alone, says less than the others.
            return pa.unify_schemas([first, *others], promote_options="permissive")
        except pa.ArrowException:
            return first

    def parts(self, rows: int = PART_ROWS) -> tuple[Part, ...]:
        """Cut the table into parts of about `rows` rows, after a look at the end of every file."""
        parts: list[Part] = []
        first, row = 0, 0
        for path in self.paths:
            _schema_of(path, self.schema.names)  # the files may be others than before
            metadata = _footer(path).metadata
            sizes = [metadata.row_group(k).num_rows for k in range(metadata.num_row_groups)]
            for groups, start, stop in _cuts(sizes, rows):
                people = stop - start - len(self._dropped(row, row + stop - start))
                parts.append(Part(len(parts), path, groups, start, stop, first, row, people))
                first, row = first + people, row + stop - start
        return tuple(parts)

    def _dropped(self, start: int, stop: int) -> IntArray:
        low, high = np.searchsorted(self.dropped, [start, stop])
        return self.dropped[low:high]

    def batches(self, part: Part, columns: Sequence[str] | None = None) -> Iterator[pa.RecordBatch]:
        """Yield the rows of a part, some at a time, in the types of the table."""
        seen = 0
        try:
            fragment = ds.ParquetFileFormat().make_fragment(
                part.path, fs.LocalFileSystem(), row_groups=list(part.groups)
            )
            scanned = fragment.to_batches(
                schema=self.schema,
                columns=None if columns is None else list(columns),
                batch_size=_BATCH,
                batch_readahead=1,
                use_threads=False,
            )
            for batch in scanned:
                low, high = max(part.start - seen, 0), min(part.stop - seen, batch.num_rows)
                seen += batch.num_rows
                if low < high:
                    first = part.row + seen - batch.num_rows + low - part.start
                    yield self._kept(batch.slice(low, high - low), first)
                if seen >= part.stop:
                    return
        except (pa.ArrowException, OSError) as error:
            raise InputError(f"audit: {part.path} cannot be read: {error}") from error
        if seen < part.stop:
            raise InputError(
                f"audit: {part.path} has fewer rows than before. Do not write to it during an audit."
            )

    def _kept(self, batch: pa.RecordBatch, first: int) -> pa.RecordBatch:
        gone = self._dropped(first, first + batch.num_rows)
        if not len(gone):
            return batch
        kept = np.ones(batch.num_rows, dtype=bool)
        kept[gone - first] = False
        return batch.filter(pa.array(kept))

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
                    yield self.people(self.raw(pa.Table.from_batches(waiting)))
                    waiting, room = [], rows
        if waiting:
            yield self.people(self.raw(pa.Table.from_batches(waiting)))

    def pick(self, part: Part, numbers: IntArray) -> pa.Table:
        """Return some people of a part, with the target, by their rising numbers in the whole table."""
        local, seen, found = numbers - part.first, 0, []
        for batch in self.batches(part):
            inside = local[(local >= seen) & (local < seen + batch.num_rows)] - seen
            found.append(batch.take(pa.array(inside)))
            seen += batch.num_rows
        return pa.Table.from_batches(found)

    def joined(self, picked: Sequence[pa.Table], order: Any = None) -> Rows:
        """Return people and labels that `pick` gave, one below the other or in an order."""
        return self.people(self.raw(_together(picked, order)))

    def raw(self, table: pa.Table) -> pd.DataFrame:
        """Return rows as a table in memory would have them."""
        # What pandas noted of its types is in the files, and not in their rows.
        frame = from_arrow(table.replace_schema_metadata(self.schema.metadata), Path(self.paths[0]).name)
        frame = frame if self.clean is None else self.clean(frame)
        known = {str(name): self.dtypes.get(str(name), column.dtype) for name, column in frame.items()}
        other = {name: dtype for name, dtype in known.items() if frame[name].dtype != dtype}
        return with_columns(frame, {name: frame[name].astype(dtype) for name, dtype in other.items()})

    def people(self, frame: pd.DataFrame) -> Rows:
        """Return the people of some rows."""
        labels = None if self.target is None else frame[self.target]
        features = frame if self.target is None else frame.drop(columns=[self.target])
        if self.prepare is not None:
            return self.prepare(features, labels)
        if labels is not None and self.favourable is not None:
            labels = (labels == self.favourable).astype(np.int64)
        return Rows(features, None if labels is None else labels.to_numpy())


def _together(picked: Sequence[pa.Table], order: Any = None) -> pa.Table:
    table = pa.concat_tables(picked).unify_dictionaries()
    return table if order is None else table.take(pa.array(order))


def parts_of(numbers: IntArray, parts: Sequence[Part]) -> list[tuple[Part, IntArray]]:
    """Say which of some rising numbers of people lie in which part."""
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
    return tuple(sorted(str(Path(path).absolute()) for path in found if Path(path).is_file()))


def _footer(path: str) -> pq.ParquetFile:
    try:
        return pq.ParquetFile(path)
    except FileNotFoundError as error:
        raise InputError(f"audit: there is no file {path!r}. A part of the table is missing.") from error
    except (pa.ArrowException, OSError) as error:
        raise InputError(f"audit: {path} is not a readable Parquet file: {error}") from error


def _schema_of(path: str, wanted: Sequence[str]) -> pa.Schema:
    """Return the columns of one file, or say which of those that the other files have it lacks."""
    own = _footer(path).schema_arrow
    for name in wanted:
        times = own.names.count(name)
        if times != 1:
            said = f"{times} columns" if times else "no column"
            raise InputError(
                f"audit: {path} has {said} {name!r}. Write all files with the same columns, each once."
            )
    return pa.schema([own.field(name) for name in wanted], metadata=own.metadata)


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


# The first look: a sample that shows everything that occurs, and counts of single columns.


@dataclass(frozen=True, eq=False)
class Seen:
    """Which rows show what occurs: the first of each value, the ends of each number, the first missing cell of a column."""

    # None: a column with too many values to have a row of each.
    values: dict[str, dict[Any, int] | None] = field(default_factory=dict)
    lowest: dict[str, tuple[float, int]] = field(default_factory=dict)
    highest: dict[str, tuple[float, int]] = field(default_factory=dict)
    gaps: dict[str, int] = field(default_factory=dict)

    @classmethod
    def of(cls, frame: pd.DataFrame, first: int) -> Seen:
        """Look at some rows, the first of which has this number."""
        found = cls()
        for name, column in frame.items():
            found._look(str(name), column, first)
        return found

    def _look(self, name: str, column: pd.Series[Any], first: int) -> None:
        gap = column.isna().to_numpy()
        if gap.any():
            self.gaps[name] = first + int(gap.argmax())
        if gap.all():
            return
        number = isinstance(column.dtype, np.dtype) and column.dtype.kind in "iuf"
        if number:
            values = column.to_numpy(dtype=float)
            for ends, at in ((self.lowest, np.nanargmin(values)), (self.highest, np.nanargmax(values))):
                ends[name] = (float(values[at]), first + int(at))
        most = MOST_NUMBERS if number else MOST_WORDS
        if column.head(4 * most).nunique() > most:
            self.values[name] = None
            return
        codes, distinct = pd.factorize(column)
        before = np.maximum.accumulate(np.concatenate([[-1], codes[:-1]]))
        rows = (first + np.flatnonzero(codes > before)).tolist()
        listed = zip(distinct.tolist(), rows, strict=True)
        self.values[name] = dict(listed) if len(distinct) <= most else None

    def merge(self, later: Seen) -> Seen:
        """Return what is seen in these rows and in later ones."""
        values = dict(self.values)
        for name, rows in later.values.items():
            mine = values.get(name, {})
            both = None if mine is None or rows is None else {**rows, **mine}
            # Numbers lie between ends that are known, words do not.
            many = both is not None and len(both) > (MOST_NUMBERS if name in later.lowest else MOST_WORDS)
            values[name] = None if many else both
        lowest, highest = dict(self.lowest), dict(self.highest)
        for name in later.lowest:
            lowest[name] = min(lowest.get(name, later.lowest[name]), later.lowest[name])
            mine_high = highest.get(name, later.highest[name])
            highest[name] = later.highest[name] if later.highest[name][0] > mine_high[0] else mine_high
        return Seen(values, lowest, highest, {**later.gaps, **self.gaps})

    @property
    def rows(self) -> IntArray:
        """Numbers of the rows, rising."""
        found = {row for rows in self.values.values() for row in (rows or {}).values()}
        found |= {row for ends in (self.lowest, self.highest) for _, row in ends.values()}
        return np.array(sorted(found | set(self.gaps.values())), dtype=np.int64)


def survey(
    engine: Engine, table: ParquetTable, parts: Sequence[Part], drawn: IntArray
) -> tuple[ParquetTable, pd.DataFrame, IntArray, Seen]:
    """Read people drawn at random, and with them rows that show all that occurs.

    Returns the table with its types, these rows, their numbers, and what occurs.
    """
    inside = dict(parts_of(drawn, parts))
    items = [(part, inside.get(part, drawn[:0])) for part in parts]
    picked, seen = [], Seen()
    for rows, found in engine.map(_survey_part, table, items):
        picked.append(rows)
        seen = seen.merge(found)
    more = np.setdiff1d(seen.rows, drawn)
    picked += engine.map(pick_part, table, parts_of(more, parts))
    numbers = np.concatenate([drawn, more])
    order = np.argsort(numbers)
    frame = table.raw(_together(picked, order))
    return replace(table, dtypes=dict(frame.dtypes)), frame, numbers[order], seen


def _survey_part(table: ParquetTable, item: tuple[Part, IntArray]) -> tuple[pa.Table, Seen]:
    part, numbers = item
    whole = pa.Table.from_batches(list(table.batches(part)))
    return whole.take(pa.array(numbers - part.first)), Seen.of(table.raw(whole), part.first)


def pick_part(table: ParquetTable, item: tuple[Part, IntArray]) -> pa.Table:
    """Return some people of a part by number."""
    return table.pick(*item)


def value_counts(
    engine: Engine, table: ParquetTable, parts: Sequence[Part], columns: Sequence[str]
) -> dict[str, pd.Series[Any]]:
    """Count the values of some columns in the whole table, a few columns at a time."""
    found: dict[str, pd.Series[Any]] = {}
    for start in range(0, len(columns), _COUNTED):
        some = list(columns[start : start + _COUNTED])
        for counts in engine.map(partial(_count_part, columns=some), table, parts):
            for name, more in counts.items():
                known = found.get(name)
                found[name] = (
                    more if known is None else pd.concat([known, more]).groupby(level=0, sort=False).sum()
                )
    return found


def _count_part(table: ParquetTable, part: Part, *, columns: Sequence[str]) -> dict[str, pd.Series[Any]]:
    frame = _columns_of(table, part, columns)
    return {name: frame[name].value_counts() for name in columns}


def rows_with_gaps(
    engine: Engine, table: ParquetTable, parts: Sequence[Part], columns: Sequence[str]
) -> IntArray:
    """Return the numbers of the rows in which one of some columns is missing, rising."""
    found = list(engine.map(partial(_gaps_of_part, columns=columns), table, parts))
    return np.concatenate([_NOBODY, *found])


def _gaps_of_part(table: ParquetTable, part: Part, *, columns: Sequence[str]) -> IntArray:
    frame = _columns_of(table, part, columns)
    return np.asarray(part.row + np.flatnonzero(frame.isna().any(axis=1).to_numpy()))


def _columns_of(table: ParquetTable, part: Part, columns: Sequence[str]) -> pd.DataFrame:
    return table.raw(pa.Table.from_batches(list(table.batches(part, columns))))


# The unfair map of everybody, as a folder of Parquet files that workers write.


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
