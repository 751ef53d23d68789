"""What a column is stored as, in words that survive JSON and lead back to the very same dtype."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import narwhals.stable.v1 as nw
import numpy as np
import pandas as pd
import pyarrow as pa

from likewise.core.errors import FormatError

__all__ = ["Dtype", "arrow_type", "describe_schema", "library_of", "pandas_dtype", "polars_dtype"]

Scalar = str | bool | int | float


@dataclass(frozen=True)
class Dtype:
    """Description of the dtype of one column in its own library.

    Parameters
    ----------
    name : str
        The library's name of it: ``"int8"``, ``"Int64"``, ``"category"``, ``"Enum"``, ``"dictionary"``, …
    levels : tuple, optional
        Categories that the dtype itself declares, in its order.
    ordered : bool, default=False
        Whether these levels are ordered.
    inner : Dtype, optional
        Dtype of the levels, or the arrow type behind a pandas ``ArrowDtype``.
    storage : str, optional
        ``"python"`` or ``"pyarrow"`` for pandas strings; type of the codes of an arrow dictionary.
    nullable : bool, default=True
        Whether an arrow field says that it may be null.

    Examples
    --------
    >>> str(Dtype("category", levels=("a", "b"), inner=Dtype("object")))
    'category'
    """

    name: str
    levels: tuple[Scalar, ...] | None = None
    ordered: bool = False
    inner: Dtype | None = None
    storage: str | None = None
    nullable: bool = True

    def __str__(self) -> str:
        return self.name

    def to_dict(self) -> dict[str, Any]:
        """Return the description as plain JSON, defaults left out."""
        out: dict[str, Any] = {"name": self.name}
        if self.levels is not None:
            out |= {"levels": list(self.levels), "ordered": self.ordered}
        if self.inner is not None:
            out["inner"] = self.inner.to_dict()
        if self.storage is not None:
            out["storage"] = self.storage
        if not self.nullable:
            out["nullable"] = False
        return out

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Dtype:
        """Read what `to_dict` wrote."""
        levels, inner = values.get("levels"), values.get("inner")
        return cls(
            name=values["name"],
            levels=None if levels is None else tuple(levels),
            ordered=values.get("ordered", False),
            inner=None if inner is None else cls.from_dict(inner),
            storage=values.get("storage"),
            nullable=values.get("nullable", True),
        )


def library_of(table: Any) -> str:
    """Name of the library that a table comes from.

    Examples
    --------
    >>> library_of(pd.DataFrame({"a": [1]})), library_of(pa.table({"a": [1]}))
    ('pandas', 'pyarrow')
    """
    return str(nw.from_native(table, eager_only=True).implementation.value)


def describe_schema(table: Any) -> dict[str, Dtype]:
    """Describe every column of a pandas, polars or arrow table; of another library by pandas' names.

    Examples
    --------
    >>> describe_schema(pd.DataFrame({"age": [1]}))["age"].name
    'int64'
    """
    library = library_of(table)
    if library == "polars":
        return {name: _describe_polars(dtype) for name, dtype in table.schema.items()}
    if library == "pyarrow":
        return {field.name: _describe_arrow(field.type, field.nullable) for field in table.schema}
    frame = table if library == "pandas" else nw.from_native(table, eager_only=True).to_pandas()
    return {str(name): _describe_pandas(dtype) for name, dtype in frame.dtypes.items()}


def _describe_pandas(dtype: Any) -> Dtype:
    if isinstance(dtype, pd.CategoricalDtype):
        levels = tuple(_plain(value) for value in dtype.categories)
        inner = _describe_pandas(dtype.categories.dtype)
        return Dtype("category", levels=levels, ordered=bool(dtype.ordered), inner=inner)
    if isinstance(dtype, pd.StringDtype):
        # Two string dtypes differ only in what a missing value is: NaN ("str") or NA ("string").
        return Dtype("string" if dtype.na_value is pd.NA else "str", storage=dtype.storage)
    if isinstance(dtype, pd.ArrowDtype):
        return Dtype("arrow", inner=_describe_arrow(dtype.pyarrow_dtype))
    return Dtype(str(dtype))


def _describe_polars(dtype: Any) -> Dtype:
    name = type(dtype).__name__
    if name == "Enum":
        return Dtype("Enum", levels=tuple(dtype.categories.to_list()), ordered=True)
    return Dtype(name)


def _describe_arrow(dtype: Any, nullable: bool = True) -> Dtype:
    if pa.types.is_dictionary(dtype):
        inner = _describe_arrow(dtype.value_type)
        index = str(dtype.index_type)
        return Dtype("dictionary", ordered=dtype.ordered, inner=inner, storage=index, nullable=nullable)
    return Dtype(str(dtype), nullable=nullable)


def _plain(value: Any) -> Any:
    return value.item() if isinstance(value, np.generic) else value


def pandas_dtype(dtype: Dtype) -> Any:
    """Return the pandas dtype that a description stands for.

    Examples
    --------
    >>> pandas_dtype(Dtype("Int8"))
    Int8Dtype()
    """
    if dtype.name == "category":
        inner = dtype.inner or Dtype("object")
        categories = pd.Index(list(dtype.levels or ()), dtype=pandas_dtype(inner))
        return pd.CategoricalDtype(categories, ordered=dtype.ordered)
    if dtype.name in ("str", "string") and dtype.storage is not None:
        missing: Any = np.nan if dtype.name == "str" else pd.NA
        return pd.StringDtype(dtype.storage, na_value=missing)
    if dtype.name == "arrow" and dtype.inner is not None:
        return pd.ArrowDtype(arrow_type(dtype.inner))
    try:
        return pd.api.types.pandas_dtype(dtype.name)
    except TypeError as error:
        raise FormatError(f"TabularDomain: no pandas dtype is called {dtype.name!r}.") from error


def arrow_type(dtype: Dtype) -> Any:
    """Return the arrow type that a description stands for.

    Examples
    --------
    >>> arrow_type(Dtype("large_string"))
    DataType(large_string)
    """
    if dtype.name == "dictionary" and dtype.inner is not None:
        index = pa.type_for_alias(dtype.storage or "int32")
        return pa.dictionary(index, arrow_type(dtype.inner), ordered=dtype.ordered)
    try:
        return pa.type_for_alias(dtype.name)
    except ValueError as error:
        raise FormatError(f"TabularDomain: no arrow type is called {dtype.name!r}.") from error


def polars_dtype(dtype: Dtype, polars: Any) -> Any:
    """Return the polars dtype that a description stands for; `polars` is the imported module."""
    if dtype.name == "Enum":
        return polars.Enum(list(dtype.levels or ()))
    try:
        return getattr(polars, dtype.name)()
    except AttributeError as error:
        raise FormatError(f"TabularDomain: no polars dtype is called {dtype.name!r}.") from error
