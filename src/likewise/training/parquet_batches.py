"""Batches from Parquet files that need not fit in memory."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import torch

from likewise.core.errors import FormatError, InputError, bad_parameter
from likewise.core.frames import check_columns
from likewise.training.batch import ArrayBatches, Batch, BatchSource, Sampling


@dataclass(frozen=True)
class _Group:
    """One row group of one file."""

    path: str
    number: int
    rows: int


class ParquetBatches(BatchSource):
    """Batches from Parquet files, one window of row groups in memory at a time.

    Row groups are visited in a new random order in every pass; within a window of at least `window_rows` rows
    batches are drawn as `ArrayBatches` draws them.

    Parameters
    ----------
    paths : path, glob pattern, or sequence of them
    target : str
        The column of labels.
    encode : callable (DataFrame) -> matrix of shape (n, d), optional
        Turns the other columns into rows for the network, such as ``domain.encode_array``. Default: they are
        numeric and taken as they are.
    classes : sequence, optional
        The labels in the order of the network's outputs. Default: those in the files, sorted (one pass over
        the target column).
    sensitive_features : sequence of str, default=()
        Columns of protected attributes, for objectives that need them; still part of what `encode` gets.
    weight : str, optional
        Column of weights of the rows; not part of what `encode` gets.
    batch_size, sampling
        As in `ArrayBatches`.
    window_rows : int, default=100_000
        Rows held in memory, rounded up to whole row groups. A window grows further until it has every class
        if batches are balanced.
    generator : torch.Generator
    device : str or torch.device, default="cpu"
    dtype : torch.dtype, default=torch.float32

    Attributes
    ----------
    classes : list
        Labels in the order of their indices.
    sensitive_values : dict of str to list
        Values of each protected attribute in the order of their indices.

    Examples
    --------
    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "people.parquet"
    >>> pd.DataFrame({"age": [0.1, 0.2, 0.3, 0.4], "rich": ["no", "no", "yes", "no"]}).to_parquet(path)
    >>> source = ParquetBatches(path, "rich", batch_size=2, generator=torch.Generator().manual_seed(0))
    >>> source.classes, source.next().y
    (['no', 'yes'], tensor([0, 1]))
    """

    def __init__(
        self,
        paths: str | os.PathLike[str] | Sequence[str | os.PathLike[str]],
        target: str,
        *,
        encode: Callable[[pd.DataFrame], Any] | None = None,
        classes: Sequence[Any] | None = None,
        sensitive_features: Sequence[str] = (),
        weight: str | None = None,
        batch_size: int = 1000,
        sampling: Sampling = "balanced",
        window_rows: int = 100_000,
        generator: torch.Generator,
        device: str | torch.device = "cpu",
        dtype: torch.dtype = torch.float32,
    ) -> None:
        self._groups = _row_groups(
            paths, [target, *sensitive_features, *([] if weight is None else [weight])]
        )
        self._target, self._encode, self._weight = target, encode, weight
        self.classes = list(classes) if classes is not None else self._values_of(target)
        if len(self.classes) < 2:
            raise InputError(
                f"ParquetBatches: the column {target!r} has one class only ({self.classes[0]!r}). "
                "Two or more are needed; check how the target was cut."
            )
        self.sensitive_values = {name: self._values_of(name) for name in sensitive_features}
        self._batch_size, self._sampling, self._window_rows = batch_size, sampling, window_rows
        self._generator, self._device, self._dtype = generator, device, dtype
        self._order = torch.randperm(len(self._groups), generator=generator)
        self._open(0)

    def next(self) -> Batch:
        """Return the next batch, reading the next window if this one is used up."""
        if self._drawn == self._n_batches:
            if self._end >= len(self._groups):
                self._order = torch.randperm(len(self._groups), generator=self._generator)
                self._open(0)
            else:
                self._open(self._end)
        self._drawn += 1
        return self._window.next()

    def position(self) -> dict[str, torch.Tensor]:
        """Return how the current window began and how many batches of it were drawn."""
        return {
            "generator": self._opened_with,
            "order": self._order.clone(),
            "begin": torch.tensor(self._begin),
            "drawn": torch.tensor(self._drawn),
        }

    def restore(self, position: Mapping[str, torch.Tensor]) -> None:
        """Read the saved window again and skip what was drawn of it."""
        if len(position["order"]) != len(self._groups):
            raise InputError(
                f"ParquetBatches.restore: the saved order is of {len(position['order'])} row groups, the files have "
                f"{len(self._groups)}. Resume with the files of the first run."
            )
        self._order = position["order"].clone()
        self._generator.set_state(position["generator"])
        self._open(int(position["begin"]))
        for _ in range(int(position["drawn"])):
            self.next()

    def _open(self, begin: int) -> None:
        """Read groups from `begin` on until the window is large enough and has every class."""
        self._opened_with = self._generator.get_state()
        frames: list[pd.DataFrame] = []
        rows, seen, end = 0, set[int](), begin
        while end < len(self._groups) and (rows < self._window_rows or len(seen) < len(self.classes)):
            frame = _read(self._groups[int(self._order[end])])
            seen |= set(np.unique(self._codes(frame[self._target], self.classes, self._target)).tolist())
            frames.append(frame)
            rows, end = rows + len(frame), end + 1
        self._begin, self._end, self._drawn = begin, end, 0
        window = self._batch_of(pd.concat(frames, ignore_index=True))
        self._window = ArrayBatches(window, self._batch_size, self._sampling, generator=self._generator)
        self._n_batches = max(1, rows // self._batch_size)

    def _batch_of(self, frame: pd.DataFrame) -> Batch:
        y = self._codes(frame[self._target], self.classes, self._target)
        codes = [self._codes(frame[name], values, name) for name, values in self.sensitive_values.items()]
        weight = None if self._weight is None else frame[self._weight].to_numpy()
        people = frame.drop(columns=[self._target, *([] if self._weight is None else [self._weight])])
        X = people if self._encode is None else self._encode(people)
        sensitive = np.stack(codes, axis=1) if codes else None
        return Batch.from_arrays(
            X, y, sensitive_features=sensitive, weight=weight, dtype=self._dtype, device=self._device
        )

    def _codes(self, column: pd.Series[Any], values: Sequence[Any], name: str) -> np.ndarray[Any, Any]:
        codes = pd.Index(values).get_indexer(pd.Index(column))
        if (codes < 0).any():
            unknown = column[codes < 0].iloc[0]
            raise InputError(
                f"ParquetBatches: the column {name!r} has the value {unknown!r}, which is missing or not among "
                f"{list(values)[:8]}. Drop those rows or list it."
            )
        return np.asarray(codes, dtype=np.int64)

    def _values_of(self, name: str) -> list[Any]:
        """Distinct values of a column, sorted, from one pass over that column alone."""
        found: set[Any] = set()
        for path in dict.fromkeys(group.path for group in self._groups):
            for part in pq.ParquetFile(path).iter_batches(columns=[name]):
                found |= set(part.column(0).unique().to_pylist())
        found.discard(None)
        try:
            return sorted(found)
        except TypeError as error:
            raise bad_parameter(
                "ParquetBatches", name, "a column of values of one type", "a mix of types"
            ) from error


def _read(group: _Group) -> pd.DataFrame:
    try:
        frame: pd.DataFrame = pq.ParquetFile(group.path).read_row_group(group.number).to_pandas()
    except (pa.ArrowInvalid, OSError) as error:
        raise FormatError(f"ParquetBatches: {Path(group.path).name} cannot be read: {error}") from error
    return frame


def _row_groups(paths: Any, needed: Iterable[str]) -> list[_Group]:
    given = [paths] if isinstance(paths, (str, os.PathLike)) else list(paths)
    files = [found for path in given for found in _files(Path(path))]
    groups: list[_Group] = []
    for path in files:
        try:
            metadata = pq.ParquetFile(path)
        except FileNotFoundError as error:
            raise bad_parameter("ParquetBatches", "paths", "files that exist", path) from error
        except pa.ArrowInvalid as error:
            raise FormatError(f"ParquetBatches: {Path(path).name} is not a Parquet file: {error}") from error
        check_columns(metadata.schema_arrow.empty_table().to_pandas(), needed, owner="ParquetBatches")
        for number in range(metadata.num_row_groups):
            rows = metadata.metadata.row_group(number).num_rows
            if rows:
                groups.append(_Group(path, number, rows))
    if not groups:
        raise bad_parameter("ParquetBatches", "paths", "files with at least one row", given)
    return groups


def _files(path: Path) -> list[str]:
    """The files of a path, which may be a pattern in its last part."""
    found = [] if path.is_file() else sorted(str(match) for match in path.parent.glob(path.name))
    return found or [str(path)]
