"""Sample splitting: choose λ and the candidates on one half of the people, evaluate the dual on the other."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from likewise.auditing.claims.certificate import Bound, finite_sample_bound
from likewise.auditing.claims.confidence_interval import ConfidenceInterval
from likewise.auditing.claims.intervals import frontier_gains, population_interval, prices_around
from likewise.auditing.support.finite_dual import dual_curve
from likewise.auditing.support.frontier import Frontier
from likewise.auditing.support.moments import Moments
from likewise.core.arrays import FloatArray, to_numpy
from likewise.core.checks import check_number
from likewise.core.randomness import RandomState, numpy_generator

__all__ = ["IntArray", "halves", "split_bound", "split_interval"]

IntArray = np.ndarray[Any, np.dtype[np.intp]]


def halves(n: int, random_state: RandomState = 0) -> tuple[IntArray, IntArray]:
    """Split the positions 0 … n − 1 into two random halves, each in rising order.

    Parameters
    ----------
    n : int
        At least 4, so that both halves have a variance.
    random_state : int, Generator, RandomState or None
        Which split.

    Returns
    -------
    choose, evaluate : int arrays
        The second is the longer one where n is odd.

    Examples
    --------
    >>> first, second = halves(5)
    >>> sorted([*first.tolist(), *second.tolist()])
    [0, 1, 2, 3, 4]
    """
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
    """Bound the population's V(ε) with λ chosen on one half of n people and evaluated on the other.

    Parameters
    ----------
    n : int
        Number of people.
    choose : callable
        Positions of people → λ. Any rule is valid; a good one minimises the dual.
    transform : callable
        Positions of people and λ → their ℓ^c_λ, exact or over-estimated.
    losses : array of shape (n,)
        Losses of the people as they are.
    eps, upper, confidence, method
        As in `finite_sample_bound`.
    random_state : int, Generator, RandomState or None
        Which split.

    Returns
    -------
    Bound

    Examples
    --------
    >>> base = np.full(2000, 0.1)
    >>> shown = split_bound(
    ...     2000, choose=lambda rows: 0.5, transform=lambda rows, lam: base[rows] + 0.1,
    ...     losses=base, eps=0.1, upper=1.0,
    ... )
    >>> shown.n, round(shown.value, 3), round(shown.gap, 3)
    (1000, 0.259, 0.159)
    """
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
