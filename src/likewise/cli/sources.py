"""Where the people of an audit come from: a table in memory, or Parquet files that are read part by part."""

from __future__ import annotations

import atexit
import glob
import shutil
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from likewise.cli.people_of_table import binary_labels, find_value, read_people
from likewise.cli.table_files import table_rows
from likewise.core.errors import InputError
from likewise.core.frames import check_columns

if TYPE_CHECKING:
    import pandas as pd

    from likewise.auditing.parts.engine import Engine
    from likewise.auditing.parts.survey import Extent
    from likewise.domains import TabularDomain

__all__ = ["STREAM_ROWS", "Source", "open_people"]

# Above this many people everybody is compared with a sample of the table instead of with all of it.
STREAM_ROWS = 100_000
# People of a file that the metric is learned on and the model evaluated on.
SAMPLE_ROWS = 50_000


@dataclass(frozen=True, eq=False)
class Source:
    """The people of an audit.

    Parameters
    ----------
    people : DataFrame or Path
        What is audited: a table, or the path of Parquet files.
    y : ndarray or str or tuple
        As `audit` takes it with `people`.
    frame : DataFrame
        People in memory: all, or a sample of the file.
    labels : ndarray
        Of the people in memory.
    values : list
        The different values of the target.
    note : str
        What the user should know; empty for nothing.
    extent : Extent or None
        What occurs in the files, where they are not in memory.
    """

    people: pd.DataFrame | Path
    y: Any
    frame: pd.DataFrame
    labels: np.ndarray[Any, Any]
    values: list[Any]
    note: str = ""
    extent: Extent | None = None

    def domain(self, columns: Sequence[str], immutable: Sequence[str]) -> TabularDomain:
        """Return the domain of some columns, with everything that occurs in the table or in the whole file."""
        from likewise.domains import TabularDomain

        if self.extent is not None:
            return self.extent.domain(self.frame[list(columns)], tuple(immutable))
        return TabularDomain.from_frame(self.frame[list(columns)], immutable=tuple(immutable))

    def widened(self, domain: TabularDomain) -> TabularDomain:
        """Return a domain that reaches as far as the people in the table, or in the whole file, do."""
        if self.extent is not None:
            return domain.reaching(self.extent.ranges)
        return domain.widened(self.frame[[column.name for column in domain.columns_]])


def open_people(
    path: Path,
    *,
    target: str,
    positive: str | None,
    ignore: Sequence[str],
    needed: Sequence[str],
    drop_missing: bool,
    sample: int | None,
    seed: int,
    engine: Engine | None = None,
) -> Source:
    """Read a table, or sample one that is too large.

    Parameters
    ----------
    path : Path
        A table, a folder of Parquet files, or a pattern of their names.
    target, positive, ignore, needed, drop_missing, sample, seed
        See `read_people`.
    engine : Engine, optional
        Where Parquet files are read; given, a file of any size is left to it.
    """
    several = path.is_dir() or (not path.exists() and glob.has_magic(str(path)))
    if several and sample is not None:
        raise InputError("--sample takes one file. Pass one of the Parquet files.")
    rows = table_rows(path) if sample is None and not several else None
    if several or (rows is not None and (rows > STREAM_ROWS or engine is not None)):
        # The auditor takes patterns; a file called a[1].parquet is meant as it is written.
        pattern = path if several else Path(glob.escape(str(path)))
        return _stream(pattern, target, positive, ignore, needed, drop_missing, seed, engine)
    if engine is not None:
        raise InputError(f"--engine and --map are for Parquet files. Save {path.name} as Parquet first.")
    people = read_people(
        path,
        target=target,
        ignore=ignore,
        needed=needed,
        drop_missing=drop_missing,
        sample=sample,
        seed=seed,
    )
    assert people.labels is not None  # a target was named
    labels = binary_labels(people.labels, positive)
    if sample is None and len(labels) > STREAM_ROWS:
        file = _spill(people.frame.assign(**{target: labels}))
        return _stream(file, target, positive, (), needed, False, seed, None)
    said = f"left out {people.dropped:,} people with missing values." if people.dropped else ""
    values = list(dict.fromkeys(labels.tolist()))
    return Source(people.frame, labels, people.frame, labels, values, said)


def _spill(frame: pd.DataFrame) -> Path:
    """Write a large table that came as CSV or Arrow to a Parquet file, which is gone when the command ends."""
    folder = Path(tempfile.mkdtemp(prefix="likewise-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    frame.to_parquet(folder / "people.parquet", index=False, row_group_size=65_536)
    return folder / "people.parquet"


def _stream(
    pattern: Path,
    target: str,
    positive: str | None,
    ignore: Sequence[str],
    needed: Sequence[str],
    drop_missing: bool,
    seed: int,
    engine: Engine | None,
) -> Source:
    import pandas as pd

    from likewise.auditing.parts.engine import LocalEngine
    from likewise.auditing.parts.parquet_table import ParquetTable, parquet_files
    from likewise.auditing.parts.survey import survey

    if drop_missing:
        raise InputError(
            f"{pattern.name} is read part by part, where --drop-missing cannot be used. Drop the rows with missing "
            "values first, or pass --sample."
        )
    found = parquet_files(str(pattern))
    if not found:
        raise InputError(f"There is no Parquet file that fits {str(pattern)!r}. Check the path.")
    table = ParquetTable(found, target)
    names = pd.DataFrame(columns=pd.Index(table.schema.names))
    check_columns(names, [target, *ignore, *needed], owner=pattern.name, name="table")
    parts = table.parts()
    n = sum(part.rows for part in parts)
    if not n:
        raise InputError(f"{pattern.name} has no rows. Pass a table with people in it.")
    runner = engine or LocalEngine()
    runner.check(table.paths)
    rows = np.sort(np.random.default_rng(seed).choice(n, size=min(SAMPLE_ROWS, n), replace=False))
    ((frame, labels),), extent = survey(runner, table, parts, [rows], extent=True)
    values = _target_values(extent.values[target], positive, pattern.name, target)
    note = f"{n:,} people are read part by part; each is compared with a sample of the others."
    return Source(pattern, target, frame.drop(columns=list(ignore)), labels, values, note, extent)


def _target_values(seen: frozenset[Any], positive: str | None, name: str, target: str) -> list[Any]:
    if None in seen:
        raise InputError(f"{name}: the target {target!r} has missing values. Drop those rows first.")
    values = sorted(seen, key=lambda value: (str(type(value)), value))
    if positive is not None:
        find_value(values, positive, what="--positive: the target")
        if len(values) > 2:
            raise InputError(
                f"{name} is read part by part, where a target with more than two values cannot be cut in two. "
                "Write a column with two values first, or pass --sample."
            )
    return values
