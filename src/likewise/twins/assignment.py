"""Pairs of people of two groups, nobody in two of them."""

from __future__ import annotations

from typing import Any

import numpy as np

from likewise.core.arrays import FloatArray
from likewise.fair_metrics.neighbours import NearestPlaces

__all__ = ["assign"]

Ints = np.ndarray[Any, np.dtype[np.int64]]

_EXACT = 2_000 * 2_000
_NEAREST = 32


def assign(rows: FloatArray, others: FloatArray) -> tuple[Ints, FloatArray]:
    """Give each row another of its own, as long as there are any.

    Up to 4 million pairs the sum of squared distances is the least there is (Hungarian method); beyond, pairs are
    taken nearest first among everybody's nearest, and again among those left over until one side is used up.

    Parameters
    ----------
    rows, others : float arrays of shape (n, r) and (m, r)

    Returns
    -------
    index : int array of shape (n,)
        -1 for rows that are left over.
    squared_distance : float array of shape (n,)

    Examples
    --------
    >>> assign(np.array([[0.0], [1.0]]), np.array([[0.9], [0.1], [5.0]]))[0].tolist()
    [1, 0]
    """
    index, squared = np.full(len(rows), -1, dtype=np.int64), np.full(len(rows), np.nan)
    if len(rows) * len(others) <= _EXACT:
        from scipy.optimize import linear_sum_assignment
        from scipy.spatial.distance import cdist

        cost = cdist(rows, others, "sqeuclidean")
        mine, theirs = linear_sum_assignment(cost)
        index[mine], squared[mine] = theirs, cost[mine, theirs]
        return index, squared
    waiting, free = np.arange(len(rows)), np.arange(len(others))
    while len(waiting) and len(free):
        near, far = NearestPlaces(others[free]).query(rows[waiting], min(_NEAREST, len(free)))
        person, chosen = np.repeat(waiting, near.shape[1]), free[near.ravel()]
        taken = np.zeros(len(others), dtype=bool)
        for at in np.argsort(far.ravel(), kind="stable"):
            if index[person[at]] < 0 and not taken[chosen[at]]:
                index[person[at]], squared[person[at]] = chosen[at], far.flat[at]
                taken[chosen[at]] = True
        waiting, free = waiting[index[waiting] < 0], free[~taken[free]]
    return index, squared
