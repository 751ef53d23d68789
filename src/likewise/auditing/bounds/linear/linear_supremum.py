"""The exact inner supremum of linear models, ℓ^c_λ of equation 4 of the paper, row by row."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from typing import Any

import numpy as np

from likewise.auditing.bounds.linear.class_weight_branching import maximise_cross_entropy
from likewise.auditing.bounds.linear.closed_form import logistic_supremum
from likewise.auditing.bounds.linear.decision_crossing import crossing_costs
from likewise.auditing.bounds.linear.linear_problem import IntArray, Problem, penalised
from likewise.auditing.bounds.linear.margin_supremum import MarginSupremum
from likewise.core.arrays import FloatArray
from likewise.core.checks import check_number

__all__ = ["ExactResult", "ExactStatus", "Solver", "exact_supremum"]

_CHUNK = 4096
# A squared fair distance that is rounding.
_NOTHING = 1e-12


class ExactStatus(IntEnum):
    """What is known about a row's supremum.

    Examples
    --------
    >>> ExactStatus(3).name
    'UNBOUNDED'
    """

    ATTAINED = 0  #: `x` attains the supremum.
    APPROACHED = 1  #: The supremum is a limit (the other side of a decision border); `x` is just past it.
    OVERESTIMATED = 2  #: `value` is an upper bound, and `x` attains less.
    UNBOUNDED = 3  #: The loss grows without end in a direction that costs nothing: the value is infinite.


@dataclass(frozen=True, eq=False)
class ExactResult:
    """The inner supremum of each row.

    Parameters
    ----------
    value : array of shape (n,)
        sup over x of loss − λ d², never less than it; inf where it is unbounded.
    x : array of shape (n, d)
        The rows that attain it (or the best found); not a number where it is unbounded.
    loss : array of shape (n,)
        Loss at `x`; inf where unbounded.
    squared_distance : array of shape (n,)
        Squared fair distance from the row to `x`; 0 where unbounded.
    exact : bool array of shape (n,)
        Whether `value` is the supremum itself, up to the tolerance, rather than an over-estimate.
    status : int8 array of shape (n,)
        Codes of `ExactStatus`.
    lam : float
        λ.
    """

    value: FloatArray
    x: FloatArray
    loss: FloatArray
    squared_distance: FloatArray
    exact: np.ndarray[Any, np.dtype[np.bool_]]
    status: np.ndarray[Any, np.dtype[np.int8]]
    lam: float

    @property
    def attained(self) -> FloatArray:
        """What the rows `x` reach, loss − λ d²: a lower bound of the supremum, shape (n,)."""
        return penalised(self.loss, self.squared_distance, self.lam)


def exact_supremum(
    model: Any,
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

    Parameters
    ----------
    model : LinearModel, or anything `LinearModel.from_model` reads
        Logistic or softmax regression, or a linear model under hinge or 0–1 loss.
    X : array of shape (n, d)
        Rows as the model sees them.
    y : array of shape (n,)
        Their labels.
    metric : FairMetric
        Without a feature map.
    lam : float
        λ ≥ 0; infinity leaves only moves that cost nothing.
    domain : Domain, optional
        Where rows may go. None and `Unbounded` are everywhere; other domains are used through the box around
        them (and their immutable columns), widened to a row that lies outside it.
    tol : float, default=1e-8
        How close bound and attained value must be, relative to 1 + value, for a row to count as exact.
    max_nodes : int, default=500
        Effort of the branch and bound per row (cross-entropy in a box or with three classes and more). A row
        that needs more keeps a valid over-estimate, marked as such.

    Returns
    -------
    ExactResult

    Notes
    -----
    Without a box: one dimension, in closed form or by Newton's method to rounding, for two classes and for
    hinge and 0–1 loss with any number of classes. Two classes in a closed box: one dimension along a path of moves
    that is followed once per row (`margin_path`). Otherwise, and for cross-entropy with more classes: branch and
    bound, which gives a guaranteed upper bound beside the attained value.

    Examples
    --------
    >>> from likewise.fair_metrics import euclidean
    >>> from likewise.auditing.bounds.linear import LinearModel, exact_supremum
    >>> model = LinearModel([1.0, 0.0], 0.0, loss="hinge")
    >>> result = exact_supremum(model, [[2.0, 0.0]], [1], metric=euclidean(), lam=0.125)
    >>> result.value, result.x, result.squared_distance
    (array([1.]), array([[-2.,  0.]]), array([16.]))
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
        if self.has_paths:
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
        return _cross_entropy(problem, rows, lam, tol, self.max_nodes)

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
        result = self._result(value, delta, loss, cost, lam, np.zeros(problem.n, dtype=bool), tol)
        limit = goes & (base < 1.0) & result.exact
        status = np.where(limit, ExactStatus.APPROACHED, result.status).astype(np.int8)
        return ExactResult(value, result.x, loss, cost, result.exact, status, lam)

    def _result(
        self,
        value: FloatArray,
        delta: FloatArray,
        loss: FloatArray,
        cost: FloatArray,
        lam: float,
        escaping: np.ndarray[Any, np.dtype[np.bool_]],
        tol: float,
    ) -> ExactResult:
        problem = self.problem
        x = problem.X + delta
        with np.errstate(invalid="ignore"):
            short = value - penalised(loss, cost, lam)
        exact = escaping | (short <= tol * (1.0 + np.abs(value)))
        exact &= problem.inside(x) | escaping
        status = np.where(exact, ExactStatus.ATTAINED, ExactStatus.OVERESTIMATED)
        status = np.where(escaping, ExactStatus.UNBOUNDED, status).astype(np.int8)
        return ExactResult(value, x, loss, cost, exact, status, lam)


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


def _cross_entropy(
    problem: Problem, rows: IntArray, lam: float, tol: float, max_nodes: int
) -> tuple[FloatArray, FloatArray]:
    """Cross-entropy with a box or with more classes: concave where λ is large, else branch and bound."""
    if problem.box is not None or not _is_concave(problem, lam):
        return maximise_cross_entropy(problem, rows, lam, tol=tol, max_nodes=max_nodes)
    value, delta, left = _concave(problem, rows, lam, tol)
    if left.any():
        value[left], delta[left] = maximise_cross_entropy(
            problem, rows[left], lam, tol=tol, max_nodes=max_nodes
        )
    return value, delta


def _is_concave(problem: Problem, lam: float) -> bool:
    """Whether H(p) + pᵀKp / 4λ is concave on the simplex: curvature of the entropy is at least 2 there."""
    centred = problem.model.coef - problem.model.coef.mean(0)
    curvature = np.linalg.eigvalsh(centred @ problem.metric.solve(centred).T / (2.0 * lam))
    return bool(curvature[-1] < 2.0)


def _concave(
    problem: Problem, rows: IntArray, lam: float, tol: float
) -> tuple[FloatArray, FloatArray, np.ndarray[Any, np.dtype[np.bool_]]]:
    """Fixed point p = softmax(v + Kp/2λ); the gradient at p certifies the value. Also says who is not done."""
    coef, own = problem.model.coef, problem.model.coef[problem.index[rows]]
    weights = np.eye(problem.model.n_classes)[problem.index[rows]]
    start = problem.excess[rows]
    for _ in range(1000):
        delta = problem.metric.solve(weights @ coef - own) / (2.0 * lam)
        scores = start + delta @ coef.T - (delta * own).sum(1, keepdims=True)
        following = np.exp(scores - scores.max(1, keepdims=True))
        following /= following.sum(1, keepdims=True)
        moved = np.abs(following - weights).max()
        weights = following
        if moved < 1e-14:
            break
    delta = problem.metric.solve(weights @ coef - own) / (2.0 * lam)
    scores = start + delta @ coef.T - (delta * own).sum(1, keepdims=True)
    with np.errstate(divide="ignore", invalid="ignore"):
        logs = np.where(weights > 0, np.log(weights), -745.0)
    # f(p) + max_j ∇_j − ∇ᵀp bounds a concave f; here f − ∇ᵀp is −pᵀKp / 4λ.
    value = (scores - logs).max(1) - lam * problem.squared_norm(delta)
    reached = problem.losses(rows, delta) - lam * problem.squared_norm(delta)
    return value, delta, value > reached + tol * (1.0 + np.abs(reached))
