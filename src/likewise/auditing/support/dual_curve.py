"""The exact curve ε ↦ V(ε): concave, non-decreasing, linear between its breakpoints."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from likewise.auditing.support.frontier import Floats
from likewise.core.errors import bad_parameter

__all__ = ["DualCurve", "check_eps"]


@dataclass(frozen=True, eq=False)
class DualCurve:
    """The exact curve ε ↦ V(ε): concave, non-decreasing, linear between its breakpoints.

    Parameters
    ----------
    base_loss : float
        Mean loss of the rows where they stand.
    eps : float array of shape (k + 1,)
        Breakpoints, from 0 to the budget beyond which nothing more is gained.
    values : float array of shape (k + 1,)
        V at the breakpoints. ``values[0] - base_loss`` is pure unfairness: moves that cost nothing.
    slopes : float array of shape (k,)
        λ* between the breakpoints, falling.

    Examples
    --------
    >>> from likewise.auditing.support.finite_dual import dual_curve
    >>> from likewise.auditing.support.frontier import Frontier
    >>> frontier = Frontier.from_points(
    ...     base_loss=[0.0, 0.0], row=[0, 1], squared_distance=[1.0, 1.0], loss=[3.0, 1.0], candidate=[0, 1]
    ... )
    >>> curve = dual_curve(frontier)
    >>> curve.eps, curve.values
    (array([0. , 0.5, 1. ]), array([0. , 1.5, 2. ]))
    >>> curve.value(0.25), curve.lambda_(0.25), curve.eps_for_gap(1.75)
    (0.75, 3.0, 0.75)
    """

    base_loss: float
    eps: Floats
    values: Floats
    slopes: Floats

    def value(self, eps: Any) -> Any:
        """Return V(ε) of one ε or of an array of them; ε = inf is allowed."""
        budget = check_eps(eps, "DualCurve.value")
        return _like_input(np.interp(budget, self.eps, self.values), eps)

    def gap(self, eps: Any) -> Any:
        """Return V(ε) − mean loss: what the worst case adds at budget ε."""
        budget = check_eps(eps, "DualCurve.gap")
        return _like_input(np.interp(budget, self.eps, self.values) - self.base_loss, eps)

    def lambda_(self, eps: Any) -> Any:
        """Return λ*: the smallest minimiser of the dual at ε, which is the slope of V to the right of ε."""
        budget = check_eps(eps, "DualCurve.lambda_")
        index = np.searchsorted(self.eps, budget, side="right") - 1
        return _like_input(np.append(self.slopes, 0.0)[index], eps)

    def eps_for_gap(self, delta: float) -> float:
        """Return the smallest budget ε whose gap reaches `delta`; inf where no budget does.

        Examples
        --------
        >>> from likewise.auditing.support.finite_dual import dual_curve
        >>> from likewise.auditing.support.frontier import Frontier
        >>> still = Frontier.from_points(
        ...     base_loss=[1.0], row=[], squared_distance=[], loss=[], candidate=[]
        ... )
        >>> dual_curve(still).eps_for_gap(0.1)
        inf
        """
        gaps = self.values - self.base_loss
        if not np.isfinite(delta):
            raise bad_parameter("DualCurve.eps_for_gap", "delta", allowed="a finite number", got=delta)
        k = int(np.searchsorted(gaps, delta, side="left"))
        if k == 0:
            return 0.0
        if k == len(gaps):
            return float("inf")
        return float(min(self.eps[k - 1] + (delta - gaps[k - 1]) / self.slopes[k - 1], self.eps[k]))

    def thin(self, n_points: int = 200) -> DualCurve:
        """Return a curve through at most `n_points` of the breakpoints, for plots and files.

        The points are spread evenly along the curve, and the first and the last are kept. Between them the
        thinned curve is a chord, so it never lies above V.

        Examples
        --------
        >>> eps = np.linspace(0.0, 1.0, 1001)
        >>> curve = DualCurve(0.0, eps, np.sqrt(eps), np.diff(np.sqrt(eps)) / np.diff(eps))
        >>> len(curve.thin(50).eps)
        50
        """
        if n_points < 2:
            raise bad_parameter("DualCurve.thin", "n_points", allowed="at least 2", got=n_points)
        if len(self.eps) <= n_points:
            return self
        length = self.eps / self.eps[-1] + (self.values - self.values[0]) / np.ptp(self.values)
        marks = np.linspace(0.0, length[-1], n_points)
        index = np.unique(np.clip(np.searchsorted(length, marks), 0, len(length) - 1))
        eps, values = self.eps[index], self.values[index]
        return DualCurve(self.base_loss, eps, values, np.diff(values) / np.diff(eps))


def check_eps(eps: Any, owner: str) -> Floats:
    """Return budgets as an array, or raise an error where one is negative or no number."""
    try:
        budget = np.asarray(eps, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise bad_parameter(owner, "eps", allowed="a number >= 0", got=eps) from error
    if not (budget >= 0).all():
        raise bad_parameter(owner, "eps", allowed="a number >= 0 (inf is allowed)", got=eps)
    return budget


def _like_input(result: Any, given: Any) -> Any:
    return float(result) if np.ndim(given) == 0 else np.asarray(result)
