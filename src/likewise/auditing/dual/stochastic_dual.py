"""Algorithm 1 of the paper: the dual over λ by stochastic steps, for any search of the worst case.

`solve_dual` is exact and needs the frontier of every row. Algorithm 1 needs only a search at one λ for a
mini-batch of rows, so it also serves searches that cannot solve every λ at once, and rows that arrive in parts.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from likewise.core.checks import FloatArray, IntArray, check_number, to_numpy
from likewise.core.errors import NotConvergedError, bad_parameter
from likewise.core.randomness import RandomState, numpy_generator

WorstCaseSearch = Callable[[IntArray, float], tuple[Any, Any]]


@dataclass(frozen=True, eq=False)
class Algorithm1Result:
    """What Algorithm 1 found."""

    lambda_: float
    value: float
    transport: float
    history: FloatArray
    converged: bool

    @property
    def steps(self) -> int:
        """Number of steps taken."""
        return len(self.history) - 1


def algorithm1(
    search: WorstCaseSearch,
    n_rows: int,
    *,
    eps: float,
    lam: float = 1.0,
    step_size: float | Callable[[int], float] | None = None,
    batch_size: int = 64,
    max_steps: int = 2000,
    tol: float = 1e-3,
    random_state: RandomState = None,
) -> Algorithm1Result:
    """Minimise the dual over λ by the stochastic gradient method of the paper (Algorithm 1).

    Parameters
    ----------
    search : callable
        ``search(rows, lam)`` returns, for an int array of rows, the loss and the squared fair distance of
        each row's worst case ``argmax_x loss(x) − λ d²(x, x_i)``.
    n_rows : int
        How many rows there are to draw from.
    eps : float
        Budget ε ≥ 0.
    lam : float, default=1.0
        Starting point λ₁ > 0.
    step_size : float, callable or None
        The paper's α_t: a number α for α/√t, a callable of t = 1, 2, … for anything else. None scales the
        steps by the gradients seen so far, ``α_t = λ₁ / √(g₁² + … + g_t²)``, which needs no tuning.
    batch_size : int, default=64
        Rows per step, drawn with replacement.
    max_steps : int, default=2000
        When to stop at the latest.
    tol : float, default=1e-3
        Stop once the mean of λ over the second half of the steps changes by less than this, relative to
        itself, while the number of steps grows by half.
    random_state : int, Generator or None
        For the draws.

    Returns
    -------
    Algorithm1Result

    Examples
    --------
    >>> def search(rows, lam):  # one twin: loss 3 at squared distance 1
    ...     go = np.full(len(rows), 3.0 - lam > 0.0)
    ...     return 3.0 * go, 1.0 * go
    >>> found = algorithm1(search, 10, eps=0.5, random_state=0)
    >>> round(found.lambda_, 1), round(found.value, 1)
    (3.0, 1.5)
    """
    eps = check_number(eps, owner="algorithm1", name="eps", low=0.0)
    lam = check_number(lam, owner="algorithm1", name="lam", low=0.0, open_low=True)
    for name, number in (("n_rows", n_rows), ("batch_size", batch_size), ("max_steps", max_steps)):
        check_number(number, owner="algorithm1", name=name, low=1)
    step = _step_rule(step_size, lam)
    generator = numpy_generator(random_state)
    history = np.full(max_steps + 1, np.nan)
    history[0] = lam
    settled, check_at, last = False, 64, np.nan
    for t in range(1, max_steps + 1):
        rows = generator.integers(n_rows, size=batch_size)
        distance = _searched(search, rows, lam)[1]
        gradient = eps - float(distance.mean())
        # Algorithm 1, line 4: λ ← max(0, λ − α_t (ε − mean d²)).
        lam = max(0.0, lam - step(t, gradient) * gradient)
        history[t] = lam
        if t == check_at:
            mean = float(history[t // 2 : t + 1].mean())
            settled = abs(mean - last) <= tol * abs(mean)
            check_at, last = t + max(t // 2, 1), mean
            if settled:
                break
    history = history[: t + 1]
    average = float(history[t // 2 :].mean())
    loss, distance = _searched(search, np.arange(n_rows), average)
    value = average * eps + float(np.mean(loss - average * distance))
    return Algorithm1Result(average, value, float(distance.mean()), history, settled)


def _step_rule(step_size: float | Callable[[int], float] | None, lam: float) -> Callable[[int, float], float]:
    if callable(step_size):
        given = step_size
        return lambda t, gradient: check_number(
            given(t), owner="algorithm1", name="step_size", low=0.0, open_low=True
        )
    if step_size is not None:
        alpha = check_number(step_size, owner="algorithm1", name="step_size", low=0.0, open_low=True)
        return lambda t, gradient: alpha / float(np.sqrt(t))
    seen = 0.0

    def scaled(t: int, gradient: float) -> float:
        nonlocal seen
        seen += gradient * gradient
        return lam / float(np.sqrt(seen)) if seen > 0 else lam

    return scaled


def _searched(search: WorstCaseSearch, rows: IntArray, lam: float) -> tuple[FloatArray, FloatArray]:
    loss, distance = (to_numpy(part).astype(np.float64) for part in search(rows, lam))
    if loss.shape != rows.shape or distance.shape != rows.shape:
        raise bad_parameter(
            "algorithm1",
            "search",
            allowed=f"a function that returns two arrays of shape {rows.shape}",
            got=f"shapes {loss.shape} and {distance.shape}",
        )
    if not (np.isfinite(loss).all() and np.isfinite(distance).all()):
        raise NotConvergedError(
            f"algorithm1: the search returned losses or distances that are not finite at λ = {lam:g}, so no "
            "verdict can rest on it. Bound the search by a domain, or lower its step size."
        )
    return loss, distance
