"""Confidence limits of the mean of numbers that are never negative, from a few exact sums of them.

Gains are zero for most people and large for a few, where Student's t is far from its level: of 20 people with 5%
harmed it covers half the time, and where nobody was seen it says [0, 0]. Gaffke's limits (2005, "Three test
statistics for a nonparametric one-sided hypothesis on the mean of a nonnegative variable"; Learned-Miller and
Thomas 2019, arXiv 1905.06208) extend those of Clopper and Pearson from shares to means: add one number to the
sample, 0 for the lower limit and the ceiling M for the upper one, draw random weights from a flat Dirichlet
distribution and take a quantile of the weighted mean. For numbers that are 0 or M this is Clopper and Pearson's
interval times M, and of n zeros the upper limit is M (1 − α^(1/n)), the rule of three. The lower limit and the
p-value need no ceiling. That the level holds for every distribution is proven for two values and is a conjecture
beyond, for which no counterexample is known (Phan, Thomas and Learned-Miller 2021, arXiv 2106.03163, prove a close
relative).

Here the numbers themselves are gone; what is left is their count, sum, sum of squares, the count of those above 0
and the largest. The weighted mean has the cumulant generating function of Σ_i log(1 + s x_i), whose third
derivative in x has one sign, so among all samples with those sums its tail is largest, in Chernoff's bound, at a
principal representation of the moments (Karlin and Studden 1966): two values, one of them at the end of the range.
The lower limit takes those at 0 and Σx²/Σx, which makes it a quantile of one beta distribution, Clopper and
Pearson's of an effective number (Σx)²/Σx² of harmed people; the upper limit takes those at the largest number seen
and the one below that fits.

Chosen among what benchmarks/interval_coverage.py tries: Student's t covers down to 31%; Clopper–Pearson for the share of
harmed times t for their mean is up to 40% wider for common gains, and rests on t for the few who are harmed; the
empirical Bernstein bound is three times as wide; Gaffke's limits of all numbers are at most 2% narrower than these,
but no few sums hold them. Intervals by betting (Waudby-Smith and Ramdas 2024) depend on the order of the people,
which parts of a table do not have.
"""

from __future__ import annotations

import math
from fractions import Fraction

from scipy.optimize import brentq
from scipy.special import betainc, betaincinv

from likewise.auditing.claims.dirichlet_mean import dirichlet_mean_tails
from likewise.auditing.support.moments import Moments
from likewise.core.checks import check_number
from likewise.core.errors import InputError
from likewise.texts import Said

__all__ = ["GAIN_LIMITS", "gain_level", "mean_at_most_p_value", "mean_lower_limit", "mean_upper_limit"]

# What results call these limits.
GAIN_LIMITS = Said("method.gaffke")

_ACCURACY = 1e-10


def gain_level(confidence: float, ceiling: float | None) -> float:
    """Level of each limit of an interval: all of the confidence is the lower one's where no ceiling allows an upper one.

    Examples
    --------
    >>> gain_level(0.95, 27.6), gain_level(0.95, None)
    (0.975, 0.95)
    """
    return confidence if ceiling is None or ceiling == math.inf else 0.5 + confidence / 2.0


def mean_lower_limit(numbers: Moments, *, level: float) -> float:
    """Lower confidence limit of the expectation; holds with probability `level`. No ceiling is needed.

    Parameters
    ----------
    numbers : Moments
        Of independent draws, none below 0.
    level : float in (0, 1)
        One-sided.

    Returns
    -------
    float
        At least 0.

    Examples
    --------
    >>> round(mean_lower_limit(Moments.of([0.0] * 17 + [1.0] * 3), level=0.975), 6)  # Clopper and Pearson's
    0.032071
    """
    alpha = 1.0 - _checked(numbers, level, "mean_lower_limit")
    if not numbers.positives:
        return 0.0
    size, harmed = _effective(numbers)
    return size * float(betaincinv(harmed, numbers.n - harmed + 1.0, alpha))


def mean_upper_limit(numbers: Moments, ceiling: float | None, *, level: float) -> float:
    """Upper confidence limit of the expectation; holds with probability `level`.

    Parameters
    ----------
    numbers : Moments
        Of independent draws, none below 0.
    ceiling : float or None
        M: no number can be larger, seen or not, such as the `upper_bound` of the loss. Nothing that was measured on the
        sample is one. Without one (None or inf) nothing bounds what was not seen.
    level : float in (0, 1)
        One-sided.

    Returns
    -------
    float
        At most M; inf without a ceiling.

    Examples
    --------
    >>> round(mean_upper_limit(Moments.of([0.0] * 100), 2.0, level=0.95), 4)  # the rule of three: 2 · 3 / 100
    0.059
    >>> mean_upper_limit(Moments.of([0.0] * 100), None, level=0.95)
    inf
    """
    owner = "mean_upper_limit"
    alpha = 1.0 - _checked(numbers, level, owner)
    if ceiling is None or ceiling == math.inf:
        return math.inf
    ceiling = check_number(ceiling, owner=owner, name="ceiling", low=0.0)
    if numbers.largest > ceiling * (1.0 + 1e-9):
        raise InputError(
            f"{owner}: a number of {numbers.largest:g} exceeds the 'ceiling' of {ceiling:g}. Pass one that holds "
            "for everybody, such as an upper_bound of the loss that no row can exceed."
        )
    if ceiling == 0.0:
        return 0.0
    values, weights = _upper_atoms(numbers)
    values, weights = [*values, ceiling], [*weights, 1.0]

    def missing(q: float) -> float:
        return dirichlet_mean_tails(values, weights, q)[1] - alpha

    mean = math.fsum(value * weight for value, weight in zip(values, weights, strict=True)) / (numbers.n + 1)
    low, step = 0.0, max(mean, ceiling / (numbers.n + 1)) / math.sqrt(numbers.n)
    high = min(mean + step, ceiling)
    while high < ceiling and missing(high) > 0:
        low, step = high, 2.0 * step
        high = min(high + step, ceiling)
    return float(brentq(missing, low, high, xtol=_ACCURACY * high, rtol=_ACCURACY))


def mean_at_most_p_value(numbers: Moments, threshold: float) -> float:
    """P-value of "the expectation is at most τ": the level at which `mean_lower_limit` is τ.

    Parameters
    ----------
    numbers : Moments
        Of independent draws, none below 0.
    threshold : float
        τ.

    Returns
    -------
    float

    Examples
    --------
    Of numbers that are 0 or 1 it is the exact binomial test:

    >>> from scipy import stats
    >>> p_value = mean_at_most_p_value(Moments.of([0.0] * 17 + [1.0] * 3), 0.05)
    >>> bool(abs(p_value - stats.binomtest(3, 20, 0.05, alternative="greater").pvalue) < 1e-12)
    True
    """
    _checked(numbers, 0.5, "mean_at_most_p_value")
    if threshold < 0:
        return 0.0
    if not numbers.positives:
        return 1.0
    size, harmed = _effective(numbers)
    return float(betainc(harmed, numbers.n - harmed + 1.0, min(1.0, threshold / size)))


def _effective(numbers: Moments) -> tuple[float, float]:
    """Σx²/Σx and (Σx)²/Σx²: so many people with so much each have the same two sums, the others 0."""
    total, squares = numbers.total.fraction, numbers.squares.fraction
    return float(squares / total), float(total**2 / squares)


def _upper_atoms(numbers: Moments) -> tuple[list[float], list[float]]:
    """The zeros, and two values for the others: the largest, and the one below it that keeps both sums."""
    others, largest = numbers.positives, numbers.largest
    atoms = [(0.0, float(numbers.n - others))]
    if others:
        high = Fraction(largest)
        # Distances below the largest: δ = b − x, by their sum and the sum of their squares.
        below = others * high - numbers.total.fraction
        squared = others * high**2 - 2 * high * numbers.total.fraction + numbers.squares.fraction
        share = below**2 / squared if squared else Fraction(0)
        if share:
            atoms.append((max(0.0, float(high - squared / below)), float(share)))
        if others > share:
            atoms.append((largest, float(others - share)))
    kept = [(value, weight) for value, weight in atoms if weight > 0]
    return [value for value, _ in kept], [weight for _, weight in kept]


def _checked(numbers: Moments, level: float, owner: str) -> float:
    level = check_number(level, owner=owner, name="level", low=0.0, high=1.0, open_low=True, open_high=True)
    if not numbers.n:
        raise InputError(f"{owner}: there are no numbers. Pass the moments of at least one.")
    if numbers.smallest < 0:
        raise InputError(
            f"{owner}: the smallest number is {numbers.smallest:g}, but these limits are for numbers that are "
            "never negative. Moving people never lowers a loss where staying is allowed: keep the better of both."
        )
    return level
