"""Nearest neighbours in a space whose Euclidean distance is the fair distance (`FairMetric.embed`).

Up to some thousand rows everybody is compared with everybody. Beyond, the rows are put into cells around as many
centres as the square root of their number, and a row is compared with those in the cells nearest to its own: most
of its true neighbours, at a cost that grows with n √n.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from likewise.core.checks import FloatArray, IntArray
from likewise.core.errors import bad_parameter
from likewise.core.randomness import RandomState, numpy_generator

if TYPE_CHECKING:
    from likewise.fair_metrics.metric import FairMetric


_BLOCK = 2**23  # distances computed at once
_MORE = 4  # neighbours measured exactly beyond those asked for
_RESOLUTION = 2.0**-30  # of a place, relative to how far the places spread


def same_places(places: FloatArray) -> tuple[IntArray, IntArray]:
    """Find rows that stand at one place, up to rounding."""
    unit = _RESOLUTION * max(float(np.abs(places).max(initial=0.0)), np.finfo(np.float64).tiny / _RESOLUTION)
    # Adding 0 makes −0 and 0 one number.
    rounded = np.rint(places / unit) + 0.0
    hashed = pd.util.hash_pandas_object(pd.DataFrame(rounded, copy=False), index=False).to_numpy()
    place, _ = pd.factorize(hashed)
    first = _first_of(place)
    if not np.array_equal(rounded[first[place]], rounded):  # two places of one hash
        _, place = np.unique(rounded, axis=0, return_inverse=True)
        place, _ = pd.factorize(place.ravel())
        first = _first_of(place)
    return first, place.astype(np.int64)


def _first_of(place: Any) -> IntArray:
    first = np.zeros(int(place.max(initial=-1)) + 1, dtype=np.int64)
    first[place[::-1]] = np.arange(len(place) - 1, -1, -1)
    return first


# Cells that are searched, at least.
_PROBES = 12


class NearestPlaces:
    """Rows that can be asked for the nearest of them."""

    def __init__(
        self, places: FloatArray, *, exact: bool | None = None, random_state: RandomState = 0
    ) -> None:
        self.places = np.ascontiguousarray(places, dtype=np.float64)
        n = len(self.places)
        self.exact = n <= 8192 if exact is None else exact
        # Rounding of float32 is relative to what is left without the centre.
        self._centre = self.places.mean(axis=0)
        self._single = (self.places - self._centre).astype(np.float32)
        self._squares = np.einsum("ij,ij->i", self._single, self._single)
        if self.exact:
            centres = np.zeros(1, dtype=np.int64)
        else:
            drawn = numpy_generator(random_state).choice(n, size=int(np.sqrt(n)), replace=False)
            centres = np.sort(drawn)
        self._centres = self._single[centres]
        cell = self._cells(self._single)
        self._members = np.argsort(cell, kind="stable").astype(np.int64)
        self._starts = np.searchsorted(cell[self._members], np.arange(len(centres) + 1))

    def among_themselves(self, k: int) -> tuple[IntArray, FloatArray]:
        """Return the k nearest other rows of each row, nearest first."""
        if not 1 <= k < len(self.places):
            raise bad_parameter(
                "NearestPlaces", "k", f"between 1 and {len(self.places) - 1}, one less than the rows", k
            )
        index, distance = self._search(self.places, self._single, k + 1)
        # Itself goes wherever rounding put it, or the farthest where many stand at the same place.
        itself = index == np.arange(len(index))[:, None]
        itself[~itself.any(axis=1), -1] = True
        return index[~itself].reshape(-1, k), distance[~itself].reshape(-1, k)

    def query(self, rows: FloatArray, k: int) -> tuple[IntArray, FloatArray]:
        """Return the k nearest of the places to each of some other rows, nearest first; as `among_themselves`."""
        if not 1 <= k <= len(self.places):
            raise bad_parameter(
                "NearestPlaces", "k", f"between 1 and {len(self.places)}, the number of rows", k
            )
        rows = np.asarray(rows, dtype=np.float64)
        return self._search(rows, (rows - self._centre).astype(np.float32), k)

    def _cells(self, single: Any) -> IntArray:
        """The nearest centre of each row."""
        if len(self._centres) == 1:
            return np.zeros(len(single), dtype=np.int64)
        squares = np.einsum("ij,ij->i", self._centres, self._centres)
        cell = np.empty(len(single), dtype=np.int64)
        step = max(1, _BLOCK // len(self._centres))
        for start in range(0, len(single), step):
            block = single[start : start + step] @ self._centres.T
            cell[start : start + step] = (squares - 2.0 * block).argmin(axis=1)
        return cell

    def _search(self, rows: FloatArray, single: Any, k: int) -> tuple[IntArray, FloatArray]:
        index = np.empty((len(rows), k), dtype=np.int64)
        distance = np.empty((len(rows), k))
        cell = self._cells(single)
        order = np.argsort(cell, kind="stable")
        ends = np.searchsorted(cell[order], np.arange(len(self._centres) + 1))
        for number in np.flatnonzero(np.diff(ends)):
            mine = order[ends[number] : ends[number + 1]]
            others = self._candidates(int(number), k)
            step = max(1, _BLOCK // max(len(others), (k + _MORE) * rows.shape[1]))
            for start in range(0, len(mine), step):
                part = mine[start : start + step]
                index[part], distance[part] = self._nearest(rows[part], single[part], others, k)
        return index, distance

    def _candidates(self, cell: int, k: int) -> IntArray:
        """Members of the nearest cells: at least `_PROBES` of them, and at least k rows."""
        centres = self._centres
        if len(centres) == 1:
            return self._members
        near = np.argsort(((centres - centres[cell]) ** 2).sum(axis=1), kind="stable")
        sizes = np.cumsum(np.diff(self._starts)[near])
        count = max(_PROBES, int(np.searchsorted(sizes, 4 * k)) + 1)
        return np.concatenate([self._members[self._starts[c] : self._starts[c + 1]] for c in near[:count]])

    def _nearest(
        self, rows: FloatArray, single: Any, others: IntArray, k: int
    ) -> tuple[IntArray, FloatArray]:
        block = single @ self._single[others].T
        block *= -2.0
        block += self._squares[others]
        # A few more than asked for, since float32 may swap neighbours; these are measured exactly.
        more = min(k + _MORE, len(others))
        some = np.argpartition(block, more - 1, axis=1)[:, :more] if more < len(others) else None
        found = others[some] if some is not None else np.broadcast_to(others, (len(rows), len(others)))
        difference = self.places[found] - rows[:, None, :]
        exact = np.einsum("ijk,ijk->ij", difference, difference)
        best = np.lexsort((found, exact))[:, :k]
        return np.take_along_axis(found, best, axis=1), np.take_along_axis(exact, best, axis=1)


# What a budget ε means in the table's own units: how far one column may move alone.


# Below this squared distance per unit, relative to the coordinate's own length, a direction is free but for rounding.
_FREE = 1e-12


def reach(metric: FairMetric, eps: float, columns: Iterable[Any]) -> dict[str, float | None]:
    """Return by how many of its own units each number may change alone at a squared fair distance of ε.

    One unit of column j is δ = e_j / scale_j in φ(x), and costs δᵀΣδ, so √ε buys √(ε / δᵀΣδ) units.
    """
    found: dict[str, float | None] = {}
    for column in columns:
        if column.kind == "categorical" or column.curve is not None or column.stop - column.start != 1:
            continue
        scale = float(column.scale)
        delta = np.zeros((1, metric.n_features or column.stop))
        delta[0, column.start] = 1.0
        cost = float(np.asarray(metric.squared_norm(delta))[0])
        found[str(column.name)] = None if cost <= _FREE else scale * math.sqrt(eps / cost)
    return found
