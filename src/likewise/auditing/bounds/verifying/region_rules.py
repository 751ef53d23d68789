"""How large a region is, which rows it holds, and how a person reads it."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np

from likewise.auditing.bounds.regions import Regions
from likewise.auditing.bounds.table_layout import TableLayout
from likewise.core.arrays import FloatArray

__all__ = ["count_points", "describe", "points_of", "volumes"]


def volumes(layout: TableLayout, regions: Regions, apart: Any = ()) -> FloatArray:
    """Share of the domain that each region is, some columns aside; a whole number counts its values.

    Examples
    --------
    >>> from likewise.domains import BoxDomain
    >>> layout = TableLayout.of(BoxDomain([0.0], [4.0]))
    >>> volumes(layout, Regions(np.array([[1.0]]), np.array([[2.0]]), np.zeros((1, 0), dtype=np.uint8)))
    array([0.25])
    """
    share = np.ones(len(regions))
    for i, column in enumerate(layout.columns):
        if i in set(apart):
            continue
        low, high = regions.low[:, i], regions.high[:, i]
        if column.categories:
            first, count = int(layout.offset[i]), int(layout.count[i])
            share *= regions.allowed[:, first : first + count].sum(axis=1) / count
        elif column.kind == "integer":
            share *= (high - low + 1.0) / (np.floor(column.upper) - np.ceil(column.lower) + 1.0)
        elif column.upper > column.lower:
            share *= (high - low) / (column.upper - column.lower)
    return share


def count_points(layout: TableLayout, regions: Regions, apart: Any = ()) -> FloatArray:
    """Number of rows of each region, some columns aside; inf where a number is continuous."""
    count = np.ones(len(regions))
    for i, column in enumerate(layout.columns):
        if i in set(apart):
            continue
        if column.categories:
            first, size = int(layout.offset[i]), int(layout.count[i])
            count *= regions.allowed[:, first : first + size].sum(axis=1)
        elif column.kind == "integer":
            count *= regions.high[:, i] - regions.low[:, i] + 1.0
        else:
            count *= np.where(regions.high[:, i] > regions.low[:, i], np.inf, 1.0)
    return count


def points_of(layout: TableLayout, region: Regions, apart: Any = ()) -> FloatArray:
    """All rows of one region, (m, P); columns that are left aside are 0."""
    options: list[FloatArray] = []
    for i, column in enumerate(layout.columns):
        if i in set(apart):
            options.append(np.zeros(1))
        elif column.categories:
            first, count = int(layout.offset[i]), int(layout.count[i])
            options.append(np.flatnonzero(region.allowed[0, first : first + count]).astype(np.float64))
        elif column.kind == "integer":
            options.append(np.arange(region.low[0, i], region.high[0, i] + 1.0))
        else:
            options.append(region.low[:1, i])
    return np.array(list(product(*options)), dtype=np.float64)


def describe(layout: TableLayout, low: FloatArray, high: FloatArray, allowed: Any, apart: Any = ()) -> str:
    """Say which rows a region holds: only the columns that it restricts.

    Examples
    --------
    >>> from likewise.domains import BoxDomain
    >>> layout = TableLayout.of(BoxDomain([0.0, 0.0], [4.0, 1.0]))
    >>> describe(layout, np.array([1.0, 0.0]), np.array([2.0, 1.0]), np.zeros(0))
    '1 <= x0 <= 2'
    """
    said = []
    for i, column in enumerate(layout.columns):
        if i in set(apart):
            continue
        if column.categories:
            first, count = int(layout.offset[i]), int(layout.count[i])
            left = [
                str(c) for c, ok in zip(column.categories, allowed[first : first + count], strict=True) if ok
            ]
            if len(left) < count:
                said.append(
                    f"{column.name} = {left[0]}"
                    if len(left) == 1
                    else f"{column.name} in {{{', '.join(left)}}}"
                )
        elif low[i] == high[i] and column.lower < column.upper:
            said.append(f"{column.name} = {low[i]:.6g}")
        elif low[i] > column.lower and high[i] < column.upper:
            said.append(f"{low[i]:.6g} <= {column.name} <= {high[i]:.6g}")
        elif low[i] > column.lower:
            said.append(f"{column.name} >= {low[i]:.6g}")
        elif high[i] < column.upper:
            said.append(f"{column.name} <= {high[i]:.6g}")
    return ", ".join(said) if said else "everybody"
