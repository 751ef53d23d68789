"""Means over units whose noise is shared in clusters: intervals, sign-flip tests, Holm, equivalence."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from scipy import stats

from likewise.core.arrays import FloatArray
from likewise.core.errors import InputError
from likewise.evaluation.measures import Interval

__all__ = [
    "SignFlips",
    "cluster_sums",
    "equivalence_p_value",
    "holm",
    "mean_and_error",
    "mean_interval",
    "sign_flips",
]

Codes = np.ndarray[Any, np.dtype[np.intp]]

# All 2^G sign patterns up to this many clusters, a sample of them beyond.
_ALL_SIGNS_UP_TO = 13


def cluster_sums(values: FloatArray, clusters: Codes, n_clusters: int) -> FloatArray:
    """Sum the rows of each cluster; NaN counts as absent."""
    sums = np.zeros((n_clusters, *values.shape[1:]))
    np.add.at(sums, clusters, np.where(np.isnan(values), 0.0, values))
    return sums


def mean_and_error(values: FloatArray, clusters: Codes) -> tuple[float, float, int]:
    """Return the mean, its cluster-robust standard error and the number of clusters.

    Var = G/(G−1) Σ_c (Σ_{u∈c} (d_u − d̄))² / n² (Liang and Zeger 1986, with the usual small-sample factor).

    Examples
    --------
    >>> import numpy as np
    >>> mean, error, n = mean_and_error(np.array([1.0, 2.0, 3.0]), np.arange(3))
    >>> mean, round(error, 4), n
    (2.0, 0.5774, 3)
    """
    known = ~np.isnan(values)
    if not known.any():
        return float("nan"), float("nan"), 0
    n_clusters, n = int(np.count_nonzero(np.bincount(clusters[known]))), int(known.sum())
    mean = float(values[known].mean())
    if n_clusters < 2:
        return mean, float("nan"), n_clusters
    sums = np.bincount(clusters[known], weights=values[known] - mean)
    return mean, float(np.sqrt(n_clusters / (n_clusters - 1) * np.sum(sums**2)) / n), n_clusters


def mean_interval(values: FloatArray, clusters: Codes, confidence: float = 0.95) -> Interval:
    """Return the interval of a mean, Student's t with G − 1 degrees of freedom.

    Examples
    --------
    >>> import numpy as np
    >>> low, high = mean_interval(np.array([1.0, 2.0, 3.0]), np.arange(3))
    >>> round(low, 3), round(high, 3)
    (-0.484, 4.484)
    """
    mean, error, n_clusters = mean_and_error(values, clusters)
    if not np.isfinite(error):
        return Interval(float("nan"), float("nan"), confidence, "cluster t")
    reach = _t_quantile(0.5 + confidence / 2, n_clusters - 1) * error
    return Interval(mean - reach, mean + reach, confidence, "cluster t")


@cache
def _t_quantile(share: float, freedom: int) -> float:
    return float(stats.t.ppf(share, freedom))


@dataclass(frozen=True, eq=False)
class SignFlips:
    """Two-sided p-values of zero means.

    Parameters
    ----------
    p_values : ndarray of shape (k,)
        Of each column alone.
    adjusted : ndarray of shape (k,)
        Of each against the largest of all columns (Westfall and Young 1993), which knows that they share
        units, placebos and baseline.
    statistics : ndarray of shape (k,)
        The standardised means.
    """

    p_values: FloatArray
    adjusted: FloatArray
    statistics: FloatArray


def sign_flips(
    values: FloatArray, clusters: Codes, *, n_flips: int = 9999, rng: np.random.Generator
) -> SignFlips:
    """Test that columns have mean zero by flipping the signs of whole clusters.

    Parameters
    ----------
    values : ndarray of shape (n, k)
        Differences; NaN is absent.
    clusters : ndarray of int of shape (n,)
    n_flips : int, default=9999
        Sign patterns drawn where there are too many to go through.
    rng : numpy Generator

    Returns
    -------
    SignFlips

    Examples
    --------
    >>> import numpy as np
    >>> flips = sign_flips(np.ones((5, 1)), np.arange(5), rng=np.random.default_rng(0))
    >>> flips.p_values.tolist(), flips.adjusted.tolist()  # 2 of the 32 patterns
    ([0.0625], [0.0625])
    """
    n_clusters = int(clusters.max()) + 1
    sums = cluster_sums(values, clusters, n_clusters)
    norms = np.sqrt((sums**2).sum(axis=0))
    scaled = np.divide(sums, norms, out=np.zeros_like(sums), where=norms > 0)
    if n_clusters <= _ALL_SIGNS_UP_TO:
        bits = (np.arange(2**n_clusters)[:, None] >> np.arange(n_clusters)) & 1
        own = 0
    else:
        bits = rng.integers(0, 2, size=(n_flips, n_clusters))
        own = 1  # the pattern observed is one of those that could have been
    flipped = np.abs((2.0 * bits - 1.0) @ scaled)
    statistics = scaled.sum(axis=0)
    # Rounding must not break ties with the pattern that was observed.
    limits = np.abs(statistics) - 1e-9
    largest = flipped.max(axis=1)[:, None]
    total = own + len(flipped)
    return SignFlips(
        (own + (flipped >= limits).sum(axis=0)) / total,
        (own + (largest >= limits).sum(axis=0)) / total,
        statistics,
    )


def holm(p_values: FloatArray) -> FloatArray:
    """Adjust p-values so that all claims together hold at the level (Holm 1979).

    Examples
    --------
    >>> import numpy as np
    >>> holm(np.array([0.01, 0.04, 0.03])).tolist()
    [0.03, 0.06, 0.06]
    """
    p_values = np.asarray(p_values, dtype=float)
    if np.isnan(p_values).any():
        raise InputError("holm: a p-value is not a number. Leave it out.")
    order = np.argsort(p_values, kind="stable")
    steps = p_values[order] * np.arange(len(p_values), 0, -1)
    adjusted = np.empty_like(p_values)
    adjusted[order] = np.minimum(np.maximum.accumulate(steps), 1.0)
    return adjusted


def equivalence_p_value(values: FloatArray, clusters: Codes, margin: float) -> float:
    """Test that |mean| is at least `margin`: a small p-value shows that it is smaller (TOST, Schuirmann 1987).

    Examples
    --------
    >>> import numpy as np
    >>> small = np.array([0.01, -0.02, 0.0, 0.01, 0.0])
    >>> equivalence_p_value(small, np.arange(5), 0.5) < 0.001, equivalence_p_value(small, np.arange(5), 0.001) > 0.3
    (True, True)
    """
    mean, error, n_clusters = mean_and_error(values, clusters)
    if not np.isfinite(error):
        return 1.0
    if error == 0.0:
        return 0.0 if abs(mean) < margin else 1.0
    return float(stats.t.sf((margin - abs(mean)) / error, n_clusters - 1))
