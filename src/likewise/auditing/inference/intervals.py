"""Confidence intervals of what an audit reports: the gap, given its candidates or of the population, and shares.

The gap at a budget ε is the minimum over λ of λε + E g_λ with the gains g_λ = ℓ^c_λ − ℓ ≥ 0 (paper, equation 4). So
a lower limit of E g_λ at each of several prices λ, each valid by itself, gives a valid lower limit of the minimum:
their smallest, because it is no larger than the one at the minimiser. And λε plus an upper limit of E g_λ bounds
the minimum from above at any one λ.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from likewise.auditing.dual.finite_dual import DualCurve, dual_curve
from likewise.auditing.dual.frontier import Floats, Frontier, steps_of
from likewise.auditing.dual.moments import Moments
from likewise.auditing.inference.certificate import (
    Bound,
    ConfidenceInterval,
    IntervalAbout,
    finite_sample_bound,
    transport_cost,
)
from likewise.auditing.inference.limits import (
    GAIN_LIMITS,
    check_confidence,
    gain_level,
    mean_lower_limit,
    mean_upper_limit,
)
from likewise.core.checks import FloatArray, IntArray, check_number, to_numpy
from likewise.core.errors import InputError, bad_parameter
from likewise.core.intervals import proportion_interval
from likewise.core.messages import Message
from likewise.core.randomness import RandomState, numpy_generator

_NO_BOUND = Message("assumption.no_bound")
# The budgets, relative to ε, whose prices are looked at: sampling moves the minimiser between them.
_BUDGETS = tuple(2.0 ** (power / 2.0) for power in range(-8, 9))


def prices_around(curve: DualCurve, eps: float) -> tuple[float, ...]:
    """The prices λ at which gains should be summarised for an interval of the gap at ε."""
    eps = check_number(eps, owner="prices_around", name="eps", low=0.0)
    if eps == 0:
        return (math.inf,)
    budgets = [0.0, *(eps * share for share in _BUDGETS), math.inf]
    return tuple(float(price) for price in np.unique(curve.lambda_(np.array(budgets))))


def frontier_gains(frontier: Frontier, lambda_: float) -> Floats:
    """Return g_λ = ℓ^c_λ − ℓ of each row, shape (n,); λ = inf leaves the moves that cost nothing."""
    if lambda_ == math.inf:
        corner = frontier.indptr[:-1] + steps_of(frontier).taken(math.inf, frontier.n_rows)
        return np.asarray(frontier.loss[corner] - frontier.base_loss)
    return np.asarray(frontier.conjugate(lambda_) - frontier.base_loss)


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
        person. Else see `population_interval`.
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
    confidence = check_confidence(confidence, owner)
    _check_prices(gains, eps, owner)
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
    return ConfidenceInterval(
        estimate=estimate,
        low=min(_lowest(gains, eps, level), estimate),
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


def population_interval(
    gains: Mapping[float, Moments], *, eps: float, bound: Bound | None = None, confidence: float = 0.95
) -> ConfidenceInterval:
    """Interval of the population's gap from candidates that these people did not choose.

    What people gain among any fixed candidates is at most their gain among all, so a lower limit of the one holds for
    the other. Nothing about the candidates says how much more there is: the upper end is that of a `Bound`, or open.

    Parameters
    ----------
    gains : mapping of float to Moments
        By price λ, the moments of g_λ over people who are not among the candidates and did not choose the prices: a
        split (`split_interval`), or everybody but a pool that was drawn apart.
    eps : float
        ε.
    bound : Bound, optional
        Of the population's gap, at a higher confidence than this interval's: what is left is for the lower end.
    confidence : float, default=0.95
        Of the interval; all of it goes to the lower end where there is no bound.

    Returns
    -------
    ConfidenceInterval
        `estimate` is the gap of these people among these candidates.

    Examples
    --------
    >>> gains = {0.0: Moments.of([0.4, 0.6] * 50), 1.0: Moments.of([0.3, 0.5] * 50)}
    >>> print(population_interval(gains, eps=0.1))
    at least 0.475 (95% confidence) for the population, no upper end
    """
    owner = "population_interval"
    confidence = check_confidence(confidence, owner)
    _check_prices(gains, eps, owner)
    level, high = confidence, math.inf
    if bound is not None:
        level, high = _with_bound(bound, eps, confidence), bound.of("gap")
    estimate = min(transport_cost(price, eps) + found.mean for price, found in gains.items())
    return ConfidenceInterval(
        estimate=estimate,
        low=min(_lowest(gains, eps, level), estimate),
        high=high,
        confidence=confidence,
        n=next(iter(gains.values())).n,
        quantity="gap",
        about="population",
        method=f"{GAIN_LIMITS}, candidates of other people" + ("" if bound is None else f"; {bound.method}"),
        notes=(_NO_BOUND,) if bound is None else bound.assumptions,
    )


def share_interval(
    count: int, n: int, *, about: IntervalAbout = "population", confidence: float = 0.95
) -> ConfidenceInterval:
    """Exact (Clopper–Pearson) interval of a share of people, such as those whose twin is decided differently.

    Parameters
    ----------
    count, n : int
        So many of n people.
    about : {"given candidates", "population"}, default="population"
        As in `gap_interval`.
    confidence : float, default=0.95

    Returns
    -------
    ConfidenceInterval

    Examples
    --------
    >>> print(share_interval(0, 100))
    95% interval 0.000 to 0.036 for the population
    """
    low, high = proportion_interval(count, n, confidence=check_confidence(confidence, "share_interval"))
    return ConfidenceInterval(count / n, low, high, confidence, n, "share", about, "Clopper–Pearson")


def _lowest(gains: Mapping[float, Moments], eps: float, level: float) -> float:
    """Lower limit of min over λ of λε + E g_λ."""
    return min(
        transport_cost(price, eps) + mean_lower_limit(found, level=level) for price, found in gains.items()
    )


def _with_bound(bound: Bound, eps: float, confidence: float) -> float:
    """Level left for the lower end beside a bound from above (Bonferroni)."""
    owner = "population_interval"
    if bound.about != "population" or bound.eps != eps:
        raise bad_parameter(
            owner,
            "bound",
            allowed=f"a Bound of the population at eps={eps:g}",
            got=f"one of the {bound.about} at eps={bound.eps:g}",
        )
    level = 1.0 + confidence - bound.confidence
    if level >= 1.0:
        raise bad_parameter(
            owner,
            "bound",
            allowed=f"a Bound of more than {confidence:.4g} confidence",
            got=bound.confidence,
            remedy=f"Make it at {(1.0 + confidence) / 2.0:.4g}, which leaves as much for the lower end.",
        )
    return level


def _check_prices(gains: Mapping[float, Moments], eps: float, owner: str) -> None:
    check_number(eps, owner=owner, name="eps", low=0.0)
    if not gains:
        raise InputError(f"{owner}: 'gains' is empty. Pass the moments at each of prices_around(curve, eps).")
    if eps > 0 and any(not (0 <= price < math.inf) for price in gains):
        raise bad_parameter(owner, "gains", allowed="prices from 0 to below inf", got=sorted(gains))
    if len({found.n for found in gains.values()}) > 1:
        raise InputError(
            f"{owner}: the moments are of different numbers of people. Summarise the same people."
        )


# Sample splitting: choose λ and the candidates on one half of the people, evaluate the dual on the other.


def halves(n: int, random_state: RandomState = 0) -> tuple[IntArray, IntArray]:
    """Split the positions 0 … n − 1 into two random halves, each in rising order."""
    n = int(check_number(n, owner="halves", name="n", low=4))
    order = numpy_generator(random_state).permutation(n)
    return np.sort(order[: n // 2]), np.sort(order[n // 2 :])


def split_bound(
    n: int,
    *,
    choose: Callable[[IntArray], float],
    transform: Callable[[IntArray, float], FloatArray],
    losses: Any,
    eps: float,
    upper: float,
    confidence: float = 0.95,
    method: str = "empirical_bernstein",
    random_state: RandomState = 0,
) -> Bound:
    """Bound the population's V(ε) with λ chosen on one half of n people and evaluated on the other."""
    first, second = halves(n, random_state)
    lam = float(choose(first))
    return finite_sample_bound(
        transform(second, lam),
        lambda_=lam,
        eps=eps,
        upper=upper,
        losses=np.asarray(to_numpy(losses), dtype=float)[second],
        confidence=confidence,
        method=method,
    )


def split_interval(
    n: int,
    *,
    search: Callable[[IntArray, IntArray], Frontier],
    eps: float,
    bound: Bound | None = None,
    confidence: float = 0.95,
    random_state: RandomState = 0,
) -> ConfidenceInterval:
    """Interval of the population's gap at ε: one half of n people are the candidates of the other.

    An audit whose candidates are the audited people says nothing two-sided about the population, because more people
    bring more candidates. Moved among the people of the first half alone, those of the second are independent
    draws, and what they gain is a lower bound of what they could.

    Parameters
    ----------
    n : int
        Number of people, at least 4.
    search : callable
        Positions of people, and of those whose rows (and twins) are the candidates → the frontier of the people. Own
        twins may be candidates too.
    eps : float
        ε.
    bound, confidence
        As in `population_interval`.
    random_state : int, Generator, RandomState or None
        Which split.

    Returns
    -------
    ConfidenceInterval
        About the population, from the second half.

    Examples
    --------
    Loss = place on a line, and anybody may be moved to anybody's place:

    >>> place = np.random.default_rng(0).uniform(size=200)
    >>> def search(people, pool):
    ...     row, to = (part.ravel() for part in np.meshgrid(np.arange(len(people)), pool, indexing="ij"))
    ...     distance = (place[people[row]] - place[to]) ** 2
    ...     return Frontier.from_points(
    ...         base_loss=place[people], row=row, squared_distance=distance, loss=place[to], candidate=to
    ...     )
    >>> found = split_interval(200, search=search, eps=0.01)
    >>> found.n, 0.05 < found.low < found.estimate < 0.1, found.high  # every step of 0.1 gains as much
    (100, True, inf)
    """
    first, second = halves(n, random_state)
    prices = prices_around(dual_curve(search(first, first)), eps)
    there = search(second, first)
    gains = {price: Moments.of(frontier_gains(there, price)) for price in prices}
    return population_interval(gains, eps=eps, bound=bound, confidence=confidence)
