"""Confidence intervals of shares of people: of one share, and of sums and differences of independent ones.

One share has Clopper and Pearson's interval, which covers at least as often as it says. Sums and differences of shares of
different people combine these intervals as Newcombe (1998) and Zou and Donner (2008) combine Wilson's: each end moves by
the root of the summed squares of the parts' own distances. A bootstrap has no width where all or none of a class are
recognised, and covers too seldom in small groups; this does not (benchmarks/interval_coverage.py).
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from likewise.core.checks import FloatArray, check_integer, check_number, check_same_length, to_numpy
from likewise.core.errors import InputError, bad_parameter
from likewise.core.randomness import RandomState, numpy_generator

# A number with its confidence interval.


@dataclass(frozen=True)
class Interval:
    """A two-sided confidence interval; unpacks as `low, high`.

    Parameters
    ----------
    low, high : float
        The ends. Both NaN where the data cannot tell (one observation, or too few people in a group):
        unknown, not narrow.
    confidence : float, default=0.95
        The level.
    method : str, default=""
        How it was made: ``"exact"``, or ``"percentile"``, ``"basic"``, ``"bca"`` for a bootstrap.

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
        Ends of its confidence interval; NaN where it is unknown.
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


# Bootstrap confidence intervals of any statistic, of arrays or of counts.


METHODS = ("percentile", "basic", "bca")

# Above this share of resamples in which a statistic is undefined (a class that nobody drew, say), the
# resamples that remain no longer stand for the population, and an interval from them would look too sure.
MAX_UNDEFINED = 0.1

_BATCH_CELLS = 2_000_000


def bootstrap_interval(
    statistic: Callable[..., Any],
    *arrays: Any,
    n_resamples: int = 2000,
    confidence: float = 0.95,
    method: str = "percentile",
    paired: bool = True,
    vectorized: bool | None = None,
    random_state: RandomState = 0,
) -> Interval:
    """Bootstrap confidence interval of any statistic of one or more arrays.

    Parameters
    ----------
    statistic : callable
        Takes as many arrays as are passed and returns one number. One with a parameter `axis` is called on
        many resamples at once, with observations along the last axis (or say so with `vectorized`).
    *arrays : array-like of shape (n,) or (n, …)
        Observations along the first axis. A vectorised statistic needs one-dimensional arrays.
    n_resamples : int, default=2000
        How many times to resample.
    confidence : float in (0, 1), default=0.95
        The level of the two-sided interval.
    method : {"percentile", "basic", "bca"}, default="percentile"
        Percentiles of the resampled values, their mirror image around the value, or bias-corrected and
        accelerated percentiles (which also need one evaluation per observation).
    paired : bool, default=True
        Whether row i of every array is the same person, to be drawn together. With False the arrays are
        independent samples, possibly of different lengths.
    vectorized : bool, optional
        Whether `statistic` takes `axis`; looked up in its signature by default.
    random_state : int, numpy Generator, numpy RandomState or None, default=0
        Same seed, same interval.

    Returns
    -------
    Interval
        NaN ends where there is one observation only, or where more than a tenth of the resamples leave the
        statistic undefined (NaN).

    Examples
    --------
    >>> import numpy as np
    >>> low, high = bootstrap_interval(np.mean, np.arange(100.0))
    >>> low < 49.5 < high
    True
    """
    owner = "bootstrap_interval"
    rng = numpy_generator(random_state)
    check_choices(owner, n_resamples, confidence, method)
    samples = [to_numpy(array) for array in arrays]
    if not samples:
        raise InputError(f"{owner}: no arrays were passed. Pass the observations after the statistic.")
    if any(sample.ndim == 0 or len(sample) == 0 for sample in samples):
        raise InputError(f"{owner}: an array has no observations. Pass at least two.")
    if paired:
        check_same_length(owner, **{f"array {i}": sample for i, sample in enumerate(samples)})
    if vectorized is None:
        vectorized = _has_axis(statistic)
    if vectorized and any(sample.ndim != 1 for sample in samples):
        vectorized = False
    function = _on_batches(statistic, vectorized)
    value = function([sample[None] for sample in samples])[:, None]
    if min(map(len, samples)) < 2:
        return Interval(np.nan, np.nan, confidence, method)
    replicates = _replicates(function, samples, n_resamples, paired, rng)
    jackknife = _jackknife(function, samples, paired) if method == "bca" else []
    return _from_replicates(value[0], replicates[:, None], jackknife, confidence, method)[0]


def bootstrap_counts(
    statistic: Callable[[FloatArray], FloatArray],
    counts: Any,
    *,
    n_resamples: int = 2000,
    confidence: float = 0.95,
    method: str = "percentile",
    random_state: RandomState = 0,
) -> tuple[Interval, ...]:
    """Bootstrap intervals of statistics that depend on the people only through counts.

    Drawing n people with replacement and counting them by cell is one multinomial draw, so a resample costs
    as much as there are cells, however many people there are.

    Parameters
    ----------
    statistic : callable
        Maps counts of shape (r, k) to values of shape (r, m), or (r,) for one statistic. NaN marks a
        resample in which it is undefined.
    counts : array-like of shape (k,)
        How many people fall in each cell.
    n_resamples, confidence, method, random_state
        As in `bootstrap_interval`.

    Returns
    -------
    tuple of Interval
        One per statistic.

    Examples
    --------
    >>> (interval,) = bootstrap_counts(lambda c: c[:, 1] / c.sum(axis=1), [50, 50])
    >>> 0.3 < interval.low < 0.5 < interval.high < 0.7
    True
    """
    owner = "bootstrap_counts"
    rng = numpy_generator(random_state)
    check_choices(owner, n_resamples, confidence, method)
    table = np.asarray(counts)
    if table.ndim != 1 or table.dtype.kind not in "iu" or (table < 0).any() or table.sum() == 0:
        raise bad_parameter(
            owner,
            "counts",
            allowed="a one-dimensional array of whole numbers >= 0 with a positive sum",
            got=counts,
        )

    def function(batch: FloatArray) -> FloatArray:
        values = np.asarray(statistic(batch), dtype=float)
        return values.reshape(len(batch), -1)

    n = int(table.sum())
    value = function(table[None].astype(float))[0]
    if n < 2:
        return tuple(Interval(np.nan, np.nan, confidence, method) for _ in value)
    draws = rng.multinomial(n, table / n, size=n_resamples)
    replicates = function(draws.astype(float))
    jackknife: list[tuple[FloatArray, FloatArray]] = []
    if method == "bca":
        # People of one cell are interchangeable: leaving one out gives one value per cell, so many times.
        used = np.flatnonzero(table)
        left_out = np.repeat(table[None].astype(float), len(used), axis=0)
        left_out[np.arange(len(used)), used] -= 1
        jackknife = [(function(left_out), table[used].astype(float))]
    return _from_replicates(value, replicates, jackknife, confidence, method)


def check_choices(
    owner: str, n_resamples: int, confidence: float, method: str, methods: tuple[str, ...] = METHODS
) -> None:
    """Raise an error unless the choices that all intervals share can be used."""
    check_number(confidence, owner=owner, name="confidence", low=0, high=1, open_low=True, open_high=True)
    check_integer(n_resamples, owner=owner, name="n_resamples", low=1)
    if method not in methods:
        words = ", ".join(repr(word) for word in methods)
        raise bad_parameter(owner, "method", allowed=f"one of {words}", got=method)


def _has_axis(statistic: Callable[..., Any]) -> bool:
    try:
        return "axis" in inspect.signature(statistic).parameters
    except (TypeError, ValueError):
        return False


def _on_batches(
    statistic: Callable[..., Any], vectorized: bool
) -> Callable[[list[np.ndarray[Any, Any]]], FloatArray]:
    """Turn the statistic into a function of resamples of shape (batch, n, …) with values (batch,)."""

    def all_at_once(resamples: list[np.ndarray[Any, Any]]) -> FloatArray:
        return np.asarray(statistic(*resamples, axis=-1), dtype=float)

    def one_by_one(resamples: list[np.ndarray[Any, Any]]) -> FloatArray:
        values = [float(statistic(*parts)) for parts in zip(*resamples, strict=True)]
        return np.asarray(values, dtype=float)

    return all_at_once if vectorized else one_by_one


def _replicates(
    function: Callable[[list[np.ndarray[Any, Any]]], FloatArray],
    samples: list[np.ndarray[Any, Any]],
    n_resamples: int,
    paired: bool,
    rng: np.random.Generator,
) -> FloatArray:
    longest = max(map(len, samples))
    batch = max(1, _BATCH_CELLS // longest)
    parts = []
    for start in range(0, n_resamples, batch):
        size = min(batch, n_resamples - start)
        if paired:
            index = rng.integers(0, longest, (size, longest))
            parts.append(function([sample[index] for sample in samples]))
        else:
            parts.append(function([s[rng.integers(0, len(s), (size, len(s)))] for s in samples]))
    return np.concatenate(parts)


def _jackknife(
    function: Callable[[list[np.ndarray[Any, Any]]], FloatArray],
    samples: list[np.ndarray[Any, Any]],
    paired: bool,
) -> list[tuple[FloatArray, FloatArray]]:
    """Values with one observation left out, and how often each counts: one entry per independent sample."""
    which = [list(range(len(samples)))] if paired else [[i] for i in range(len(samples))]
    found: list[tuple[FloatArray, FloatArray]] = []
    for together in which:
        n = len(samples[together[0]])
        values = [
            function(
                [np.delete(s, row, axis=0)[None] if i in together else s[None] for i, s in enumerate(samples)]
            )
            for row in range(n)
        ]
        found.append((np.stack(values), np.ones(n)))
    return found


def _from_replicates(
    value: FloatArray,
    replicates: FloatArray,
    jackknife: list[tuple[FloatArray, FloatArray]],
    confidence: float,
    method: str,
) -> tuple[Interval, ...]:
    """Intervals of m statistics from values (m,), replicates (r, m) and leave-one-out values (j, m)."""
    tails = np.array([(1 - confidence) / 2, (1 + confidence) / 2])
    intervals = []
    for column, point in enumerate(value):
        draws = replicates[:, column]
        known = draws[np.isfinite(draws)]
        if not np.isfinite(point) or len(known) < (1 - MAX_UNDEFINED) * len(draws):
            intervals.append(Interval(np.nan, np.nan, confidence, method))
            continue
        levels = tails
        if method == "bca":
            left_out = [(values[:, column], weights) for values, weights in jackknife]
            levels = _bca_levels(float(point), known, left_out, tails)
        low, high = np.quantile(known, levels) if np.isfinite(levels).all() else (np.nan, np.nan)
        if method == "basic":
            low, high = 2 * point - high, 2 * point - low
        intervals.append(Interval(float(low), float(high), confidence, method))
    return tuple(intervals)


def _bca_levels(
    point: float, draws: FloatArray, left_out: list[tuple[FloatArray, FloatArray]], tails: FloatArray
) -> FloatArray:
    """Levels of the bias-corrected and accelerated bootstrap (Efron 1987), ties counted half."""
    from scipy.special import ndtr, ndtri

    below = (np.mean(draws < point) + np.mean(draws <= point)) / 2
    bias = ndtri(below)
    cubes = squares = 0.0
    for values, weights in left_out:
        known = np.isfinite(values)
        values, weights = values[known], weights[known]
        n = weights.sum()
        influence = (n - 1) * ((weights * values).sum() / n - values)
        cubes += float((weights * influence**3).sum() / n**3)
        squares += float((weights * influence**2).sum() / n**2)
    acceleration = cubes / (6 * squares**1.5) if squares > 0 else 0.0
    shifted = bias + ndtri(tails)
    return np.asarray(ndtr(bias + shifted / (1 - acceleration * shifted)), dtype=float)


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
    """Clopper and Pearson's limits of many shares at once; 0 and 1 where nobody was seen."""
    from scipy.special import betaincinv

    right, people = np.asarray(successes, dtype=float), np.asarray(n, dtype=float)
    wrong, tail = people - right, (1 - confidence) / 2
    low = np.where(right > 0, betaincinv(np.maximum(right, 1), wrong + 1, tail), 0.0)
    high = np.where(wrong > 0, betaincinv(right + 1, np.maximum(wrong, 1), 1 - tail), 1.0)
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


def bounded_mean_interval(
    values: Any, low: float, high: float, *, confidence: float = 0.95, n: float | None = None
) -> Interval:
    """Interval of a mean of numbers that cannot be outside [low, high]: Gaffke's limits, from two sums.

    The lower limit is Clopper and Pearson's of so many people at the same distance from `low`, the others at `low`, that
    the sum of distances and that of their squares are kept (`likewise.auditing.inference.limits`); the upper limit is
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
