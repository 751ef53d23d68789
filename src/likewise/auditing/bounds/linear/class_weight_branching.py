"""Global maximum of cross-entropy minus fair cost by branch and bound over class weights.

The cross-entropy is a maximum itself: log Σ exp(v_j) = max over p in the simplex of pᵀv + H(p). So

    sup over x of loss − λ d²  =  max over p of H(p) + G(p),   G(p) = max over x of pᵀv(x) − λ d²,

with G convex and cheap (the best response to one linear gain) and the entropy H concave. On a small simplex
with vertices u_k, G lies below the interpolation of its values at the vertices, and H below −Σ p log q for
any q (Gibbs). Both bounds close as the simplices shrink. Two classes are the case of one dimension.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from likewise.auditing.bounds.linear.linear_problem import IntArray, Problem, penalised
from likewise.core.arrays import FloatArray

__all__ = ["maximise_cross_entropy"]

_BLAHUT_STEPS = 30
_MAX_LEVELS = 60


@dataclass
class _Nodes:
    """Open simplices.

    Whose row (N,), the vertices (N, C, C), bounds of G at the vertices and how far above G they may be
    (N, C), bound of the simplex (N,).
    """

    row: IntArray
    vertex: FloatArray
    value: FloatArray
    slack: FloatArray
    bound: FloatArray

    def take(self, at: IntArray) -> _Nodes:
        return _Nodes(self.row[at], self.vertex[at], self.value[at], self.slack[at], self.bound[at])


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
    """Bound and best move of the inner supremum for the given rows.

    Parameters
    ----------
    problem : Problem
        With cross-entropy as its loss, and no escape for these rows.
    rows : int array of shape (m,)
        Which rows.
    lam : float
        λ ≥ 0.
    tol : float
        A row is done when its bound is within tol · (1 + value) of what was attained.
    max_nodes : int
        Open simplices a row may have before it stops with the bound it has.

    Returns
    -------
    bound : array of shape (m,)
        At least the supremum.
    delta : array of shape (m, d)
        The best moves found.
    """
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
