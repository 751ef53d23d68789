"""Write rows of one table into another, every column in its own dtype."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import narwhals.stable.v1 as nw
import numpy as np
import pandas as pd

from likewise.core.checks import IntArray, python_scalar, sorted_values
from likewise.core.errors import InputError, no_rows
from likewise.core.frames import check_columns, check_no_missing, to_pandas, with_columns

# Rows and columns of a table in its own library: slices, broadcast values, attributes that are one-hot.


@dataclass(frozen=True, eq=False)
class Table:
    """A data frame of any library, with the few operations that making counterparts needs.

    Values are put into a column by repeating one entry of that column's own type, so every dtype (pandas
    categories, polars enums, arrow dictionaries) stays what the model was trained on.
    """

    native: Any

    @classmethod
    def of(cls, frame: Any, *, owner: str, name: str = "frame") -> Table:
        """Check that `frame` is a table with unique string columns and at least one row."""
        if isinstance(frame, pd.DataFrame):
            to_pandas(frame, owner=owner, name=name)
        else:
            to_pandas(_head(frame), owner=owner, name=name)
        table = cls(frame)
        if table.n_rows == 0:
            raise no_rows(owner, name, "person")
        return table

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return len(self.native) if self._is_pandas else len(self._narwhals)

    @property
    def names(self) -> list[str]:
        """Names of the columns."""
        return list(self.native.columns) if self._is_pandas else list(self._narwhals.columns)

    @property
    def index(self) -> pd.Index[Any]:
        """Labels of the rows: pandas' own, else positions."""
        return self.native.index if self._is_pandas else pd.RangeIndex(self.n_rows)

    def columns(self, names: list[str]) -> pd.DataFrame:
        """Some columns as a pandas frame."""
        if self._is_pandas:
            return pd.DataFrame(self.native[names])
        return pd.DataFrame(self._narwhals.select(names).to_pandas())

    def rows(self, start: int, stop: int) -> Table:
        """Rows start to stop."""
        if start == 0 and stop >= self.n_rows:
            return self
        return Table(
            self.native.iloc[start:stop] if self._is_pandas else self._narwhals[start:stop].to_native()
        )

    def take(self, positions: np.ndarray[Any, Any]) -> Table:
        """Rows at some positions."""
        return Table(
            self.native.iloc[positions] if self._is_pandas else self._narwhals[positions, :].to_native()
        )

    def entry(self, column: str, value: Any, *, owner: str) -> Any:
        """One value as an array of length 1 of the column's own type."""
        if self._is_pandas:
            series: Any = self.native[column]
            dtype = series.dtype
            if isinstance(dtype, pd.CategoricalDtype) and value not in dtype.categories:
                dtype = pd.CategoricalDtype([*dtype.categories, value], ordered=dtype.ordered)
            elif isinstance(value, str) and dtype.kind == "f" and series.isna().all():
                dtype = np.dtype(object)  # readers take an empty column for numbers
            made: Any = _try_cast(lambda: pd.Series([value], dtype=dtype).array, column, value, dtype, owner)
        else:
            series = self._narwhals[column]
            # Values that occur are cut out of the column itself: a dictionary or enum stays whole.
            found = np.flatnonzero(_equal(series.to_pandas(), value))
            if len(found):
                return series[int(found[0]) : int(found[0]) + 1]
            dtype = series.dtype
            made = _try_cast(
                lambda: nw.new_series(column, [value], dtype, backend=self._narwhals.implementation),
                column,
                value,
                dtype,
                owner,
            )
        if not bool(_equal(pd.Series(made.to_numpy()), value)[0]):
            raise _cannot_hold(column, value, dtype, owner)
        return made

    def replace(self, entries: dict[str, Any]) -> Any:
        """Return the native table with columns filled with one entry each."""
        if not entries:
            return self.native
        zeros = np.zeros(self.n_rows, dtype=np.intp)
        if self._is_pandas:
            return with_columns(self.native, {name: entry.take(zeros) for name, entry in entries.items()})
        filled = [entry[zeros].alias(name) for name, entry in entries.items()]
        return self._narwhals.with_columns(*filled).to_native()

    def beside(self, extra: pd.DataFrame) -> Any:
        """Return the native table with more columns at its right."""
        if self._is_pandas:
            return with_columns(self.native, {str(name): extra[name].to_numpy() for name in extra.columns})
        frame = self._narwhals
        series = [
            nw.new_series(str(name), extra[name].to_numpy().tolist(), backend=frame.implementation)
            for name in extra.columns
        ]
        return frame.with_columns(*series).to_native()

    @property
    def _is_pandas(self) -> bool:
        return isinstance(self.native, pd.DataFrame)

    @property
    def _narwhals(self) -> nw.DataFrame[Any]:
        return nw.from_native(self.native, eager_only=True)


@dataclass(frozen=True, eq=False)
class AttributeColumn:
    """A column, or the one-hot columns that stand for it, with the value of every row."""

    name: str
    values: tuple[Any, ...]
    codes: IntArray
    cells: tuple[dict[str, Any], ...]
    encoded: bool

    @property
    def column(self) -> np.ndarray[Any, Any]:
        """The value of every row."""
        column = np.empty(len(self.values), dtype=object)
        column[:] = self.values
        return np.asarray(pd.Series(column[self.codes]).infer_objects().to_numpy())


def find_attribute(table: Table, name: str, *, owner: str) -> AttributeColumn:
    """Find an attribute in a table: a column of that name, or its 0/1 columns ``name_value``."""
    if name in table.names:
        frame = table.columns([name])
        check_no_missing(frame, owner=owner)
        codes, values = _factorize(frame[name])
        return AttributeColumn(name, values, codes, tuple({name: value} for value in values), encoded=False)
    prefix = f"{name}_"
    members = [column for column in table.names if column.startswith(prefix)]
    if not members:
        check_columns(pd.DataFrame(columns=table.names), [name], owner=owner)
    matrix = _zeros_and_ones(table.columns(members))
    if matrix is None or (len(members) > 1 and not bool((matrix.sum(axis=1) == 1).all())):
        raise InputError(
            f"{owner}: 'frame' has no column {name!r}, and its columns {', '.join(members[:5])} are not a one-hot "
            f"encoding of it (0 and 1, one 1 in each row). Pass the original table and encode=domain.encode."
        )
    labels = [column.removeprefix(prefix) for column in members]
    if len(members) == 1:
        both: tuple[dict[str, Any], ...] = ({members[0]: 0}, {members[0]: 1})
        return AttributeColumn(name, (f"not {labels[0]}", labels[0]), matrix[:, 0], both, encoded=True)
    cells = tuple({other: int(other == column) for other in members} for column in members)
    return AttributeColumn(name, tuple(labels), matrix.argmax(axis=1), cells, encoded=True)


def _zeros_and_ones(block: pd.DataFrame) -> IntArray | None:
    """The block as whole numbers, or None if it holds anything but 0 and 1."""
    if not all(dtype.kind in "biuf" for dtype in block.dtypes):
        return None
    matrix = block.to_numpy(dtype=float, na_value=np.nan)
    return matrix.astype(np.intp) if bool(((matrix == 0) | (matrix == 1)).all()) else None


def _factorize(column: pd.Series[Any]) -> tuple[IntArray, tuple[Any, ...]]:
    codes, uniques = pd.factorize(column, sort=False)
    values = list(np.asarray(uniques, dtype=object))
    place = {value: i for i, value in enumerate(sorted_values(values))}
    return np.array([place[value] for value in values], dtype=np.intp)[codes], tuple(
        map(python_scalar, place)
    )


def _head(frame: Any) -> Any:
    try:
        return nw.from_native(frame, eager_only=True).head(1).to_native()
    except TypeError:
        return frame


def _equal(column: Any, value: Any) -> np.ndarray[Any, Any]:
    return np.asarray(column.astype(object) == value, dtype=bool)


def _try_cast(make: Any, column: str, value: Any, dtype: Any, owner: str) -> Any:
    try:
        return make()
    except Exception as error:  # each table library has its own errors for this
        raise _cannot_hold(column, value, dtype, owner) from error


def _cannot_hold(column: str, value: Any, dtype: Any, owner: str) -> InputError:
    return InputError(
        f"{owner}: column {column!r} is of type {dtype} and cannot hold {value!r}. "
        "Edit it to a value of its own type, or convert the column first."
    )


def put_rows(frame: pd.DataFrame, rows: pd.DataFrame, at: Any) -> pd.DataFrame:
    """Return the frame with some rows replaced."""
    if not len(at):
        return frame
    changed: dict[Any, Any] = {}
    for name in frame.columns:
        column = frame[name].array.copy()
        column[at] = rows[name].array
        changed[name] = column
    return pd.DataFrame(changed, index=frame.index, columns=frame.columns)
