"""Exact tests of decisions that flip between twins: how many do, and which way."""

from __future__ import annotations

from typing import Any

from scipy import stats

from likewise.auditing.claims.outcome_of_test import TestResult
from likewise.core.checks import check_number
from likewise.core.errors import bad_parameter
from likewise.evaluation.proportions import proportion_interval

__all__ = ["direction_test", "flip_share_test"]


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
    confidence = _confidence(confidence, owner)
    p_value = float(stats.binom.sf(flips - 1, n, threshold))
    interval = _clopper_pearson(flips, n, confidence)
    method = "exact binomial test, Clopper–Pearson interval"
    return TestResult(
        float(flips), flips / n, threshold, p_value, interval, confidence, n, method, "share of flips"
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
    confidence = _confidence(confidence, owner)
    n = harmed + favoured
    p_value = 1.0
    if n:
        p_value = float(stats.binom.sf(harmed - 1, n, 0.5))
        if two_sided:
            p_value = min(1.0, 2.0 * float(stats.binom.sf(max(harmed, favoured) - 1, n, 0.5)))
    share = harmed / n if n else 0.5
    interval = _clopper_pearson(harmed, n, confidence) if n else (0.0, 1.0)
    method = f"exact McNemar test, {'two-sided' if two_sided else 'one-sided'}, Clopper–Pearson interval"
    return TestResult(
        float(harmed), share, 0.5, p_value, interval, confidence, n, method, "share of flips that harm"
    )


def _clopper_pearson(count: int, n: int, confidence: float) -> tuple[float, float]:
    low, high = proportion_interval(count, n, confidence=confidence)
    return float(low), float(high)


def _confidence(value: float, owner: str) -> float:
    return check_number(
        value, owner=owner, name="confidence", low=0.0, high=1.0, open_low=True, open_high=True
    )


def _count(value: Any, owner: str, name: str, low: int) -> int:
    number = check_number(value, owner=owner, name=name, low=low)
    if number != int(number):
        raise bad_parameter(owner, name, allowed="a whole number", got=value)
    return int(number)
