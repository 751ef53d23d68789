"""What it costs at least to make a linear model decide differently: the exact 0–1 audit."""

from __future__ import annotations

import numpy as np

from likewise.auditing.bounds.linear.linear_problem import IntArray, Problem
from likewise.auditing.bounds.linear.margin_supremum import MarginSupremum
from likewise.core.arrays import FloatArray

__all__ = ["crossing_costs"]

# The move that is shown goes this much past the border, since on it the two scores tie.
_PAST = 1e-11
_MAX_STEPS = 60
_CHUNK = 4096


def crossing_costs(problem: Problem) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Least fair cost at which each row's decision leaves its label.

    Parameters
    ----------
    problem : Problem
        The rows.

    Returns
    -------
    cost : array of shape (n,)
        A lower bound of the least cost, inf where no other decision can be reached; 0 for rows that are
        decided wrongly already.
    attained : array of shape (n,)
        Cost of the moves below; the least cost lies between the two.
    delta : array of shape (n, d)
        Moves that go just past the border, not a number where none was found.
    """
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
        solve = _cross_along_paths if MarginSupremum.serves(problem) else solve
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


def _cross_along_paths(
    problem: Problem, rows: IntArray, gain: FloatArray, margin: FloatArray
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Two classes in a closed box: the cost is read off the path of each row at its own margin."""
    cost, attained, delta = np.empty(rows.size), np.empty(rows.size), np.empty_like(gain)
    for start in range(0, rows.size, _CHUNK):
        some = slice(start, start + _CHUNK)
        known = MarginSupremum(problem, rows[some])
        least, move = known.crossing()
        _, corner = problem.response(rows[some], gain[some], 0.0)
        found = _shown_crossing(problem, gain[some], margin[some], least, move, corner)
        cost[some], attained[some], delta[some] = found
        left = np.flatnonzero(~known.complete)
        if left.size:
            at = left + start
            cost[at], attained[at], delta[at] = _cross_in_box(problem, rows[at], gain[at], margin[at])
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
    for step in range(_MAX_STEPS):
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
