"""How a column is moved: as categories, as numbers with heaps (40 hours a week), or as smooth numbers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import pandas as pd

from likewise.core.arrays import FloatArray

__all__ = ["Heaps", "column_kind", "find_heaps"]

Kind = Literal["category", "heaped", "smooth"]
Ints = np.ndarray[Any, np.dtype[np.int64]]

_HEAP = 0.05  # share of people at one number that makes it a heap
_FEW = 20  # numbers that are classes of their own
_CLASSES = 12  # of a column with heaps and more numbers than that


def column_kind(column: pd.Series[Any]) -> Kind:
    """Say how a column is moved.

    Examples
    --------
    >>> column_kind(pd.Series(["a", "b"])), column_kind(pd.Series([40, 40, 20, 38, 60]))
    ('category', 'heaped')
    >>> column_kind(pd.Series(np.linspace(0, 1, 200)))
    'smooth'
    """
    numbers = getattr(column.dtype, "kind", "O") in "iuf" and not isinstance(
        column.dtype, pd.CategoricalDtype
    )
    if not numbers:
        return "category"
    counts = column.value_counts()
    if len(counts) <= _FEW or counts.iloc[0] >= _HEAP * counts.sum():
        return "heaped"
    return "smooth"


@dataclass(frozen=True, eq=False)
class Heaps:
    """Ordered classes of a column of numbers, and the numbers of each group in each class.

    Parameters
    ----------
    edges : float array of shape (K - 1,)
        The smallest number of each class but the first.
    values : tuple of tuple of float arrays
        For each group and class the numbers seen, sorted.
    """

    edges: FloatArray
    values: tuple[tuple[FloatArray, ...], ...]

    @property
    def n_classes(self) -> int:
        """How many classes."""
        return len(self.edges) + 1

    def codes(self, numbers: FloatArray) -> Ints:
        """Return the class of each number."""
        return np.searchsorted(self.edges, numbers, side="right").astype(np.int64)

    def ranks(self, numbers: FloatArray, codes: Ints, group: Ints, position: FloatArray) -> FloatArray:
        """Return the rank in [0, 1) of numbers among those of their group and class; ties by `position`."""
        rank = position.copy()
        for g, classes in enumerate(self.values):
            for k, seen in enumerate(classes):
                some = np.flatnonzero((group == g) & (codes == k))
                if len(some) and len(seen):
                    low = np.searchsorted(seen, numbers[some], side="left")
                    high = np.searchsorted(seen, numbers[some], side="right")
                    rank[some] = (low + position[some] * (high - low)) / len(seen)
        return np.clip(rank, 0.0, 1.0 - 1e-12)

    def numbers(self, codes: Ints, group: Ints, rank: FloatArray) -> FloatArray:
        """Return the number at a rank among those of a group and class."""
        found = np.full(len(codes), np.nan)
        for g, classes in enumerate(self.values):
            for k, seen in enumerate(classes):
                some = np.flatnonzero((group == g) & (codes == k))
                if len(some):
                    # A class that nobody of the group is in borrows the numbers of everybody in it.
                    known = (
                        seen if len(seen) else np.sort(np.concatenate([other[k] for other in self.values]))
                    )
                    found[some] = known[
                        np.minimum((rank[some] * len(known)).astype(np.int64), len(known) - 1)
                    ]
        return found


def find_heaps(numbers: FloatArray, group: Ints, n_groups: int) -> Heaps:
    """Cut numbers into ordered classes: heaps stand alone, the rest by quantiles.

    Examples
    --------
    >>> heaps = find_heaps(np.array([0.0] * 90 + list(range(1, 11))), np.zeros(100, dtype=int), 1)
    >>> heaps.codes(np.array([0.0, 1.0]))[0], heaps.n_classes > 1
    (np.int64(0), True)
    """
    values, counts = np.unique(numbers, return_counts=True)
    if len(values) <= _FEW:
        starts = set(values.tolist())
    else:
        heap = counts >= _HEAP * len(numbers)
        after = np.append(values[1:], np.inf)
        starts = {*values[heap].tolist(), *after[heap].tolist()}
        rest = numbers[~np.isin(numbers, values[heap])]
        pieces = max(2, _CLASSES - int(heap.sum()))
        cuts: Any = (
            np.quantile(rest, np.linspace(0, 1, pieces + 1)[1:-1], method="higher") if len(rest) else []
        )
        starts |= set(np.asarray(cuts).tolist())
    least = max(5, round(0.005 * len(numbers)))
    edges: list[float] = []
    below = 0
    ordered = np.sort(numbers)
    for start in sorted(starts):
        at = int(np.searchsorted(ordered, start, side="left"))
        # Classes of a handful are no classes.
        if at - below >= least and len(ordered) - at >= least:
            edges.append(start)
            below = at
    cut = np.asarray(edges, dtype=float)
    codes = np.searchsorted(cut, numbers, side="right")
    seen = tuple(
        tuple(np.sort(numbers[(group == g) & (codes == k)]) for k in range(len(cut) + 1))
        for g in range(n_groups)
    )
    return Heaps(cut, seen)
