"""How numbers of a table are encoded, as plain arrays, and both ways of it for compiled loops."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

import numpy as np

from likewise.core.arrays import FloatArray
from likewise.core.compiled import compiled
from likewise.domains.column import Column
from likewise.domains.curve import Curve

__all__ = ["NumberCodes", "decode_number", "encode_number", "is_curved", "number_codes", "rounding_at"]

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
    """Return the encoding of the numbers among columns; that of a categorical column means nothing.

    Examples
    --------
    >>> from likewise.domains.dtypes import Dtype
    >>> gain = Column("gain", "integer", Dtype("int64"), scale=2.0, curve=Curve("signed log", unit=1.0))
    >>> codes = number_codes([gain])
    >>> round(float(encode_number(0, np.expm1(4.0), codes)), 9), round(float(decode_number(0, np.log1p(7.0) / 2, codes)), 9)
    (2.0, 7.0)
    """
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
