"""Which candidates can matter for a row: none has a higher loss at a smaller distance. All pairs, few passes.

Candidates come sorted by falling loss. Reading a row's distances in that order, a candidate can be a corner of
the row's frontier only where the distance falls below everything before it. Distances come from one float32
matrix product per block of rows; a bound on its rounding error decides what is let through, so that the few
pairs that pass contain every true one, and the caller measures those exactly.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from likewise.auditing.support.frontier import Floats, Ints

__all__ = ["FallingLoss", "scan_pairs"]

_CHUNK = 128  # candidates whose smallest distance is looked at first
_MAX_ROWS = 256  # more rows per block bring no more speed and leave the cache
_TOO_MANY = 512  # pairs per row beyond which float32 is judged too coarse for a block
_FAR = 1e30  # distance of the padding


class FallingLoss:
    """Candidates in falling order of loss, ready for matrix products with rows.

    Parameters
    ----------
    places : float64 array of shape (m, d)
        Where the candidates are, in a space whose Euclidean distance is the fair distance, and near the
        origin (rounding is relative to the distance from it).

    Examples
    --------
    >>> candidates = FallingLoss(np.array([[0.0], [5.0], [1.0], [4.0]]))
    >>> rows, found = next(scan_pairs(np.array([[2.0]]), np.array([4]), candidates))
    >>> found.tolist()
    [0, 2]
    """

    def __init__(self, places: Floats) -> None:
        self.places, self.size = places, len(places)
        self._columns: dict[Any, Any] = {}

    def columns(self, dtype: Any) -> Any:
        """Return padded rows (b, ‖b‖²), so that one product with (-2a, 1) gives ‖a − b‖² − ‖a‖²."""
        if dtype not in self._columns:
            m, d = self.places.shape
            columns = np.zeros((-(-max(m, 1) // _CHUNK) * _CHUNK, d + 1), dtype=dtype)
            columns[:m, :d] = self.places
            columns[:m, d] = np.einsum("ij,ij->i", columns[:m, :d], columns[:m, :d])
            columns[m:, d] = _FAR
            self._columns[dtype] = columns
        return self._columns[dtype]


def scan_pairs(
    places: Floats, prefix: Ints, candidates: FallingLoss, *, block_bytes: int = 2**25
) -> Iterator[tuple[Ints, Ints]]:
    """Yield the pairs (row, candidate) that may be undominated, block by block of rows.

    Parameters
    ----------
    places : float64 array of shape (n, d)
        Where the rows are, in the candidates' space.
    prefix : int array of shape (n,)
        How many of the candidates, counted from the highest loss, matter to each row: those with a loss above
        its own.
    candidates : FallingLoss
        Sorted by falling loss.
    block_bytes : int, default=32 MiB
        Bound of one block of distances.

    Yields
    ------
    rows, candidates : int arrays of equal length
        Every pair whose distance is below that of all candidates of higher loss, and a few more whose computed
        distance is too close to tell. Each row occurs in one block only, and in no set order.

    Examples
    --------
    >>> list(scan_pairs(np.zeros((1, 1)), np.array([0]), FallingLoss(np.ones((1, 1)))))
    []
    """
    order = np.argsort(-prefix, kind="stable")[: int(np.count_nonzero(prefix))]
    start = 0
    while start < len(order):
        width = -(-int(prefix[order[start]]) // _CHUNK) * _CHUNK
        size = int(np.clip(block_bytes // (4 * width), 1, _MAX_ROWS))
        rows = order[start : start + size]
        start += size
        found, which = _scan_block(places[rows], candidates, width, np.float32)
        if len(found) > _TOO_MANY * len(rows):
            # Clusters far apart leave float32 blind inside them. Half the rows fit in a block of float64.
            for part in np.array_split(np.arange(len(rows)), 2):
                if len(part):
                    found, which = _scan_block(places[rows[part]], candidates, width, np.float64)
                    yield rows[part[found]], which
        else:
            yield rows[found], which


def _scan_block(places: Floats, candidates: FallingLoss, width: int, dtype: Any) -> tuple[Ints, Ints]:
    n, d = places.shape
    left = np.empty((n, d + 1), dtype=dtype)
    left[:, :d] = places
    norm = np.einsum("ij,ij->i", left[:, :d], left[:, :d], dtype=np.float64)
    left[:, :d] *= -2.0
    left[:, d] = 1.0
    block = left @ candidates.columns(dtype)[:width].T
    # Rounding of a product of d + 1 terms and of its factors, relative to (‖a‖ + ‖b‖)²: Higham, Accuracy and
    # Stability of Numerical Algorithms, section 3.1.
    gamma = (d + 8) * float(np.finfo(dtype).eps)
    found, which = _falls_below(block, norm, gamma)
    real = which < candidates.size
    return found[real], which[real]


def _falls_below(block: Any, norm: Floats, gamma: float) -> tuple[Ints, Ints]:
    """Entries of each row that are not certain to be above the smallest entry before them."""
    n, width = block.shape
    lowest = np.minimum.reduceat(block, np.arange(0, width, _CHUNK), axis=1)
    before = np.full(lowest.shape, np.inf, dtype=block.dtype)
    np.minimum.accumulate(lowest[:, :-1], axis=1, out=before[:, 1:])
    row, chunk = np.nonzero(lowest <= _limit(before, norm[:, None], gamma))
    part = block.reshape(n, -1, _CHUNK)[row, chunk]
    smallest = np.empty_like(part)
    smallest[:, 0] = before[row, chunk]
    smallest[:, 1:] = part[:, :-1]
    np.minimum.accumulate(smallest, axis=1, out=smallest)
    hit, place = np.nonzero(part <= _limit(smallest, norm[row, None], gamma))
    return row[hit], chunk[hit] * _CHUNK + place


def _limit(smallest: Any, norm: Floats, gamma: float) -> Any:
    """Upper bound of a computed entry whose true distance is below the true distance behind `smallest`.

    Both entries are off by at most γ(‖a‖ + ‖b‖)², and ‖b‖ ≤ ‖a‖ + d(a, b).
    """
    distance = np.sqrt(np.maximum(smallest + norm, 0.0))
    return smallest + (2.0 * gamma) * (2.0 * np.sqrt(norm) + distance) ** 2
