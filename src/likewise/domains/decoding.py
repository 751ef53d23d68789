"""From encoded rows back to values that can exist, column by column."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from likewise.core.arrays import FloatArray
from likewise.domains.column import Column

__all__ = ["decode_columns", "rounding_of_places", "rounding_of_values"]


def decode_columns(X: FloatArray, columns: Sequence[Column]) -> dict[str, np.ndarray[Any, Any]]:
    """Decode encoded rows to the nearest valid values.

    Parameters
    ----------
    X : ndarray of shape (n, d)
        Finite encoded rows, valid or not.
    columns : sequence of Column
        In the order of the encoding.

    Returns
    -------
    dict of str to ndarray of shape (n,)
        For each column its numbers in original units (float64), or the positions of its categories.
    """
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
