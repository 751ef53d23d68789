"""Best move inside a box for a linear gain and a quadratic fair cost, with a certified upper bound.

For rows at once: max over lower ≤ δ ≤ upper of gᵀδ − λ δᵀΣδ. With s the largest eigenvalue of Σ, every other
direction is cheaper, and δᵀΣδ = min over z of s‖δ − Qz‖² + Σ ν_k z_k². For fixed z the best δ is a clipped
point, coordinate by coordinate, so a smooth concave piecewise quadratic problem in the K coefficients z is
left. Newton's method with an exact line search solves it in a few steps.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from scipy.optimize import linprog

from likewise.core.checks import FloatArray

_MAX_STEPS = 100
# Weight of the cost in a round of the method of multipliers, for gains of size 1.
_MULTIPLIER = 100.0
# How far outside its box, in encoded units, a move may end by rounding.
_ROUNDING = 1e-9


@dataclass(frozen=True, eq=False)
class CostForm:
    """Σ as its largest eigenvalue `top` and the cheaper directions: Σ = top · I − Q diag(top − costs) Qᵀ."""

    top: float
    basis: FloatArray
    costs: FloatArray

    @classmethod
    def from_metric(cls, scale: float, basis: FloatArray, values: FloatArray) -> CostForm:
        """Rewrite scale · I + Q diag(values) Qᵀ, with the complement of Q spelled out only where it must be."""
        costs = scale + values
        top = max(scale, float(costs.max(initial=0.0)))
        if basis.shape[1] and scale < top and basis.shape[1] < basis.shape[0]:
            rest = np.linalg.svd(basis, full_matrices=True)[0][:, basis.shape[1] :]
            basis = np.hstack([basis, rest])
            costs = np.concatenate([costs, np.full(rest.shape[1], scale)])
        cheaper = costs < top * (1 - 1e-14)
        return cls(top, basis[:, cheaper], np.maximum(costs[cheaper], 0.0))

    def squared_norm(self, delta: FloatArray) -> FloatArray:
        """Return δᵀΣδ of each row, as a sum of terms that are never negative."""
        inside = delta @ self.basis
        outside = delta - inside @ self.basis.T
        return np.asarray(self.top * (outside * outside).sum(1) + (inside * inside) @ self.costs)

    def apply(self, delta: FloatArray) -> FloatArray:
        """Return Σδ of each row."""
        inside = delta @ self.basis
        return np.asarray(self.top * (delta - inside @ self.basis.T) + (inside * self.costs) @ self.basis.T)

    @cached_property
    def matrix(self) -> FloatArray:
        """The explicit Σ, needed only for boxes that are open on some side."""
        return self.apply(np.eye(len(self.basis)))

    @cached_property
    def penalties(self) -> FloatArray:
        """ν of the split δᵀΣδ = min over z of top ‖δ − Qz‖² + Σ ν_k z_k²."""
        return np.asarray(self.top * self.costs / (self.top - self.costs))


@dataclass(frozen=True, eq=False)
class BoxResponse:
    """The best moves of rows inside their boxes."""

    form: CostForm
    lower: FloatArray
    upper: FloatArray
    rotation: FloatArray | None = None

    def __call__(self, rows: Any, gain: FloatArray, lam: float) -> tuple[FloatArray, FloatArray]:
        """Maximise gᵀδ − λ δᵀΣδ for the given rows."""
        lower, upper = self.lower[rows], self.upper[rows]
        turned = gain if self.rotation is None else gain @ self.rotation
        if lam == 0 or self.form.top == 0:
            bound, delta = _best_corner(turned, lower, upper)
        elif np.isinf(lam):
            bound, delta = self._at_no_cost(turned, lower, upper)
        else:
            bound, delta = self._solve(turned, lam, lower, upper)
        return bound, delta if self.rotation is None else delta @ self.rotation.T

    def _solve(
        self, gain: FloatArray, lam: float, lower: FloatArray, upper: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        """Solve in the axes of the box, and certify."""
        delta = _newton(self.form, gain, lam, lower, upper)
        slope = gain - 2.0 * lam * self.form.apply(delta)
        value = (gain * delta).sum(1) - lam * self.form.squared_norm(delta)
        return value + self._gap(slope, delta, lam, lower, upper), delta

    def _at_no_cost(
        self, gain: FloatArray, lower: FloatArray, upper: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        """Maximise gᵀδ over moves with Σδ = 0, a linear programme, by the method of multipliers.

        A multiplier v in the range of Σ changes nothing for such moves, so every round's bound is valid; on a
        linear programme the rounds end after a few.
        """
        size = np.abs(gain).max(1, initial=0.0)
        unit = gain / np.maximum(size, 1e-300)[:, None]
        lam = _MULTIPLIER / self.form.top
        push, bound = unit.copy(), np.full(len(gain), np.inf)
        delta = np.zeros_like(gain)
        active = np.arange(len(gain))
        for _ in range(_MAX_STEPS):
            found, delta[active] = self._solve(push[active], lam, lower[active], upper[active])
            bound[active] = np.minimum(bound[active], found)
            back = 2.0 * lam * self.form.apply(delta[active])
            push[active] -= back
            active = active[np.abs(back).max(1, initial=0.0) > 1e-9]
            if active.size == 0:
                break
        inside = delta @ self.form.basis
        free = (inside * (self.form.costs <= 1e-12 * self.form.top)) @ self.form.basis.T
        return bound * size, shorten(free, lower, upper)

    @cached_property
    def _open(self) -> tuple[Any, FloatArray, FloatArray]:
        """Columns open on some side, their block of Σ and its pseudo-inverse."""
        columns = np.flatnonzero(np.isinf(self.lower).any(0) | np.isinf(self.upper).any(0))
        block = self.form.matrix[np.ix_(columns, columns)] if columns.size else np.zeros((0, 0))
        return columns, block, np.linalg.pinv(block, rcond=1e-12, hermitian=True) if columns.size else block

    def _gap(
        self, slope: FloatArray, delta: FloatArray, lam: float, lower: FloatArray, upper: FloatArray
    ) -> FloatArray:
        """How far the maximum can lie above the objective at δ, given its gradient there.

        The objective at δ + u is f(δ) + slopeᵀu − λ uᵀΣu. On a closed box the linear part alone bounds it,
        coordinate by coordinate. On an open side, the part of the slope that points outwards is matched by
        2λΣy with y on the open coordinates, and costs λ yᵀΣy.
        """
        extra = np.zeros(len(slope))
        open_columns, block, inverse = self._open
        if open_columns.size:
            part = slope[:, open_columns]
            outwards = np.where(np.isinf(upper[:, open_columns]), np.maximum(part, 0.0), 0.0)
            outwards += np.where(np.isinf(lower[:, open_columns]), np.minimum(part, 0.0), 0.0)
            y = outwards @ inverse / (2.0 * lam)
            matched = 2.0 * lam * (y @ self.form.matrix[open_columns])
            left = outwards - matched[:, open_columns]
            unmatched = (np.abs(left) > 1e-12 * (1.0 + np.abs(part).max(1, keepdims=True))).any(1)
            # What rounding leaves of the match on open coordinates is dropped; the rest of the slope stays.
            slope = slope - matched
            slope[:, open_columns] = part - outwards
            extra = lam * ((y @ block) * y).sum(1)
            extra[unmatched] = np.inf
        return np.asarray(box_slack(slope, delta, lower, upper) + extra)

    def escapes(self, gain: FloatArray, *, free_only: bool = True) -> bool:
        """Whether gᵀδ grows without end along open sides of the box (at no cost, where `free_only`)."""
        if self.rotation is not None:
            gain = gain @ self.rotation
        low = np.where(np.isinf(self.lower).any(0), -1.0, 0.0)
        high = np.where(np.isinf(self.upper).any(0), 1.0, 0.0)
        size = float(np.abs(gain).max(initial=0.0))
        if size == 0 or not (low.any() or high.any()):
            return False
        rows = self.form.matrix / max(self.form.top, 1e-300) if free_only else None
        right = np.zeros(len(gain)) if free_only else None
        bounds = list(zip(low.tolist(), high.tolist(), strict=True))
        found = linprog(-gain / size, A_eq=rows, b_eq=right, bounds=bounds, method="highs")
        return found.fun is not None and bool(-found.fun > 1e-9)


def box_slack(slope: FloatArray, delta: FloatArray, lower: FloatArray, upper: FloatArray) -> FloatArray:
    """Return the largest slopeᵀu over moves u from δ that stay in the box, per row."""
    with np.errstate(invalid="ignore"):
        up = np.where(slope > 0, slope * (upper - delta), 0.0)
        down = np.where(slope < 0, slope * (lower - delta), 0.0)
    return np.asarray((up + down).sum(1))


def shorten(delta: FloatArray, lower: FloatArray, upper: FloatArray) -> FloatArray:
    """Shorten moves until they stay inside, up to rounding; their directions are kept."""
    with np.errstate(divide="ignore", invalid="ignore"):
        room = np.where(delta > 0, (upper + _ROUNDING) / delta, (lower - _ROUNDING) / delta)
    share = np.where(delta != 0, room, np.inf).min(1, initial=np.inf).clip(0.0, 1.0)
    return np.asarray(delta * share[:, None])


def _best_corner(gain: FloatArray, lower: FloatArray, upper: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Maximise gᵀδ alone."""
    delta = np.where(gain > 0, upper, np.where(gain < 0, lower, 0.0))
    with np.errstate(invalid="ignore"):
        value = np.where(gain == 0, 0.0, gain * delta).sum(1)
    return value, delta


def _newton(form: CostForm, gain: FloatArray, lam: float, lower: FloatArray, upper: FloatArray) -> FloatArray:
    """Return the best moves: clipped points around the best coefficients."""
    centre = gain / (2.0 * lam * form.top)
    z = response_coefficients(form, gain, lam, lower, upper)
    return np.clip(z @ form.basis.T + centre, lower, upper)


def response_coefficients(
    form: CostForm, gain: FloatArray, lam: float, lower: FloatArray, upper: FloatArray
) -> FloatArray:
    """Maximise gᵀδ − λ δᵀΣδ over the coefficients z, all rows at once; rows that are done leave."""
    Q, top, penalty = form.basis, form.top, form.penalties
    centre = gain / (2.0 * lam * top)
    z = np.zeros((len(gain), Q.shape[1]))
    if Q.shape[1] == 0:
        return z
    k = Q.shape[1]
    pairs = (Q[:, :, None] * Q[:, None, :]).reshape(-1, k * k)
    active = np.arange(len(gain))
    for _ in range(_MAX_STEPS):
        c, low, high = centre[active], lower[active], upper[active]
        shift = z[active] @ Q.T
        aim = shift + c
        free = (aim > low) & (aim < high)
        pull = top * ((np.clip(aim, low, high) - shift) @ Q) - penalty * z[active]
        hessian = top * (np.where(free, 0.0, 1.0) @ pairs).reshape(-1, k, k)
        diagonal = np.arange(k)
        hessian[:, diagonal, diagonal] += penalty + 1e-11 * top
        step = np.linalg.solve(hessian, pull[:, :, None])[:, :, 0]
        rise = (step * pull).sum(1)
        length = _line_search(step @ Q.T, aim, low, high, top, rise, (penalty * step * step).sum(1))
        z[active] += length[:, None] * step
        moved = length * np.abs(step).max(1)
        keep = moved > 1e-14 * (1.0 + np.abs(z[active]).max(1))
        active = active[keep]
        if active.size == 0:
            break
    return z


def _line_search(
    move: FloatArray,
    aim: FloatArray,
    lower: FloatArray,
    upper: FloatArray,
    top: float,
    rise: FloatArray,
    drag: FloatArray,
) -> FloatArray:
    """Exact step length along a direction: the root of a decreasing piecewise linear derivative.

    A coordinate that is clipped adds −top · move² to the derivative's slope, a free one adds nothing; it
    becomes free once and clipped again once on the way.
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        first = np.where(move > 0, lower - aim, upper - aim) / move
        last = np.where(move > 0, upper - aim, lower - aim) / move
    weight = top * move * move
    still = move == 0
    slope = -drag - np.where(~still & ((first > 0) | (last <= 0)), weight, 0.0).sum(1)
    times = np.concatenate([first, last], axis=1)
    change = np.concatenate([weight, -weight], axis=1)
    ignore = ~np.isfinite(times) | (times <= 0)
    times[ignore], change[ignore] = 0.0, 0.0
    order = np.arange(len(times))[:, None], np.argsort(times, axis=1)
    times = times[order]
    # Slope of the derivative after each breakpoint, and the derivative at each breakpoint.
    after = slope[:, None] + np.cumsum(change[order], axis=1)
    at = times * slope[:, None]
    at[:, 1:] = at[:, :1] + np.cumsum(after[:, :-1] * (times[:, 1:] - times[:, :-1]), axis=1)
    at += rise[:, None]
    passed = at > 0
    count = np.where(passed.all(1), times.shape[1], passed.argmin(1))
    place = np.arange(len(count)), np.maximum(count - 1, 0)
    start = np.where(count > 0, times[place], 0.0)
    value = np.where(count > 0, at[place], rise)
    steep = -np.where(count > 0, after[place], slope)
    with np.errstate(divide="ignore", invalid="ignore"):
        extra = np.where(steep > 1e-13 * (drag + weight.sum(1)), value / steep, 0.0)
    return np.asarray(np.where(rise > 0, start + np.maximum(extra, 0.0), 0.0))
