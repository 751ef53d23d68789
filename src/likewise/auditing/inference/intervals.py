"""Confidence intervals and the test of what an audit reports of the gap.

The gap at a budget ε is the minimum over λ of λε + E g_λ with the gains g_λ = ℓ^c_λ − ℓ ≥ 0 (paper, equation 4). So
a lower limit of E g_λ at each of several prices λ, each valid by itself, gives a valid lower limit of the minimum:
their smallest, because it is no larger than the one at the minimiser. And λε plus an upper limit of E g_λ bounds
the minimum from above at any one λ.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np
from scipy.optimize import brentq
from scipy.special import betainc

from likewise.auditing.dual.finite_dual import DualCurve
from likewise.auditing.inference.certificate import ConfidenceInterval, IntervalAbout, transport_cost
from likewise.core.checks import FloatArray, IntArray, check_number, check_share
from likewise.core.errors import InputError, bad_parameter
from likewise.core.exact_sum import Moments
from likewise.core.intervals import least_mean
from likewise.core.messages import Message
from likewise.core.randomness import RandomState, numpy_generator

# The distribution of a mean whose weights are drawn from a Dirichlet distribution.


_STEP = 0.1
# The trapezoidal rule in x, with y = sinh x, converges exponentially and reaches 10¹¹ standard deviations.
_GRID = np.arange(0.0, 26.0, _STEP)
_SINH, _COSH = np.sinh(_GRID), np.cosh(_GRID)
_WEIGHT = np.full(len(_GRID), _STEP)
_WEIGHT[0] /= 2.0
_BISECTIONS = 200
_MOST_RISE, _LEAST_BEND = 1.0, 0.01

Complexes = np.ndarray[Any, np.dtype[np.complex128]]


def dirichlet_mean_tails(values: Sequence[float], weights: Sequence[float], q: float) -> tuple[float, float]:
    """P(Σ D_j x_j ≤ q) and P(Σ D_j x_j > q) with D ~ Dirichlet(weights); both keep their digits where small."""
    atoms = [(value - q, weight) for value, weight in zip(values, weights, strict=True) if value != q]
    if not any(place > 0 for place, _ in atoms):
        return 1.0, 0.0
    if not any(place < 0 for place, _ in atoms):
        return 0.0, 1.0
    start = _start(atoms)
    width = 1.0 / math.sqrt(_derivative(atoms, start, 2))
    # Steepest descent leaves the vertical by (third derivative / 6 second derivative) y²: so does this hyperbola.
    bend = _derivative(atoms, start, 3) * width**3 / 3.0
    t, cumulants = _path(atoms, start, width, bend)
    while float(cumulants.real.max()) > float(cumulants[0].real) + _MOST_RISE:
        # Far away the path came near another pole. Along the vertical nothing ever rises.
        bend = bend / 2.0 if abs(bend) > _LEAST_BEND else 0.0
        t, cumulants = _path(atoms, start, width, bend)
    slope = width * (1j * _COSH + bend * _SINH)
    tail = min(abs(float(((np.exp(cumulants) / t * slope).imag * _WEIGHT).sum())) / math.pi, 1.0)
    return (1.0 - tail, tail) if start > 0 else (tail, 1.0 - tail)


def _path(
    atoms: Sequence[tuple[float, float]], start: float, width: float, bend: float
) -> tuple[Complexes, Complexes]:
    """The upper half of a hyperbola, and K along it."""
    t = start + width * (1j * _SINH + bend * (_COSH - 1.0))
    cumulants = np.zeros(len(t), dtype=complex)
    for place, weight in atoms:
        cumulants -= weight * np.log1p(-place * t)
    return t, cumulants


def _start(atoms: Sequence[tuple[float, float]]) -> float:
    """Where the path crosses the real axis: at the saddle point, or beside it where it is near the pole 0."""
    # The root of K'(t) = Σ c a / (1 − a t), which rises from −∞ to ∞ between the poles.
    low, high = 1.0 / min(place for place, _ in atoms), 1.0 / max(place for place, _ in atoms)
    slope = sum(weight * place for place, weight in atoms)
    low, high = (0.0, high) if slope < 0 else (low, 0.0)
    for _ in range(_BISECTIONS):
        middle = (low + high) / 2.0
        if middle in (low, high):
            break
        if sum(weight * place / (1.0 - place * middle) for place, weight in atoms) < 0:
            low = middle
        else:
            high = middle
    saddle = (low + high) / 2.0
    width = 1.0 / math.sqrt(_derivative(atoms, saddle, 2))
    if abs(saddle) >= width:
        return saddle
    end = 1.0 / (max if saddle >= 0 else min)(place for place, _ in atoms)
    return math.copysign(min(width, abs(end) / 2.0), saddle)


def _derivative(atoms: Sequence[tuple[float, float]], t: float, order: int) -> float:
    """Of K: (order − 1)! Σ c (a / (1 − a t))^order."""
    total = math.fsum(weight * (place / (1.0 - place * t)) ** order for place, weight in atoms)
    return math.factorial(order - 1) * total


# Confidence limits of the mean of numbers that are never negative, from a few exact sums of them.


# What results call these limits.
GAIN_LIMITS = Message("method.gaffke")

_ACCURACY = 1e-10


def gain_level(confidence: float, ceiling: float | None) -> float:
    """Level of each limit of an interval: all of the confidence is the lower one's where no ceiling allows an upper one."""
    return confidence if ceiling is None or ceiling == math.inf else 0.5 + confidence / 2.0


def mean_lower_limit(numbers: Moments, *, level: float) -> float:
    """Lower confidence limit of the expectation; holds with probability `level`. No ceiling is needed."""
    alpha = 1.0 - _checked(numbers, level, "mean_lower_limit")
    if not numbers.positives:
        return 0.0
    return least_mean(numbers.total.fraction, numbers.squares.fraction, numbers.n, alpha)


def mean_upper_limit(numbers: Moments, ceiling: float | None, *, level: float) -> float:
    """Upper confidence limit of the expectation; holds with probability `level`."""
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


def mean_interval(numbers: Moments, ceiling: float | None, *, confidence: float) -> tuple[float, float]:
    """Two-sided interval of the expectation; its upper end is open without a ceiling."""
    level = gain_level(confidence, ceiling)
    return mean_lower_limit(numbers, level=level), mean_upper_limit(numbers, ceiling, level=level)


def mean_at_most_p_value(numbers: Moments, threshold: float) -> float:
    """P-value of "the expectation is at most τ": the level at which `mean_lower_limit` is τ."""
    _checked(numbers, 0.5, "mean_at_most_p_value")
    if threshold < 0:
        return 0.0
    if not numbers.positives:
        return 1.0
    total, squares = numbers.total.fraction, numbers.squares.fraction
    # So many people with Σx²/Σx each have the same two sums, the others 0.
    harmed = float(total**2 / squares)
    return float(betainc(harmed, numbers.n - harmed + 1.0, min(1.0, threshold / float(squares / total))))


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
    level = check_share(level, owner=owner, name="level")
    if not numbers.n:
        raise InputError(f"{owner}: the moments are of no numbers. Pass those of at least one.")
    if numbers.smallest < 0:
        raise InputError(
            f"{owner}: the smallest number is {numbers.smallest:g}, but these limits are for numbers that are "
            "never negative. Moving people never lowers a loss where staying is allowed: keep the better of both."
        )
    return level


# Stakes that are tried; a stake of 1 may lose everything to one large number.
_STAKES = np.geomspace(1e-3, 0.95, 40)


def betting_upper_limit(
    values: Any, ceiling: float, *, pilot: Any, level: float = 0.95, planned: int | None = None
) -> float:
    """Upper confidence limit of a mean; holds with probability `level`, for any distribution in [0, M].

    If the mean were q, a gambler who stakes the share b of his capital on every number in turn, and gets back
    1 + b (q − x) / M times it, would gain nothing on average: it has grown to 1/α at the end with probability α at most
    (Markov's inequality; Waudby-Smith and Ramdas 2024, "Estimating means of bounded random variables by betting"). The limit
    is the least q at which it did. It also holds for a sample of a table without replacement, whose numbers are negatively
    associated (Joag-Dev and Proschan 1983). A stake that must not look at the numbers may look at other people's, the
    `pilot`.

    If the values themselves say when to stop, give the number that was `planned`: the stake may not depend on them.
    """
    owner = "betting_upper_limit"
    level = check_share(level, owner=owner, name="level")
    ceiling = check_number(ceiling, owner=owner, name="ceiling", low=0.0)
    x, other = np.asarray(values, dtype=np.float64), np.asarray(pilot, dtype=np.float64)
    if not len(x):
        raise InputError(f"{owner}: 'values' is empty. Pass the numbers of at least one person.")
    if x.min() < 0 or x.max() > ceiling * (1.0 + 1e-9):
        raise InputError(
            f"{owner}: values run from {x.min():g} to {x.max():g}, outside [0, {ceiling:g}]. Pass a ceiling that "
            "holds for everybody, seen or not."
        )
    if ceiling == 0:
        return 0.0
    wanted = float(np.log(1.0 / (1.0 - level)))
    guess = np.clip(other / ceiling, 0.0, 1.0) if len(other) else np.zeros(1)
    limits = [_limit(guess, stake, wanted * len(guess) / (planned or len(x))) for stake in _STAKES]
    return ceiling * _limit(np.minimum(x / ceiling, 1.0), float(_STAKES[int(np.argmin(limits))]), wanted)


def _limit(x: FloatArray, stake: float, wanted: float) -> float:
    """The least q at which the logarithm of the capital is `wanted`; 1 if it never is."""

    def grown(q: float) -> float:
        return float(np.log1p(stake * (q - x)).sum()) - wanted

    # At the mean of the sample the capital cannot have grown (Jensen's inequality).
    low = float(x.mean())
    return 1.0 if low >= 1.0 or grown(1.0) <= 0 else float(brentq(grown, low, 1.0, xtol=1e-12))


# The budgets, relative to ε, whose prices are looked at: sampling moves the minimiser between them.
_BUDGETS = tuple(2.0 ** (power / 2.0) for power in range(-8, 9))


def prices_around(curve: DualCurve, eps: float) -> tuple[float, ...]:
    """The prices λ at which gains should be summarised for an interval of the gap at ε."""
    eps = check_number(eps, owner="prices_around", name="eps", low=0.0)
    if eps == 0:
        return (math.inf,)
    budgets = [0.0, *(eps * share for share in _BUDGETS), math.inf]
    return tuple(float(price) for price in np.unique(curve.lambda_(np.array(budgets))))


def gap_interval(
    gains: Mapping[float, Moments],
    *,
    lambda_: float,
    eps: float,
    ceiling: float | None,
    about: IntervalAbout = "given candidates",
    confidence: float = 0.95,
) -> ConfidenceInterval:
    """Two-sided interval of the expected gap at ε, from summaries of the gains at a few prices.

    Parameters
    ----------
    gains : mapping of float to Moments
        By price λ, the moments of g_λ = ℓ^c_λ − ℓ over the people: at each of `prices_around`.
    lambda_ : float
        λ* of the people; one of the prices. Infinity at ε = 0.
    eps : float
        ε.
    ceiling : float or None
        M: no gain can be larger, whoever comes: the `upper_bound` of the loss. The largest loss of the people audited
        will not do: where 0.3% of people gain much, half of all samples of 200 hold none of them. Without a ceiling
        (None or inf) the upper end is open, and the lower end has all of the confidence.
    about : {"given candidates", "population"}, default="given candidates"
        Say "population" only where a person's candidates do not depend on the other people: own twins, a search per
        person.
    confidence : float, default=0.95
        Of both ends together.

    Returns
    -------
    ConfidenceInterval

    Examples
    --------
    Nobody of 100 was harmed, which leaves room for some who were not seen:

    >>> none = {float("inf"): Moments.of([0.0] * 100)}
    >>> found = gap_interval(none, lambda_=float("inf"), eps=0.0, ceiling=1.0, about="population")
    >>> print(found)
    95% interval 0.000 to 0.036 for the population
    """
    owner = "gap_interval"
    confidence = check_share(confidence, owner=owner, name="confidence")
    check_number(eps, owner=owner, name="eps", low=0.0)
    if not gains:
        raise InputError(f"{owner}: 'gains' is empty. Pass the moments at each of prices_around(curve, eps).")
    if eps > 0 and any(not (0 <= price < math.inf) for price in gains):
        raise bad_parameter(owner, "gains", allowed="prices from 0 to below inf", got=sorted(gains))
    if len({found.n for found in gains.values()}) > 1:
        raise InputError(
            f"{owner}: the moments are of different numbers of people. Summarise the same people."
        )
    if lambda_ not in gains:
        raise bad_parameter(
            owner,
            "lambda_",
            allowed=f"one of the prices {sorted(gains)}",
            got=lambda_,
            remedy="See prices_around.",
        )
    level = gain_level(confidence, ceiling)
    spent, here = transport_cost(lambda_, eps), gains[lambda_]
    high = spent + mean_upper_limit(here, ceiling, level=level)
    estimate = spent + here.mean
    if not math.isinf(high):
        high = max(min(high, ceiling or 0.0), estimate)
    # Of min over λ of λε + E g_λ.
    limits = ((price, mean_lower_limit(found, level=level)) for price, found in gains.items())
    lowest = min(transport_cost(price, eps) + limit for price, limit in limits)
    return ConfidenceInterval(
        estimate=estimate,
        low=min(lowest, estimate),
        high=high,
        confidence=confidence,
        n=here.n,
        quantity="gap",
        about=about,
        method=GAIN_LIMITS,
        notes=(
            Message("assumption.no_ceiling")
            if math.isinf(high)
            else Message("assumption.gain_ceiling", loss=ceiling),
        ),
    )


# Sample splitting: choose λ and the candidates on one half of the people, evaluate the dual on the other.


def halves(n: int, random_state: RandomState = 0) -> tuple[IntArray, IntArray]:
    """Split the positions 0 … n − 1 into two random halves, each in rising order."""
    n = int(check_number(n, owner="halves", name="n", low=4))
    order = numpy_generator(random_state).permutation(n)
    return np.sort(order[: n // 2]), np.sort(order[n // 2 :])


# The test of "the gap is at most τ".


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


# Relative differences that floating point and the end of a search leave: a gain below them is no evidence.
_RESOLUTION = 1e-6


def gap_test(
    losses: Moments,
    gains: Moments,
    *,
    threshold: float,
    ceiling: float | None = None,
    confidence: float,
    about: IntervalAbout = "population",
) -> TestResult:
    """Test whether moving people adds more than τ to their mean loss, from the moments of losses and of gains.

    No gain is negative, since everybody may stay. Then Gaffke's p-value holds for few people and rare gains too; it is the
    exact binomial test if gains have two values. The moves must not be chosen by looking at the gains that are tested
    (Maity, Xue, Yurochkin and Sun 2021, arXiv 2103.16714).
    """
    confidence = check_share(confidence, owner="gap_test", name="confidence")
    return TestResult(
        statistic=gains.mean - threshold,
        estimate=gains.mean,
        threshold=threshold,
        p_value=mean_at_most_p_value(gains, threshold + _RESOLUTION * losses.absolute),
        interval=mean_interval(gains, ceiling, confidence=confidence),
        confidence=confidence,
        n=gains.n,
        method=GAIN_LIMITS,
        quantity="mean gap",
        about=about,
    )
