"""Columns of a pandas frame as numbers and as positions of categories."""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from likewise.core.arrays import FloatArray
from likewise.core.errors import InputError

__all__ = ["category_codes", "check_known", "check_numbers", "is_numeric", "plain", "read_numbers"]

Codes = np.ndarray[Any, np.dtype[np.int64]]


def plain(value: Any) -> Any:
    """Return a numpy scalar as the Python value it holds; anything else as it is.

    Examples
    --------
    >>> plain(np.int8(3))
    3
    """
    return value.item() if isinstance(value, np.generic) else value


def is_numeric(series: pd.Series[Any]) -> bool:
    """Whether a column holds numbers: integers, floats, booleans, or an object column of nothing else.

    Examples
    --------
    >>> is_numeric(pd.Series([1, 2])), is_numeric(pd.Series(["1"]))
    (True, False)
    """
    if isinstance(series.dtype, pd.CategoricalDtype):
        return is_numeric(series.cat.categories.to_series())
    if series.dtype.kind in "biuf":
        return True
    inferred = pd.api.types.infer_dtype(series, skipna=True)
    return inferred in ("integer", "floating", "mixed-integer-float", "boolean", "empty")


def read_numbers(series: pd.Series[Any]) -> FloatArray:
    """Values of a numeric column as float64; missing ones as NaN.

    Examples
    --------
    >>> read_numbers(pd.Series([1, None], dtype="Int8"))
    array([ 1., nan])
    """
    if isinstance(series.dtype, np.dtype) and series.dtype.kind in "biuf":
        return series.to_numpy(dtype=float)
    if isinstance(series.dtype, pd.CategoricalDtype):
        levels = np.append(series.cat.categories.to_numpy(dtype=float), np.nan)
        return np.asarray(levels[series.cat.codes.to_numpy()])
    return series.to_numpy(dtype=float, na_value=np.nan)


def check_numbers(series: pd.Series[Any], *, owner: str) -> FloatArray:
    """Read a column that must hold finite numbers, or raise an error that names column, value and row.

    Examples
    --------
    >>> check_numbers(pd.Series(["old"], name="age"), owner="encode")
    Traceback (most recent call last):
    ...
    likewise.core.errors.InputError: encode: column 'age' must hold numbers, got 'old' at row 0. Convert it, for example with pandas.to_numeric(frame['age']).
    """
    name = str(series.name)
    if not is_numeric(series):
        text = [isinstance(value, str) for value in series]
        row = int(np.argmax(text))
        raise InputError(
            f"{owner}: column {name!r} must hold numbers, got {series.iloc[row]!r} at row {row}. "
            f"Convert it, for example with pandas.to_numeric(frame[{name!r}])."
        )
    values = read_numbers(series)
    finite = np.isfinite(values)
    if not finite.all():
        row = int(np.argmin(finite))
        raise InputError(
            f"{owner}: column {name!r} has {int((~finite).sum())} infinite value(s), first {values[row]} at "
            f"row {row}. Drop those rows or give a finite value."
        )
    return values


def category_codes(series: pd.Series[Any], categories: Sequence[Any]) -> Codes:
    """Position of each value among the categories; −1 where it is missing or not among them.

    Examples
    --------
    >>> category_codes(pd.Series(["b", "z", None]), ["a", "b"])
    array([ 1, -1, -1])
    """
    raw, uniques = _factorize(series)
    position = {category: i for i, category in enumerate(categories)}
    table = np.array([position.get(plain(value), -1) for value in uniques] + [-1], dtype=np.int64)
    return np.asarray(table[raw])


def _factorize(series: pd.Series[Any]) -> tuple[np.ndarray[Any, Any], list[Any]]:
    if isinstance(series.dtype, pd.CategoricalDtype):
        return series.cat.codes.to_numpy(), list(series.cat.categories)
    try:
        codes, uniques = pd.factorize(series)
    except TypeError as error:
        raise InputError(
            f"column {str(series.name)!r} holds values that are no categories ({error}). "
            "Convert it to strings or numbers, or drop it."
        ) from error
    return codes, list(uniques)


def check_known(codes: Codes, series: pd.Series[Any], categories: Sequence[Any], *, owner: str) -> None:
    """Raise an error that names column, value and row where a category was never seen.

    Examples
    --------
    >>> check_known(np.array([-1]), pd.Series(["Mal"], name="sex"), ["Female", "Male"], owner="encode")
    Traceback (most recent call last):
    ...
    likewise.core.errors.InputError: encode: column 'sex' has a category never seen: 'Mal' at row 0 (did you mean 'Male'?). Known: 'Female', 'Male'. Correct it, drop the row, or declare it: TabularDomain(categories={'sex': [...]}).
    """
    unknown = codes < 0
    if not unknown.any():
        return
    row = int(unknown.argmax())
    value = plain(series.iloc[row])
    words = [category for category in categories if isinstance(category, str)]
    close = difflib.get_close_matches(str(value), words, n=1)
    hint = f" (did you mean {close[0]!r}?)" if close else ""
    others = int(unknown.sum()) - 1
    more = f" and {others} more row(s)" if others else ""
    known = ", ".join(repr(category) for category in categories[:12]) + (
        ", …" if len(categories) > 12 else ""
    )
    name = str(series.name)
    raise InputError(
        f"{owner}: column {name!r} has a category never seen: {value!r} at row {row}{hint}{more}. "
        f"Known: {known}. Correct it, drop the row, or declare it: TabularDomain(categories={{{name!r}: [...]}})."
    )
