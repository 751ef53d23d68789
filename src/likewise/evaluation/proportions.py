"""Confidence intervals of shares of people: of one share, and of sums and differences of independent ones.

One share has Clopper and Pearson's interval, which covers at least as often as it says. Sums and differences of shares of
different people combine these intervals as Newcombe (1998) and Zou and Donner (2008) combine Wilson's: each end moves by
the root of the summed squares of the parts' own distances. A bootstrap has no width where all or none of a class are
recognised, and covers too seldom in small groups; this does not (benchmarks/interval_coverage.py).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from likewise.core.arrays import FloatArray
from likewise.core.checks import check_number
from likewise.core.randomness import RandomState
from likewise.evaluation.bootstrap import METHODS, bootstrap_counts, check_choices
from likewise.evaluation.measures import Interval

__all__ = ["bounded_mean_interval", "mean_share_interval", "proportion_interval", "share_limits"]


def proportion_interval(
    successes: int,
    n: int,
    *,
    confidence: float = 0.95,
    method: str = "exact",
    n_resamples: int = 2000,
    random_state: RandomState = 0,
) -> Interval:
    """Confidence interval of a share: `successes` of `n` people.

    Parameters
    ----------
    successes, n : int
        0 <= successes <= n, n >= 1.
    confidence : float in (0, 1), default=0.95
        The level.
    method : {"exact", "percentile", "basic", "bca"}, default="exact"
        Clopper and Pearson's interval (covers with at least the asked probability, also for 0 or n of n,
        where every bootstrap interval has no width), or a bootstrap.
    n_resamples, random_state
        As in `bootstrap_interval`; not used by the exact one.

    Returns
    -------
    Interval

    Examples
    --------
    >>> low, high = proportion_interval(100, 100)
    >>> round(low, 3), high
    (0.964, 1.0)
    """
    owner = "proportion_interval"
    check_number(n, owner=owner, name="n", low=1)
    check_number(successes, owner=owner, name="successes", low=0, high=n)
    successes, n = int(successes), int(n)
    check_choices(owner, n_resamples, confidence, method, ("exact", *METHODS))
    if method != "exact":
        return bootstrap_counts(
            lambda counts: counts[:, 1] / counts.sum(axis=1),
            np.array([n - successes, successes]),
            n_resamples=n_resamples,
            confidence=confidence,
            method=method,
            random_state=random_state,
        )[0]
    low, high = share_limits(successes, n, confidence=confidence)
    return Interval(float(low), float(high), confidence, "exact")


def share_limits(successes: Any, n: Any, *, confidence: float) -> tuple[FloatArray, FloatArray]:
    """Clopper and Pearson's limits of many shares at once; 0 and 1 where nobody was seen.

    Examples
    --------
    >>> low, high = share_limits([0, 5], [10, 10], confidence=0.95)
    >>> low.round(3).tolist(), high.round(3).tolist()
    ([0.0, 0.187], [0.308, 0.813])
    """
    from scipy.special import betaincinv

    right, people = np.asarray(successes, dtype=float), np.asarray(n, dtype=float)
    wrong, tail = people - right, (1 - confidence) / 2
    low = np.where(right > 0, betaincinv(np.maximum(right, 1), wrong + 1, tail), 0.0)
    high = np.where(wrong > 0, betaincinv(right + 1, np.maximum(wrong, 1), 1 - tail), 1.0)
    return np.asarray(low), np.asarray(high)


def mean_share_interval(successes: Any, n: Any, *, confidence: float = 0.95) -> Interval:
    """Interval of the mean of several shares, each of other people: of the recalls of classes, say.

    Parameters
    ----------
    successes, n : int arrays of shape (k,)
        So many of so many.
    confidence : float in (0, 1), default=0.95

    Returns
    -------
    Interval
        NaN ends where one of them has nobody.

    Examples
    --------
    >>> low, high = mean_share_interval([80, 10], [100, 10])
    >>> round(low, 3), round(high, 3)
    (0.739, 0.937)
    """
    right, people = np.asarray(successes, dtype=float), np.asarray(n, dtype=float)
    if not people.all():
        return Interval(np.nan, np.nan, confidence, "combined")
    rate, (low, high) = right / people, share_limits(right, people, confidence=confidence)
    mean, k = float(rate.mean()), len(rate)
    below, above = (float(np.sqrt((reach**2).sum())) / k for reach in (rate - low, high - rate))
    return Interval(mean - below, mean + above, confidence, "combined")


def bounded_mean_interval(values: Any, low: float, high: float, *, confidence: float = 0.95) -> Interval:
    """Interval of a mean of numbers that cannot be outside [low, high]: Gaffke's limits, from two sums.

    The lower limit is Clopper and Pearson's of so many people at the same distance from `low`, the others at `low`, that
    the sum of distances and that of their squares are kept (`likewise.auditing.claims.mean_limits`); the upper limit is
    its mirror image. What was not seen may lie at the ends, so the interval is never a point.

    Parameters
    ----------
    values : array of shape (n,)
    low, high : float
        Known ends, not those of the sample.
    confidence : float in (0, 1), default=0.95

    Returns
    -------
    Interval

    Examples
    --------
    >>> print([round(end, 3) for end in bounded_mean_interval(np.zeros(100), -1.0, 1.0)])
    [-0.036, 0.036]
    """
    numbers = np.asarray(values, dtype=float)
    below = _least_mean(numbers - low, (1 - confidence) / 2)
    above = _least_mean(high - numbers, (1 - confidence) / 2)
    return Interval(low + below, high - above, confidence, "Gaffke")


def _least_mean(distances: FloatArray, tail: float) -> float:
    from scipy.special import betaincinv

    total, squares = float(distances.sum()), float((distances**2).sum())
    if total <= 0:
        return 0.0
    number = min(total**2 / squares, float(len(distances)))
    return squares / total * float(betaincinv(number, len(distances) - number + 1.0, tail))
