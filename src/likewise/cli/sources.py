"""Where the people of an audit come from: a table in memory, or a Parquet file that is read chunk by chunk."""

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

from likewise.cli.people import binary_labels, find_value, read_people
from likewise.cli.tables import table_rows
from likewise.core.errors import InputError
from likewise.core.frames import check_columns

if TYPE_CHECKING:
    import pandas as pd

    from likewise.auditing.parquet import ParquetTable
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
        What is audited: a table, or a file too large for memory.
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
    stream : ParquetTable or None
        The file, where it is too large for memory.
    """

    people: pd.DataFrame | Path
    y: Any
    frame: pd.DataFrame
    labels: np.ndarray[Any, Any]
    values: list[Any]
    note: str = ""
    stream: ParquetTable | None = None

    def domain(self, columns: Sequence[str], immutable: Sequence[str]) -> TabularDomain:
        """Return the domain of some columns, with everything that occurs in the table or in the whole file."""
        from likewise.domains import TabularDomain

        if self.stream is not None:
            return self.stream.domain(self.frame[list(columns)], tuple(immutable))
        return TabularDomain.from_frame(self.frame[list(columns)], immutable=tuple(immutable))


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
) -> Source:
    """Read a table, or sample one that is too large; see `read_people` for the parameters."""
    rows = table_rows(path) if sample is None else None
    if rows is not None and rows > STREAM_ROWS:
        return _stream(path, target, positive, ignore, needed, drop_missing, seed)
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
        return _stream(file, target, positive, (), needed, False, seed)
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
    path: Path,
    target: str,
    positive: str | None,
    ignore: Sequence[str],
    needed: Sequence[str],
    drop_missing: bool,
    seed: int,
) -> Source:
    import pandas as pd

    from likewise.auditing.parquet import ParquetTable

    names = pd.DataFrame(columns=pd.Index(_names(path)))
    check_columns(names, [target, *ignore, *needed], owner=path.name, name="table")
    if drop_missing:
        raise InputError(
            f"{path.name} is read chunk by chunk, where --drop-missing cannot be used. Drop the rows with missing "
            "values first, or pass --sample."
        )
    values = _target_values(path, target)
    if positive is not None:
        find_value(values, positive, what="--positive: the target")
        if len(values) > 2:
            raise InputError(
                f"{path.name} is read chunk by chunk, where a target with more than two values cannot be cut in two. "
                "Write a column with two values first, or pass --sample."
            )
    # The auditor takes patterns; a file called a[1].parquet is meant as it is written.
    literal = Path(glob.escape(str(path)))
    table = ParquetTable.find(literal, target)
    rng = np.random.default_rng(seed)
    rows = np.sort(rng.choice(table.n_rows, size=min(SAMPLE_ROWS, table.n_rows), replace=False))
    frame, labels = table.take(rows)
    note = f"{table.n_rows:,} people are read chunk by chunk; each is compared with a sample of the others."
    return Source(literal, target, frame.drop(columns=list(ignore)), labels, values, note, table)


def _names(path: Path) -> list[str]:
    import pyarrow.parquet as pq

    return list(pq.read_schema(path).names)


def _target_values(path: Path, target: str) -> list[Any]:
    import pyarrow.compute as pc
    import pyarrow.parquet as pq

    seen: dict[Any, None] = {}
    for batch in pq.ParquetFile(path).iter_batches(columns=[target]):
        seen |= dict.fromkeys(pc.unique(batch.column(0)).to_pylist())
    if None in seen:
        raise InputError(f"{path.name}: the target {target!r} has missing values. Drop those rows first.")
    return list(seen)
