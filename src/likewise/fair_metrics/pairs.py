"""Squared Euclidean distances of all pairs of embedded rows, in blocks of bounded memory."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from likewise.core.arrays import is_tensor, namespace

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
    tolerance = float(np.sqrt(float(xp.finfo(left.dtype).eps)))
    # [−2a, ‖a‖², 1] · [b, 1, ‖b‖²]: the norms ride along in the product, so the block is written once.
    right_norms = (right * right).sum(-1)
    ones = xp.ones_like(right_norms)
    wide = xp.concatenate([right, ones[:, None], right_norms[:, None]], axis=1).T
    for start in range(0, left.shape[0], step):
        rows = slice(start, min(start + step, left.shape[0]))
        part = left[rows]
        norms = (part * part).sum(-1)
        block = xp.concatenate([-2.0 * part, norms[:, None], xp.ones_like(norms)[:, None]], axis=1) @ wide
        _sharpen(block, part, right, norms, right_norms, tolerance)
        yield rows, block


def _sharpen(block: Any, left: Any, right: Any, norms: Any, right_norms: Any, tolerance: float) -> None:
    """Compute again, in place, the pairs that are closer than rounding allows to tell."""
    # One threshold per row first, which needs no second block; then the exact one for the few that pass.
    close = block < tolerance * (norms[:, None] + right_norms.max())
    i, j = _places(close)
    tight = block[i, j] < tolerance * (norms[i] + right_norms[j])
    i, j = i[tight], j[tight]
    for start in range(0, len(i), _AT_ONCE):
        a, b = i[start : start + _AT_ONCE], j[start : start + _AT_ONCE]
        difference = left[a] - right[b]
        block[a, b] = (difference * difference).sum(-1)


def _places(mask: Any) -> tuple[Any, Any]:
    """Row and column numbers of the true entries."""
    if is_tensor(mask):
        return tuple(mask.nonzero(as_tuple=True))
    return np.divmod(np.flatnonzero(mask), mask.shape[1])
