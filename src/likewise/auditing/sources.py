"""Where the people of an audit come from: a table in memory, or Parquet files that are read part by part."""

from __future__ import annotations

import atexit
import glob
import shutil
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from likewise.core.errors import InputError
from likewise.core.frames import check_columns, with_columns
from likewise.core.text import option
from likewise.data.case import People, TableRequest, choose_columns, plain_plan, read_people
from likewise.data.target import find_value

if TYPE_CHECKING:
    import pandas as pd

    from likewise.auditing.partitions.engine import Engine
    from likewise.auditing.partitions.tables import Extent
    from likewise.data.opening import MemoryFile
    from likewise.data.tabular import TabularDomain

# Above this many people everybody is compared with a sample of the table instead of with all of it.
STREAM_ROWS = 100_000
# People of a file that the metric is learned on and the model evaluated on.
SAMPLE_ROWS = 50_000


@dataclass(frozen=True, eq=False)
class StreamedPeople(People):
    """People in Parquet files; the frame is a sample of them."""

    path: Path = Path()
    target: str = ""
    target_values: tuple[Any, ...] = ()
    extent: Extent | None = None

    @property
    def values(self) -> list[Any]:
        """The different labels in all files."""
        return list(self.target_values)

    def domain(self, columns: Sequence[str] | None = None, immutable: Sequence[str] = ()) -> TabularDomain:
        """Return the domain of some columns, with everything that occurs in the files."""
        from likewise.data.tabular import TabularDomain

        assert self.extent is not None
        names = list(self.frame.columns) if columns is None else list(columns)
        words = {n: sorted(self.extent.values[n]) for n in names if n in self.extent.values}
        codes = {n for n in names if n in self.plans and self.plans[n].kind == "category"} - set(words)
        ranges = {n: self.extent.ranges[n] for n in names if n in self.extent.ranges and n not in codes}
        return TabularDomain.from_frame(
            self.frame[names],
            immutable=tuple(name for name in immutable if name in names),
            ranges=ranges or None,
            categories=words or None,
            columns={n: replace(self.plans[n], range=None) for n in names if n in self.plans},
        )

    def widened(self, domain: TabularDomain) -> TabularDomain:
        """Return a domain that contains everybody in the files."""
        assert self.extent is not None
        return domain.reaching(self.extent.ranges)


def open_people(path: Path | MemoryFile, asked: TableRequest, engine: Engine | None = None) -> People:
    """Read a table, or sample one that is too large for memory."""
    from likewise.data.table_files import table_rows

    if not isinstance(path, Path):
        return _in_memory(path, asked)
    several = path.is_dir() or (not path.exists() and glob.has_magic(str(path)))
    if several and asked.sample is not None:
        raise InputError(f"{option('sample')} takes one file. Pass one of the Parquet files.")
    rows = table_rows(path) if asked.sample is None and not several else None
    if several or (rows is not None and (rows > STREAM_ROWS or engine is not None)):
        # The auditor takes patterns; a file called a[1].parquet is meant as it is written.
        pattern = path if several else Path(glob.escape(str(path)))
        return _stream(pattern, asked, engine)
    if engine is not None:
        raise InputError(f"{option('engine')} are for Parquet files. Save {path.name} as Parquet first.")
    return _in_memory(path, asked)


def _in_memory(path: Path | MemoryFile, asked: TableRequest) -> People:
    people = read_people(path, asked)
    if asked.sample is None and len(people.frame) > STREAM_ROWS and isinstance(path, Path) and asked.target:
        return _spilled(people, asked)
    return people


def _spilled(people: People, asked: TableRequest) -> People:
    """Return a large table that came as CSV or Arrow as one that is read part by part."""
    notes = list(people.notes)
    if people.missing is not None:
        said = f"more than {STREAM_ROWS:,} people are read part by part, where missing values cannot be kept"
        if asked.choices.policy == "keep":
            ways = f"{option('missing', 'impute')}, {option('missing', 'drop')}"
            raise InputError(f"{said}. Pass {ways} or {option('sample')}.")
        people = replace(people, frame=people.filled)
        notes.append(f"{said}; they were filled with the median or the most frequent value.")
    codes = {
        name: replace(plan, values=tuple(people.frame[name].unique().tolist()))
        for name, plan in people.plans.items()
        if plan.kind == "category"
    }
    file = _spill(with_columns(people.frame, {str(asked.target): people.labels}))
    plain = replace(asked.choices, columns=None, only=(), ignore=(), keep=(), missing="auto", empty=())
    again = replace(asked, choices=plain, plans={**people.plans, **codes})
    streamed = _stream(file, again, None)
    return replace(streamed, notes=(*notes, *streamed.notes))


def _spill(frame: pd.DataFrame) -> Path:
    """Write a large table to a Parquet file that is deleted when the process ends."""
    folder = Path(tempfile.mkdtemp(prefix="likewise-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    frame.to_parquet(folder / "people.parquet", index=False, row_group_size=65_536)
    return folder / "people.parquet"


def _stream(pattern: Path, asked: TableRequest, engine: Engine | None) -> StreamedPeople:
    import pandas as pd

    from likewise.auditing.partitions.engine import LocalEngine
    from likewise.auditing.partitions.tables import ParquetTable, parquet_files, survey

    choices, target = asked.choices, str(asked.target)
    if choices.policy not in ("auto", "keep") or choices.empty:
        key = option("empty") if choices.empty else option("missing", choices.policy)
        raise InputError(
            f"{pattern.name} is read part by part, where {key} cannot be used. Drop or fill missing "
            f"values first, or pass {option('sample')}."
        )
    found = parquet_files(str(pattern))
    if not found:
        raise InputError(f"There is no Parquet file that fits {str(pattern)!r}. Check the path.")
    table = ParquetTable(found, target)
    names = pd.DataFrame(columns=pd.Index(table.schema.names))
    check_columns(names, [target, *choices.ignore, *asked.needed], owner=pattern.name, name="table")
    parts = table.parts()
    n = sum(part.rows for part in parts)
    if not n:
        raise InputError(f"{pattern.name} has no rows. Pass a table with people in it.")
    runner = engine or LocalEngine()
    runner.check(table.paths)
    rows = np.sort(np.random.default_rng(asked.seed).choice(n, size=min(SAMPLE_ROWS, n), replace=False))
    ((frame, labels),), extent = survey(runner, table, parts, [rows], extent=True)
    values = _target_values(extent.values[target], asked.favourable, pattern.name, target)
    notes: list[str] = []
    features = frame.drop(columns=list(choices.ignore))
    features, plans = choose_columns(features, replace(asked, keeps_missing=False), pattern.name, notes)
    # Codes outside of the sample may occur elsewhere in the files, so numbers stay numbers unless the user says so.
    said = {*asked.plans, *choices.categorical, *choices.integer}
    plans = {
        name: plan if name in said or choices.columns else plain_plan(features[name])
        for name, plan in plans.items()
    }
    notes.append(f"{n:,} people are read part by part; each is compared with a sample of the others.")
    return StreamedPeople(
        features,
        labels,
        plans,
        notes=tuple(notes),
        path=pattern,
        target=target,
        target_values=tuple(values),
        extent=extent,
    )


def _target_values(seen: frozenset[Any], favourable: Any, name: str, target: str) -> list[Any]:
    if None in seen:
        raise InputError(f"{name}: the target {target!r} has missing values. Drop those rows first.")
    values = sorted(seen, key=lambda value: (str(type(value)), value))
    if favourable is not None:
        find_value(values, favourable, what=f"{option('favourable')}: the target")
        if len(values) > 2:
            raise InputError(
                f"{name} is read part by part, where a target with more than two values cannot be cut in two. "
                f"Write a column with two values first, or pass {option('sample')}."
            )
    return values
