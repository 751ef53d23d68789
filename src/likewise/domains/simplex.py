"""Euclidean projection onto the probability simplex: where a one-hot column may travel during a search.

The projection of x onto {x : x ≥ 0, Σ x = 1} is max(x − θ, 0) with the θ that makes the entries sum to one.
With the entries sorted, u₁ ≥ u₂ ≥ …, it is θ = max_j (u₁ + … + u_j − 1) / j (Held, Wolfe and Crowder 1974).
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np

from likewise.core.arrays import FloatArray, is_tensor

__all__ = ["project_simplex", "project_simplex_columns"]

# Measured: beyond this width one sort per vector beats the network's k log² k comparisons.
_WIDEST_NETWORK = 32


def project_simplex(X: Any) -> Any:
    """Project every vector along the last axis onto the simplex.

    Parameters
    ----------
    X : array or tensor of shape (..., k)
        Every vector is projected by itself.

    Returns
    -------
    array or tensor of shape (..., k)
        A vector with an entry that is not a number comes back as not a number.

    Examples
    --------
    >>> project_simplex(np.array([[0.5, 0.5], [2.0, 0.0], [0.0, 0.4]]))
    array([[0.5, 0.5],
           [1. , 0. ],
           [0.3, 0.7]])
    """
    if is_tensor(X):
        sums = X.sort(dim=-1, descending=True).values.cumsum(-1) - 1
        ranks = X.new_ones(X.shape[-1]).cumsum(-1)
        return (X - (sums / ranks).amax(-1, keepdim=True)).clamp(min=0)
    sums = np.cumsum(np.sort(X, axis=-1)[..., ::-1], axis=-1) - 1
    ranks = np.arange(1, X.shape[-1] + 1, dtype=X.dtype)
    return np.maximum(X - (sums / ranks).max(axis=-1, keepdims=True), 0)


def project_simplex_columns(X: FloatArray) -> None:
    """Project many vectors held as columns, in place: the same as `project_simplex`, several times faster.

    Parameters
    ----------
    X : ndarray of shape (..., k, n)
        Every vector along the last but one axis is projected by itself.

    Examples
    --------
    >>> X = np.array([[0.5, 2.0, 0.0], [0.5, 0.0, 0.4]])
    >>> project_simplex_columns(X)
    >>> X
    array([[0.5, 1. , 0.3],
           [0.5, 0. , 0.7]])
    """
    k = X.shape[-2]
    if k > _WIDEST_NETWORK:
        X[...] = project_simplex(X.swapaxes(-1, -2)).swapaxes(-1, -2)
        return
    rows = list(np.array(np.moveaxis(X, -2, 0), order="C"))
    spare = np.empty_like(rows[0])
    # A network compares the same positions in every vector, so each comparison is one call on whole rows.
    for i, j in _sorting_network(k):
        np.maximum(rows[i], rows[j], out=spare)
        np.minimum(rows[i], rows[j], out=rows[j])
        rows[i], spare = spare, rows[i]
    total = rows[0] - 1
    theta = total.copy()
    for j in range(1, k):
        total += rows[j]
        np.divide(total, X.dtype.type(j + 1), out=spare)
        np.maximum(theta, spare, out=theta)
    X -= theta[..., None, :]
    np.maximum(X, 0, out=X)


@lru_cache(maxsize=64)
def _sorting_network(k: int) -> tuple[tuple[int, int], ...]:
    """Comparators of Batcher's odd-even merge sort for k entries (Knuth, TAOCP 3, algorithm 5.2.2M)."""
    pairs: list[tuple[int, int]] = []
    block = 1
    while block < k:
        gap = block
        while gap:
            starts = (i for first in range(gap % block, k - gap, 2 * gap) for i in range(first, first + gap))
            pairs += [
                (i, i + gap) for i in starts if i + gap < k and i // (2 * block) == (i + gap) // (2 * block)
            ]
            gap //= 2
        block *= 2
    return tuple(pairs)
