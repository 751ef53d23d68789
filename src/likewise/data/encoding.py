"""The encoding of columns as numbers and its inverse: standardised numbers, indicators of categories.

Two encodings of the same columns differ by an affine map, column by column: numbers by their mean and scale,
categories by where their indicators stand. So whatever is linear in one encoding (a fair metric, the first layer
of a network) can be written exactly in another. A number on a logarithm or by rank in one of them and otherwise in
the other has no such map, and there is none between the two encodings.
"""

from __future__ import annotations

import importlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import narwhals.stable.v1 as nw
import numpy as np
import pandas as pd
import pyarrow as pa

from likewise.core.checks import FloatArray, IntArray, python_scalar
from likewise.core.errors import InputError, MissingExtraError, did_you_mean, listed, no_rows
from likewise.core.frames import check_no_missing, is_frame, to_pandas
from likewise.data.column import Column, Dtype, arrow_type, encoded_names, pandas_dtype, polars_dtype

# From encoded rows back to values that can exist, column by column.


def decode_columns(X: FloatArray, columns: Sequence[Column]) -> dict[str, np.ndarray[Any, Any]]:
    """Decode encoded rows to the nearest valid values."""
    return {column.name: _decode(X, column) for column in columns}


def _decode(X: FloatArray, column: Column) -> np.ndarray[Any, Any]:
    if column.is_binary:
        return (X[:, column.start] >= 0.5).astype(np.int64)
    if column.kind == "categorical":
        # The vertex of the simplex nearest to x is that of its largest entry.
        return np.asarray(X[:, column.slice].argmax(axis=1))
    resolution = float(np.finfo(X.dtype).eps)
    places = X[:, column.start].astype(float)
    if column.kind == "integer":
        return np.asarray(np.clip(column.whole_number(places), column.lower, column.upper))
    values = column.number(places)
    if column.decimals is not None:
        # A value within rounding of a short decimal was that decimal before it was encoded.
        short = np.round(values, column.decimals)
        if column.curve is None:
            near = np.abs(values - short) <= 8 * resolution * (np.abs(values) + abs(column.mean))
        else:
            near = np.abs(places - column.place(short)) <= rounding_of_places(column, places, resolution)
        values = np.where(near, short, values)
    return np.asarray(np.clip(values, column.lower, column.upper))


def rounding_of_values(column: Column, values: FloatArray, times: float) -> FloatArray:
    """How far numbers on a curve may change on their way through the encoding and back, so many roundings each way."""
    places = column.place(values)
    away = times * rounding_of_places(column, places)
    return np.asarray(column.number(places + away) - column.number(places - away))


def rounding_of_places(
    column: Column, places: FloatArray, resolution: float = float(np.finfo(float).eps)
) -> FloatArray:
    """How far encoded numbers may lie from where exact arithmetic would put them."""
    return np.asarray(8 * resolution * (np.abs(places) + abs(column.mean) / column.scale))


# Decoded columns into a table of the library and the dtypes that the domain was fitted on.


Values = np.ndarray[Any, Any]


def build_table(
    columns: Sequence[Column], parts: Mapping[str, Values], library: str, index: Any = None
) -> Any:
    """Build the table."""
    if library == "polars":
        polars = _import_polars()
        return polars.DataFrame([_polars_series(c, parts[c.name], polars) for c in columns])
    if library == "pyarrow":
        fields = [pa.field(c.name, arrow_type(c.dtype), nullable=c.dtype.nullable) for c in columns]
        return pa.table([_arrow_array(c, parts[c.name]) for c in columns], schema=pa.schema(fields))
    if library == "numpy":
        return _matrix(columns, parts)
    frame = pd.DataFrame({c.name: _pandas_series(c, parts[c.name], index) for c in columns}, copy=False)
    if library == "pandas":
        return frame
    values: dict[str, Any] = {c.name: frame[c.name].to_list() for c in columns}
    backend: Any = nw.Implementation.from_string(library)
    return nw.from_dict(values, backend=backend).to_native()


def pandas_values(column: Column, part: Values) -> Any:
    """Values of one column as a pandas array of its dtype."""
    dtype = pandas_dtype(column.dtype)
    plain = isinstance(dtype, np.dtype)
    if column.kind != "categorical":
        return part.astype(dtype) if plain else pd.array(_whole_or_not(column, part), dtype=dtype)
    if isinstance(dtype, pd.CategoricalDtype):
        return pd.Categorical.from_codes(_level_codes(column, list(dtype.categories))[part], dtype=dtype)
    if plain:
        return np.array(column.categories, dtype=dtype)[part]
    return pd.array(list(column.categories), dtype=dtype).take(part)


def _pandas_series(column: Column, part: Values, index: Any) -> Any:
    values = pandas_values(column, part)
    # Named, because pandas would turn an object array of strings into its string dtype.
    return pd.Series(values, index=index, dtype=values.dtype, copy=False)


def _polars_series(column: Column, part: Values, polars: Any) -> Any:
    dtype = polars_dtype(column.dtype, polars)
    if column.kind != "categorical":
        return polars.Series(column.name, _whole_or_not(column, part)).cast(dtype)
    return polars.Series(column.name, list(column.categories)).cast(dtype).gather(part)


def _arrow_array(column: Column, part: Values) -> Any:
    dtype = arrow_type(column.dtype)
    if column.kind != "categorical":
        return pa.array(part.astype(dtype.to_pandas_dtype()), type=dtype)
    if pa.types.is_dictionary(dtype):
        levels = list(column.dtype.levels or column.categories)
        codes = pa.array(_level_codes(column, levels)[part], type=dtype.index_type)
        values = pa.array(levels, type=dtype.value_type)
        return pa.DictionaryArray.from_arrays(codes, values, ordered=dtype.ordered)
    return pa.array(list(column.categories)).take(pa.array(part)).cast(dtype)


def _matrix(columns: Sequence[Column], parts: Mapping[str, Values]) -> Values:
    arrays = [pandas_values(column, parts[column.name]) for column in columns]
    numeric = all(isinstance(a, np.ndarray) and a.dtype.kind in "biuf" for a in arrays)
    if numeric and len({a.dtype.kind == "b" for a in arrays}) == 1:
        return np.column_stack(arrays)
    return np.column_stack([np.asarray(a, dtype=object) for a in arrays])


def _level_codes(column: Column, levels: list[Any]) -> Values:
    """Position of each of the column's (sorted) categories among the levels of its dtype."""
    position = {level: i for i, level in enumerate(levels)}
    return np.array([position[category] for category in column.categories], dtype=np.int64)


def _whole_or_not(column: Column, part: Values) -> Values:
    return part.astype(np.int64) if column.kind == "integer" else part


def _import_polars() -> Any:
    try:
        return importlib.import_module("polars")
    except ModuleNotFoundError as error:
        raise MissingExtraError(
            "TabularDomain.decode: the domain was fitted on a polars frame and polars is not installed. "
            "Run: pip install polars"
        ) from error


# Columns of a pandas frame as numbers and as positions of categories.


Codes = IntArray


def is_numeric(series: pd.Series[Any]) -> bool:
    """Whether a column holds numbers: integers, floats, booleans, or an object column of nothing else."""
    if isinstance(series.dtype, pd.CategoricalDtype):
        return is_numeric(series.cat.categories.to_series())
    if series.dtype.kind in "biuf":
        return True
    inferred = pd.api.types.infer_dtype(series, skipna=True)
    return inferred in ("integer", "floating", "mixed-integer-float", "boolean", "empty")


def read_numbers(series: pd.Series[Any]) -> FloatArray:
    """Values of a numeric column as float64; missing ones as NaN."""
    if isinstance(series.dtype, np.dtype) and series.dtype.kind in "biuf":
        return series.to_numpy(dtype=float)
    if isinstance(series.dtype, pd.CategoricalDtype):
        levels = np.append(series.cat.categories.to_numpy(dtype=float), np.nan)
        return np.asarray(levels[series.cat.codes.to_numpy()])
    return series.to_numpy(dtype=float, na_value=np.nan)


def check_numbers(series: pd.Series[Any], *, owner: str) -> FloatArray:
    """Read a column that must hold finite numbers, or raise an error that names column, value and row."""
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
    """Position of each value among the categories; −1 if it is missing or not among them."""
    raw, uniques = factorized(series)
    position = {category: i for i, category in enumerate(categories)}
    table = np.array([position.get(python_scalar(value), -1) for value in uniques] + [-1], dtype=np.int64)
    return np.asarray(table[raw])


def factorized(series: pd.Series[Any], *, owner: str = "") -> tuple[np.ndarray[Any, Any], list[Any]]:
    """Return a column as positions among categories, and these: all that its dtype declares, or those that occur."""
    if isinstance(series.dtype, pd.CategoricalDtype):
        return series.cat.codes.to_numpy(), list(series.cat.categories)
    try:
        codes, uniques = pd.factorize(series.array)
    except TypeError as error:
        raise InputError(
            f"{owner}{': ' * bool(owner)}column {str(series.name)!r} holds values that cannot be categories ({error}). "
            "Convert it to strings or numbers, or drop it."
        ) from error
    return codes, list(uniques)


def check_known(codes: Codes, series: pd.Series[Any], categories: Sequence[Any], *, owner: str) -> None:
    """Raise if a category was never seen; the error names column, value and row."""
    unknown = codes < 0
    if not unknown.any():
        return
    row = int(unknown.argmax())
    value = python_scalar(series.iloc[row])
    hint = did_you_mean(value, [category for category in categories if isinstance(category, str)])
    others = int(unknown.sum()) - 1
    more = f" and {others} more row(s)" if others else ""
    name = str(series.name)
    raise InputError(
        f"{owner}: column {name!r} has a category never seen: {value!r} at row {row}{hint}{more}. "
        f"Known: {listed([repr(category) for category in categories])}. Correct it, drop the row, or declare it: TabularDomain(categories={{{name!r}: [...]}})."
    )


class EncodingMismatchError(InputError):
    """Two encodings have no exact map between them; the message says which column is in the way."""


class ScaleMismatchError(EncodingMismatchError):
    """A number is on one scale in one of two encodings and on another in the other."""


@dataclass(frozen=True, eq=False)
class AffineMap:
    """x ↦ Ax + b between the rows of two encodings."""

    matrix: FloatArray
    offset: FloatArray

    @cached_property
    def is_identity(self) -> bool:
        """Whether the map changes nothing at all."""
        d = len(self.offset)
        square = self.matrix.shape == (d, d)
        return square and not self.offset.any() and bool((self.matrix == np.eye(d)).all())

    def __call__(self, X: FloatArray) -> FloatArray:
        """Map rows; if the map is the identity, the rows themselves."""
        return X if self.is_identity else np.asarray(X @ self.matrix.T + self.offset)


@dataclass(frozen=True, eq=False)
class Encoding:
    """How the columns of a table become numbers."""

    columns: tuple[Column, ...]
    names: tuple[str, ...]
    library: str = "pandas"

    @classmethod
    def plain(cls, names: Sequence[str]) -> Encoding:
        """Return the encoding of columns of numbers that are taken as they are."""
        columns = tuple(
            Column(name, "continuous", Dtype("float64"), lower=-np.inf, upper=np.inf, start=at, stop=at + 1)
            for at, name in enumerate(names)
        )
        return cls(columns, tuple(names))

    @property
    def n_features(self) -> int:
        """Width d of an encoded row."""
        return self.columns[-1].stop

    @cached_property
    def feature_names(self) -> tuple[str, ...]:
        """Names of the d encoded columns."""
        return tuple(encoded_names(self.columns))

    @cached_property
    def by_name(self) -> Mapping[str, Column]:
        """Column of each name."""
        return {column.name: column for column in self.columns}

    def encode(self, frame: pd.DataFrame, *, owner: str = "Encoding.encode") -> FloatArray:
        """Encode rows in original units."""
        if len(frame) == 0:
            raise no_rows(owner, "frame")
        check_no_missing(frame[list(self.names)], owner=owner)
        encoded = np.zeros((len(frame), self.n_features))
        rows = np.arange(len(frame))
        for column in self.columns:
            series = frame[column.name]
            if column.kind != "categorical":
                encoded[:, column.start] = column.place(check_numbers(series, owner=owner))
                continue
            codes = category_codes(series, column.categories)
            check_known(codes, series, column.categories, owner=owner)
            if column.is_binary:
                encoded[:, column.start] = codes
            else:
                encoded[rows, column.start + codes] = 1.0
        return encoded

    def read_encoded(self, table: Any, *, owner: str) -> FloatArray:
        """Return encoded rows, given as an array or as a frame with the encoded columns, as float64 (n, d)."""
        if is_frame(table):
            frame = to_pandas(table, owner=owner, name="X", needed=self.feature_names)
            return np.asarray(frame[list(self.feature_names)].to_numpy(dtype=float))
        return np.asarray(table, dtype=np.float64)

    def decode(self, X: FloatArray, index: Any = None) -> Any:
        """Decode finite rows of shape (n, d) to the nearest values that can exist, as a table of `library`."""
        parts = decode_columns(X, self.columns)
        return build_table([self.by_name[name] for name in self.names], parts, self.library, index)

    def agrees(self, other: Encoding) -> bool:
        """Whether two encodings give the same numbers for every table, whatever their ranges."""
        return _numbers_of(self) == _numbers_of(other)

    def map_from(self, other: Encoding) -> AffineMap:
        """Return the map from rows of another encoding of the same columns to rows of this one.

        Columns that only the other encoding has are left out.
        """
        matrix = np.zeros((self.n_features, other.n_features))
        offset = np.zeros(self.n_features)
        for mine in self.columns:
            theirs = other.by_name.get(mine.name)
            if theirs is None:
                raise EncodingMismatchError(f"column {mine.name!r} is missing from one of the two encodings")
            part = np.s_[mine.start : mine.stop, theirs.start : theirs.stop]
            matrix[part], offset[mine.slice] = _column_map(mine, theirs)
        return AffineMap(matrix, offset)


def _numbers_of(encoding: Encoding) -> list[tuple[Any, ...]]:
    return [
        (c.name, c.kind == "categorical", c.categories, c.mean, c.scale, c.curve) for c in encoding.columns
    ]


def _column_map(mine: Column, theirs: Column) -> tuple[FloatArray, FloatArray]:
    """Return (A, b) of one column: from the numbers of `theirs` to those of `mine`."""
    if (mine.kind == "categorical") != (theirs.kind == "categorical"):
        return _codes_as_numbers(mine, theirs)
    if mine.kind != "categorical":
        if mine.curve != theirs.curve:
            raise ScaleMismatchError(
                f"column {mine.name!r} is on the scale {_scale_name(mine)} in one of the two encodings and on "
                f"{_scale_name(theirs)} in the other"
            )
        scale, shift = theirs.scale / mine.scale, (theirs.mean - mine.mean) / mine.scale
        return np.array([[scale]]), np.array([shift])
    # What this encoding writes for each category of theirs, whose indicators add up to one.
    levels = np.stack([_indicators(mine, category) for category in theirs.categories])
    return _from_levels(levels, theirs)


def _scale_name(column: Column) -> str:
    return "'linear'" if column.curve is None else f"{column.curve.name!r} of its own table"


def _codes_as_numbers(mine: Column, theirs: Column) -> tuple[FloatArray, FloatArray]:
    """Return the map if a column of codes is a category in one encoding and a number in the other."""
    number = all(isinstance(value, (int, float)) for value in theirs.categories)
    if mine.kind == "categorical" or not number:
        raise EncodingMismatchError(
            f"column {mine.name!r} is {mine.kind} in one of the two encodings and {theirs.kind} in the other"
        )
    levels = mine.place([float(value) for value in theirs.categories])[:, None]
    return _from_levels(levels, theirs)


def _from_levels(levels: FloatArray, theirs: Column) -> tuple[FloatArray, FloatArray]:
    """Return (A, b) that takes the indicators of each category of `theirs` to its row of `levels`."""
    if theirs.is_binary:
        return (levels[1] - levels[0])[:, None], levels[0]
    return levels.T, np.zeros(levels.shape[1])


def _indicators(column: Column, category: Any) -> FloatArray:
    if category not in column.categories:
        raise EncodingMismatchError(
            f"column {column.name!r} has the category {category!r} in one of the two encodings only"
        )
    at = column.categories.index(category)
    return np.array([float(at)]) if column.is_binary else np.eye(column.width)[at]
