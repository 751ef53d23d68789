"""Sample splitting: choose λ on one half of the people, evaluate the dual on the other."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from likewise.auditing.claims.certificate import Bound, finite_sample_bound
from likewise.core.arrays import FloatArray, to_numpy
from likewise.core.checks import check_number
from likewise.core.randomness import RandomState, numpy_generator

__all__ = ["IntArray", "halves", "split_bound"]

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
        lam=lam,
        eps=eps,
        upper=upper,
        losses=np.asarray(to_numpy(losses), dtype=float)[second],
        confidence=confidence,
        method=method,
    )
