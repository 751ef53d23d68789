"""The inner problem of an exact audit: rows, linear scores, fair cost and box in one place."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from scipy.optimize import linprog

from likewise.core.checks import BoolArray, FloatArray, IntArray, check_matrix, check_same_length, to_numpy
from likewise.core.errors import InputError, ModelError, bad_parameter
from likewise.data.domain import BoxDomain, DataRangeDomain, Unbounded

# Best move inside a box for a linear gain and a quadratic fair cost, with a certified upper bound. For rows at once: max over
# lower ≤ δ ≤ upper of gᵀδ − λ δᵀΣδ. With s the largest eigenvalue of Σ, every other direction is cheaper, and
# δᵀΣδ = min over z of s‖δ − Qz‖² + Σ ν_k z_k². For fixed z the best δ is a clipped point, coordinate by coordinate, so a
# smooth concave piecewise quadratic problem in the K coefficients z is left. Newton's method with an exact line search solves
# it in a few steps.


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
            delta = np.where(turned > 0, upper, np.where(turned < 0, lower, 0.0))
            with np.errstate(invalid="ignore"):
                bound = np.where(turned == 0, 0.0, turned * delta).sum(1)
        elif np.isinf(lam):
            bound, delta = self._at_no_cost(turned, lower, upper)
        else:
            bound, delta = self._solve(turned, lam, lower, upper)
        return bound, delta if self.rotation is None else delta @ self.rotation.T

    def _solve(
        self, gain: FloatArray, lam: float, lower: FloatArray, upper: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        """Solve in the axes of the box, and certify."""
        # Clipped points around the best coefficients.
        centre = gain / (2.0 * lam * self.form.top)
        z = response_coefficients(self.form, gain, lam, lower, upper)
        delta = np.clip(z @ self.form.basis.T + centre, lower, upper)
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


# Linear models as the exact audit sees them: one row of weights per class.


LOSSES = ("cross_entropy", "hinge", "zero_one")


@dataclass(frozen=True, eq=False)
class LinearModel:
    """A classifier with scores z = Wx + b, and the loss it is audited with.

    One row of weights means two classes: its score is for the second class against the first.
    """

    coef: FloatArray
    intercept: FloatArray
    classes: np.ndarray[Any, Any] | None = None
    loss: str = "cross_entropy"

    def __post_init__(self) -> None:
        if self.loss not in LOSSES:
            raise bad_parameter("LinearModel", "loss", allowed=f"one of {', '.join(LOSSES)}", got=self.loss)
        coef = np.atleast_2d(np.array(to_numpy(self.coef), dtype=float))
        intercept = np.atleast_1d(np.array(to_numpy(self.intercept), dtype=float))
        if coef.ndim != 2 or intercept.shape != (coef.shape[0],):
            raise bad_parameter(
                "LinearModel",
                "intercept",
                allowed=f"one number per row of the weights ({coef.shape[0]})",
                got=f"shape {intercept.shape}",
            )
        if not (np.isfinite(coef).all() and np.isfinite(intercept).all()):
            raise ModelError(
                "LinearModel: the weights are not finite. Train the model again before auditing it."
            )
        if coef.shape[0] == 1:
            coef = np.vstack([np.zeros_like(coef), coef])
            intercept = np.concatenate([[0.0], intercept])
        classes = np.arange(len(coef)) if self.classes is None else to_numpy(self.classes)
        if classes.shape != (len(coef),):
            raise bad_parameter(
                "LinearModel", "classes", allowed=f"{len(coef)} labels", got=f"shape {classes.shape}"
            )
        object.__setattr__(self, "coef", coef)
        object.__setattr__(self, "intercept", intercept)
        object.__setattr__(self, "classes", classes)

    @property
    def n_features(self) -> int:
        """Number of columns, d."""
        return int(self.coef.shape[1])

    @property
    def n_classes(self) -> int:
        """Number of classes, C."""
        return int(self.coef.shape[0])

    def label_index(self, y: Any) -> IntArray:
        """Position of each label in `classes`, shape (n,)."""
        labels = to_numpy(y).reshape(-1)
        match = labels[:, None] == np.asarray(self.classes)[None, :]
        unknown = ~match.any(axis=1)
        if unknown.any():
            row = int(unknown.argmax())
            raise InputError(
                f"LinearModel: label {labels[row]!r} at row {row} is none of the classes "
                f"{np.asarray(self.classes).tolist()}. Pass labels the model was trained on."
            )
        return np.asarray(match.argmax(axis=1), dtype=np.intp)

    def losses(self, X: Any, y: Any) -> FloatArray:
        """Loss of each row under its label, shape (n,)."""
        index = self.label_index(y)
        scores = np.asarray(to_numpy(X), dtype=float) @ self.coef.T + self.intercept
        return loss_of_scores(scores - np.take_along_axis(scores, index[:, None], 1), index, self.loss)


def loss_of_scores(excess: FloatArray, index: IntArray, loss: str) -> FloatArray:
    """Loss from the excess of every class's score over the label's own, z_j − z_y, shape (n, C)."""
    if loss == "cross_entropy":
        top = excess.max(axis=1)
        return np.asarray(top + np.log(np.exp(excess - top[:, None]).sum(axis=1)))
    others = excess.copy()
    np.put_along_axis(others, index[:, None], -np.inf, 1)
    worst = others.max(axis=1)
    if loss == "hinge":
        return np.asarray(np.maximum(0.0, 1.0 + worst))
    # The decision is the first class with the top score, as argmax has it.
    return np.asarray(excess.argmax(axis=1) != index, dtype=float)


# A component of the weights below this share of their length is rounding, not a free direction.
_FREE = 1e-10


def penalised(loss: FloatArray, cost: FloatArray, lam: float) -> FloatArray:
    """Loss − λ d², where moves that cost nothing are not penalised even by λ = ∞."""
    with np.errstate(invalid="ignore"):
        return np.asarray(loss - np.where(cost > 0, lam * cost, 0.0))


@dataclass(frozen=True, eq=False)
class Problem:
    """Rows of an exact audit; make one with `Problem.build`."""

    model: LinearModel
    X: FloatArray
    index: IntArray
    metric: Any
    domain: Any
    box: BoxResponse | None

    @classmethod
    def build(cls, linear: LinearModel, X: Any, y: Any, *, metric: Any, domain: Any, owner: str) -> Problem:
        """Check the input and put it together."""
        rows = np.asarray(to_numpy(check_matrix(X, owner=owner, n_features=linear.n_features)), dtype=float)
        index = linear.label_index(y)
        check_same_length(owner, X=rows, y=index)
        if getattr(metric, "feature_map", None) is not None:
            raise InputError(
                f"{owner}: the metric has a feature map, and the exact audit works on rows the model sees. "
                "Pass encoded rows and metric.without_feature_map()."
            )
        if metric.n_features not in (None, linear.n_features):
            raise InputError(
                f"{owner}: the metric is for {metric.n_features} columns, the model for {linear.n_features}. "
                "Learn the metric on the columns the model sees."
            )
        return cls(linear, rows, index, metric, domain, _row_boxes(domain, rows, metric, owner=owner))

    @property
    def n(self) -> int:
        """Number of rows."""
        return len(self.X)

    @cached_property
    def excess(self) -> FloatArray:
        """Scores above the label's own, z_j − z_y, at the rows themselves; shape (n, C)."""
        scores = self.X @ self.model.coef.T + self.model.intercept
        return np.asarray(scores - np.take_along_axis(scores, self.index[:, None], 1))

    @cached_property
    def base_losses(self) -> FloatArray:
        """Loss of each row where it stands."""
        return loss_of_scores(self.excess, self.index, self.model.loss)

    def gains(self, rows: IntArray, weights: FloatArray) -> FloatArray:
        """Gradient of Σ_j p_j (z_j − z_y) in x, for weights p of shape (m, C)."""
        return np.asarray(weights @ self.model.coef - self.model.coef[self.index[rows]])

    def response(self, rows: IntArray, gain: FloatArray, lam: float) -> tuple[FloatArray, FloatArray]:
        """Maximise gᵀδ − λ δᵀΣδ over the moves δ of the rows: an upper bound of it, and the move."""
        if self.box is not None:
            return self.box(rows, gain, lam)
        solved = self.metric.solve(gain) / (2.0 * lam)
        return (gain * solved).sum(1) / 2.0, solved

    def costs(self, delta: FloatArray, lam: float) -> FloatArray:
        """Squared fair distance of moves; exactly 0 for those that λ = ∞ leaves."""
        if np.isinf(lam):
            return np.zeros(len(delta))
        return self.squared_norm(delta)

    def squared_norm(self, delta: FloatArray) -> FloatArray:
        """Squared fair distance of moves."""
        return np.asarray(self.metric.squared_norm(delta))

    def losses(self, rows: IntArray, delta: FloatArray) -> FloatArray:
        """Loss of the rows after the moves."""
        return loss_of_scores(self.moved_excess(rows, delta), self.index[rows], self.model.loss)

    def moved_excess(self, rows: IntArray, delta: FloatArray) -> FloatArray:
        """Scores above the label's own after the moves, shape (m, C)."""
        change = delta @ self.model.coef.T
        return np.asarray(
            self.excess[rows] + change - np.take_along_axis(change, self.index[rows][:, None], 1)
        )

    def escapes(self, lam: float) -> BoolArray:
        """For label y and class j, whether z_j − z_y grows without end at no cost, or at all if λ = 0; shape (C, C)."""
        return self._escapes[0 if lam > 0 else 1]

    @cached_property
    def _escapes(self) -> tuple[BoolArray, BoolArray]:
        gains, box = self._differences, self.box
        if box is None:
            return self.is_free(gains), np.asarray((gains != 0).any(-1))
        at_no_cost, at_all = (
            np.array([[box.escapes(gain, free_only=free) for gain in row] for row in gains])
            for free in (True, False)
        )
        return at_no_cost, at_all

    @property
    def _differences(self) -> FloatArray:
        coef = self.model.coef
        return np.asarray(coef[None, :, :] - coef[:, None, :])

    def free_part(self, gain: FloatArray) -> FloatArray:
        """Component of gains along the directions that cost nothing."""
        if self.metric.n_features is None:
            return np.zeros_like(gain)
        Q = np.asarray(to_numpy(self.metric.null_space.basis), dtype=float)
        return np.asarray((gain @ Q) @ Q.T)

    def is_free(self, gain: FloatArray) -> np.ndarray[Any, np.dtype[np.bool_]]:
        """Whether a gain has a component along the directions that cost nothing."""
        size = np.linalg.norm(gain, axis=-1)
        return np.asarray(np.linalg.norm(self.free_part(gain), axis=-1) > _FREE * size)

    def inside(self, x: FloatArray) -> np.ndarray[Any, np.dtype[np.bool_]]:
        """Whether points found in the box lie in the domain itself, so that nothing was relaxed."""
        if self.box is None or isinstance(self.domain, (BoxDomain, DataRangeDomain)):
            return np.ones(len(x), dtype=bool)
        found = np.zeros(len(x), dtype=bool)
        finite = np.isfinite(x).all(1)
        if finite.any():
            found[finite] = to_numpy(self.domain.contains(x[finite], origin=self.X[finite]))
        return found


def _row_boxes(domain: Any, X: FloatArray, metric: Any, *, owner: str) -> BoxResponse | None:
    """Return the box around the domain for each row, widened to the row where it lies outside."""
    if domain is None or isinstance(domain, Unbounded):
        return None
    if domain.n_features not in (None, X.shape[1]):
        raise InputError(
            f"{owner}: the domain has {domain.n_features} columns, the rows {X.shape[1]}. "
            "Pass a domain of the columns the model sees."
        )
    basis = np.asarray(to_numpy(metric.basis), dtype=float)
    basis = np.zeros((X.shape[1], 0)) if metric.n_features is None else basis
    rotation = None
    if isinstance(domain, DataRangeDomain):
        # A box in the coordinates along and across the subspace.
        inner = np.asarray(to_numpy(domain.subspace.basis), dtype=float)
        rotation = np.hstack([inner, np.asarray(to_numpy(domain.subspace.complement().basis), dtype=float)])
        open_sides = np.full(X.shape[1] - inner.shape[1], np.inf)
        lower = np.concatenate([domain.lower, -open_sides])
        upper = np.concatenate([domain.upper, open_sides])
        basis, X = rotation.T @ basis, X @ rotation
    else:
        lower, upper = (np.asarray(to_numpy(side), dtype=float) for side in domain.bounds())
    low, high = np.minimum(lower - X, 0.0), np.maximum(upper - X, 0.0)
    if isinstance(domain, BoxDomain):
        fixed = [int(column) for column in domain.immutable]
    else:
        columns = (column for column in getattr(domain, "columns_", ()) if column.immutable)
        fixed = [at for column in columns for at in range(column.start, column.stop)]
    low[:, fixed], high[:, fixed] = 0.0, 0.0
    form = CostForm.from_metric(float(metric.scale), basis, np.asarray(to_numpy(metric.values), dtype=float))
    return BoxResponse(form, low, high, rotation)
