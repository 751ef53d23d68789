"""The auditor's dual (paper, equation 4) on a finite support, solved exactly and for every ε at once.

On a `Frontier` the dual ``V(ε) = min_λ λε + mean_i max_j (loss_ij − λ d²_ij)`` is piecewise linear and convex
in λ. Its primal is a fractional knapsack: every step from one corner of a row to the next costs transport and
gains loss, the gain per transport falls along a row, and the best use of the budget ε takes the steps by
falling gain per transport. One sort therefore gives V(ε) for all ε, the λ* of each and the worst-case map.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from likewise.auditing.support.binned_steps import BinnedSteps
from likewise.auditing.support.dual_curve import DualCurve, check_eps
from likewise.auditing.support.frontier import Floats, Frontier, Ints
from likewise.auditing.support.frontier_steps import steps_of
from likewise.core.errors import InputError, bad_parameter

__all__ = ["DualSolution", "dual_curve", "dual_objective", "solve_dual"]


@dataclass(frozen=True, eq=False)
class DualSolution:
    """The worst case at one budget ε: its value, λ*, and where every row goes.

    Parameters
    ----------
    eps : float
        The budget asked for.
    value, base_loss : float
        V(ε) and the mean loss of the rows where they stand.
    lambda_ : float
        λ*, the smallest minimiser of the dual.
    transport : float
        Mean squared fair distance actually spent; ε, unless the support has nothing more to gain.
    corner : int array of shape (n,)
        Index into the frontier's arrays: where each row goes as a whole (the unfair map).
    split_rows : int array
        Rows that go on to their next corner with the share `split_fraction` of their mass only, because the
        budget ends there. Usually one; several where rows gain exactly the same per transport.
    split_fraction : float
        In [0, 1).

    Examples
    --------
    >>> frontier = Frontier.from_points(
    ...     base_loss=[0.0, 0.0], row=[0, 1], squared_distance=[1.0, 1.0], loss=[3.0, 1.0], candidate=[0, 1]
    ... )
    >>> best = solve_dual(frontier, 0.75)
    >>> best.value, best.lambda_, frontier.candidate[best.corner], best.split_rows, best.split_fraction
    (1.75, 1.0, array([ 0, -1]), array([1]), 0.5)
    """

    eps: float
    value: float
    base_loss: float
    lambda_: float
    transport: float
    corner: Ints
    split_rows: Ints
    split_fraction: float

    @property
    def gap(self) -> float:
        """V(ε) − mean loss."""
        return self.value - self.base_loss


def dual_curve(frontier: Frontier, *, sample_weight: Any = None) -> DualCurve:
    """Return the exact curve ε ↦ V(ε) over the frontier's support.

    Parameters
    ----------
    frontier : Frontier
        Of n rows.
    sample_weight : array of shape (n,), optional
        Mass of each row; scaled to sum to 1. Default: equal.

    Returns
    -------
    DualCurve

    Examples
    --------
    >>> frontier = Frontier.from_points(
    ...     base_loss=[1.0], row=[0, 0], squared_distance=[0.0, 4.0], loss=[2.0, 3.0], candidate=[0, 1]
    ... )
    >>> dual_curve(frontier).gap([0.0, 2.0, np.inf])
    array([1. , 1.5, 2. ])
    """
    weight = _check_weight(sample_weight, frontier.n_rows)
    steps = steps_of(frontier, weight)
    free = float(steps.gain[np.isinf(steps.slope)].sum())
    return BinnedSteps.of(steps).curve(n=1, base=float(weight @ frontier.base_loss), free=free)


def solve_dual(
    frontier: Frontier, eps: float, *, sample_weight: Any = None, curve: DualCurve | None = None
) -> DualSolution:
    """Solve the auditor's problem exactly at one budget (paper, equations 3–6).

    Parameters
    ----------
    frontier : Frontier
        Of n rows.
    eps : float
        Budget ε ≥ 0 of mean squared fair distance; 0 allows only moves that cost nothing, inf any move.
    sample_weight : array of shape (n,), optional
        Mass of each row; scaled to sum to 1. Default: equal.
    curve : DualCurve, optional
        The `dual_curve` of the same frontier and weights, where it is known already.

    Returns
    -------
    DualSolution

    Examples
    --------
    >>> frontier = Frontier.from_points(
    ...     base_loss=[1.0], row=[0, 0], squared_distance=[0.0, 4.0], loss=[2.0, 3.0], candidate=[0, 1]
    ... )
    >>> solve_dual(frontier, 0.0).gap, solve_dual(frontier, float("inf")).transport
    (1.0, 4.0)
    """
    budget = float(check_eps(eps, "solve_dual"))
    curve = dual_curve(frontier, sample_weight=sample_weight) if curve is None else curve
    steps = steps_of(frontier, _check_weight(sample_weight, frontier.n_rows))
    lam = float(curve.lambda_(budget))
    taken = steps.goes(lam)
    corner = frontier.indptr[:-1] + steps.taken(lam, frontier.n_rows)
    spent = float(np.sum(steps.transport[taken]))
    edge = np.flatnonzero((steps.slope == lam) & ~taken)
    room, width = budget - spent, float(np.sum(steps.transport[edge]))
    fraction = float(np.clip(room / width, 0.0, 1.0)) if width > 0 else 0.0
    # Sums in another order may leave a crumb of budget; a share of that size is rounding, not a split.
    fraction = 0.0 if fraction < 1e-12 else fraction
    return DualSolution(
        eps=budget,
        value=float(curve.value(budget)),
        base_loss=curve.base_loss,
        lambda_=lam,
        transport=spent + fraction * width,
        corner=corner.astype(np.int64),
        split_rows=np.unique(steps.row[edge]) if fraction > 0 else np.zeros(0, dtype=np.int64),
        split_fraction=fraction,
    )


def dual_objective(frontier: Frontier, lam: float, eps: float, *, sample_weight: Any = None) -> float:
    """Return λε + mean_i max_j (loss_ij − λ d²_ij), which is at least V(ε) for every λ ≥ 0.

    Examples
    --------
    >>> frontier = Frontier.from_points(
    ...     base_loss=[0.0], row=[0], squared_distance=[1.0], loss=[3.0], candidate=[0]
    ... )
    >>> dual_objective(frontier, 3.0, 0.5), dual_objective(frontier, 1.0, 0.5)
    (1.5, 2.5)
    """
    if not (np.isfinite(lam) and lam >= 0):
        raise bad_parameter("dual_objective", "lam", allowed="a finite number >= 0", got=lam)
    weight = _check_weight(sample_weight, frontier.n_rows)
    budget = float(check_eps(eps, "dual_objective"))
    price = lam * budget if lam > 0 else 0.0
    return price + float(weight @ frontier.conjugate(lam))


def _check_weight(sample_weight: Any, n: int) -> Floats:
    if sample_weight is None:
        return np.full(n, 1.0 / n)
    weight = np.asarray(sample_weight, dtype=np.float64)
    if weight.shape != (n,):
        raise InputError(
            f"sample_weight: shape {weight.shape} does not fit {n} rows. Pass one weight per row."
        )
    if not (np.isfinite(weight).all() and (weight >= 0).all() and weight.sum() > 0):
        raise InputError("sample_weight: weights must be finite, not negative and not all zero.")
    return np.asarray(weight / weight.sum())
