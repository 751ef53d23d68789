"""Parts of a domain: an interval for every number, a set for every category."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from likewise.auditing.bounds.table_layout import IntArray, TableLayout
from likewise.core.arrays import FloatArray
from likewise.domains.decoding import rounding_of_places

__all__ = [
    "BOX",
    "ByteArray",
    "Regions",
    "Split",
    "box_means",
    "divide",
    "encoded_box",
    "halves",
    "keep_only",
    "open_columns",
    "whole_domain",
]

# The arrays that a region is made of.
BOX = ("low", "high", "allowed")
ByteArray: TypeAlias = np.ndarray[Any, np.dtype[np.uint8]]


@dataclass(frozen=True, eq=False)
class Regions:
    """Many regions at once.

    Parameters
    ----------
    low, high : float arrays of shape (n, P)
        Closed interval of each number, in original units; whole ends for whole numbers. Of a categorical column
        0 and the last position.
    allowed : uint8 array of shape (n, M)
        Which of all categories are left.
    """

    low: FloatArray
    high: FloatArray
    allowed: ByteArray

    def __len__(self) -> int:
        return len(self.low)

    def take(self, at: Any) -> Regions:
        """Return some of them."""
        return Regions(self.low[at], self.high[at], self.allowed[at])

    def hold(self, layout: TableLayout, values: FloatArray) -> np.ndarray[Any, np.dtype[np.bool_]]:
        """Whether each region holds the row of values beside it, (n,)."""
        inside = ((values >= self.low) & (values <= self.high)).all(axis=1)
        rows = np.arange(len(values))
        for i in np.flatnonzero(layout.is_category):
            inside &= self.allowed[rows, layout.offset[i] + values[:, i].astype(np.int64)] != 0
        return np.asarray(inside)


@dataclass(frozen=True, eq=False)
class Split:
    """How regions are cut in two.

    Parameters
    ----------
    column : int array of shape (n,)
        Which column; −1 where nothing is left to cut.
    cut : float array of shape (n,)
        A number's left part ends here; the right part begins at the next value.
    left : uint8 array of shape (n, M)
        The categories of the left part.
    """

    column: IntArray
    cut: FloatArray
    left: ByteArray

    def take(self, at: Any) -> Split:
        """Return some of them."""
        return Split(self.column[at], self.cut[at], self.left[at])


def whole_domain(layout: TableLayout, values: FloatArray) -> Regions:
    """Return each person's whole domain: immutable columns are theirs, and ranges reach to where they stand.

    Parameters
    ----------
    layout : TableLayout
    values : float array of shape (n, P)
        The people.

    Examples
    --------
    >>> from likewise.domains import BoxDomain
    >>> layout = TableLayout.of(BoxDomain([0.0, 0.0], [1.0, 1.0], immutable=[1]))
    >>> region = whole_domain(layout, np.array([[2.0, 0.5]]))
    >>> region.low.tolist(), region.high.tolist()
    ([[0.0, 0.5]], [[2.0, 0.5]])
    """
    n = len(values)
    low, high = np.empty((n, layout.n_columns)), np.empty((n, layout.n_columns))
    allowed = np.ones((n, layout.n_categories), dtype=np.uint8)
    for i, column in enumerate(layout.columns):
        own = values[:, i]
        if column.kind == "categorical":
            low[:, i], high[:, i] = 0.0, len(column.categories) - 1.0
            if column.immutable:
                keep_only(layout, allowed, i, own)
            continue
        floor, ceiling = column.lower, column.upper
        if column.kind == "integer":
            floor, ceiling = np.ceil(floor), np.floor(ceiling)
        low[:, i] = own if column.immutable else np.minimum(floor, own)
        high[:, i] = own if column.immutable else np.maximum(ceiling, own)
    return Regions(low, high, allowed)


def keep_only(layout: TableLayout, allowed: ByteArray, column: int, codes: FloatArray) -> None:
    """Leave one category of a column to each row, in place."""
    first, count = int(layout.offset[column]), int(layout.count[column])
    allowed[:, first : first + count] = np.arange(count)[None, :] == codes[:, None]


def divide(layout: TableLayout, regions: Regions, split: Split) -> Regions:
    """Cut regions in two: first all left parts, then all right parts.

    Examples
    --------
    >>> from likewise.domains import BoxDomain
    >>> layout = TableLayout.of(BoxDomain([0.0], [1.0]))
    >>> whole = Regions(np.array([[0.0]]), np.array([[1.0]]), np.zeros((1, 0), dtype=np.uint8))
    >>> halves = divide(layout, whole, Split(np.array([0]), np.array([0.5]), whole.allowed))
    >>> halves.low.ravel().tolist(), halves.high.ravel().tolist()
    ([0.0, 0.5000000000000001], [0.5, 1.0])
    """
    n = len(regions)
    low, high = np.concatenate([regions.low] * 2), np.concatenate([regions.high] * 2)
    allowed = np.concatenate([regions.allowed] * 2)
    rows = np.arange(n)
    numbers = rows[~layout.is_category[split.column]]
    column, cut = split.column[numbers], split.cut[numbers]
    high[numbers, column] = cut
    low[n + numbers, column] = np.where(layout.is_integer[column], cut + 1.0, np.nextafter(cut, np.inf))
    among = rows[layout.is_category[split.column]]
    if len(among):
        first, count = layout.offset[split.column[among]], layout.count[split.column[among]]
        position = np.arange(layout.n_categories)[None, :]
        own = (position >= first[:, None]) & (position < (first + count)[:, None])
        left = split.left[among] != 0
        allowed[among] &= ~own | left
        allowed[n + among] &= ~own | ~left
    return Regions(low, high, allowed)


def halves(layout: TableLayout, regions: Regions, column: IntArray, values: FloatArray) -> Split:
    """Cut a number in the middle, and a category into that of a row and all others."""
    rows = np.arange(len(column))
    safe = np.maximum(column, 0)
    middle = (regions.low[rows, safe] + regions.high[rows, safe]) / 2.0
    for i in np.flatnonzero(layout.curved):
        at = np.flatnonzero(safe == i)
        ends = [layout.columns[i].place(end[at, i]) for end in (regions.low, regions.high)]
        inside = layout.columns[i].number((ends[0] + ends[1]) / 2.0)
        middle[at] = np.clip(inside, regions.low[at, i], regions.high[at, i])
    cut = np.where(layout.is_integer[safe], np.floor(middle), middle)
    cut = np.minimum(cut, np.nextafter(regions.high[rows, safe], -np.inf))
    left = np.zeros((len(column), layout.n_categories), dtype=np.uint8)
    among = np.flatnonzero(layout.is_category[safe] & (column >= 0))
    left[among, layout.offset[safe[among]] + values[among, safe[among]].astype(np.int64)] = 1
    return Split(column, cut, left)


def open_columns(layout: TableLayout, regions: Regions) -> np.ndarray[Any, np.dtype[np.bool_]]:
    """Which columns have more than one value left in each region, (n, P).

    Examples
    --------
    >>> from likewise.domains import BoxDomain
    >>> layout = TableLayout.of(BoxDomain([0.0, 0.0], [1.0, 1.0]))
    >>> part = Regions(np.array([[0.0, 0.5]]), np.array([[1.0, 0.5]]), np.zeros((1, 0), dtype=np.uint8))
    >>> open_columns(layout, part)
    array([[ True, False]])
    """
    found = regions.high > regions.low
    first = np.append(layout.offset, layout.n_categories)
    for i in np.flatnonzero(layout.is_category):
        found[:, i] = regions.allowed[:, first[i] : first[i + 1]].sum(axis=1) > 1
    return found


def encoded_box(layout: TableLayout, regions: Regions) -> tuple[FloatArray, FloatArray]:
    """Return the box around each region in encoded units: lower and upper, (n, d)."""
    lower, upper = np.zeros((len(regions), layout.width)), np.ones((len(regions), layout.width))
    numbers = np.flatnonzero(~layout.is_category)
    at = layout.start[numbers]
    lower[:, at] = (regions.low[:, numbers] - layout.mean[numbers]) / layout.scale[numbers]
    upper[:, at] = (regions.high[:, numbers] - layout.mean[numbers]) / layout.scale[numbers]
    for i in np.flatnonzero(layout.curved):
        column, low, high = layout.columns[i], regions.low[:, i], regions.high[:, i]
        ends = column.place(low), column.place(high)
        # Along a curve rounding need not keep the order of places, and no row may lie outside the box.
        wider = [np.where(low < high, rounding_of_places(column, end), 0.0) for end in ends]
        lower[:, column.start], upper[:, column.start] = ends[0] - wider[0], ends[1] + wider[1]
    for i in np.flatnonzero(layout.is_category):
        column, first = layout.columns[i], int(layout.offset[i])
        part = regions.allowed[:, first : first + int(layout.count[i])].astype(np.float64)
        if column.is_binary:
            lower[:, column.start] = np.where(part[:, 0] > 0, 0.0, 1.0)
            upper[:, column.start] = np.where(part[:, 1] > 0, 1.0, 0.0)
        else:
            upper[:, column.slice] = part
            lower[:, column.slice] = np.where(part.sum(axis=1, keepdims=True) == 1, part, 0.0)
    return lower, upper


def box_means(lower: FloatArray, upper: FloatArray, blocks: IntArray) -> FloatArray:
    """Mean of the rows of encoded boxes, (n, d): the middle of numbers, equal shares of the categories that are left.

    Examples
    --------
    >>> box_means(np.zeros((1, 3)), np.array([[4.0, 1.0, 1.0]]), np.array([[1, 3, 0]]))
    array([[2. , 0.5, 0.5]])
    """
    mean = (lower + upper) / 2.0
    for first, last, _ in blocks:
        part = upper[:, first:last]
        mean[:, first:last] = part / np.maximum(part.sum(axis=1, keepdims=True), 1.0)
    return mean
