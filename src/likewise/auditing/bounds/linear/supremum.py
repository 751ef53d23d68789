"""The exact inner supremum of linear models, ℓ^c_λ of equation 4 of the paper, row by row."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import expit

from likewise.auditing.bounds.linear.margin import MarginSupremum
from likewise.auditing.bounds.linear.model import LinearModel, Problem, penalised
from likewise.auditing.bounds.regions import Arrays
from likewise.core.checks import BoolArray, FloatArray, IntArray, check_number

# The inner supremum of a binary linear model without a box: one dimension, solved to rounding.


_MAX_STEPS = 200


def logistic_supremum(
    margin: FloatArray, kappa: FloatArray | float, lam: float
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Global maximum over t of log(1 + exp(t − m)) − λ t² / κ, for every row at once.

    Lowering the margin by t costs at least t² / κ with κ = wᵀΣ⁺w, by the move t Σ⁺w / κ. So this is ℓ^c_λ of
    equation 4 of the paper for logistic regression where w has no free component.

    With a = κ / 2λ and p the sigmoid at the new margin, stationarity reads t = a p. It has up to three
    solutions when a > 4, because the sigmoid is S-shaped. In terms of p the objective is the entropy of p
    − m p + a p² / 2, and exchanging p and 1 − p changes it by (2p − 1)(a/2 − m): the global maximum has
    p ≥ 1/2 exactly when m ≤ a/2. On that side the stationarity condition is convex and increasing beyond its
    last turning point, so Newton's method from the right end comes down to the only root there.
    """
    margin = np.asarray(margin, dtype=float)
    a = np.broadcast_to(np.asarray(kappa, dtype=float) / (2.0 * lam), margin.shape)
    upper = margin <= a / 2.0
    # The lower half is the upper half seen from the other end: p ↔ 1 − p, s ↔ −s, m ↔ a − m.
    m = np.where(upper, margin, a - margin)
    turning = 2.0 * np.arccosh(np.sqrt(np.maximum(a, 4.0)) / 2.0)
    s = np.maximum(a - m, turning)
    for _ in range(_MAX_STEPS):
        p = expit(s)
        slope = 1.0 - a * p * expit(-s)
        with np.errstate(divide="ignore", invalid="ignore"):
            step = np.where(slope > 0, (s + m - a * p) / slope, 0.0)
        following = np.maximum(s - np.maximum(step, 0.0), turning)
        done = bool((s - following <= 1e-15 * (1.0 + s)).all())
        s = following
        if done:
            break
    p = expit(np.where(upper, s, -s))
    drop = a * p
    return np.logaddexp(0.0, drop - margin) - drop * p / 2.0, drop, drop * p / (2.0 * lam)


# Global maximum of cross-entropy minus fair cost by branch and bound over class weights.


_BLAHUT_STEPS = 30
_MAX_LEVELS = 60


@dataclass(eq=False)
class _Nodes(Arrays):
    """Open simplices.

    Whose row (N,), the vertices (N, C, C), bounds of G at the vertices and how far above G they may be
    (N, C), bound of the simplex (N,).
    """

    row: IntArray
    vertex: FloatArray
    value: FloatArray
    slack: FloatArray
    bound: FloatArray


@dataclass
class _Incumbent:
    """Best move found for each row so far, what it attains, and which rise is worth climbing for."""

    value: FloatArray
    delta: FloatArray
    rise: float

    def offer(self, problem: Problem, rows: IntArray, delta: FloatArray, lam: float) -> IntArray:
        """Keep the better of the moves and the incumbents; return the rows that rose noticeably."""
        value = penalised(problem.losses(rows, delta), problem.costs(delta, lam), lam)
        order = np.argsort(value, kind="stable")
        rows, value, delta = rows[order], value[order], delta[order]
        # The last assignment wins, and the values rise.
        before = self.value[rows]
        better = value > before
        self.value[rows[better]] = value[better]
        self.delta[rows[better]] = delta[better]
        return np.unique(rows[value > before + self.rise * (1.0 + np.abs(value))])


def maximise_cross_entropy(
    problem: Problem, rows: IntArray, lam: float, *, tol: float, max_nodes: int
) -> tuple[FloatArray, FloatArray]:
    """Bound and best move of the inner supremum for the given rows."""
    incumbent = _Incumbent(problem.base_losses.copy(), np.zeros_like(problem.X), tol / 16.0)
    nodes = _roots(problem, rows, lam, incumbent)
    closed = np.full(problem.n, -np.inf)
    for _ in range(_MAX_LEVELS):
        limit = incumbent.value + tol * (1.0 + np.abs(incumbent.value))
        # Splitting cannot remove what the bounds of G themselves leave open.
        is_open = nodes.bound - nodes.slack.max(1) > limit[nodes.row]
        crowded = np.bincount(nodes.row[is_open], minlength=problem.n) > max_nodes
        is_open &= ~crowded[nodes.row]
        np.maximum.at(closed, nodes.row[~is_open], nodes.bound[~is_open])
        nodes = nodes.take(np.flatnonzero(is_open))
        if nodes.row.size == 0:
            break
        nodes = _split(problem, nodes, lam, incumbent)
    np.maximum.at(closed, nodes.row, nodes.bound)
    return np.maximum(closed, incumbent.value)[rows], incumbent.delta[rows]


def _roots(problem: Problem, rows: IntArray, lam: float, incumbent: _Incumbent) -> _Nodes:
    """One simplex per row, and the local maxima reached from its corners and its middle."""
    n_classes = problem.model.n_classes
    corners = np.eye(n_classes)
    value, slack = np.zeros((len(rows), n_classes)), np.zeros((len(rows), n_classes))
    for j in range(n_classes):
        moving = np.flatnonzero(problem.index[rows] != j)
        if moving.size:
            weights = np.broadcast_to(corners[j], (moving.size, n_classes))
            found = _evaluate(problem, rows[moving], weights, lam, incumbent)
            value[moving, j], slack[moving, j] = found
    _climb(problem, rows, lam, incumbent)
    vertex = np.broadcast_to(corners, (len(rows), n_classes, n_classes))
    nodes = _Nodes(rows, vertex, value, slack, np.empty(0))
    nodes.bound = _bounds(nodes)
    return nodes


def _evaluate(
    problem: Problem, rows: IntArray, weights: FloatArray, lam: float, incumbent: _Incumbent
) -> tuple[FloatArray, FloatArray]:
    """G at class weights p: an upper bound and its slack; the incumbents are offered the moves and climb."""
    gain = problem.gains(rows, weights)
    bound, delta = problem.response(rows, gain, lam)
    slack = bound - penalised((gain * delta).sum(1), problem.costs(delta, lam), lam)
    changed = incumbent.offer(problem, rows, delta, lam)
    if changed.size:
        _climb(problem, changed, lam, incumbent)
    return np.asarray(bound + (weights * problem.excess[rows]).sum(1)), slack


def _climb(problem: Problem, rows: IntArray, lam: float, incumbent: _Incumbent) -> None:
    """Ascend to a local maximum: respond to the class weights of the present point, which never goes down."""
    for _ in range(100):
        if rows.size == 0:
            break
        excess = problem.moved_excess(rows, incumbent.delta[rows])
        weights = np.exp(excess - excess.max(1, keepdims=True))
        weights /= weights.sum(1, keepdims=True)
        _, delta = problem.response(rows, problem.gains(rows, weights), lam)
        rows = incumbent.offer(problem, rows, delta, lam)


def _split(problem: Problem, nodes: _Nodes, lam: float, incumbent: _Incumbent) -> _Nodes:
    """Halve every simplex at the middle of its longest edge."""
    n_classes = nodes.vertex.shape[1]
    first, second = np.triu_indices(n_classes, 1)
    length = ((nodes.vertex[:, first] - nodes.vertex[:, second]) ** 2).sum(2)
    edge = length.argmax(1)
    each = np.arange(len(edge))
    a, b = first[edge], second[edge]
    middle = (nodes.vertex[each, a] + nodes.vertex[each, b]) / 2.0
    value, slack = _evaluate(problem, nodes.row, middle, lam, incumbent)
    twice = nodes.take(np.concatenate([each, each]))
    places = np.arange(2 * len(each)), np.concatenate([a, b])
    twice.vertex[places] = np.concatenate([middle, middle])
    twice.value[places] = np.concatenate([value, value])
    twice.slack[places] = np.concatenate([slack, slack])
    # A child's bound can only be better than its parent's.
    twice.bound = np.minimum(_bounds(twice), twice.bound)
    return twice


def _bounds(nodes: _Nodes) -> FloatArray:
    """Upper bound of H + G on each simplex."""
    if nodes.vertex.shape[1] == 2:
        return _segment_bounds(nodes)
    # Weights of the vertices that maximise entropy plus interpolation, by mirror ascent (Blahut–Arimoto, with
    # the longer steps that vertices close to each other allow). Whatever q it visits, the bound is valid.
    n_nodes, n_classes, _ = nodes.vertex.shape
    mix = np.full((n_nodes, n_classes), 1.0 / n_classes)
    negative_entropy = _xlogx(nodes.vertex).sum(2)
    best = np.full(n_nodes, np.inf)
    pace = np.ones(n_nodes)
    for step in range(_BLAHUT_STEPS):
        q = np.einsum("nk,nkc->nc", mix, nodes.vertex)
        with np.errstate(divide="ignore", invalid="ignore"):
            cross = np.where(nodes.vertex > 0, nodes.vertex * np.log(q)[:, None, :], 0.0).sum(2)
        if step == 0:
            pace = 1.0 / np.clip((negative_entropy - cross).max(1), 1e-12, 1.0)
        score = nodes.value - cross
        best = np.fmin(best, score.max(1))
        mix = mix * np.exp(pace[:, None] * (score - score.max(1, keepdims=True)))
        mix = np.maximum(mix / mix.sum(1, keepdims=True), 1e-300)
    return best


def _segment_bounds(nodes: _Nodes) -> FloatArray:
    """Two classes: the entropy plus a chord has its maximum in closed form."""
    p, q = nodes.vertex[:, 0, 1], nodes.vertex[:, 1, 1]
    g, h = nodes.value[:, 0], nodes.value[:, 1]
    low, high = np.minimum(p, q), np.maximum(p, q)
    slope = (h - g) / (q - p)
    at = np.clip(1.0 / (1.0 + np.exp(-np.clip(slope, -700, 700))), low, high)
    entropy = -_xlogx(at) - _xlogx(1.0 - at)
    return np.asarray(entropy + g + slope * (at - p))


def _xlogx(p: FloatArray) -> FloatArray:
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.asarray(np.where(p > 0, p * np.log(p), 0.0))


# What it costs at least to make a linear model decide differently: the exact 0–1 audit.


# The move that is shown goes this much past the border, since on it the two scores tie.
_PAST = 1e-11
_MAX_BISECTIONS = 60
_CHUNK = 4096


def crossing_costs(problem: Problem) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Least fair cost at which each row's decision leaves its label."""
    n, d = problem.X.shape
    cost, attained = np.full(n, np.inf), np.full(n, np.inf)
    delta = np.full((n, d), np.nan)
    wrong = problem.excess.argmax(1) != problem.index
    cost[wrong], attained[wrong], delta[wrong] = 0.0, 0.0, 0.0
    for j in range(problem.model.n_classes):
        rows = np.flatnonzero(~wrong & (problem.index != j))
        if rows.size == 0:
            continue
        gain = problem.model.coef[j] - problem.model.coef[problem.index[rows]]
        margin = -problem.excess[rows, j]
        solve = _cross_anywhere if problem.box is None else _cross_in_box
        low, high, move = solve(problem, rows, gain, margin)
        cost[rows] = np.minimum(cost[rows], low)
        better = high < attained[rows]
        attained[rows[better]], delta[rows[better]] = high[better], move[better]
    return cost, attained, delta


def _cross_anywhere(
    problem: Problem, rows: IntArray, gain: FloatArray, margin: FloatArray
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Without a box: m² / κ along Σ⁺g, or nothing along the free part of g."""
    free, solved = problem.free_part(gain), problem.metric.solve(gain)
    kappa, size = (gain * solved).sum(1), (gain * free).sum(1)
    escapes = problem.is_free(gain)
    with np.errstate(divide="ignore", invalid="ignore"):
        cost = np.where(escapes, 0.0, np.where(kappa > 0, margin**2 / kappa, np.inf))
        along = np.where(escapes[:, None], free / size[:, None], solved / kappa[:, None])
    delta = (margin + _PAST * (1.0 + margin))[:, None] * along
    possible = np.isfinite(cost)
    delta[~possible] = np.nan
    attained = np.where(possible, problem.squared_norm(np.where(possible[:, None], delta, 0.0)), np.inf)
    return cost, attained, delta


def _cross_in_box(
    problem: Problem, rows: IntArray, gain: FloatArray, margin: FloatArray
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """In a box: min d² subject to gᵀδ ≥ m, by its dual max over θ ≥ 0 of θm − max over δ of (θgᵀδ − d²).

    The inner maximum is the box response; gᵀδ(θ) rises with θ, so the best θ is a root in one dimension. Every
    θ gives a valid lower bound of the cost, since the response comes with an upper bound of its value.
    """
    assert problem.box is not None
    reach, corner = problem.response(rows, gain, 0.0)
    cost, delta = np.where(reach >= margin, 0.0, np.inf), np.zeros_like(gain)
    size = (gain * gain).sum(1) / max(problem.box.form.top, 1e-300)
    with np.errstate(divide="ignore", invalid="ignore"):
        high = np.where(size > 0, 2.0 * margin / size, 0.0)
    low, low_left, high_left = np.zeros(len(rows)), margin.copy(), np.full(len(rows), np.nan)
    theta = high.copy()
    active = np.flatnonzero((reach >= margin) & (margin > 0))
    for step in range(_MAX_BISECTIONS):
        if active.size == 0:
            break
        bound, move = problem.response(rows[active], theta[active, None] * gain[active], 1.0)
        left = margin[active] - (gain[active] * move).sum(1)
        with np.errstate(invalid="ignore"):
            shown = theta[active] * margin[active] - bound
        cost[active] = np.fmax(cost[active], shown)
        crossed = left <= 0
        delta[active[crossed]] = move[crossed]
        low[active[~crossed]], low_left[active[~crossed]] = theta[active[~crossed]], left[~crossed]
        high[active[crossed]], high_left[active[crossed]] = theta[active[crossed]], left[crossed]
        spent = problem.squared_norm(move) - cost[active]
        done = np.abs(left) <= 1e-13 * (1.0 + margin[active])
        done |= crossed & (spent <= 1e-12 * (1.0 + cost[active]))
        delta[active[done]] = move[done]
        active = active[~done & (theta[active] < 1e12 * (1.0 + margin[active]))]
        theta[active] = _next_theta(low, high, low_left, high_left, active, bisect=step % 3 == 2)
        active = active[np.isnan(high_left[active]) | (high - low > 1e-15 * high)[active]]
    return _shown_crossing(problem, gain, margin, cost, delta, corner)


def _next_theta(
    low: FloatArray,
    high: FloatArray,
    low_left: FloatArray,
    high_left: FloatArray,
    active: IntArray,
    *,
    bisect: bool,
) -> FloatArray:
    """Secant step inside the bracket, halved every third time; doubled while there is no upper end yet."""
    a, b, fa, fb = low[active], high[active], low_left[active], high_left[active]
    with np.errstate(invalid="ignore", divide="ignore"):
        secant = a + (b - a) * fa / (fa - fb)
    inner = (a + b) / 2.0 if bisect else np.where(np.isfinite(secant), secant, (a + b) / 2.0)
    # Without an upper end yet, `low` is the last θ tried.
    return np.asarray(np.where(np.isnan(fb), 4.0 * np.maximum(a, b), inner))


def _shown_crossing(
    problem: Problem,
    gain: FloatArray,
    margin: FloatArray,
    cost: FloatArray,
    delta: FloatArray,
    corner: FloatArray,
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Push the cheapest crossing move just past the border, towards the corner of the box that gains most."""
    end = np.where(np.isfinite(corner), corner, delta)
    at, far = (gain * delta).sum(1), (gain * end).sum(1)
    target = margin + _PAST * (1.0 + margin)
    with np.errstate(invalid="ignore", divide="ignore"):
        share = np.where(at >= target, 0.0, (target - at) / (far - at))
    possible = np.isfinite(cost) & (share >= 0) & (share <= 1)
    shown = delta + np.where(possible, share, 0.0)[:, None] * (end - delta)
    shown[~possible] = np.nan
    attained = np.where(possible, problem.squared_norm(np.nan_to_num(shown)), np.inf)
    return cost, attained, shown


# A squared fair distance that is rounding.
_NOTHING = 1e-12


@dataclass(frozen=True, eq=False)
class ExactResult:
    """The inner supremum of each row: `value` is never less than sup over x of loss − λ d², and infinite if that grows without end.

    `x` are the rows that attain it, or the best found. `exact` says if `value` is the supremum itself, up to the tolerance.
    """

    value: FloatArray
    x: FloatArray
    loss: FloatArray
    squared_distance: FloatArray
    exact: BoolArray
    lam: float

    @property
    def attained(self) -> FloatArray:
        """What the rows `x` reach, loss − λ d²: a lower bound of the supremum, shape (n,)."""
        return penalised(self.loss, self.squared_distance, self.lam)


def exact_supremum(
    model: LinearModel,
    X: Any,
    y: Any,
    *,
    metric: Any,
    lam: float,
    domain: Any = None,
    tol: float = 1e-8,
    max_nodes: int = 500,
) -> ExactResult:
    """Solve sup over x in the domain of loss(x, y_i) − λ d²(x, x_i) for a linear model.

    Without a box: one dimension, in closed form or by Newton's method to rounding, for two classes and for
    hinge and 0–1 loss with any number of classes. Two classes in a closed box: one dimension along a path of moves
    that is followed once per row (`margin`). Otherwise, and for cross-entropy with more classes: branch and bound
    over class weights, which gives a guaranteed upper bound beside the attained value.

    λ = ∞ leaves only moves that cost nothing. Domains other than boxes are used through the box around them, widened
    to a row that lies outside of it. A row counts as exact if bound and attained value agree to `tol`.
    """
    owner = "exact_supremum"
    lam = np.inf if lam == np.inf else check_number(lam, owner=owner, name="lam", low=0.0)
    tol = check_number(tol, owner=owner, name="tol", low=0.0, open_low=True)
    max_nodes = int(check_number(max_nodes, owner=owner, name="max_nodes", low=1))
    problem = Problem.build(model, X, y, metric=metric, domain=domain, owner=owner)
    return Solver(problem, tol=tol, max_nodes=max_nodes)(lam)


class Solver:
    """The inner supremum of one problem as a function of λ, keeping what does not depend on λ."""

    def __init__(self, problem: Problem, *, tol: float, max_nodes: int) -> None:
        self.problem = problem
        self.tol = tol
        self.max_nodes = max_nodes
        self._crossing: tuple[FloatArray, FloatArray, FloatArray] | None = None
        self._paths: dict[int, MarginSupremum] = {}
        self.has_paths = MarginSupremum.serves(problem)

    def __call__(self, lam: float, *, tol: float | None = None) -> ExactResult:
        """Solve for every row, with another tolerance where given."""
        problem, tol = self.problem, tol or self.tol
        if problem.model.loss == "zero_one":
            return self._zero_one(lam, tol)
        value, delta = np.full(problem.n, np.inf), np.full_like(problem.X, np.nan)
        escaping = np.asarray(problem.escapes(lam)[problem.index].any(1))
        staying = np.flatnonzero(~escaping)
        for start in range(0, staying.size, _CHUNK):
            rows = staying[start : start + _CHUNK]
            value[rows], delta[rows] = self._finite(rows, lam, tol)
        loss, cost = np.full(problem.n, np.inf), np.zeros(problem.n)
        loss[staying] = problem.losses(staying, delta[staying])
        cost[staying] = problem.costs(delta[staying], lam)
        return self._result(value, delta, loss, cost, lam, escaping, tol)

    def _finite(self, rows: IntArray, lam: float, tol: float) -> tuple[FloatArray, FloatArray]:
        """Upper bounds and moves of rows whose supremum is finite."""
        problem = self.problem
        if problem.box is None and lam in (0.0, np.inf):
            # Nothing escapes, so no move that is left changes the scores.
            return problem.base_losses[rows], np.zeros((rows.size, problem.X.shape[1]))
        if self.has_paths and 0 < lam < np.inf:
            return self._along_paths(rows, lam, tol)
        return self._without_paths(rows, lam, tol)

    def _along_paths(self, rows: IntArray, lam: float, tol: float) -> tuple[FloatArray, FloatArray]:
        """Two classes in a closed box: one dimension along paths that serve every λ."""
        problem, first = self.problem, int(rows[0])
        # Nothing escapes from a closed box, so the same rows come together at every λ.
        if first not in self._paths:
            self._paths[first] = MarginSupremum(problem, rows)
        known = self._paths[first]
        if problem.model.loss == "hinge":
            value, delta = known.hinge(lam)
            stays = ~(value > problem.base_losses[rows])
            value, delta = (
                np.where(stays, problem.base_losses[rows], value),
                np.where(stays[:, None], 0.0, delta),
            )
        else:
            value, delta = known.logistic(lam)
        reached = penalised(problem.losses(rows, delta), problem.costs(delta, lam), lam)
        with np.errstate(invalid="ignore"):
            left = ~(value - reached <= tol * (1.0 + np.abs(value))) | ~known.complete
        if left.any():
            at = np.flatnonzero(left)
            bound, move = self._without_paths(rows[at], lam, tol)
            # Both bounds hold where the path is whole.
            better = ~known.complete[at] | ~(bound > value[at])
            value[at[better]], delta[at[better]] = bound[better], move[better]
        return value, delta

    def _without_paths(self, rows: IntArray, lam: float, tol: float) -> tuple[FloatArray, FloatArray]:
        problem = self.problem
        if problem.model.loss == "hinge":
            return _hinge(problem, rows, lam)
        if problem.model.n_classes == 2 and problem.box is None:
            return _logistic(problem, rows, lam)
        return maximise_cross_entropy(problem, rows, lam, tol=tol, max_nodes=self.max_nodes)

    def _zero_one(self, lam: float, tol: float) -> ExactResult:
        """Stay, or pay the least cost of another decision."""
        problem = self.problem
        if self._crossing is None:
            self._crossing = crossing_costs(problem)
        least, paid, move = self._crossing
        base = problem.base_losses
        if np.isinf(lam):
            least, paid = (np.where(cost <= _NOTHING, 0.0, np.inf) for cost in (least, paid))
        gain = np.where(np.isfinite(least), penalised(np.ones(problem.n), least, lam), -np.inf)
        goes = (gain > base) & np.isfinite(paid)
        value = np.maximum(base, gain)
        delta = np.where(goes[:, None], move, 0.0)
        loss, cost = np.where(goes, 1.0, base), np.where(goes, paid, 0.0)
        return self._result(value, delta, loss, cost, lam, np.zeros(problem.n, dtype=bool), tol)

    def _result(
        self,
        value: FloatArray,
        delta: FloatArray,
        loss: FloatArray,
        cost: FloatArray,
        lam: float,
        escaping: BoolArray,
        tol: float,
    ) -> ExactResult:
        problem = self.problem
        x = problem.X + delta
        with np.errstate(invalid="ignore"):
            short = value - penalised(loss, cost, lam)
        exact = escaping | (short <= tol * (1.0 + np.abs(value)))
        exact &= problem.inside(x) | escaping
        return ExactResult(value, x, loss, cost, exact, lam)


def _logistic(problem: Problem, rows: IntArray, lam: float) -> tuple[FloatArray, FloatArray]:
    """Two classes, no box: one dimension along Σ⁺w."""
    other = 1 - problem.index[rows]
    gain = problem.model.coef[other] - problem.model.coef[problem.index[rows]]
    solved = problem.metric.solve(gain)
    kappa = (gain * solved).sum(1)
    margin = -problem.excess[rows, other]
    value, drop, _ = logistic_supremum(margin, kappa, lam)
    with np.errstate(divide="ignore", invalid="ignore"):
        length = np.where(kappa > 0, drop / kappa, 0.0)
    return value, length[:, None] * solved


def _hinge(problem: Problem, rows: IntArray, lam: float) -> tuple[FloatArray, FloatArray]:
    """The largest of finitely many concave problems, one per other class, and of staying."""
    value = problem.base_losses[rows].copy()
    delta = np.zeros((rows.size, problem.X.shape[1]))
    corners = np.eye(problem.model.n_classes)
    for j in range(problem.model.n_classes):
        moving = np.flatnonzero(problem.index[rows] != j)
        if moving.size == 0:
            continue
        which = rows[moving]
        weights = np.broadcast_to(corners[j], (moving.size, len(corners)))
        bound, move = problem.response(which, problem.gains(which, weights), lam)
        reached = 1.0 + problem.excess[which, j] + bound
        better = reached > value[moving]
        value[moving[better]], delta[moving[better]] = reached[better], move[better]
    return value, delta
