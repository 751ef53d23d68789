"""Where the people of an audit come from: a table in memory, or Parquet files that are read part by part."""

from __future__ import annotations

import atexit
import glob
import shutil
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from likewise.auditing.partitions.engine import Engine, LocalEngine
from likewise.auditing.partitions.tables import (
    ParquetTable,
    Rows,
    Sample,
    parquet_files,
    rows_with_gaps,
    survey,
    value_counts,
)
from likewise.core.errors import InputError
from likewise.core.frames import check_columns, with_columns
from likewise.core.text import option
from likewise.data.case import (
    Counted,
    People,
    TableRequest,
    TableSteps,
    check_names,
    choose_columns,
    count_lines,
    one_line_each,
    read_people,
    take_people,
    with_empty_cells,
)
from likewise.data.large_texts import write_parts
from likewise.data.missing_values import MissingCells, fill_of
from likewise.data.opening import MemoryFile, TableChoices, open_file
from likewise.data.table_files import ReadTable, read_table, table_rows
from likewise.data.target import binary_labels

if TYPE_CHECKING:
    from likewise.core.checks import IntArray

# Above this many people a table is read part by part.
STREAM_ROWS = 100_000
# People drawn from a table in parts, on whom a metric is learned and a model is evaluated.
SAMPLE_ROWS = 20_000


@dataclass(frozen=True, eq=False)
class StreamedPeople(People):
    """People in Parquet files; the frame is a sample of them that shows all that occurs."""

    table: ParquetTable | None = None
    # The missing cells of the files; those of the sample that a model is shown as ids and texts are filled by then.
    gaps: MissingCells | None = None
    random: Any = None
    target_values: tuple[Any, ...] = ()
    favourable: Any = None

    def audited(
        self, columns: Sequence[str], sensitive: Sequence[str], frame: pd.DataFrame, labels: Any
    ) -> ParquetTable:
        """Return the files as the audit reads them, given the sample as the model takes it."""
        assert self.table is not None
        assert self.steps is not None
        prepare = PreparedRows(
            self.steps, self.gaps, tuple(columns), tuple(sensitive), self.favourable, self.target_values
        )
        absent = self.frame[list(sensitive)].isna()
        rows = Rows(frame[list(columns)], labels, absent)
        return replace(self.table, prepare=prepare, sample=Sample(rows, self.random))


@dataclass(frozen=True, eq=False)
class PreparedRows:
    """From rows of the files to what the model and the audit take: the steps of a table in memory."""

    steps: TableSteps
    missing: MissingCells | None
    columns: tuple[str, ...]
    sensitive: tuple[str, ...]
    favourable: Any
    target_values: tuple[Any, ...]

    def __call__(self, frame: pd.DataFrame, labels: Any) -> Rows:
        """Return some people as they are audited."""
        people = self.steps.people(frame)
        told = people[list(self.sensitive)].isna()
        whole = people if self.missing is None else self.missing.marked(people)
        y = None if labels is None else binary_labels(labels.to_numpy(), self.favourable, self.target_values)
        return Rows(whole[list(self.columns)], y, told)


class RowNumbers:
    """Where people are in the user's table, if some of its rows are left out: rows from 0, or places counted from `start`."""

    def __init__(self, dropped: IntArray, start: int = 0) -> None:
        # So many people come before each row that is left out.
        self._before, self._start = dropped - np.arange(len(dropped)), start

    def __getitem__(self, person: Any) -> Any:
        return person + np.searchsorted(self._before, person, side="right") + self._start


def open_people(path: Path | MemoryFile, asked: TableRequest, engine: Engine | None = None) -> People:
    """Read a table, or sample one that is too large for memory."""
    if not isinstance(path, Path):
        return read_people(path, asked)
    several = path.is_dir() or (not path.exists() and glob.has_magic(str(path)))
    if several:
        if asked.sample is not None:
            raise InputError(f"{option('sample')} takes one file. Pass one of the Parquet files.")
        return _stream(path, asked, engine)
    kind, most = open_file(path).kind, STREAM_ROWS if engine is None else 0
    if asked.sample is not None:
        return read_people(path, asked)
    if kind == "Parquet":
        if (table_rows(path) or 0) <= most:
            return read_people(path, asked)
        # The auditor takes patterns; a file called a[1].parquet is meant as it is written.
        return _stream(Path(glob.escape(str(path))), asked, engine)
    if kind == "CSV":
        large = count_lines(path) > most
        return _converted(path, asked, engine) if large else read_people(path, asked)
    found = read_table(path, asked.choices)
    return (
        _converted(path, asked, engine, found) if len(found.frame) > most else read_people(path, asked, found)
    )


def _converted(
    path: Path, asked: TableRequest, engine: Engine | None, found: ReadTable | None = None
) -> People:
    """Write a large table of another format as Parquet, in a folder that is deleted when the process ends."""
    folder = Path(tempfile.mkdtemp(prefix="likewise-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    file, choices = folder / "people.parquet", asked.choices
    counted: Counted = "row"
    if found is not None:
        found.frame.to_parquet(file, index=False, row_group_size=65_536)
        said, start = found.notes, 1
    else:
        rows, header, said = write_parts(open_file(path), choices, file)
        counted = "line" if one_line_each(path, rows + header) else "row"
        start = 1 + (header and counted == "line")
    people = _stream(
        file, replace(asked, choices=replace(choices, ignore=())), engine, name=path.name, text=found is None
    )
    assert people.table is not None
    note = f"{path.name} was written as Parquet in a temporary folder, to be read part by part."
    places = RowNumbers(people.table.dropped, start)
    return replace(people, notes=(*said, note, *people.notes), places=places, counted=counted)


def _stream(
    pattern: Path, asked: TableRequest, engine: Engine | None, *, name: str | None = None, text: bool = False
) -> StreamedPeople:
    """Draw a sample of Parquet files, and learn what a table in memory would tell of all of it; they may be made of text."""
    owner, target, choices = name or pattern.name, asked.target, asked.choices
    found = parquet_files(str(pattern))
    if not found:
        raise InputError(f"There is no Parquet file that fits {str(pattern)!r}. Check the path.")
    marked = bool(choices.empty or choices.columns)
    table = ParquetTable(
        found,
        target,
        ignore=tuple(choices.ignore),
        clean=partial(_cleaned, choices=choices, text=text) if marked or text else None,
    )
    _check_names(table, owner, asked)
    parts = table.parts()
    supplied = sum(part.rows for part in parts)
    if not supplied:
        raise InputError(f"{owner} has no rows. Pass a table with people in it.")
    runner = engine or LocalEngine()
    runner.check(table.paths)
    drawn = np.random.default_rng(asked.seed).choice(supplied, size=min(SAMPLE_ROWS, supplied), replace=False)
    table, frame, numbers, seen = survey(runner, table, parts, np.sort(drawn))
    notes: list[str] = []
    features = frame if target is None else frame.drop(columns=[target])
    dropped = numbers[:0]
    if target is not None and target in seen.gaps:
        dropped = rows_with_gaps(runner, table, parts, [target])
        notes.append(f"left out {len(dropped):,} people whose target {target!r} is missing.")
    gaps = [str(n) for n in features.columns if n in seen.gaps]
    if choices.missing == "drop" and gaps:
        used = choose_columns(features, asked, owner, [])[1]
        without = rows_with_gaps(runner, table, parts, [n for n in gaps if n in used])
        more = len(np.setdiff1d(without, dropped))
        notes.append(f"left out {more:,} people with missing values.")
        dropped, gaps = np.union1d(dropped, without), []
    if len(dropped) == supplied:
        raise InputError(
            f"{owner}: nobody is left once people with missing values are left out. Pass {option('missing', 'impute')}, or name another target."
        )
    table = replace(table, dropped=dropped)
    stays = ~np.isin(numbers, dropped)
    labels = None if target is None else frame.loc[stays, target]
    few = supplied <= SAMPLE_ROWS
    fills = None if few else _fills(runner, table, gaps)
    people = take_people(features[stays], labels, asked, name=owner, fills=fills)
    missing = people.missing
    if missing is not None and missing.held and not few:
        missing = replace(missing, held=_held(runner, table, missing))
    n = supplied - len(dropped)
    notes.append(f"{n:,} people are read part by part.")
    return StreamedPeople(
        people.frame,
        people.labels,
        people.plans,
        missing,
        (*notes, *people.notes),
        RowNumbers(dropped, 1),
        "row",
        RowNumbers(dropped),
        supplied,
        steps=people.steps,
        table=table,
        gaps=missing,
        total=n,
        random=np.isin(numbers[stays], drawn),
        target_values=() if labels is None else tuple(labels.drop_duplicates()),
        favourable=asked.favourable,
    )


def _cleaned(frame: pd.DataFrame, *, choices: TableChoices, text: bool) -> pd.DataFrame:
    """Empty the cells that the user calls missing; truth values of a text miss NaN, as in memory, and Parquet has None."""
    objects = {str(name): column for name, column in frame.items() if text and column.dtype == object}
    whole = with_columns(frame, {name: c.where(c.notna(), np.nan) for name, c in objects.items()})
    return with_empty_cells(whole, choices, part=True)


def _check_names(table: ParquetTable, owner: str, asked: TableRequest) -> None:
    nobody = pd.DataFrame(columns=pd.Index(table.names))
    check_names(nobody, owner, asked)
    check_columns(nobody, asked.choices.ignore, owner=owner, name="table")


def _fills(engine: Engine, table: ParquetTable, gaps: Sequence[str]) -> dict[str, Any]:
    """What fills the gaps of columns: the median or the most frequent value of everybody."""
    counts = value_counts(engine, table, table.parts(), gaps)
    return {name: fill_of(found, table.dtypes[name]) for name, found in counts.items()}


def _held(engine: Engine, table: ParquetTable, missing: MissingCells) -> dict[str, pd.Index[Any]]:
    """All values of the columns that go to the model as they are."""
    counts = value_counts(engine, table, table.parts(), list(missing.held))
    return {
        name: pd.Index(pd.concat([pd.Series(counts[name].index), pd.Series(kept)]).unique(), dtype=kept.dtype)
        for name, kept in missing.held.items()
    }
