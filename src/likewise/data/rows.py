"""Validation of rows: one reason for every cell that cannot exist."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
from sklearn.utils.validation import validate_data

from likewise.core.checks import FloatArray, is_tensor, python_scalar, to_numpy
from likewise.core.errors import InputError
from likewise.core.frames import check_columns, is_frame, to_pandas, with_columns
from likewise.data.column import Column, Dtype, describe_schema, library_of
from likewise.data.encoding import category_codes, is_numeric, read_numbers

# Whatever the user passes, frame or array, as a pandas frame with the columns of a domain.


def read_table(estimator: Any, X: Any, *, owner: str) -> tuple[pd.DataFrame, str, dict[str, Dtype]]:
    """Read what a domain is fitted on: as a pandas frame, the user's own library, and what columns are stored as in it."""
    if not is_frame(X):
        frame = _array_to_frame(estimator, X, None, owner=owner)
        return frame, "numpy", describe_schema(frame)
    frame, library, dtypes = to_pandas(X, owner=owner, name="X"), library_of(X), describe_schema(X)
    if library == "polars":
        # A polars Categorical shares its levels with every other frame of the process.
        shared = [name for name, dtype in dtypes.items() if dtype.name == "Categorical"]
        frame = with_columns(frame, {name: frame[name].cat.remove_unused_categories() for name in shared})
    return frame, library, dtypes


def own_columns(estimator: Any, table: Any, names: Sequence[str], *, named: bool, owner: str) -> pd.DataFrame:
    """Rows as a pandas frame with just the columns of a fitted domain, in their original order."""
    if not is_frame(table):
        return _array_to_frame(estimator, table, names, owner=owner)
    frame = to_pandas(table, owner=owner)
    if not named and list(frame.columns) != list(names) and frame.shape[1] == len(names):
        warnings.warn(
            f"X has feature names, but {type(estimator).__name__} was fitted without feature names",
            stacklevel=4,
        )
        return frame.set_axis(list(names), axis=1)
    check_columns(frame, names, owner=owner)
    known = set(names)
    extra = [column for column in frame.columns if column not in known]
    if extra:
        shown = ", ".join(repr(column) for column in extra[:8])
        raise InputError(
            f"{owner}: 'frame' has column(s) that the domain does not know: {shown}. "
            "Drop them: frame[list(domain.feature_names_in_)]."
        )
    return frame if list(frame.columns) == list(names) else frame[list(names)]


def _array_to_frame(estimator: Any, X: Any, names: Sequence[str] | None, *, owner: str) -> pd.DataFrame:
    """Return an array as a frame with the given names, or x0, x1, … while fitting."""
    values = to_numpy(X) if is_tensor(X) else X
    try:
        values = validate_data(estimator, values, reset=names is None, dtype=None, ensure_all_finite=False)
    except ValueError as error:
        raise InputError(f"{owner}: {error}") from error
    names = [f"x{i}" for i in range(values.shape[1])] if names is None else list(names)
    missing = pd.isna(values)
    if missing.any():
        row, column = np.argwhere(missing)[0]
        raise InputError(
            f"{owner}: 'X' has {int(missing.sum())} missing value(s) (NaN or None), first at row {row}, "
            f"column {names[column]!r}. Drop those rows or impute them first."
        )
    return pd.DataFrame(values, columns=pd.Index(names)).infer_objects()


Mask = np.ndarray[Any, np.dtype[np.bool_]]


@dataclass(frozen=True)
class Violation:
    """One cell that keeps a row from being valid.

    Parameters
    ----------
    row : int
        Position of the row, from 0.
    column : str
        Column of the original table.
    value : object
        What the cell holds; None if it is missing.
    reason : str
        Why that cannot be.

    Examples
    --------
    >>> print(Violation(3, "age", 200, "above 90"))
    row 3, 'age' = 200: above 90
    """

    row: int
    column: str
    value: Any
    reason: str

    def __str__(self) -> str:
        return f"row {self.row}, {self.column!r} = {self.value!r}: {self.reason}"


def _first_reasons(
    checks: Sequence[tuple[Mask, str]], name: str, value_at: Callable[[int], Any]
) -> Iterator[Violation]:
    """Yield what is wrong with a column's cells, each once: the first reason counts."""
    free = np.ones(len(checks[0][0]), dtype=bool)
    for wrong, reason in checks:
        rows = np.flatnonzero(wrong & free)
        free[rows] = False
        yield from (Violation(row, name, value_at(row), reason) for row in rows.tolist())


def _by_row(found: Iterable[Violation]) -> tuple[Violation, ...]:
    return tuple(sorted(found, key=lambda one: one.row))


def find_violations(
    frame: pd.DataFrame, columns: Sequence[Column], origin: pd.DataFrame | None = None
) -> tuple[Violation, ...]:
    """Find what is wrong with rows in original units."""
    found: list[Violation] = []
    for column in columns:
        series = frame[column.name]
        values = _comparable(series, column)
        checks = [(series.isna().to_numpy(dtype=bool), "missing"), *_checks(values, column)]
        if origin is not None and column.immutable:
            checks.append((values != _comparable(origin[column.name], column), "changed, but immutable"))
        found += _first_reasons(checks, column.name, partial(_cell, series))
    return _by_row(found)


def _cell(series: pd.Series[Any], row: int) -> Any:
    value = python_scalar(series.iloc[row])
    return None if value is pd.NA or value is pd.NaT or value != value else value


def _comparable(series: pd.Series[Any], column: Column) -> np.ndarray[Any, Any]:
    """Return numbers (NaN for anything else) or positions of categories (−1 for anything else)."""
    if column.kind == "categorical":
        return category_codes(series, column.categories)
    if is_numeric(series):
        return read_numbers(series)
    numbers = [value if isinstance(value, (int, float, np.number)) else np.nan for value in series]
    return np.array(numbers, dtype=float)


def _checks(values: np.ndarray[Any, Any], column: Column) -> list[tuple[Mask, str]]:
    """What may be wrong with numbers in original units, or with positions of categories."""
    if column.kind == "categorical":
        return [(values < 0, "a category never seen")]
    fractions = [(values != np.rint(values), "not a whole number")] if column.kind == "integer" else []
    return [
        (np.isnan(values), "not a number"),
        (np.isinf(values), "not finite"),
        *fractions,
        (values < column.lower, f"below {column.lower:.10g}"),
        (values > column.upper, f"above {column.upper:.10g}"),
    ]


def find_violations_encoded(
    X: FloatArray, columns: Sequence[Column], origin: FloatArray | None = None
) -> tuple[Violation, ...]:
    """Find what is wrong with encoded rows; the value shown is in original units, or the indicators."""
    found: list[Violation] = []
    tol = 1e-6
    for column in columns:
        part = X[:, column.slice]
        if column.kind == "categorical":
            shown: list[Any] = [tuple(cells) for cells in part.tolist()]
            whole = (np.abs(part - np.rint(part)) <= tol) & (np.rint(part) >= 0) & (np.rint(part) <= 1)
            one = column.is_binary | (np.rint(part).sum(axis=1) == 1)
            checks = [
                (np.asarray(~np.isfinite(part).all(axis=1)), "not finite"),
                (~(whole.all(axis=1) & one), "not one of its categories"),
            ]
        else:
            places = part[:, 0].astype(float)
            values = column.number(places)
            shown = values.tolist()
            if column.curve is None:
                values = _without_rounding(values, column, tol * column.scale)
            else:
                values = _without_rounding_of(places, values, column, tol)
            checks = _checks(values, column)
        if origin is not None and column.immutable:
            moved = np.asarray((np.abs(part - origin[:, column.slice]) > tol).any(axis=1))
            checks.append((moved, "changed, but immutable"))
        found += _first_reasons(checks, column.name, shown.__getitem__)
    return _by_row(found)


def _without_rounding(values: FloatArray, column: Column, tol: float) -> FloatArray:
    if column.kind == "integer":
        values = np.where(np.abs(values - np.rint(values)) <= min(tol, 0.25), np.rint(values), values)
    near_low, near_high = np.abs(values - column.lower) <= tol, np.abs(values - column.upper) <= tol
    return np.where(near_low, column.lower, np.where(near_high, column.upper, values))


def _without_rounding_of(places: FloatArray, values: FloatArray, column: Column, tol: float) -> FloatArray:
    """The same where one unit is not equally long everywhere: differences are those of the encoding."""
    wanted = [column.whole_number(places)] if column.kind == "integer" else []
    for near in (*wanted, np.full(len(values), column.lower), np.full(len(values), column.upper)):
        values = np.where(np.abs(places - column.place(near)) <= tol, near, values)
    return values
