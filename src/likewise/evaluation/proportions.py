"""Exact confidence interval of a share of people."""

from __future__ import annotations

import numpy as np

from likewise.core.checks import check_number
from likewise.core.randomness import RandomState
from likewise.evaluation.bootstrap import METHODS, bootstrap_counts, check_choices
from likewise.evaluation.measures import Interval

__all__ = ["proportion_interval"]


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
    from scipy.special import betaincinv

    tail = (1 - confidence) / 2
    low = float(betaincinv(successes, n - successes + 1, tail)) if successes else 0.0
    high = float(betaincinv(successes + 1, n - successes, 1 - tail)) if successes < n else 1.0
    return Interval(low, high, confidence, "exact")
