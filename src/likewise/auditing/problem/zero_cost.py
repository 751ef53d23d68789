"""When does a move cost nothing: squared fair distances with the rounding taken out."""

from __future__ import annotations

from typing import Any

import numpy as np

from likewise.auditing.support.frontier import Floats

__all__ = ["priced_distance"]


def priced_distance(
    metric: Any, first: Floats, second: Floats, *, zero_tol: float = 1e-15, resolution: float = 2.3e-16
) -> Floats:
    """Squared fair distance of paired rows, exactly 0 where it is rounding.

    Parameters
    ----------
    metric : FairMetric
        Of these features (without a feature map).
    first, second : float arrays of shape (n, d)
        The rows.
    zero_tol : float, default=1e-15
        A move δ costs nothing when d² ≤ zero_tol · ‖δ‖², times the largest eigenvalue of Σ: it lies in the free
        directions up to rounding.
    resolution : float
        Of the numbers that the rows were computed in; their rounding costs nothing either.

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
    distance = np.maximum(metric.squared_norm(delta), 0.0)
    largest = max(metric.scale, float((metric.scale + metric.values).max(initial=0.0)))
    noise = (4 * resolution) ** 2 * ((first**2).sum(axis=1) + (second**2).sum(axis=1))
    free = largest * (zero_tol * (delta**2).sum(axis=1) + noise)
    return np.where(distance <= free, 0.0, distance)
