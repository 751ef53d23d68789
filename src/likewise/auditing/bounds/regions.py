"""Parts of a domain: an interval for every number, a set for every category."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Generic, Self, TypeAlias, TypeVar

import numpy as np

from likewise.core.checks import BoolArray, FloatArray, IntArray, to_numpy
from likewise.core.compiled import compiled
from likewise.core.errors import bad_parameter
from likewise.data.column import Column, Dtype
from likewise.data.curve import Curve
from likewise.data.domain import BoxDomain
from likewise.data.encoding import decode_columns, rounding_of_places

# How numbers of a table are encoded, as plain arrays, and both ways of it for compiled loops.


# (mean, scale), (middle, unit, below, above) by column, the first point of each curve (P + 1), and all points (at, to).
NumberCodes: TypeAlias = tuple[
    tuple[FloatArray, FloatArray],
    tuple[FloatArray, FloatArray, FloatArray, FloatArray],
    "np.ndarray[tuple[int], np.dtype[np.int64]]",
    tuple[FloatArray, FloatArray],
]
# Roundings on the way through a curve.
_ULPS = 16.0


def number_codes(columns: Sequence[Column]) -> NumberCodes:
    """Return the encoding of the numbers among columns; that of a categorical column means nothing."""
    curves = [column.curve or Curve("linear") for column in columns]
    first = np.cumsum([0, *(len(curve.at) for curve in curves)])
    return (
        (np.array([column.mean for column in columns]), np.array([column.scale for column in columns])),
        (
            np.array([curve.middle for curve in curves]),
            # None is written as 0.
            np.array([curve.unit or 0.0 for curve in curves]),
            np.array([curve.below for curve in curves]),
            np.array([curve.above for curve in curves]),
        ),
        first.astype(np.int64),
        (
            np.array([at for curve in curves for at in curve.at], dtype=np.float64),
            np.array([to for curve in curves for to in curve.to], dtype=np.float64),
        ),
    )


@compiled
def is_curved(p, numbers):  # type: ignore[no-untyped-def]
    """Whether a column is on a scale that is not linear."""
    return numbers[1][1][p] != 0.0 or numbers[2][p + 1] > numbers[2][p]


@compiled
def rounding_at(p, place, numbers):  # type: ignore[no-untyped-def]
    """How far an encoded number may be off; 0 on a linear scale, where rounding keeps the order."""
    if not is_curved(p, numbers):
        return 0.0
    return _ULPS * 2.0**-52 * (abs(place) + abs(numbers[0][0][p]) / numbers[0][1][p])


@compiled
def encode_number(p, value, numbers):  # type: ignore[no-untyped-def]
    """Place of a number of column p."""
    (mean, scale), (middle, unit, below, above), first, (at, to) = numbers
    if not is_curved(p, numbers):
        return (value - mean[p]) / scale[p]
    found = value - middle[p]
    if unit[p] != 0.0:
        size = np.log1p(abs(found) / unit[p])
        found = size if found >= 0.0 else -size
    if first[p + 1] > first[p]:
        found = _straight(found, at, to, first[p], first[p + 1], below[p], above[p])
    return (found - mean[p]) / scale[p]


@compiled
def decode_number(p, place, numbers):  # type: ignore[no-untyped-def]
    """Number of column p at a place."""
    (mean, scale), (middle, unit, below, above), first, (at, to) = numbers
    found = place * scale[p] + mean[p]
    if not is_curved(p, numbers):
        return found
    if first[p + 1] > first[p]:
        found = _straight(found, to, at, first[p], first[p + 1], 1.0 / below[p], 1.0 / above[p])
    if unit[p] != 0.0:
        size = np.expm1(abs(found)) * unit[p]
        found = size if found >= 0.0 else -size
    return found + middle[p]


@compiled
def _straight(value, at, to, first, stop, below, above):  # type: ignore[no-untyped-def]
    """Straight pieces through the points first to stop − 1, and straight on outside."""
    if value <= at[first]:
        return to[first] + (value - at[first]) * below
    if value >= at[stop - 1]:
        return to[stop - 1] + (value - at[stop - 1]) * above
    low, high = first, stop - 1
    while high - low > 1:
        middle = (low + high) // 2
        if at[middle] <= value:
            low = middle
        else:
            high = middle
    return to[low] + (value - at[low]) * ((to[high] - to[low]) / (at[high] - at[low]))


# Where each column of a table stands: as a value, as encoded numbers, and among all categories.


class TableLayout:
    """The columns of a domain as arrays, each column one variable.

    A row is held in two ways: as *values* (n, P), one number per column (a number in original units, or the
    position of a category), and *encoded* (n, d), as the metric and the domain see it. Categories of all columns
    together are numbered from 0 to M; `count` and `offset` say which are a column's.
    """

    def __init__(self, columns: tuple[Column, ...]) -> None:
        self.columns, self.n_columns, self.width = columns, len(columns), columns[-1].stop
        kinds = np.array([column.kind for column in columns])
        self.is_category: BoolArray = kinds == "categorical"
        self.is_integer: BoolArray = kinds == "integer"
        self.count: IntArray = np.array([len(column.categories) for column in columns], dtype=np.int64)
        self.offset: IntArray = np.cumsum(self.count) - self.count
        self.n_categories = int(self.count.sum())
        self.start: IntArray = np.array([column.start for column in columns], dtype=np.int64)
        self.mean: FloatArray = np.array([column.mean for column in columns])
        self.scale: FloatArray = np.array([column.scale for column in columns])
        # On a scale that is not linear.
        self.curved = np.array([column.curve is not None for column in columns])

    @classmethod
    def of(cls, domain: Any) -> TableLayout:
        """Take the columns of a `TabularDomain`, a list of columns, or the coordinates of a `BoxDomain`."""
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

    @cached_property
    def numbers(self) -> NumberCodes:
        """How each number is encoded, for compiled loops."""
        return number_codes(self.columns)

    @cached_property
    def shape(self) -> tuple[IntArray, IntArray, IntArray, IntArray, NumberCodes]:
        """What compiled loops know of columns: kind (0 a number, 1 a whole one, 2 a category), places, and codes of numbers."""
        kinds = np.where(self.is_category, 2, np.where(self.is_integer, 1, 0)).astype(np.int64)
        return kinds, self.start, self.count, self.offset, self.numbers

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

    def its(self, i: Any) -> slice[int, int, Any]:
        """Places of a column's categories among all."""
        return slice(int(self.offset[i]), int(self.offset[i] + self.count[i]))

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


@dataclass(frozen=True, eq=False)
class MetricArrays:
    """Σ of a fair metric as plain arrays: scale, basis (d, k) and values (k,)."""

    scale: float
    basis: FloatArray
    values: FloatArray

    @classmethod
    def of(cls, metric: Any, width: int) -> MetricArrays:
        """Take them from a `FairMetric` on encoded rows of d = width columns."""
        if metric.n_features is None:
            return cls(float(metric.scale), np.zeros((width, 0)), np.zeros(0))
        basis = np.ascontiguousarray(to_numpy(metric.basis), dtype=np.float64)
        return cls(float(metric.scale), basis, np.asarray(to_numpy(metric.values), dtype=np.float64))

    @property
    def largest(self) -> float:
        """Largest eigenvalue of Σ, or a bound of it."""
        return max(self.scale, float((self.scale + self.values).max(initial=0.0)))


def not_linear(column: Column) -> str:
    """Say why a model that reads a column's own numbers cannot be followed by a bound over encoded rows."""
    scale = "linear" if column.curve is None else column.curve.name
    return (
        f"bounds: the model reads {column.name!r} on another scale than the domain ({scale!r}), so no bound "
        f"can follow its scores. Train it on rows of this domain, or leave the scale of {column.name!r} linear."
    )


ByteArray: TypeAlias = np.ndarray[Any, np.dtype[np.uint8]]


class Arrays:
    """Base of dataclasses of arrays that stand side by side, one row each; groups of arrays count as their arrays."""

    def arrays(self) -> list[Any]:
        """Return all arrays, those of groups too; None for one that is not there."""
        return [array for part in vars(self).values() for array in _arrays_in(part)]

    def made_of(self, arrays: Iterable[Any]) -> Self:
        """Return the same kind of rows, of other arrays."""
        rest = iter(arrays)
        return type(self)(*(_like(part, rest) for part in vars(self).values()))

    def __len__(self) -> int:
        first = next(iter(vars(self).values()))
        return len(first[0] if isinstance(first, tuple) else first)

    def take(self, at: Any) -> Self:
        """Return some of the rows."""
        return type(self)(*(_taken(part, at) for part in vars(self).values()))

    def put(self, at: Any, other: Self) -> None:
        """Overwrite some of the rows."""
        for array, new in zip(self.arrays(), other.arrays(), strict=True):
            if array is not None:
                array[at] = new


def _arrays_in(part: Any) -> Sequence[Any]:
    return part.arrays() if isinstance(part, Arrays) else part if isinstance(part, tuple) else [part]


def _taken(part: Any, at: Any) -> Any:
    if part is None:
        return None
    if isinstance(part, tuple):
        return tuple(_taken(array, at) for array in part)
    return part.take(at) if isinstance(part, Arrays) else part[at]


def _like(part: Any, rest: Iterator[Any]) -> Any:
    if isinstance(part, Arrays):
        return part.made_of(rest)
    return tuple(next(rest) for _ in part) if isinstance(part, tuple) else next(rest)


ArraysT = TypeVar("ArraysT", bound=Arrays)


def joined(parts: Sequence[ArraysT]) -> ArraysT:
    """Return the rows of all parts."""
    return parts[0].made_of(map(np.concatenate, zip(*(part.arrays() for part in parts), strict=True)))


class Pool(Generic[ArraysT]):
    """Rows in one block of memory: places are given back and used again."""

    def __init__(self) -> None:
        self._held: ArraysT | None = None
        self._free: list[int] = []
        self._size = 0

    def add(self, rows: ArraysT) -> list[int]:
        """Store rows; return their places."""
        slots = [self._free.pop() for _ in range(min(len(rows), len(self._free)))]
        fresh = len(rows) - len(slots)
        slots += range(self._size, self._size + fresh)
        self._size += fresh
        have = 0 if self._held is None else len(self._held)
        if self._held is None or self._size > have:
            more = max(self._size, 2 * have, 1024) - have
            empty = rows.made_of(np.empty((more, *array.shape[1:]), array.dtype) for array in rows.arrays())
            self._held = empty if self._held is None else joined([self._held, empty])
        self._held.put(slots, rows)
        return slots

    def take(self, slots: list[int]) -> ArraysT:
        """Return what is stored in places, and free them."""
        assert self._held is not None  # nothing is taken that was not added
        self.free(slots)
        return self._held.take(slots)

    def free(self, slots: Sequence[int]) -> None:
        """Give places back."""
        self._free += slots


@dataclass(frozen=True, eq=False)
class Regions(Arrays):
    """Many regions at once."""

    low: FloatArray
    high: FloatArray
    allowed: ByteArray

    def hold(self, layout: TableLayout, values: FloatArray) -> np.ndarray[Any, np.dtype[np.bool_]]:
        """Whether each region holds the row of values beside it, (n,)."""
        inside = ((values >= self.low) & (values <= self.high)).all(axis=1)
        rows = np.arange(len(values))
        for i in np.flatnonzero(layout.is_category):
            inside &= self.allowed[rows, layout.offset[i] + values[:, i].astype(np.int64)] != 0
        return np.asarray(inside)


@dataclass(frozen=True, eq=False)
class Split(Arrays):
    """How regions are cut in two."""

    column: IntArray
    cut: FloatArray
    left: ByteArray


def whole_domain(layout: TableLayout, values: FloatArray) -> Regions:
    """Return each person's whole domain: immutable columns are theirs, and ranges reach to where they stand."""
    n = len(values)
    low, high = np.empty((n, layout.n_columns)), np.empty((n, layout.n_columns))
    allowed = np.ones((n, layout.n_categories), dtype=np.uint8)
    for i, column in enumerate(layout.columns):
        own = values[:, i]
        if column.kind == "categorical":
            low[:, i], high[:, i] = 0.0, len(column.categories) - 1.0
            if column.immutable:
                allowed[:, layout.its(i)] = np.arange(layout.count[i])[None, :] == own[:, None]
            continue
        floor, ceiling = column.lower, column.upper
        if column.kind == "integer":
            floor, ceiling = np.ceil(floor), np.floor(ceiling)
        low[:, i] = own if column.immutable else np.minimum(floor, own)
        high[:, i] = own if column.immutable else np.maximum(ceiling, own)
    return Regions(low, high, allowed)


def middle_row(layout: TableLayout) -> FloatArray:
    """A row in the middle of the domain, (1, P)."""
    ends = [(0.0, 0.0) if c.categories else (c.lower, c.upper) for c in layout.columns]
    low, high = np.nan_to_num(np.array(ends).T, neginf=-1e6, posinf=1e6)
    return np.asarray(np.clip(np.floor((low + high) / 2.0), low, high)[None, :])


def everything(layout: TableLayout) -> Regions:
    """The whole domain as one region, whatever is immutable."""
    free = TableLayout(tuple(replace(column, immutable=False) for column in layout.columns))
    return whole_domain(free, middle_row(layout))


def divide(layout: TableLayout, regions: Regions, split: Split) -> Regions:
    """Cut regions in two: first all left parts, then all right parts."""
    n, halves = len(regions), joined([regions, regions])
    low, high, allowed = halves.low, halves.high, halves.allowed
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
    return halves


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
    """Which columns have more than one value left in each region, (n, P)."""
    found = regions.high > regions.low
    for i in np.flatnonzero(layout.is_category):
        found[:, i] = regions.allowed[:, layout.its(i)].sum(axis=1) > 1
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
        column, part = layout.columns[i], regions.allowed[:, layout.its(i)].astype(np.float64)
        if column.is_binary:
            lower[:, column.start] = np.where(part[:, 0] > 0, 0.0, 1.0)
            upper[:, column.start] = np.where(part[:, 1] > 0, 1.0, 0.0)
        else:
            upper[:, column.slice] = part
            lower[:, column.slice] = np.where(part.sum(axis=1, keepdims=True) == 1, part, 0.0)
    return lower, upper


def box_means(lower: FloatArray, upper: FloatArray, blocks: IntArray) -> FloatArray:
    """Mean of the rows of encoded boxes, (n, d): the middle of numbers, equal shares of the categories that are left."""
    mean = (lower + upper) / 2.0
    for first, last, _ in blocks:
        part = upper[:, first:last]
        mean[:, first:last] = part / np.maximum(part.sum(axis=1, keepdims=True), 1.0)
    return mean
