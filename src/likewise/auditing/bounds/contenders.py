"""Regions whose rows all get one answer: the model itself is asked at a row of each, so that no rounding is left.

Bounds of a region hold whatever the model's rounding, and pay for it. Where nothing is left to bound, because the region
is a single row or a cell in which no tree decides otherwise, the model's own loss at one row is the loss of all of them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from likewise.auditing.bounds.regions import BOX, Regions
from likewise.auditing.bounds.table_layout import IntArray, TableLayout
from likewise.core.arrays import FloatArray
from likewise.domains.decoding import rounding_of_values

__all__ = ["Ask", "Contender", "Contenders", "rows_that_return"]

# (rows of values (m, P), targets (m,)) -> the model's own losses (m,), and the values that it was shown (m, P).
Ask: TypeAlias = Callable[[FloatArray, Any], tuple[FloatArray, FloatArray]]

# A value may change by so many roundings on its way through the encoding and back.
_ULPS = 32.0
# The same on a scale that is not linear, in roundings of its place.
_ROUNDINGS = 4.0


@dataclass(frozen=True, eq=False)
class Contender:
    """Regions of one answer: whose, a row of each, an upper bound of what is attained there, and λ d² at the least."""

    people: IntArray
    regions: Regions
    values: FloatArray
    upper: FloatArray
    price: FloatArray


class Contenders:
    """Regions of one answer that may hold somebody's supremum, kept until the model is asked about all of them at once.

    Examples
    --------
    >>> kept = Contenders()
    >>> part = Regions(np.array([[1.0], [2.0]]), np.array([[1.0], [2.0]]), np.zeros((2, 0), dtype=np.uint8))
    >>> kept.add(Contender(np.array([0, 0]), part, part.low, np.array([0.5, 0.9]), np.zeros(2)))
    >>> kept.above(np.array([0.7])).values
    array([[2.]])
    """

    def __init__(self) -> None:
        self._parts: list[Contender] = []

    def add(self, more: Contender) -> None:
        """Keep regions."""
        if len(more.people):
            self._parts.append(more)

    def above(self, attained: FloatArray) -> Contender | None:
        """Return those that may exceed what the model itself was seen to attain, by person (n,); None if there are none."""
        kept = [(part, np.flatnonzero(part.upper > attained[part.people])) for part in self._parts]
        kept = [(part, at) for part, at in kept if len(at)]
        if not kept:
            return None
        regions = [part.regions.take(at) for part, at in kept]
        return Contender(
            np.concatenate([part.people[at] for part, at in kept]),
            Regions(*(np.concatenate([getattr(one, name) for one in regions]) for name in BOX)),
            np.concatenate([part.values[at] for part, at in kept]),
            np.concatenate([part.upper[at] for part, at in kept]),
            np.concatenate([part.price[at] for part, at in kept]),
        )


def rows_that_return(
    layout: TableLayout, regions: Regions, values: FloatArray
) -> tuple[FloatArray, np.ndarray[Any, np.dtype[np.bool_]]]:
    """Move rows off the edges of their regions as far as the rounding of the encoding asks for.

    A model of the table is asked about encoded rows that are decoded for it; a number at the very edge of an interval may
    come back on the other side.

    Parameters
    ----------
    layout : TableLayout
    regions : Regions
        n of them.
    values : float array of shape (n, P)
        A row of each.

    Returns
    -------
    values : float array of shape (n, P)
    inside : bool array of shape (n,)
        Whether the row is in its region after the way through the encoding and back.

    Examples
    --------
    >>> from likewise.domains import BoxDomain
    >>> layout = TableLayout.of(BoxDomain([0.0], [1.0]))
    >>> part = Regions(np.array([[0.3]]), np.array([[1.0]]), np.zeros((1, 0), dtype=np.uint8))
    >>> rows_that_return(layout, part, np.array([[0.3]]))[1]
    array([ True])
    """
    at = np.flatnonzero(~layout.is_category & ~layout.is_integer)
    values = values.copy()
    if not len(at):
        return values, np.ones(len(values), dtype=np.bool_)
    low, high = regions.low[:, at], regions.high[:, at]
    step = _ULPS * np.spacing(np.abs(values[:, at]) + np.abs(layout.mean[at]))
    for k in np.flatnonzero(layout.curved[at]):
        step[:, k] = rounding_of_values(layout.columns[at[k]], values[:, at[k]], _ROUNDINGS)
    back = layout.values(layout.encode(values))[:, at]
    off = (back < low) | (back > high)
    # An interval of one value has no inside; what comes back is that value, rounded.
    point = low == high
    nearer = np.clip(values[:, at], low + step, np.maximum(high - step, low + step))
    values[:, at] = np.where(off & ~point, nearer, values[:, at])
    back = layout.values(layout.encode(values))[:, at]
    inside = np.where(point, np.abs(back - low) <= step, (back >= low) & (back <= high))
    return values, np.asarray(inside.all(axis=1))
