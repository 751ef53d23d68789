"""Fair metrics that need no learning: the Euclidean one, and that of a given matrix."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from likewise.core.arrays import to_numpy
from likewise.core.checks import check_integer, check_matrix
from likewise.core.errors import bad_parameter
from likewise.fair_metrics.metric import COSTS_NOTHING, FairMetric

__all__ = ["euclidean", "mahalanobis"]


def euclidean(n_features: int | None = None) -> FairMetric:
    """Return the plain squared Euclidean distance, under which every difference counts.

    Parameters
    ----------
    n_features : int, optional
        Number of columns; without it the metric takes rows of any width.

    Examples
    --------
    >>> euclidean(2).squared_distance([[0.0, 0.0]], [[1.0, 1.0]])
    array([2.])
    """
    width = (
        0 if n_features is None else check_integer(n_features, owner="euclidean", name="n_features", low=1)
    )
    return FairMetric(1.0, np.zeros((width, 0)), np.zeros(0))


def mahalanobis(
    sigma: Any, *, feature_map: Any = None, feature_names: Sequence[str] | None = None
) -> FairMetric:
    """Return the metric of a given positive semi-definite Σ (used as it is, not inverted).

    Parameters
    ----------
    sigma : array of shape (d, d)
        Symmetric and positive semi-definite up to rounding.
    feature_map, feature_names
        As in `FairMetric`.

    Examples
    --------
    >>> mahalanobis([[2.0, 0.0], [0.0, 0.0]]).squared_distance([[1.0, 7.0]], [[0.0, 0.0]])
    array([2.])
    """
    matrix = check_matrix(to_numpy(sigma), owner="mahalanobis", name="sigma").astype(float)
    if matrix.shape[0] != matrix.shape[1]:
        raise bad_parameter("mahalanobis", "sigma", allowed="a square matrix", got=f"shape {matrix.shape}")
    size = float(np.abs(matrix).max())
    if not np.allclose(matrix, matrix.T, rtol=0, atol=1e-8 * size):
        raise bad_parameter(
            "mahalanobis",
            "sigma",
            allowed="symmetric",
            got="a matrix that is not",
            remedy="Pass (sigma + sigma.T) / 2.",
        )
    values, vectors = np.linalg.eigh((matrix + matrix.T) / 2)
    if values[0] < -1e-8 * max(size, 1e-300):
        raise bad_parameter(
            "mahalanobis",
            "sigma",
            allowed="positive semi-definite",
            got=f"a matrix with eigenvalue {values[0]:.3g}",
            remedy="A covariance must be inverted first if its inverse is meant.",
        )
    keep = values > COSTS_NOTHING * max(values[-1], 0.0)
    names = None if feature_names is None else tuple(feature_names)
    return FairMetric(0.0, vectors[:, keep], values[keep], feature_map, names)
