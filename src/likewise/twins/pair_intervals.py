"""Intervals of means over pairs of a person and a twin, whether or not twins are shared."""

from __future__ import annotations

from typing import Any

import numpy as np

from likewise.core.arrays import FloatArray
from likewise.evaluation.measures import Interval, Measure
from likewise.evaluation.proportions import bounded_mean_interval, proportion_interval

__all__ = ["mean_measure", "share_measure"]

Ints = np.ndarray[Any, np.dtype[np.int64]]


def share_measure(name: str, flags: Any, confidence: float, clusters: Ints | None = None) -> Measure:
    """Share of people, exact (Clopper and Pearson) where people are independent; else as `mean_measure`.

    Where people share comparators and all agree there is no variance to be seen: the interval is then the exact one of as
    many independent people as there are comparators (as in Korn and Graubard 1998).

    Examples
    --------
    >>> print(share_measure("changed", np.array([True, False, False, False]), 0.95))
    changed 0.250 [0.006, 0.806]
    >>> print(share_measure("changed", np.zeros(40, dtype=bool), 0.95, clusters=np.arange(40) // 10))
    changed 0.000 [0.000, 0.602]
    """
    flags = np.asarray(flags, dtype=bool)
    if not len(flags):
        return Measure(name, np.nan, np.nan, np.nan, "none")
    if clusters is None:
        exact = proportion_interval(int(flags.sum()), len(flags), confidence=confidence)
        return Measure.of(name, float(flags.mean()), exact)
    if flags.all() or not flags.any():
        number = max(len(np.unique(clusters[clusters >= 0])), 1)
        exact = proportion_interval(number if flags.all() else 0, number, confidence=confidence)
        return Measure.of(name, float(flags[0]), exact)
    found = mean_measure(name, flags.astype(float), confidence, clusters)
    return Measure(name, found.value, max(found.low, 0.0), min(found.high, 1.0), found.method)


def mean_measure(
    name: str,
    values: FloatArray,
    confidence: float,
    clusters: Ints | None = None,
    span: float | None = None,
) -> Measure:
    """Mean with its interval; people who share a comparator are not independent observations.

    Of independent numbers that are known to lie within ± `span` the interval holds for few people and rare changes too;
    else it is Student's t, which needs many people with changes of a similar size. With clusters the variance sums over all pairs of people who share a comparator, and is at least that of independent
    people (Cameron, Gelbach and Miller 2011; a pair that shares several counts for each).

    Parameters
    ----------
    name : str
    values : float array of shape (n,)
    confidence : float
    clusters : int array of shape (n,) or (variants, n), optional
        The comparators of each person; -1 for none.
    span : float, optional
        No number can be larger, up or down.

    Examples
    --------
    >>> print(mean_measure("change", np.array([1.0, 2.0, 3.0, 2.0]), 0.95))
    change 2.000 [0.701, 3.299]
    >>> print(mean_measure("change", np.zeros(100), 0.95, span=1.0))
    change 0.000 [-0.036, 0.036]
    """
    from scipy.special import stdtrit

    values = np.asarray(values, dtype=float)
    n = len(values)
    if n < 2:
        return Measure(name, float(values.mean()) if n else np.nan, np.nan, np.nan, "Student's t")
    mean = float(values.mean())
    if clusters is None and span is not None:
        return Measure.of(name, mean, bounded_mean_interval(values, -span, span, confidence=confidence))
    left = values - mean
    variance = float((left**2).sum()) / (n * (n - 1))
    method, freedom = "Student's t", n - 1
    if clusters is not None:
        freedom = max(len(np.unique(clusters[clusters >= 0])) - 1, 1)
        variance = max(variance, _shared_variance(left, np.atleast_2d(clusters)))
        method = "clustered by comparator"
    reach = float(stdtrit(freedom, (1 + confidence) / 2)) * variance**0.5
    return Measure.of(name, mean, Interval(mean - reach, mean + reach, confidence, method))


def _shared_variance(left: FloatArray, clusters: Ints) -> float:
    variant, person = np.nonzero(clusters >= 0)
    if not len(person):
        return 0.0
    _, number = np.unique(clusters[variant, person], return_inverse=True)
    sums = np.bincount(number.ravel(), weights=left[person])
    # Everybody is a pair with themselves once, however many comparators they have.
    again = np.maximum((clusters >= 0).sum(axis=0) - 1, 0)
    total = float((sums**2).sum() - (again * left**2).sum())
    return total / len(left) ** 2 * len(sums) / max(len(sums) - 1, 1)
