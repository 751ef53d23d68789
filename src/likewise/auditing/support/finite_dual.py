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

from likewise.auditing.support.frontier import Floats, Frontier, Ints
from likewise.core.errors import InputError, bad_parameter

__all__ = [
    "DualCurve",
    "DualSolution",
    "Steps",
    "all_steps",
    "dual_curve",
    "dual_objective",
    "priced_steps",
    "solve_dual",
]


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
        budget = _check_eps(eps, "DualCurve.value")
        return _like_input(np.interp(budget, self.eps, self.values), eps)

    def gap(self, eps: Any) -> Any:
        """Return V(ε) − mean loss: what the worst case adds at budget ε."""
        budget = _check_eps(eps, "DualCurve.gap")
        return _like_input(np.interp(budget, self.eps, self.values) - self.base_loss, eps)

    def lambda_(self, eps: Any) -> Any:
        """Return λ*: the smallest minimiser of the dual at ε, which is the slope of V to the right of ε."""
        budget = _check_eps(eps, "DualCurve.lambda_")
        index = np.searchsorted(self.eps, budget, side="right") - 1
        return _like_input(np.append(self.slopes, 0.0)[index], eps)

    def eps_for_gap(self, delta: float) -> float:
        """Return the smallest budget ε whose gap reaches `delta`; inf where no budget does.

        Examples
        --------
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


@dataclass(frozen=True, eq=False)
class Steps:
    """Steps from corner to corner, whose they are, and what they gain per transport (inf: they cost nothing)."""

    row: Ints
    transport: Floats
    gain: Floats
    slope: Floats

    def taken(self, lam: float, n_rows: int) -> Ints:
        """How many steps each row takes at λ: those that gain more than λ per transport; the free ones always."""
        go = (self.slope > lam) | np.isinf(self.slope)
        return np.bincount(self.row[go], minlength=n_rows)


def all_steps(frontier: Frontier) -> Steps:
    """Return the steps of all rows."""
    row = frontier.row
    step = np.flatnonzero(row[1:] == row[:-1]) if len(row) else np.zeros(0, dtype=np.int64)
    transport = frontier.squared_distance[step + 1] - frontier.squared_distance[step]
    gain = frontier.loss[step + 1] - frontier.loss[step]
    free = transport <= 0
    with np.errstate(divide="ignore", over="ignore"):
        slope = np.where(free, np.inf, gain / np.where(free, 1.0, transport))
    return Steps(row[step], transport, gain, slope)


def priced_steps(frontier: Frontier) -> Steps:
    """Return the steps that cost something."""
    steps = all_steps(frontier)
    priced = np.flatnonzero(np.isfinite(steps.slope))
    return Steps(steps.row[priced], steps.transport[priced], steps.gain[priced], steps.slope[priced])


@dataclass(frozen=True, eq=False)
class _Steps:
    """Steps of weighted rows: the weighted transport and gain of each, and their ratio."""

    weight: Floats  # of the rows, summing to 1
    row: Ints
    transport: Floats
    gain: Floats
    slope: Floats
    free: float  # gain of the steps that cost nothing


def _steps(frontier: Frontier, sample_weight: Any) -> _Steps:
    weight = _check_weight(sample_weight, frontier.n_rows)
    steps = all_steps(frontier)
    part = weight[steps.row]
    gain = part * steps.gain
    free = float(gain[np.isinf(steps.slope)].sum())
    return _Steps(weight, steps.row, part * steps.transport, gain, steps.slope, free)


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
    steps = _steps(frontier, sample_weight)
    base = float(steps.weight @ frontier.base_loss)
    priced = np.flatnonzero(np.isfinite(steps.slope) & (steps.transport > 0))
    # Gain per transport falls along a row, so the order of the steps of one row is kept by any sort.
    priced = priced[np.argsort(-steps.slope[priced], kind="stable")]
    slope, first = np.unique(-steps.slope[priced], return_index=True)
    transport = np.add.reduceat(steps.transport[priced], first) if len(first) else np.zeros(0)
    gain = np.add.reduceat(steps.gain[priced], first) if len(first) else np.zeros(0)
    eps = np.concatenate([[0.0], np.cumsum(transport)])
    values = base + steps.free + np.concatenate([[0.0], np.cumsum(gain)])
    return DualCurve(base, eps, values, -slope)


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
    budget = float(_check_eps(eps, "solve_dual"))
    curve = dual_curve(frontier, sample_weight=sample_weight) if curve is None else curve
    steps = _steps(frontier, sample_weight)
    lam = float(curve.lambda_(budget))
    taken = (steps.slope > lam) | np.isinf(steps.slope)
    corner = frontier.indptr[:-1] + np.bincount(steps.row[taken], minlength=frontier.n_rows)
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
    budget = float(_check_eps(eps, "dual_objective"))
    price = lam * budget if lam > 0 else 0.0
    return price + float(weight @ frontier.conjugate(lam))


def _check_eps(eps: Any, owner: str) -> Floats:
    try:
        budget = np.asarray(eps, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise bad_parameter(owner, "eps", allowed="a number >= 0", got=eps) from error
    if not (budget >= 0).all():
        raise bad_parameter(owner, "eps", allowed="a number >= 0 (inf is allowed)", got=eps)
    return budget


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


def _like_input(result: Any, given: Any) -> Any:
    return float(result) if np.ndim(given) == 0 else np.asarray(result)
