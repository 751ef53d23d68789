"""Columns ↔ numbers, and nothing else: numbers standardised, categories as indicators, and the way back.

Two encodings of the same columns differ by an affine map, column by column: numbers by their mean and scale,
categories by where their indicators stand. So whatever is linear in one encoding (a fair metric, the first layer
of a network) can be written exactly in another. A number on a logarithm or by rank in one of them and otherwise in
the other has no such map, and there is none between the two encodings.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd

from likewise.core.arrays import FloatArray
from likewise.core.errors import InputError
from likewise.core.frames import check_columns, check_no_missing, is_frame, to_pandas
from likewise.domains.column import Column, encoded_names
from likewise.domains.decoded_tables import build_table
from likewise.domains.decoding import decode_columns
from likewise.domains.dtypes import Dtype
from likewise.domains.reading import category_codes, check_known, check_numbers

__all__ = ["AffineMap", "Encoding", "EncodingMismatchError", "ScaleMismatchError"]


class EncodingMismatchError(InputError):
    """Two encodings have no exact map between them; the message says which column is in the way."""


class ScaleMismatchError(EncodingMismatchError):
    """A number is on one scale in one of two encodings and on another in the other."""


@dataclass(frozen=True, eq=False)
class AffineMap:
    """x ↦ Ax + b between the rows of two encodings.

    Parameters
    ----------
    matrix : array of shape (d_to, d_from)
        A.
    offset : array of shape (d_to,)
        b.

    Examples
    --------
    >>> double = AffineMap(np.array([[2.0]]), np.array([1.0]))
    >>> double(np.array([[3.0]]))
    array([[7.]])
    >>> double.is_identity
    False
    """

    matrix: FloatArray
    offset: FloatArray

    @cached_property
    def is_identity(self) -> bool:
        """Whether the map changes nothing at all."""
        d = len(self.offset)
        square = self.matrix.shape == (d, d)
        return square and not self.offset.any() and bool((self.matrix == np.eye(d)).all())

    def __call__(self, X: FloatArray) -> FloatArray:
        """Map rows; where the map is the identity, the rows themselves."""
        return X if self.is_identity else np.asarray(X @ self.matrix.T + self.offset)


@dataclass(frozen=True, eq=False)
class Encoding:
    """How the columns of a table become numbers.

    Parameters
    ----------
    columns : tuple of Column
        In the order of the encoding.
    names : tuple of str
        The columns in the order of the table.
    library : str, default="pandas"
        What `decode` makes tables of.

    Examples
    --------
    >>> from likewise.domains import TabularDomain
    >>> people = pd.DataFrame({"age": [20, 40], "sex": ["M", "F"]})
    >>> encoding = TabularDomain.from_frame(people).encoding_
    >>> encoding.feature_names, encoding.encode(people).tolist()
    (('age', 'sex_M'), [[-1.0, 1.0], [1.0, 0.0]])
    """

    columns: tuple[Column, ...]
    names: tuple[str, ...]
    library: str = "pandas"

    @classmethod
    def plain(cls, names: Sequence[str]) -> Encoding:
        """Return the encoding of columns of numbers that are taken as they are.

        Examples
        --------
        >>> Encoding.plain(["age"]).encode(pd.DataFrame({"age": [20, 40]})).ravel().tolist()
        [20.0, 40.0]
        """
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
        """Encode rows in original units.

        Parameters
        ----------
        frame : pandas.DataFrame of shape (n, p)
            With all the columns; more of them are left out. A number out of range is encoded like any other.
        owner : str
            For error messages.

        Returns
        -------
        ndarray of shape (n, d), float64
        """
        if len(frame) == 0:
            raise InputError(f"{owner}: 'frame' is empty: it has no rows. Pass at least one row.")
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
            frame = to_pandas(table, owner=owner, name="X")
            check_columns(frame, self.feature_names, owner=owner, name="X")
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

        Raises
        ------
        EncodingMismatchError
            This encoding has a column, a kind or a category that the other has not.

        Examples
        --------
        >>> one, ten = (
        ...     Encoding((Column("age", "continuous", Dtype("float64"), scale=scale),), ("age",)) for scale in (1.0, 10.0)
        ... )
        >>> ten.map_from(one)(np.array([[50.0]]))
        array([[5.]])
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
    """Return the map where a column of codes is a category in one encoding and a number in the other."""
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
