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

from likewise.auditing.dual.frontier import Floats, Frontier, Steps, steps_of
from likewise.core.checks import IntArray
from likewise.core.errors import InputError, bad_parameter

# The exact curve ε ↦ V(ε): concave, non-decreasing, linear between its breakpoints.


@dataclass(frozen=True, eq=False)
class DualCurve:
    """The exact curve ε ↦ V(ε): concave, non-decreasing, linear between its breakpoints."""

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
        """Return the smallest budget ε whose gap reaches `delta`; inf where no budget does."""
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


# The steps of all people by their gain per transport, in bins where there are too many: what V(ε) needs.


# Bits of a float64's mantissa: with all of them every slope has a bin of its own.
ALL_BITS = 52
_FIELDS = ("low", "high", "transport", "gain", "count")


@dataclass(frozen=True, eq=False)
class BinnedSteps:
    """Steps that cost something, or their sums in bins of their slope."""

    bits: int
    low: Floats
    high: Floats
    transport: Floats
    gain: Floats
    count: IntArray

    @classmethod
    def of(cls, steps: Steps, *, bits: int = ALL_BITS, low: float = 0.0, high: float = np.inf) -> BinnedSteps:
        """Take the steps that cost something and whose slope lies between `low` and `high`, both included."""
        priced = np.isfinite(steps.slope) & (steps.transport > 0)
        chosen = np.flatnonzero(priced & (steps.slope >= low) & (steps.slope <= high))
        slope = steps.slope[chosen]
        ones = np.ones(len(chosen), dtype=np.int64)
        listed = cls(bits, slope, slope, steps.transport[chosen], steps.gain[chosen], ones)
        return listed if bits == ALL_BITS else listed.summed()

    def summed(self) -> BinnedSteps:
        """Return the bins by falling slope, each once."""
        # The bits of positive floats are ordered as the floats are.
        key = self.high.view(np.int64) >> (ALL_BITS - self.bits)
        order = np.argsort(-key, kind="stable")
        first = np.flatnonzero(np.diff(key[order], prepend=key[order[:1]] + 1)) if len(key) else order

        def added(values: Any, how: Any = np.add) -> Any:
            return how.reduceat(values[order], first) if len(first) else values

        return BinnedSteps(
            self.bits,
            added(self.low, np.minimum),
            added(self.high, np.maximum),
            added(self.transport),
            added(self.gain),
            added(self.count),
        )

    def __len__(self) -> int:
        return len(self.high)

    def merge(self, other: BinnedSteps) -> BinnedSteps:
        """Return the steps of both, which must have the same bits."""
        both = (np.concatenate([getattr(self, name), getattr(other, name)]) for name in _FIELDS)
        listed = BinnedSteps(self.bits, *both)
        return listed if self.bits == ALL_BITS else listed.summed()

    def refined(self, k: int, finer: BinnedSteps) -> BinnedSteps:
        """Return the bins with bin k replaced by the finer bins of the same steps; none is added up any more."""
        fine = finer.summed()
        columns = [
            np.concatenate([getattr(self, name)[:k], getattr(fine, name), getattr(self, name)[k + 1 :]])
            for name in _FIELDS
        ]
        return BinnedSteps(ALL_BITS, *columns)

    def bin_at(self, eps: float, n: int) -> int | None:
        """Return the bin in which the budget of n rows ends, None where it is more than all of them need."""
        k = int(np.searchsorted(np.cumsum(self.transport) / n, eps, side="right"))
        return k if k < len(self) else None

    def curve(self, *, n: float, base: float, free: float) -> DualCurve:
        """Return ε ↦ V(ε) of people whose mass is n."""
        bins = self.summed()
        eps = np.concatenate([[0.0], np.cumsum(bins.transport) / n])
        values = base + free + np.concatenate([[0.0], np.cumsum(bins.gain) / n])
        with np.errstate(over="ignore"):
            slopes = np.clip(bins.gain / bins.transport, bins.low, bins.high)
        return DualCurve(base, eps, values, slopes)


@dataclass(frozen=True, eq=False)
class DualSolution:
    """The worst case at one budget ε: its value, λ*, and where every row goes."""

    eps: float
    value: float
    base_loss: float
    lambda_: float
    transport: float
    corner: IntArray
    split_rows: IntArray
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
