"""When does a move cost nothing: squared fair distances with the rounding taken out."""

from __future__ import annotations

from typing import Any

import numpy as np

from likewise.auditing.support.frontier import Floats
from likewise.core.arrays import to_numpy
from likewise.fair_metrics.metric import COSTS_NOTHING

__all__ = ["priced_distance"]


def priced_distance(
    metric: Any,
    first: Floats,
    second: Floats,
    *,
    resolution: float = 2.3e-16,
    alone: bool = True,
    exact: bool = False,
) -> Floats:
    """Squared fair distance of paired rows, exactly 0 where it is rounding.

    Parameters
    ----------
    metric : FairMetric
        Of these features (without a feature map).
    first, second : float arrays of shape (n, d)
        The rows.
    resolution : float
        Of the numbers that the rows were computed in; their rounding costs nothing either.
    alone : bool, default=True
        Whether each distance must depend on its own two rows alone, to the last bit, which costs time: a matrix
        product rounds a row by where it stands among the others.
    exact : bool, default=False
        Whether the rows are exact, so that a change of a coordinate that no free direction touches is a change, however
        small: a threshold may lie between the two.

    Returns
    -------
    float array of shape (n,)

    Examples
    --------
    >>> from likewise.fair_metrics import euclidean
    >>> priced_distance(euclidean(2), np.zeros((1, 2)), np.ones((1, 2)))
    array([2.])
    """
    delta = first - second
    distance = np.maximum(_squared_norm(metric, delta) if alone else metric.squared_norm(delta), 0.0)
    largest = max(metric.scale, float((metric.scale + metric.values).max(initial=0.0)))
    noise = 0.0 if exact else (4 * resolution) ** 2 * (_lengths(first) + _lengths(second))
    free = distance <= largest * (COSTS_NOTHING * _lengths(delta) + noise)
    if exact:
        touched = np.zeros(delta.shape[1], dtype=bool)
        if metric.n_features is not None:
            basis = np.asarray(to_numpy(metric.null_space.basis), dtype=np.float64)
            touched = np.abs(basis).max(axis=1, initial=0.0) > COSTS_NOTHING
        moved = (delta[:, ~touched] != 0).any(axis=1)
        # The square of a rounding may be less than any number there is.
        distance = np.where(moved, np.maximum(distance, np.finfo(np.float64).tiny), distance)
        free &= ~moved
    return np.where(free, 0.0, distance)


def _lengths(rows: Floats) -> Floats:
    return np.asarray(np.einsum("ij,ij->i", rows, rows))


def _squared_norm(metric: Any, delta: Floats) -> Floats:
    """δᵀΣδ, each row by itself."""
    Q = metric.basis if metric.n_features else np.zeros((delta.shape[1], 0))
    inside = np.einsum("ij,jk->ik", delta, Q)
    total = (inside**2 * (metric.scale + metric.values)).sum(axis=1)
    if metric.scale == 0:
        return np.asarray(total)
    outside = delta - np.einsum("ik,jk->ij", inside, Q) if Q.shape[1] else delta
    return np.asarray(total + metric.scale * np.einsum("ij,ij->i", outside, outside))
