"""Is the unfairness more than chance? Calibrated tests of the loss ratio, the gap and flips.

The tests of losses follow Maity, Xue, Yurochkin and Sun (2021), "Statistical inference for individual
fairness", arXiv 2103.16714: the map that moves people is fixed before their losses are averaged (a fixed number
of search steps, or a map found on other people), so the moved losses are independent across people and their
mean is asymptotically normal. Gains that are never negative and mostly 0 are far from normal with few people: their
mean is tested with Gaffke's p-value (`limits`), which is the exact binomial test if they have two values. The tests of
flips are exact.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
from scipy import stats

from likewise.auditing.inference.certificate import IntervalAbout, check_confidence
from likewise.auditing.inference.intervals import (
    GAIN_LIMITS,
    mean_at_most_p_value,
    mean_interval,
)
from likewise.core.checks import FloatArray, check_number, check_same_length, to_numpy
from likewise.core.errors import InputError, bad_parameter
from likewise.core.exact_sum import Moments
from likewise.core.intervals import proportion_interval
from likewise.core.messages import Message

# What a test of "at most τ" found.


@dataclass(frozen=True)
class TestResult:
    """A test of "at most `threshold`" with a two-sided interval."""

    __test__: ClassVar[bool] = False  # not a test case, whatever pytest makes of the name

    statistic: float
    estimate: float
    threshold: float
    p_value: float
    interval: tuple[float, float]
    confidence: float
    n: int
    method: str
    quantity: str = "value"
    about: IntervalAbout = "population"

    @property
    def rejected(self) -> bool:
        """Whether "at most τ" is rejected at level 1 − confidence."""
        return self.p_value <= 1.0 - self.confidence

    def __str__(self) -> str:
        low, high = self.interval
        p = "p < 0.0001" if self.p_value < 1e-4 else f"p = {self.p_value:.2g}"
        end = "infinity" if np.isinf(high) else f"{high:.4f}"
        return (
            f"{self.quantity} {self.estimate:.4g} ({self.confidence:.0%} interval {low:.4f} to {end}), "
            f"more than {self.threshold:g}: {p}"
        )


# Exact tests of decisions that flip between twins: how many do, and which way.


def flip_share_test(flips: int, n: int, *, threshold: float = 0.0, confidence: float = 0.95) -> TestResult:
    """Test exactly whether the share of people whose decision flips between twins is more than τ.

    Parameters
    ----------
    flips : int
        People whose decision differs from a twin's.
    n : int
        People in the correspondence study.
    threshold : float, default=0
        τ in [0, 1].
    confidence : float, default=0.95
        1 − level of the test, and of the Clopper–Pearson interval.

    Returns
    -------
    TestResult
        `p_value` is the binomial upper tail at τ, so the level holds for every n.

    Examples
    --------
    >>> flip_share_test(0, 50).p_value, flip_share_test(1, 50).p_value
    (1.0, 0.0)
    """
    owner = "flip_share_test"
    n, flips = _count(n, owner, "n", 1), _count(flips, owner, "flips", 0)
    if flips > n:
        raise bad_parameter(owner, "flips", allowed=f"at most n ({n})", got=flips)
    threshold = check_number(threshold, owner=owner, name="threshold", low=0.0, high=1.0)
    confidence = check_confidence(confidence, owner)
    p_value = float(stats.binom.sf(flips - 1, n, threshold))
    low, high = proportion_interval(flips, n, confidence=confidence)
    method = "exact binomial test, Clopper–Pearson interval"
    return TestResult(
        float(flips), flips / n, threshold, p_value, (low, high), confidence, n, method, "share of flips"
    )


def direction_test(
    harmed: int, favoured: int, *, confidence: float = 0.95, two_sided: bool = True
) -> TestResult:
    """Test exactly (McNemar) whether flips go one way more than the other.

    Parameters
    ----------
    harmed, favoured : int
        Flips to the worse and to the better decision under the same edit.
    confidence : float, default=0.95
        1 − level of the test, and of the Clopper–Pearson interval of the share that is harmed.
    two_sided : bool, default=True
        Whether an imbalance either way counts; False asks for more harm than favour.

    Returns
    -------
    TestResult
        `n` is the number of flips; without any the p-value is 1 and the interval all of [0, 1].

    Examples
    --------
    >>> result = direction_test(harmed=12, favoured=2)
    >>> round(result.p_value, 4), result.n
    (0.0129, 14)
    """
    owner = "direction_test"
    harmed, favoured = _count(harmed, owner, "harmed", 0), _count(favoured, owner, "favoured", 0)
    confidence = check_confidence(confidence, owner)
    n = harmed + favoured
    p_value = 1.0
    if n:
        p_value = float(stats.binom.sf(harmed - 1, n, 0.5))
        if two_sided:
            p_value = min(1.0, 2.0 * float(stats.binom.sf(max(harmed, favoured) - 1, n, 0.5)))
    share = harmed / n if n else 0.5
    low, high = proportion_interval(harmed, n, confidence=confidence) if n else (0.0, 1.0)
    method = f"exact McNemar test, {'two-sided' if two_sided else 'one-sided'}, Clopper–Pearson interval"
    return TestResult(
        float(harmed), share, 0.5, p_value, (low, high), confidence, n, method, "share of flips that harm"
    )


def _count(value: Any, owner: str, name: str, low: int) -> int:
    number = check_number(value, owner=owner, name=name, low=low)
    if number != int(number):
        raise bad_parameter(owner, name, allowed="a whole number", got=value)
    return int(number)


def loss_ratio_test(
    before: Any,
    after: Any,
    *,
    threshold: float = 1.25,
    statistic: str = "mean_ratio",
    confidence: float = 0.95,
    skewness_corrected: bool = False,
    resolution: float = 1e-6,
) -> TestResult:
    """Test whether moving people to comparable places multiplies their loss by more than τ.

    Parameters
    ----------
    before, after : arrays of shape (n,)
        Loss of each person where they stand and after the move, both at least 0.
    threshold : float, default=1.25
        τ ≥ 0; 1.25 is the four-fifths rule turned into a ratio of losses.
    statistic : {"mean_ratio", "ratio_of_means"}, default="mean_ratio"
        The mean of the per-person ratios (Maity et al.), or the ratio of the two mean losses with its variance
        by the delta method. A person whose loss is nearly 0 can dominate the first; a loss of exactly 0 that
        grows has no ratio and raises an error.
    confidence : float, default=0.95
        1 − level of the test, and of the interval.
    skewness_corrected : bool, default=False
        Correct Student's statistic for skewness by Hall's transformation (Hall 1992). Without it the test is
        conservative where ratios are skewed to the right, as they usually are.
    resolution : float, default=1e-6
        Relative differences that floating point and the end of a search leave; an excess over τ below it is
        no evidence.

    Returns
    -------
    TestResult

    Examples
    --------
    >>> result = loss_ratio_test([1.0, 2.0, 1.0, 2.0], [1.0, 2.0, 1.0, 2.0], threshold=1.0)
    >>> result.p_value, result.rejected  # an invariant model
    (1.0, False)
    """
    owner = "loss_ratio_test"
    first, second = _losses(before, after, owner=owner, nonnegative=True)
    threshold = check_number(threshold, owner=owner, name="threshold", low=0.0)
    resolution = check_number(resolution, owner=owner, name="resolution", low=0.0) * max(1.0, threshold)
    if statistic == "mean_ratio":
        gone = (first == 0) & (second > 0)
        if gone.any():
            raise InputError(
                f"{owner}: {int(gone.sum())} people have a loss of exactly 0 before and more after, first at row "
                f"{int(gone.argmax())}: their ratio is infinite. Use statistic='ratio_of_means' or gap_test."
            )
        same = first == second
        scores = np.where(same, 1.0, second / np.where(same, 1.0, first))
        return _mean_test(
            scores, 0.0, threshold, confidence, resolution, skewness_corrected, owner, "mean loss ratio"
        )
    if statistic != "ratio_of_means":
        raise bad_parameter(owner, "statistic", allowed="'mean_ratio' or 'ratio_of_means'", got=statistic)
    if not first.any():
        raise InputError(f"{owner}: every loss before is 0, so there is no ratio of means. Use gap_test.")
    # Delta method: the ratio r of means varies like the mean of (after − r before) / mean(before).
    ratio = float(second.mean() / first.mean())
    scores = (second - ratio * first) / first.mean()
    return _mean_test(
        scores, ratio, threshold, confidence, resolution, skewness_corrected, owner, "ratio of mean losses"
    )


def gap_test(
    before: Any,
    after: Any,
    *,
    threshold: float = 0.0,
    ceiling: float | None = None,
    confidence: float = 0.95,
    skewness_corrected: bool = False,
    resolution: float = 1e-6,
    about: IntervalAbout = "population",
) -> TestResult:
    """Test whether moving people to comparable places adds more than τ to their loss, on average.

    Where no loss falls, as after a search that may leave people where they are, the level holds for few people
    and rare gains too, and the interval is never [0, 0]. Where some fall, Student's t is used, which needs many people
    with changes of a similar size: it covers too seldom where few people have large ones.

    Parameters
    ----------
    before, after : arrays of shape (n,)
        Loss of each person where they stand and after the move.
    threshold : float, default=0
        τ.
    ceiling : float, optional
        M: no gain of anybody can be larger, such as the `upper_bound` of the loss. Without one the upper end of
        the interval is infinite where no loss falls; the test itself does not need it.
    confidence, skewness_corrected, resolution
        As in `loss_ratio_test`; `resolution` is relative to the mean loss. The correction is Student's.
    about : {"given candidates", "population"}, default="population"
        What the interval is about: see `ConfidenceInterval`.

    Returns
    -------
    TestResult

    Examples
    --------
    >>> result = gap_test([0.1, 0.2, 0.3, 0.1], [1.1, 1.3, 1.2, 1.2], threshold=0.2, ceiling=5.0)
    >>> round(result.estimate, 3), round(result.p_value, 4), result.rejected
    (1.025, 0.0015, True)
    """
    owner = "gap_test"
    first, second = _losses(before, after, owner=owner, nonnegative=False)
    threshold = check_number(threshold, owner=owner, name="threshold")
    resolution = check_number(resolution, owner=owner, name="resolution", low=0.0)
    if skewness_corrected:
        scale = resolution * float(np.abs(first).mean())
        found = _mean_test(second - first, 0.0, threshold, confidence, scale, True, owner, "mean gap")
        return replace(found, about=about)
    return gap_test_of_moments(
        Moments.of(first),
        Moments.of(second - first),
        threshold=threshold,
        ceiling=ceiling,
        confidence=confidence,
        resolution=resolution,
        about=about,
    )


def gap_test_of_moments(
    losses: Moments,
    gains: Moments,
    *,
    threshold: float,
    ceiling: float | None = None,
    confidence: float,
    resolution: float = 1e-6,
    about: IntervalAbout = "population",
) -> TestResult:
    """`gap_test` of people who are never in one place."""
    scale = resolution * losses.absolute
    if gains.smallest < 0:
        found = _moments_test(gains, 0.0, threshold, confidence, scale, 0.0, "gap_test", "mean gap")
        return replace(found, about=about)
    confidence = check_confidence(confidence, "gap_test")
    return TestResult(
        statistic=gains.mean - threshold,
        estimate=gains.mean,
        threshold=threshold,
        p_value=mean_at_most_p_value(gains, threshold + scale),
        interval=mean_interval(gains, ceiling, confidence=confidence),
        confidence=confidence,
        n=gains.n,
        method=GAIN_LIMITS,
        quantity="mean gap",
        about=about,
    )


def _mean_test(
    scores: FloatArray,
    shift: float,
    threshold: float,
    confidence: float,
    resolution: float,
    skewness_corrected: bool,
    owner: str,
    quantity: str,
) -> TestResult:
    """Studentised test of shift + mean(scores) ≤ threshold."""
    skew = float(stats.skew(scores, bias=False)) if skewness_corrected and len(scores) > 2 else 0.0
    found = _moments_test(Moments.of(scores), shift, threshold, confidence, resolution, skew, owner, quantity)
    return (
        replace(found, method=f"{found.method} with Hall's skewness correction")
        if skewness_corrected
        else found
    )


def _moments_test(
    scores: Moments,
    shift: float,
    threshold: float,
    confidence: float,
    resolution: float,
    skew: float,
    owner: str,
    quantity: str,
) -> TestResult:
    confidence = check_confidence(confidence, owner)
    n = scores.n
    if n < 2:
        raise InputError(f"{owner}: {n} person is not enough for a variance. Pass at least two.")
    estimate = shift + scores.mean
    error = scores.std / float(np.sqrt(n))
    excess = estimate - threshold - resolution
    if error <= 1e-14 * max(abs(scores.smallest), abs(scores.largest)):
        # No spread at all, as for an exactly invariant model: there is nothing to studentise.
        p_value = 0.0 if excess > 0 else 1.0
        statistic = np.inf if excess > 0 else 0.0
        interval = (estimate, estimate)
    else:
        statistic = _hall(excess / error, skew, n)
        p_value = float(stats.t.sf(statistic, n - 1))
        quantile = float(stats.t.ppf(0.5 + confidence / 2.0, n - 1))
        interval = (
            estimate - error * _hall_inverse(quantile, skew, n),
            estimate - error * _hall_inverse(-quantile, skew, n),
        )
    return TestResult(
        statistic, estimate, threshold, p_value, interval, confidence, n, Message("method.student"), quantity
    )


def _hall(t: float, skew: float, n: int) -> float:
    """Hall's monotone cubic, whose distribution is closer to normal than t's when scores are skewed."""
    a = skew / np.sqrt(n)
    return float(t + a * t * t / 3.0 + a * a * t**3 / 27.0 + a / 6.0)


def _hall_inverse(g: float, skew: float, n: int) -> float:
    a = skew / np.sqrt(n)
    if abs(a) < 1e-9:
        return g
    return float(3.0 / a * (np.cbrt(1.0 + a * (g - a / 6.0)) - 1.0))


def _losses(before: Any, after: Any, *, owner: str, nonnegative: bool) -> tuple[FloatArray, FloatArray]:
    arrays = []
    for name, values in (("before", before), ("after", after)):
        array = np.asarray(to_numpy(values), dtype=float)
        if array.ndim != 1:
            raise bad_parameter(owner, name, allowed="one loss per person", got=f"shape {array.shape}")
        bad = ~np.isfinite(array) | (nonnegative & (array < 0))
        if bad.any():
            row = int(bad.argmax())
            raise InputError(
                f"{owner}: {name!r} has {int(bad.sum())} losses that cannot be used, first {array[row]} at row "
                f"{row}. A search that diverged cannot be tested; fix its domain or its step size."
            )
        arrays.append(array)
    check_same_length(owner, before=arrays[0], after=arrays[1])
    return arrays[0], arrays[1]
