"""Couplings of two conditional distributions: how a person of one world becomes themselves in the other.

Numbers keep their rank (the optimal coupling on a line). Categories keep what both worlds share and move only the
excess (the maximal coupling: P(change) = total variation, the least there is). Ties are broken by a position in
[0, 1) that belongs to the person, so that the same person moves alike every time.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from likewise.core.arrays import FloatArray

__all__ = ["couple_categories", "couple_ordered"]

Ints = np.ndarray[Any, np.dtype[np.int64]]


def couple_categories(p: FloatArray, q: FloatArray, code: Ints, position: FloatArray) -> Ints:
    """Move categories from distribution p to q with the least change.

    With x ~ p and an independent uniform position the result is distributed as q, and differs from x with
    probability TV(p, q). Who moves goes through the excess masses (p − q)₊ and (q − p)₊ in order, so that
    the way back is the same way.

    Parameters
    ----------
    p, q : float arrays of shape (n, K)
        Distributions in the own and in the other world.
    code : int array of shape (n,)
        The own categories.
    position : float array of shape (n,)
        In [0, 1).

    Returns
    -------
    int array of shape (n,)

    Examples
    --------
    >>> p, q = np.array([[0.75, 0.25]]), np.array([[0.25, 0.75]])
    >>> [int(couple_categories(p, q, np.array([0]), np.array([u]))[0]) for u in (0.2, 0.5, 0.9)]
    [0, 1, 1]
    """
    row = np.arange(len(code))
    shared = np.minimum(p[row, code], q[row, code])
    height = position * p[row, code]
    moved = height >= shared
    out = code.copy()
    if not moved.any():
        return out
    some = np.flatnonzero(moved)
    excess, gap = np.maximum(p[some] - q[some], 0.0), np.maximum(q[some] - p[some], 0.0)
    before = np.cumsum(excess, axis=1) - excess
    at = np.arange(len(some))
    place = before[at, code[some]] + height[some] - shared[some]
    ends = np.cumsum(gap, axis=1)
    total = ends[:, -1]
    # Rounding, or p that gives the own category no room, may put a place at the very end.
    place = np.minimum(place / np.maximum(excess.sum(axis=1), 1e-300), 1.0 - 1e-12) * total
    target = (ends <= place[:, None]).sum(axis=1)
    out[some] = np.where(total > 0, np.minimum(target, p.shape[1] - 1), code[some])
    return out


def couple_ordered(p: FloatArray, q: FloatArray, code: Ints, position: FloatArray) -> tuple[Ints, FloatArray]:
    """Move ordered classes from p to q keeping the rank; `position` is the rank inside the own class.

    Returns
    -------
    code : int array of shape (n,)
    position : float array of shape (n,)
        The rank inside the new class, in [0, 1).

    Examples
    --------
    >>> p, q = np.array([[0.5, 0.5]]), np.array([[0.8, 0.2]])
    >>> code, position = couple_ordered(p, q, np.array([1]), np.array([0.5]))
    >>> int(code[0]), round(float(position[0]), 4)
    (0, 0.9375)
    """
    row = np.arange(len(code))
    ends_p, ends_q = np.cumsum(p, axis=1), np.cumsum(q, axis=1)
    rank = (ends_p[row, code] - p[row, code] * (1.0 - position)) / ends_p[:, -1]
    rank = np.clip(rank, 0.0, 1.0 - 1e-12) * ends_q[:, -1]
    new = np.minimum((ends_q <= rank[:, None]).sum(axis=1), q.shape[1] - 1)
    inside = (rank - ends_q[row, new] + q[row, new]) / np.maximum(q[row, new], 1e-300)
    return new.astype(np.int64), np.clip(inside, 0.0, 1.0 - 1e-12)
