"""Squared Euclidean distances of all pairs of embedded rows, in blocks of bounded memory."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from likewise.core.arrays import namespace

__all__ = ["distance_blocks"]

_AT_ONCE = 2**14


def distance_blocks(left: Any, right: Any, max_bytes: int) -> Iterator[tuple[slice, Any]]:
    """Yield (slice of left's rows, squared distances to every row of right), one matrix product each.

    Parameters
    ----------
    left, right : arrays or tensors of shapes (n, d) and (m, d)
    max_bytes : int
        Size of one block of distances.

    Notes
    -----
    ‖a‖² + ‖b‖² − 2aᵀb loses digits where rows are close together, and close rows are the ones that fairness
    asks about. Pairs closer than the square root of the resolution are computed again from a − b.

    Examples
    --------
    >>> rows = np.array([[0.0, 3.0], [4.0, 0.0]])
    >>> [block.tolist() for _, block in distance_blocks(rows, rows, 1000)]
    [[[0.0, 25.0], [25.0, 0.0]]]
    """
    xp = namespace(left)
    step = max(1, int(max_bytes // max(1, right.shape[0] * left.dtype.itemsize)))
    right_norms = (right * right).sum(-1)
    tolerance = float(np.sqrt(float(xp.finfo(left.dtype).eps)))
    for start in range(0, left.shape[0], step):
        rows = slice(start, min(start + step, left.shape[0]))
        part = left[rows]
        norms = (part * part).sum(-1)
        block = (-2.0 * part) @ right.T
        block += norms[:, None]
        block += right_norms[None, :]
        _sharpen(block, part, right, norms, right_norms, tolerance)
        yield rows, block


def _sharpen(block: Any, left: Any, right: Any, norms: Any, right_norms: Any, tolerance: float) -> None:
    """Compute again, in place, the pairs that are closer than rounding allows to tell."""
    xp = namespace(block)
    # A cheap test per row first: most rows of a block have few close partners.
    close = block < tolerance * (norms[:, None] + right_norms.max())
    i, j = xp.where(close)
    if not len(i):
        return
    tight = block[i, j] < tolerance * (norms[i] + right_norms[j])
    zero = (norms[i] + right_norms[j]) == 0
    keep = tight | zero
    i, j = i[keep], j[keep]
    for start in range(0, len(i), _AT_ONCE):
        a, b = i[start : start + _AT_ONCE], j[start : start + _AT_ONCE]
        difference = left[a] - right[b]
        block[a, b] = (difference * difference).sum(-1)
