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

from likewise.auditing.frontier import Floats, Ints

__all__ = ["FallingLoss", "scan_pairs"]

_CHUNK = 128  # candidates whose smallest distance is looked at first
_MAX_ROWS = 256  # more rows per block bring no more speed and leave the cache
_FAR = np.float32(1e30)  # distance of the padding

Floats32 = np.ndarray[Any, np.dtype[np.float32]]


class FallingLoss:
    """Candidates in falling order of loss, ready for matrix products with rows.

    Parameters
    ----------
    places : array of shape (m, d)
        Where the candidates are, in a space whose Euclidean distance is the fair distance, and near the
        origin (rounding is relative to the distance from it).

    Examples
    --------
    >>> candidates = FallingLoss(np.array([[0.0], [5.0], [1.0], [4.0]]))
    >>> rows, found = next(scan_pairs(np.array([[2.0]]), np.array([4]), candidates))
    >>> found.tolist()
    [0, 2]
    """

    def __init__(self, places: Any) -> None:
        m, d = places.shape
        self.size = m
        padded = -(-max(m, 1) // _CHUNK) * _CHUNK
        # The last column holds the squared norm: one product with (-2a, 1) gives ‖a − b‖² − ‖a‖².
        self.columns: Floats32 = np.zeros((padded, d + 1), dtype=np.float32)
        self.columns[:m, :d] = places
        self.columns[:m, d] = np.einsum("ij,ij->i", self.columns[:m, :d], self.columns[:m, :d])
        self.columns[m:, d] = _FAR


def scan_pairs(
    places: Any, prefix: Ints, candidates: FallingLoss, *, block_bytes: int = 2**25
) -> Iterator[tuple[Ints, Ints]]:
    """Yield the pairs (row, candidate) that may be undominated, block by block of rows.

    Parameters
    ----------
    places : array of shape (n, d)
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
        Every pair whose distance is below that of all candidates of higher loss, and a few more whose float32
        distance is too close to tell. Each row occurs in one block only, and in no set order.

    Examples
    --------
    >>> list(scan_pairs(np.zeros((1, 1)), np.array([0]), FallingLoss(np.ones((1, 1)))))
    []
    """
    d = places.shape[1]
    # Rounding of a float32 product of d + 1 terms and of its factors, relative to (‖a‖ + ‖b‖)²: Higham,
    # Accuracy and Stability of Numerical Algorithms, section 3.1.
    gamma = (d + 8) * float(np.finfo(np.float32).eps)
    order = np.argsort(-prefix, kind="stable")
    order = order[: int(np.count_nonzero(prefix))]
    start = 0
    while start < len(order):
        width = -(-int(prefix[order[start]]) // _CHUNK) * _CHUNK
        size = int(np.clip(block_bytes // (4 * width), 1, _MAX_ROWS))
        rows = order[start : start + size]
        start += size
        left = np.empty((len(rows), d + 1), dtype=np.float32)
        left[:, :d] = places[rows]
        norm = np.einsum("ij,ij->i", left[:, :d], left[:, :d], dtype=np.float64)
        left[:, :d] *= -2.0
        left[:, d] = 1.0
        block = left @ candidates.columns[:width].T
        found, which = _falls_below(block, norm, gamma)
        real = which < candidates.size
        yield rows[found[real]], which[real]


def _falls_below(block: Floats32, norm: Floats, gamma: float) -> tuple[Ints, Ints]:
    """Entries of each row that are not certain to be above the smallest entry before them."""
    n, width = block.shape
    lowest = np.minimum.reduceat(block, np.arange(0, width, _CHUNK), axis=1)
    before = np.full(lowest.shape, np.inf, dtype=np.float32)
    np.minimum.accumulate(lowest[:, :-1], axis=1, out=before[:, 1:])
    row, chunk = np.nonzero(lowest <= _limit(before, norm[:, None], gamma))
    part = block.reshape(n, -1, _CHUNK)[row, chunk]
    smallest = np.empty_like(part)
    smallest[:, 0] = before[row, chunk]
    smallest[:, 1:] = part[:, :-1]
    np.minimum.accumulate(smallest, axis=1, out=smallest)
    hit, place = np.nonzero(part <= _limit(smallest, norm[row, None], gamma))
    return row[hit], chunk[hit] * _CHUNK + place


def _limit(smallest: Floats32, norm: Floats, gamma: float) -> Any:
    """Upper bound of a computed entry whose true distance is below the true distance behind `smallest`.

    Both entries are off by at most γ(‖a‖ + ‖b‖)², and ‖b‖ ≤ ‖a‖ + d(a, b).
    """
    distance = np.sqrt(np.maximum(smallest + norm, 0.0))
    return smallest + (2.0 * gamma) * (2.0 * np.sqrt(norm) + distance) ** 2
