"""Where each column of a table stands: as a value, as encoded numbers, and among all categories."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np

from likewise.auditing.bounds.number_codes import NumberCodes, number_codes
from likewise.core.arrays import FloatArray
from likewise.core.errors import bad_parameter
from likewise.domains.boxes import BoxDomain
from likewise.domains.column import Column
from likewise.domains.decoding import decode_columns
from likewise.domains.dtypes import Dtype

__all__ = ["IntArray", "TableLayout", "not_linear"]

IntArray: TypeAlias = np.ndarray[Any, np.dtype[np.int64]]


@dataclass(frozen=True, eq=False)
class TableLayout:
    """The columns of a domain as arrays, each column one variable.

    A row is held in two ways: as *values* (n, P), one number per column (a number in original units, or the
    position of a category), and *encoded* (n, d), as the metric and the domain see it.

    Parameters
    ----------
    columns : tuple of Column
        In the order of the encoding.

    Examples
    --------
    >>> age = Column("age", "integer", Dtype("int64"), lower=17, upper=90, mean=40.0, scale=10.0)
    >>> TableLayout((age,)).encode(np.array([[50.0]]))
    array([[1.]])
    """

    columns: tuple[Column, ...]

    @classmethod
    def of(cls, domain: Any) -> TableLayout:
        """Take the columns of a `TabularDomain`, a list of columns, or the coordinates of a `BoxDomain`.

        Parameters
        ----------
        domain : TabularDomain, BoxDomain or sequence of Column
        """
        if isinstance(domain, TableLayout):
            return domain
        if isinstance(domain, BoxDomain):
            held = set(domain.immutable)
            return cls(
                tuple(
                    Column(
                        f"x{i}",
                        "continuous",
                        Dtype("float64"),
                        lower=float(low),
                        upper=float(high),
                        immutable=i in held,
                        start=i,
                        stop=i + 1,
                    )
                    for i, (low, high) in enumerate(zip(domain.lower, domain.upper, strict=True))
                )
            )
        found = getattr(domain, "columns_", domain)
        if not isinstance(found, Sequence) or not all(isinstance(column, Column) for column in found):
            raise bad_parameter(
                "TableLayout",
                "domain",
                allowed="a fitted TabularDomain, a BoxDomain or a list of columns",
                got=type(domain).__name__,
                remedy="Only such a domain says which rows can exist, column by column.",
            )
        return cls(tuple(found))

    @property
    def n_columns(self) -> int:
        """Number of columns P."""
        return len(self.columns)

    @property
    def width(self) -> int:
        """Number of encoded columns d."""
        return self.columns[-1].stop

    @property
    def n_categories(self) -> int:
        """Number of categories M of all columns together."""
        return int(self.count.sum())

    @cached_property
    def is_category(self) -> np.ndarray[Any, np.dtype[np.bool_]]:
        """Which columns are categorical, (P,)."""
        return np.array([column.kind == "categorical" for column in self.columns])

    @cached_property
    def is_integer(self) -> np.ndarray[Any, np.dtype[np.bool_]]:
        """Which columns are whole numbers, (P,)."""
        return np.array([column.kind == "integer" for column in self.columns])

    @cached_property
    def count(self) -> IntArray:
        """Number of categories of each column, 0 for a number; (P,)."""
        return np.array([len(column.categories) for column in self.columns], dtype=np.int64)

    @cached_property
    def offset(self) -> IntArray:
        """Place of a column's first category among all, (P,)."""
        return np.cumsum(self.count) - self.count

    @cached_property
    def start(self) -> IntArray:
        """First encoded column, (P,)."""
        return np.array([column.start for column in self.columns], dtype=np.int64)

    @cached_property
    def mean(self) -> FloatArray:
        """Mean of each number, (P,)."""
        return np.array([column.mean for column in self.columns])

    @cached_property
    def scale(self) -> FloatArray:
        """Scale of each number, (P,)."""
        return np.array([column.scale for column in self.columns])

    @cached_property
    def curved(self) -> np.ndarray[Any, np.dtype[np.bool_]]:
        """Which columns are numbers on a scale that is not linear, (P,)."""
        return np.array([column.curve is not None for column in self.columns])

    @cached_property
    def numbers(self) -> NumberCodes:
        """How each number is encoded, for compiled loops."""
        return number_codes(self.columns)

    @cached_property
    def owner(self) -> IntArray:
        """Column that each encoded column belongs to, (d,)."""
        return np.repeat(np.arange(self.n_columns), [column.width for column in self.columns])

    @cached_property
    def place(self) -> IntArray:
        """For each category among all M: its encoded column, (M,); that of a binary column is shared."""
        places = [
            column.start if column.width == 1 else column.start + code
            for column in self.columns
            for code in range(len(column.categories))
        ]
        return np.array(places, dtype=np.int64)

    @cached_property
    def blocks(self) -> IntArray:
        """First and last encoded column and first category of each one-hot block, (B, 3)."""
        found = [
            (column.start, column.stop, int(self.offset[i]))
            for i, column in enumerate(self.columns)
            if column.width > 1
        ]
        return np.array(found, dtype=np.int64).reshape(-1, 3)

    def encode(self, values: FloatArray) -> FloatArray:
        """Encode rows of values, as the domain's own `encode` does."""
        values = np.asarray(values, dtype=np.float64)
        X = np.zeros((len(values), self.width))
        rows = np.arange(len(values))
        for i, column in enumerate(self.columns):
            if column.kind != "categorical":
                X[:, column.start] = column.place(values[:, i])
            elif column.is_binary:
                X[:, column.start] = values[:, i]
            else:
                X[rows, column.start + values[:, i].astype(np.int64)] = 1.0
        return X

    def values(self, X: FloatArray) -> FloatArray:
        """Read the values of encoded rows; numbers beyond the domain's range stay what they are."""
        # Beyond its range a number must not be clipped: the person is there.
        free = [
            column if column.kind == "categorical" else replace(column, lower=-np.inf, upper=np.inf)
            for column in self.columns
        ]
        found = decode_columns(np.asarray(X, dtype=np.float64), free)
        return np.stack([found[column.name].astype(np.float64) for column in self.columns], axis=1)


def not_linear(column: Column) -> str:
    """Say why a model that reads a column's own numbers is no function of encoded rows that a bound can follow.

    Examples
    --------
    >>> from likewise.domains.curve import Curve
    >>> not_linear(Column("gain", "integer", Dtype("int64"), curve=Curve("signed log", unit=1.0)))
    "bounds: the model reads 'gain' on another scale than the domain ('signed log'), so its scores are no such function of encoded rows. Train it on rows of this domain, or leave the scale of 'gain' linear."
    """
    scale = "linear" if column.curve is None else column.curve.name
    return (
        f"bounds: the model reads {column.name!r} on another scale than the domain ({scale!r}), so its scores are no such "
        f"function of encoded rows. Train it on rows of this domain, or leave the scale of {column.name!r} linear."
    )
