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

from likewise.auditing.bounds.linear.model import (
    BoxResponse,
    CostForm,
    Problem,
    box_slack,
    response_coefficients,
)
from likewise.core.checks import BoolArray, FloatArray, IntArray

# Least fair cost of every change of a margin inside a box: one piecewise quadratic path per row, for all λ
# at once.


# A coordinate whose weight is below this share of the largest does not move the margin.
_UNUSED = 1e-13
# Below this pivot, freeing a coordinate leaves a free direction that nothing holds.
_SINGULAR = 1e-9
# Coordinates that end on their bounds meet or leave them at θ = 0. A breakpoint after which they would go less than
# this share of the box beyond is that end, seen through rounding.
_ROUNDING = 1e-9
# Inverses are computed afresh after so many updates.
_REFRESH = 12


@dataclass(frozen=True, eq=False)
class MarginPath:
    """Vertices of the paths of m rows, from the best corner (first) down to θ = 0 (last).

    Rows whose path has fewer vertices repeat their last one.
    """

    theta: FloatArray
    margin: FloatArray
    cost: FloatArray
    slack: FloatArray
    coefficients: FloatArray
    complete: BoolArray


def follow_margins(form: CostForm, gain: FloatArray, lower: FloatArray, upper: FloatArray) -> MarginPath:
    """Follow the path of every row."""
    walk = _Walk(form, gain, lower, upper)
    vertices = _Vertices(form, gain, lower, upper)
    vertices.add(np.arange(len(gain)), walk)
    rows = np.arange(len(gain))
    for step in range(_most_vertices(gain.shape[1], form.basis.shape[1])):
        if rows.size == 0:
            break
        walk.step(refresh=step % _REFRESH == _REFRESH - 1)
        vertices.add(rows, walk)
        going = walk.theta > 0
        if not going.all():
            rows, walk = rows[going], walk.take(np.flatnonzero(going))
    return vertices.path(unfinished=rows)


def _most_vertices(d: int, k: int) -> int:
    """Breakpoints followed at most: a few times those of a path without a turn."""
    return 20 + 6 * (d + k) + 2 * d * min(k, 8)


class _Walk:
    """Where the rows are on their paths: θ, z, which coordinates are held at a bound, and (Q_CᵀQ_C + N)⁻¹."""

    def __init__(self, form: CostForm, gain: FloatArray, lower: FloatArray, upper: FloatArray) -> None:
        self.Q, self.weights = form.basis, form.penalties / form.top
        self.half, self.lower, self.upper = gain / (2.0 * form.top), lower, upper
        self.fixed = lower == upper
        size = np.abs(self.half)
        unused = size <= _UNUSED * size.max(1, keepdims=True)
        self.half = np.where(unused, 0.0, self.half)
        # Beyond this θ every coordinate that moves the margin is at its bound, whatever z the bounds allow.
        reach = np.maximum(-lower, upper)
        farthest = np.sqrt((reach * reach).sum(1, keepdims=True))
        self.blur = _ROUNDING * farthest
        with np.errstate(divide="ignore", invalid="ignore"):
            times = np.where(unused | self.fixed, 0.0, (reach + farthest) / np.where(unused, 1.0, size))
        self.theta = 2.0 * times.max(1, initial=0.0) + 1e-300
        self.z = response_coefficients(form, self.theta[:, None] * gain, 1.0, lower, upper)
        aim = self._aim()
        # +1 at the upper bound, −1 at the lower one, 0 between them.
        self.side = np.where(aim >= upper, 1, np.where(aim <= lower, -1, 0)).astype(np.int8)
        self.side[self.fixed] = 1
        shape = (len(gain), self.Q.shape[1], self.Q.shape[1])
        # The projection on what nothing holds: no move along it changes the margin or the cost.
        self.inverse, self.loose = np.zeros(shape), np.zeros(shape)
        self._invert()

    def take(self, keep: IntArray) -> _Walk:
        """Return some of the rows."""
        some = object.__new__(_Walk)
        some.Q, some.weights = self.Q, self.weights
        for name in ("half", "lower", "upper", "fixed", "blur", "theta", "z", "side", "inverse", "loose"):
            setattr(some, name, getattr(self, name)[keep])
        return some

    def moves(self) -> FloatArray:
        """Return δ, held coordinates exactly at their bounds."""
        between = np.clip(self._aim(), self.lower, self.upper)
        return np.where(self.side == 0, between, np.where(self.side > 0, self.upper, self.lower))

    def _aim(self) -> FloatArray:
        return np.asarray(self.z @ self.Q.T + self.theta[:, None] * self.half)

    def _invert(self, rows: Any = slice(None)) -> None:
        """Compute inverses afresh; directions of z that nothing holds get 0, so that they stay where they are."""
        k = self.Q.shape[1]
        pairs = (self.Q[:, :, None] * self.Q[:, None, :]).reshape(len(self.Q), k * k)
        held = self.side[rows] != 0
        system = (held.astype(float) @ pairs).reshape(len(held), k, k)
        diagonal = np.arange(k)
        system[:, diagonal, diagonal] += self.weights
        cost, along = np.linalg.eigh(system)
        loose = cost <= _SINGULAR
        with np.errstate(divide="ignore"):
            scaled = along * np.where(loose, 0.0, 1.0 / np.where(loose, 1.0, cost))[:, None, :]
        self.inverse[rows] = scaled @ along.transpose(0, 2, 1)
        self.loose[rows] = (along * loose[:, None, :]) @ along.transpose(0, 2, 1)

    def step(self, *, refresh: bool) -> None:
        """Go down to the next breakpoint of every row, or to θ = 0."""
        if refresh:
            self._invert()
            self._settle()
        free = self.side == 0
        speed = np.einsum("nkl,nl->nk", self.inverse, np.where(free, self.half, 0.0) @ self.Q)
        rate = speed @ self.Q.T + self.half
        time, which, meets = self._next_event(self._aim(), rate, free)
        ends = time >= self.theta
        time = np.where(ends, self.theta, time)
        self.z -= time[:, None] * speed
        self.theta = np.where(ends, 0.0, self.theta - time)
        each = np.flatnonzero(~ends)
        if each.size:
            self._exchange(each, which[each], meets[each], rate[each, which[each]])

    def _settle(self) -> None:
        """Recompute z from the coordinates that are held: small errors do not add up along the path."""
        free = self.side == 0
        held = np.where(free, 0.0, np.where(self.side > 0, self.upper, self.lower))
        right = (held + np.where(free, self.theta[:, None] * self.half, 0.0)) @ self.Q
        # One step of refinement, which leaves directions that nothing holds where they are.
        now = self.z * self.weights + np.where(free, 0.0, self.z @ self.Q.T) @ self.Q
        self.z += np.einsum("nkl,nl->nk", self.inverse, right - now)

    def _next_event(
        self, aim: FloatArray, rate: FloatArray, free: BoolArray
    ) -> tuple[FloatArray, IntArray, BoolArray]:
        """When, for which coordinate, and whether it meets a bound (else it leaves one)."""
        # A free coordinate falls to its lower bound where its rate is positive; a held one comes back inside.
        towards = np.where(rate > 0, self.lower, self.upper)
        bound = np.where(free, towards, np.where(self.side > 0, self.upper, self.lower))
        possible = (rate != 0) & ~self.fixed & (free | (rate * self.side > 0))
        # Where the coordinate would be at θ = 0, seen from the bound.
        beyond = np.abs(aim - self.theta[:, None] * rate - bound)
        possible &= beyond > self.blur
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            time = np.where(possible, np.maximum((aim - bound) / rate, 0.0), np.inf)
        which = time.argmin(1)
        each = np.arange(len(time))
        return time[each, which], which, free[each, which]

    def _exchange(self, rows: IntArray, which: IntArray, meets: BoolArray, rate: FloatArray) -> None:
        """Let a coordinate of each row meet or leave its bound; pivot where leaving would let z go."""
        joins = meets
        self._hold(rows[joins], which[joins], np.where(rate[joins] > 0, -1, 1))
        rows, which = rows[~joins], which[~joins]
        q = self.Q[which]
        along = np.einsum("nkl,nl->nk", self.inverse[rows], q)
        pivot = 1.0 - (along * q).sum(1)
        loose = pivot <= _SINGULAR
        self._release(rows[~loose], which[~loose], along[~loose], pivot[~loose])
        if loose.any():
            self._slide(rows[loose], which[loose], along[loose])

    def _hold(self, rows: IntArray, which: IntArray, side: Any) -> None:
        self.side[rows, which] = side
        q = self.Q[which]
        along = np.einsum("nkl,nl->nk", self.inverse[rows], q)
        shrink = along[:, :, None] * along[:, None, :] / (1.0 + (along * q).sum(1))[:, None, None]
        self.inverse[rows] -= shrink
        newly = (np.einsum("nkl,nl->nk", self.loose[rows], q) ** 2).sum(1) > _SINGULAR**2
        if newly.any():
            self._invert(rows[newly])

    def _release(self, rows: IntArray, which: IntArray, along: FloatArray, pivot: FloatArray) -> None:
        self.side[rows, which] = 0
        self.inverse[rows] += along[:, :, None] * along[:, None, :] / pivot[:, None, None]

    def _slide(self, rows: IntArray, which: IntArray, along: FloatArray) -> None:
        """Move z at the same θ along the edge that opens, until the next coordinate meets a bound."""
        inwards = -self.side[rows, which].astype(float)
        step = along * inwards[:, None]
        self.side[rows, which] = 0
        change = step @ self.Q.T
        change = np.where(self.side[rows] == 0, change, 0.0)
        aim = self.z[rows] @ self.Q.T + self.theta[rows, None] * self.half[rows]
        # The one that leaves starts exactly at its bound.
        each = np.arange(len(rows))
        aim[each, which] = np.where(inwards < 0, self.upper[rows, which], self.lower[rows, which])
        towards = np.where(change > 0, self.upper[rows], self.lower[rows])
        tiny = np.abs(change) <= 1e-12 * np.abs(change).max(1, keepdims=True)
        with np.errstate(divide="ignore", invalid="ignore"):
            length = np.where(tiny, np.inf, np.maximum((towards - aim) / change, 0.0))
        meets = length.argmin(1)
        self.z[rows] += length[each, meets][:, None] * step
        side = np.where(change[each, meets] > 0, 1, -1)
        back = meets == which
        self.side[rows[back], which[back]] = side[back]
        rows, which, meets, side = rows[~back], which[~back], meets[~back], side[~back]
        self._hold(rows, meets, side)
        q = self.Q[which]
        along = np.einsum("nkl,nl->nk", self.inverse[rows], q)
        self._release(rows, which, along, np.maximum(1.0 - (along * q).sum(1), 1e-15))


class _Vertices:
    """The vertices met so far, with the certificate of each piece between two."""

    def __init__(self, form: CostForm, gain: FloatArray, lower: FloatArray, upper: FloatArray) -> None:
        self.form, self.gain, self.lower, self.upper = form, gain, lower, upper
        m, k = len(gain), form.basis.shape[1]
        self.theta, self.margin, self.cost = np.zeros(m), np.zeros(m), np.zeros(m)
        self.z = np.zeros((m, k))
        self.slope, self.delta = np.zeros_like(gain), np.zeros_like(gain)
        self.layers: list[tuple[FloatArray, ...]] = []

    def add(self, rows: IntArray, walk: _Walk) -> None:
        """Note down where the rows are now; the others stay."""
        delta, gain = walk.moves(), self.gain[rows]
        slope = walk.theta[:, None] * gain - 2.0 * self.form.apply(delta)
        slack = np.zeros(len(self.gain))
        if self.layers:
            slack[rows] = self._slack(rows, slope, delta)
        self.theta[rows], self.z[rows] = walk.theta, walk.z
        self.margin[rows] = (gain * delta).sum(1)
        self.cost[rows] = self.form.squared_norm(delta)
        self.slope[rows], self.delta[rows] = slope, delta
        self.layers.append((self.theta.copy(), self.margin.copy(), self.cost.copy(), slack, self.z.copy()))

    def _slack(self, rows: IntArray, slope: FloatArray, delta: FloatArray) -> FloatArray:
        """Certificate of a piece: the gap is at most bilinear in how far along it one is."""
        low, high = self.lower[rows], self.upper[rows]
        before, came = self.slope[rows], self.delta[rows]
        ends = np.maximum(box_slack(before, came, low, high), box_slack(slope, delta, low, high))
        cross = (box_slack(before, delta, low, high) + box_slack(slope, came, low, high)) / 2.0
        return np.maximum(ends, cross)

    def path(self, *, unfinished: IntArray) -> MarginPath:
        """Put the layers together."""
        theta, margin, cost, slack, z = (np.stack(part) for part in zip(*self.layers, strict=True))
        complete = np.isfinite(margin).all(0) & np.isfinite(cost).all(0) & np.isfinite(slack).all(0)
        complete[unfinished] = False
        return MarginPath(theta, margin, cost, slack[1:], z, complete)


_NEWTON_STEPS = 60


@dataclass(frozen=True, eq=False)
class _Spot:
    """A place on the path of each row: a share `part` of the piece between vertices `piece` and `piece` + 1."""

    piece: IntArray
    part: FloatArray


class MarginSupremum:
    """Suprema of some rows of a problem, for every λ."""

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
        """Return upper bounds of sup log(1 + exp(t − m)) − λ c(t), and the moves that attain them."""
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
