"""Decoded columns into a table of the library and the dtypes that the domain was fitted on."""

from __future__ import annotations

import importlib
from collections.abc import Mapping, Sequence
from typing import Any

import narwhals.stable.v1 as nw
import numpy as np
import pandas as pd
import pyarrow as pa

from likewise.core.errors import MissingExtraError
from likewise.domains.column import Column
from likewise.domains.dtypes import arrow_type, pandas_dtype, polars_dtype

__all__ = ["build_table", "pandas_values"]

Values = np.ndarray[Any, Any]


def build_table(
    columns: Sequence[Column], parts: Mapping[str, Values], library: str, index: Any = None
) -> Any:
    """Build the table.

    Parameters
    ----------
    columns : sequence of Column
        In the order of the original table.
    parts : mapping of str to ndarray of shape (n,)
        For each column its numbers (float64), or the positions of its categories (integers).
    library : str
        ``"pandas"``, ``"polars"``, ``"pyarrow"``, ``"numpy"`` or another name that narwhals knows.
    index : pandas.Index, optional
        Row labels of a pandas frame.

    Returns
    -------
    table of that library
    """
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
