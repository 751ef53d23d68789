"""The inner supremum of a binary linear model in a closed box, read off the path of its margins for any λ.

Along `MarginPath` the fair cost c(t) of lowering the margin by t is quadratic between vertices, so what is left is to
maximise ℓ(t − m) − λ c(t) over t, one dimension per row. The path does not depend on λ: it is followed once, and a
whole dual costs little more than one supremum.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import expit

from likewise.auditing.bounds.linear.box_response import BoxResponse, box_slack, shorten
from likewise.auditing.bounds.linear.linear_problem import IntArray, Problem
from likewise.auditing.bounds.linear.margin_path import MarginPath, follow_margins
from likewise.core.arrays import FloatArray

__all__ = ["MarginSupremum"]

BoolArray = np.ndarray[Any, np.dtype[np.bool_]]

_NEWTON_STEPS = 60
# A direction this cheap, relative to the dearest, costs nothing.
_FREE = 1e-12


@dataclass(frozen=True, eq=False)
class _Spot:
    """A place on the path of each row: a share `part` of the piece between vertices `piece` and `piece` + 1."""

    piece: IntArray
    part: FloatArray


class MarginSupremum:
    """Suprema of some rows of a problem, for every λ.

    Parameters
    ----------
    problem : Problem
        Of two classes, in a closed box; ask `serves`.
    rows : int array of shape (m,)
        Which rows.
    """

    def __init__(self, problem: Problem, rows: IntArray) -> None:
        assert problem.box is not None
        self._box: BoxResponse = problem.box
        self._lower, self._upper = problem.box.lower[rows], problem.box.upper[rows]
        other = 1 - problem.index[rows]
        self.margin = -problem.excess[rows, other]
        self.gain = problem.model.coef[other] - problem.model.coef[problem.index[rows]]
        self.path: MarginPath = follow_margins(problem.box.form, self.gain, self._lower, self._upper)

    @staticmethod
    def serves(problem: Problem) -> bool:
        """Whether a problem has two classes and a box with no open side."""
        box = problem.box
        if problem.model.n_classes != 2 or box is None or box.rotation is not None or box.form.top == 0:
            return False
        return bool(np.isfinite(box.lower).all() and np.isfinite(box.upper).all())

    @property
    def complete(self) -> BoolArray:
        """Rows whose path was followed to its end; nothing is known about the others."""
        return self.path.complete

    def logistic(self, lam: float) -> tuple[FloatArray, FloatArray]:
        """Return upper bounds of sup log(1 + exp(t − m)) − λ c(t), and the moves that attain them.

        Parameters
        ----------
        lam : float
            λ ≥ 0; infinity leaves moves that cost nothing.
        """
        if lam == 0 or np.isinf(lam):
            most, delta = self._ends(lam)
            return np.logaddexp(0.0, most - self.margin), delta
        path, m = self.path, self.margin
        value = np.logaddexp(0.0, path.margin - m) - lam * path.cost
        each = np.arange(len(m))
        vertex = value.argmax(0)
        best = value[vertex, each]
        last = len(path.theta) - 2
        spot = _Spot(np.minimum(vertex, last), (vertex > last).astype(float))
        spot, best = self._inner_maxima(lam, spot, best)
        return best + lam * self._rounding(lam), self._moves(spot)

    def hinge(self, lam: float) -> tuple[FloatArray, FloatArray]:
        """Return upper bounds of sup 1 + t − m − λ c(t), the branch of the hinge that is not 0, and the moves."""
        if lam == 0 or np.isinf(lam):
            most, delta = self._ends(lam)
            return 1.0 + most - self.margin, delta
        # The slope of λc is 1 there.
        path, target = self.path, 1.0 / lam
        piece = np.clip((path.theta > target).sum(0) - 1, 0, len(path.theta) - 2)
        each = np.arange(len(piece))
        high, low = path.theta[piece, each], path.theta[piece + 1, each]
        width = high - low
        part = np.clip(np.where(width > 0, (high - target) / np.where(width > 0, width, 1.0), 0.0), 0.0, 1.0)
        spot = _Spot(piece, part)
        margin, cost = self._seen(spot)
        return 1.0 + margin - self.margin - lam * cost + lam * self._rounding(lam), self._moves(spot)

    def crossing(self) -> tuple[FloatArray, FloatArray]:
        """Return lower bounds of the cost at which the margin reaches 0 (inf where it cannot), and the moves."""
        path = self.path
        passed = np.clip((path.margin >= self.margin).sum(0) - 1, 0, len(path.theta) - 2)
        each = np.arange(len(passed))
        high, low = path.margin[passed, each], path.margin[passed + 1, each]
        width = high - low
        part = np.where(width > 0, (high - self.margin) / np.where(width > 0, width, 1.0), 0.0)
        spot = _Spot(passed, np.clip(part, 0.0, 1.0))
        cost = np.maximum(self._seen(spot)[1] - path.slack.max(0, initial=0.0), 0.0)
        reach = box_slack(self.gain, np.zeros_like(self.gain), self._lower, self._upper)
        return np.where(reach >= self.margin, cost, np.inf), self._moves(spot)

    def _ends(self, lam: float) -> tuple[FloatArray, FloatArray]:
        """Upper bound of t and the move, at the best corner (λ = 0) or at no cost (λ = ∞)."""
        n = len(self.margin)
        if lam == 0:
            start = _Spot(np.zeros(n, dtype=np.intp), np.zeros(n))
            reach = box_slack(self.gain, np.zeros_like(self.gain), self._lower, self._upper)
            return reach, self._moves(start)
        form = self._box.form
        free = form.costs <= _FREE * form.top
        if not free.any():
            return np.zeros(n), np.zeros_like(self.gain)
        move = (self.path.coefficients[-1] * free) @ form.basis.T
        return self.path.free_bound, shorten(move, self._lower, self._upper)

    def _rounding(self, lam: float) -> FloatArray:
        """Largest slack of the pieces that matter: beyond θ = 1/λ the loss never pays for a move."""
        matters = self.path.theta[1:] * lam < 1.0
        return np.asarray(np.where(matters, self.path.slack, 0.0).max(0, initial=0.0))

    def _seen(self, spot: _Spot) -> tuple[FloatArray, FloatArray]:
        """Return t and c at places on the path."""
        path, each = self.path, np.arange(len(spot.piece))
        low = 1.0 - spot.part
        t1, t0 = path.margin[spot.piece, each], path.margin[spot.piece + 1, each]
        h1, h0 = path.theta[spot.piece, each], path.theta[spot.piece + 1, each]
        # θ is linear along a piece, and c its integral.
        cost = path.cost[spot.piece + 1, each] + low * (t1 - t0) * (h0 + low * (h1 - h0) / 2.0)
        return t0 + low * (t1 - t0), cost

    def _moves(self, spot: _Spot) -> FloatArray:
        path, form, each = self.path, self._box.form, np.arange(len(spot.piece))
        z1, z0 = path.coefficients[spot.piece, each], path.coefficients[spot.piece + 1, each]
        h1, h0 = path.theta[spot.piece, each], path.theta[spot.piece + 1, each]
        z = z1 + spot.part[:, None] * (z0 - z1)
        theta = h1 + spot.part * (h0 - h1)
        centre = theta[:, None] * self.gain / (2.0 * form.top)
        return np.clip(z @ form.basis.T + centre, self._lower, self._upper)

    def _inner_maxima(self, lam: float, spot: _Spot, best: FloatArray) -> tuple[_Spot, FloatArray]:
        """Look for maxima between vertices, where tangents of c do not rule them out."""
        path, m = self.path, self.margin
        width = path.margin[:-1] - path.margin[1:]
        # The two tangents of a quadratic piece meet in its middle, and the loss is convex.
        middle = path.margin[1:] + width / 2.0
        ceiling = np.logaddexp(0.0, middle - m) - lam * (path.cost[1:] + path.theta[1:] * width / 2.0)
        piece, row = np.nonzero((ceiling > best) & (width > 0))
        if row.size == 0:
            return spot, best
        value, place = _piece_maxima(
            (path.margin[piece + 1, row], path.margin[piece, row]),
            (path.theta[piece + 1, row], path.theta[piece, row]),
            path.cost[piece + 1, row],
            m[row],
            lam,
        )
        order = np.argsort(value, kind="stable")
        order = order[value[order] > best[row[order]]]
        # The last assignment of a row wins, and the values rise.
        at, share = spot.piece.copy(), spot.part.copy()
        at[row[order]], share[row[order]] = piece[order], 1.0 - place[order]
        found = best.copy()
        found[row[order]] = value[order]
        return _Spot(at, share), found


def _piece_maxima(
    ends: tuple[FloatArray, FloatArray],
    slopes: tuple[FloatArray, FloatArray],
    cost: FloatArray,
    m: FloatArray,
    lam: float,
) -> tuple[FloatArray, FloatArray]:
    """Largest inner maximum of log(1 + exp(t − m)) − λc on pieces where c is quadratic, and how far along it lies.

    Without an inner maximum the value is −inf. The second derivative σ′(t − m) − λc″ is positive between two points
    at most, so each piece has at most two concave parts, with at most one root of the first derivative in each.
    """
    (t0, t1), (h0, h1) = ends, slopes
    bend = lam * (h1 - h0) / (t1 - t0)
    root = np.sqrt(np.maximum(1.0 - 4.0 * bend, 0.0))
    with np.errstate(divide="ignore"):
        # σ(1 − σ) = bend at a distance of log((1 + root)/(1 − root)) from m.
        turn = np.where(bend < 0.25, 2.0 * np.log1p(root) - np.log(4.0 * bend), 0.0)
    best, place = np.full(len(m), -np.inf), np.zeros(len(m))
    for left, right in ((t0, np.minimum(t1, m - turn)), (np.maximum(t0, m + turn), t1)):
        t = _root(left, right, t0, h0, bend, m, lam)
        along = t - t0
        with np.errstate(invalid="ignore"):
            value = np.logaddexp(0.0, t - m) - lam * (cost + h0 * along) - bend * along * along / 2.0
        better = value > best
        best, place = np.where(better, value, best), np.where(better, along / (t1 - t0), place)
    return best, place


def _root(
    left: FloatArray,
    right: FloatArray,
    t0: FloatArray,
    h0: FloatArray,
    bend: FloatArray,
    m: FloatArray,
    lam: float,
) -> FloatArray:
    """Root of σ(t − m) − λθ(t), which falls between left and right; not a number where there is none."""

    def slope(t: FloatArray, at: Any) -> FloatArray:
        return np.asarray(expit(t - m[at]) - lam * h0[at] - bend[at] * (t - t0[at]))

    found = np.full(len(m), np.nan)
    at = np.flatnonzero(left < right)
    at = at[(slope(left[at], at) > 0) & (slope(right[at], at) < 0)]
    low, high = left[at], right[at]
    t = (low + high) / 2.0
    for _ in range(_NEWTON_STEPS):
        if at.size == 0:
            break
        rise = slope(t, at)
        low, high = np.where(rise > 0, t, low), np.where(rise > 0, high, t)
        odds = expit(t - m[at])
        with np.errstate(divide="ignore", invalid="ignore"):
            newton = t - rise / (odds * (1.0 - odds) - bend[at])
        following = np.where((newton > low) & (newton < high), newton, (low + high) / 2.0)
        moved = np.abs(following - t)
        found[at] = following
        going = moved > 1e-14 * (1.0 + np.abs(following))
        at, low, high, t = at[going], low[going], high[going], following[going]
    return found
