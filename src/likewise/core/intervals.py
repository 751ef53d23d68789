"""Confidence intervals of proportions and bounded means, and of their sums, differences and ratios.

One share has Clopper and Pearson's interval, which covers at least as often as it says. Sums, differences and ratios of
shares of different people combine these intervals as Newcombe (1998) and Zou and Donner (2008) combine Wilson's: each end
moves by the root of the summed squares of the parts' own distances. There is no bootstrap: it has no width if all or none
of a class are recognised, and covers too seldom in small groups (benchmarks/interval_coverage.py).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from likewise.core.checks import FloatArray, check_number, check_share


@dataclass(frozen=True)
class Interval:
    """A two-sided confidence interval; unpacks as `low, high`.

    Parameters
    ----------
    low, high : float
        The ends. Both NaN if the data cannot tell (one observation, or too few people in a group):
        unknown, not narrow.
    confidence : float, default=0.95
        The level.
    method : str, default=""
        How it was made, such as ``"exact"``.

    Examples
    --------
    >>> low, high = Interval(0.1, 0.3)
    >>> 0.2 in Interval(0.1, 0.3), high
    (True, 0.3)
    """

    low: float
    high: float
    confidence: float = 0.95
    method: str = ""

    def __iter__(self) -> Iterator[float]:
        return iter((self.low, self.high))

    def __contains__(self, value: float) -> bool:
        return self.low <= value <= self.high


@dataclass(frozen=True)
class Measure:
    """One number of an evaluation with its interval.

    Parameters
    ----------
    name : str
        What was measured.
    value : float
        The number on the data at hand.
    low, high : float
        Ends of its confidence interval; NaN if it is unknown.
    method : str, default=""
        How the interval was made.

    Examples
    --------
    >>> print(Measure("accuracy", 0.8134, 0.8052, 0.8214, "exact"))
    accuracy 0.813 [0.805, 0.821]
    """

    name: str
    value: float
    low: float
    high: float
    method: str = ""

    @classmethod
    def of(cls, name: str, value: float, interval: Interval) -> Measure:
        """Join a value and its interval."""
        return cls(name, value, interval.low, interval.high, interval.method)

    def __str__(self) -> str:
        return f"{self.name} {self.value:.3f} [{self.low:.3f}, {self.high:.3f}]"


def proportion_interval(successes: int, n: int, *, confidence: float = 0.95) -> Interval:
    """Clopper and Pearson's confidence interval of a share: `successes` of `n` people.

    Parameters
    ----------
    successes, n : int
        0 <= successes <= n, n >= 1.
    confidence : float in (0, 1), default=0.95
        It covers with at least this probability, also for 0 or n of n.

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
    check_share(confidence, owner=owner, name="confidence")
    low, high = share_limits(int(successes), int(n), confidence=confidence)
    return Interval(float(low), float(high), confidence, "exact")


def share_limits(successes: Any, n: Any, *, confidence: Any) -> tuple[FloatArray, FloatArray]:
    """Clopper and Pearson's limits of many shares at once; 0 and 1 if nobody was seen. Numbers need not be whole."""
    from scipy.special import betaincinv

    right, people = np.asarray(successes, dtype=float), np.asarray(n, dtype=float)
    wrong, tail = people - right, (1 - confidence) / 2
    low = np.where(right > 0, betaincinv(np.where(right > 0, right, 1), wrong + 1, tail), 0.0)
    high = np.where(wrong > 0, betaincinv(right + 1, np.where(wrong > 0, wrong, 1), 1 - tail), 1.0)
    return np.asarray(low), np.asarray(high)


def mean_share_interval(successes: Any, n: Any, *, confidence: float = 0.95) -> Interval:
    """Interval of the mean of several shares, each of other people: of the recalls of classes, say."""
    right, people = np.asarray(successes, dtype=float), np.asarray(n, dtype=float)
    if not people.all():
        return Interval(np.nan, np.nan, confidence, "combined")
    rate, (low, high) = right / people, share_limits(right, people, confidence=confidence)
    mean, k = float(rate.mean()), len(rate)
    below, above = (float(np.sqrt((reach**2).sum())) / k for reach in (rate - low, high - rate))
    return Interval(mean - below, mean + above, confidence, "combined")


def ratio_limits(successes: Any, n: Any, *, confidence: float) -> tuple[FloatArray, FloatArray]:
    """Limits of the ratio of each share to each other one, (k, k): first over second.

    The exact limits combined on the logarithmic scale; if a share is 0 or not known, the ratio of the limits themselves.
    """
    right, people = np.asarray(successes, dtype=float), np.asarray(n, dtype=float)
    low, high = share_limits(right, people, confidence=confidence)
    with np.errstate(divide="ignore", invalid="ignore"):
        rate = right / people
        below, above, log = np.log(rate / low), np.log(high / rate), np.log(rate)
        ratio = log[:, None] - log
        lower, upper = ratio - np.hypot(below[:, None], above), ratio + np.hypot(above[:, None], below)
        seen = (rate[:, None] > 0) & (rate > 0)
        return (
            np.where(seen, np.exp(lower), low[:, None] / high),
            np.where(seen, np.exp(upper), np.where(low > 0, high[:, None] / low, np.inf)),
        )


def bounded_mean_interval(
    values: Any, low: float, high: float, *, confidence: float = 0.95, n: float | None = None
) -> Interval:
    """Interval of a mean of numbers that cannot be outside [low, high]: Gaffke's limits, from two sums.

    The lower limit is Clopper and Pearson's of so many people at the same distance from `low`, the others at `low`, that
    the sum of distances and that of their squares are kept (`likewise.auditing.inference.intervals`); the upper limit is
    its mirror image. What was not seen may lie at the ends, so the interval is never a point. `n` is how many independent
    observations the values are worth; all of them by default.
    """
    numbers = np.asarray(values, dtype=float)
    size = float(len(numbers)) if n is None else n
    scale = size / len(numbers)
    below, above = (
        least_mean(
            scale * float(distances.sum()), scale * float((distances**2).sum()), size, (1 - confidence) / 2
        )
        for distances in (numbers - low, high - numbers)
    )
    return Interval(low + below, high - above, confidence, "Gaffke")


def least_mean(total: Any, squares: Any, n: float, tail: float) -> float:
    """Gaffke's lower limit of a mean of n numbers that are never negative, from their sum and that of their squares.

    It is Clopper and Pearson's of (Σx)²/Σx² people with Σx²/Σx each, the others with 0.
    """
    from scipy.special import betaincinv

    if total <= 0:
        return 0.0
    number = min(float(total**2 / squares), float(n))
    return float(squares / total) * float(betaincinv(number, n - number + 1.0, tail))
