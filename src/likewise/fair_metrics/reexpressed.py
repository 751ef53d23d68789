"""A fair metric written in other coordinates: Σ′ = AᵀΣA where the metric's own rows are Ax + b."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from likewise.core.arrays import FloatArray
from likewise.core.errors import InputError
from likewise.fair_metrics.metric import FairMetric

__all__ = ["reexpress"]

# Squared lengths of one unit that differ by more than this cannot stand in one matrix of doubles.
_WIDEST = 1e-11


def reexpress(metric: FairMetric, matrix: FloatArray, *, feature_map: Any = None) -> FairMetric:
    """Return the metric of rows x that gives the distances the given one has for rows Ax + b.

    Parameters
    ----------
    metric : FairMetric
        Its feature map is not looked at: it measures rows of its own coordinates.
    matrix : array of shape (d_metric, d)
        A.
    feature_map : object, optional
        φ of the new metric; None for rows that are in the new coordinates already.

    Returns
    -------
    FairMetric
        Exact: directions that cost nothing in one coordinate system cost nothing in the other.

    Examples
    --------
    >>> from likewise.core.subspace import Subspace
    >>> metric = FairMetric.from_subspace(Subspace.from_directions([[1.0, 1.0]]))
    >>> other = reexpress(metric, np.diag([10.0, 1.0]))
    >>> one, two = np.array([[0.0, 0.0]]), np.array([[0.3, -2.0]])
    >>> bool(np.allclose(other.squared_distance(one, two), metric.squared_distance(one * [10, 1], two * [10, 1])))
    True
    """
    if matrix.shape[0] == matrix.shape[1] and bool((matrix == np.eye(len(matrix))).all()):
        return replace(metric, feature_map=feature_map)
    plain = metric.without_feature_map()
    # Rows of B = Σ^½ A, so that Σ′ = BᵀB; singular values keep what eigenvalues of the product would lose.
    root = np.asarray(plain.embed(np.ascontiguousarray(matrix.T)))
    directions, lengths, _ = np.linalg.svd(root, full_matrices=False)
    costs = lengths**2
    top = float(costs.max(initial=0.0))
    squeezed = (costs > 0) & (costs <= _WIDEST * top) & (lengths > 1e-13 * np.sqrt(top) * len(matrix))
    if squeezed.any():
        raise InputError(
            "The metric and the domain scale the columns so differently that a distance would be lost to rounding. "
            "Learn the metric on the table that is audited, or pass domain=metric.feature_map."
        )
    priced = costs > _WIDEST * top
    return FairMetric(
        0.0,
        directions[:, priced],
        costs[priced],
        feature_map,
        sensitive_features=metric.sensitive_features,
    )
