"""Least fair cost of every change of a margin inside a box: one piecewise quadratic path per row, for all λ at once.

A binary linear model sees a move δ only through t = gᵀδ, so all that its inner supremum needs is

    c(t) = min of δᵀΣδ over lower ≤ δ ≤ upper with gᵀδ = t,

which is convex. Its slope θ = c′(t) sets the moves: δ(θ) = argmax over the box of θ gᵀδ − δᵀΣδ. With the split of
`box_response` (δᵀΣδ = min over z of s‖δ − Qz‖² + Σ ν_k z_k²) that is δ = clip(Qz + θg/2s), and z(θ) is piecewise
linear (a parametric quadratic programme; Best 1996). The path is followed from the best corner of the box (θ = ∞)
down to the moves that cost nothing (θ = 0): from breakpoint to breakpoint a coordinate leaves its bound or meets
one, and a K × K inverse is updated by rank one. Where directions are free and too few coordinates hold them, freeing
one more is an edge of the linear programme: θ stays and z goes to the next bound, as a simplex pivot does.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from likewise.auditing.bounds.linear.box_response import CostForm, box_slack, response_coefficients
from likewise.core.arrays import FloatArray

__all__ = ["MarginPath", "follow_margins"]

BoolArray = np.ndarray[Any, np.dtype[np.bool_]]
IntArray = np.ndarray[Any, np.dtype[np.intp]]

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

    Parameters
    ----------
    theta, margin, cost : arrays of shape (V, m)
        θ, t = gᵀδ and δᵀΣδ at each vertex; all three fall from vertex to vertex.
    slack : array of shape (V − 1, m)
        How far above θ gᵀδ − δᵀΣδ its maximum over the box may lie between two vertices: rounding.
    coefficients : array of shape (V, m, K)
        z at each vertex.
    free_bound : array of shape (m,)
        Upper bound of gᵀδ among the moves that cost nothing, by the multipliers of its linear programme.
    complete : bool array of shape (m,)
        Rows whose path was followed to its end.
    """

    theta: FloatArray
    margin: FloatArray
    cost: FloatArray
    slack: FloatArray
    coefficients: FloatArray
    free_bound: FloatArray
    complete: BoolArray


def follow_margins(form: CostForm, gain: FloatArray, lower: FloatArray, upper: FloatArray) -> MarginPath:
    """Follow the path of every row.

    Parameters
    ----------
    form : CostForm
        The fair cost, with a largest eigenvalue above 0.
    gain : array of shape (m, d)
        g of each row.
    lower, upper : finite arrays of shape (m, d)
        Bounds of the moves; lower ≤ 0 ≤ upper.

    Returns
    -------
    MarginPath

    Examples
    --------
    One coordinate, unit cost, at most 2 away: c(t) = t², so θ = 2t up to the bound.

    >>> form = CostForm(1.0, np.zeros((1, 0)), np.zeros(0))
    >>> path = follow_margins(form, np.array([[1.0]]), np.array([[-2.0]]), np.array([[2.0]]))
    >>> path.margin[:, 0].tolist(), path.cost[-2:, 0].tolist(), path.theta[-2:, 0].tolist()
    ([2.0, 2.0, 0.0], [4.0, 0.0], [4.0, 0.0])
    """
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
        self.free_bound = np.full(m, np.inf)
        self.layers: list[tuple[FloatArray, ...]] = []

    def add(self, rows: IntArray, walk: _Walk) -> None:
        """Note down where the rows are now; the others stay."""
        delta, gain = walk.moves(), self.gain[rows]
        slope = walk.theta[:, None] * gain - 2.0 * self.form.apply(delta)
        slack = np.zeros(len(self.gain))
        if self.layers:
            slack[rows] = self._slack(rows, slope, delta, walk.theta)
        self.theta[rows], self.z[rows] = walk.theta, walk.z
        self.margin[rows] = (gain * delta).sum(1)
        self.cost[rows] = self.form.squared_norm(delta)
        self.slope[rows], self.delta[rows] = slope, delta
        self.layers.append((self.theta.copy(), self.margin.copy(), self.cost.copy(), slack, self.z.copy()))

    def _slack(self, rows: IntArray, slope: FloatArray, delta: FloatArray, theta: FloatArray) -> FloatArray:
        """Certificate of a piece: the gap is at most bilinear in how far along it one is."""
        low, high = self.lower[rows], self.upper[rows]
        before, came = self.slope[rows], self.delta[rows]
        ends = np.maximum(box_slack(before, came, low, high), box_slack(slope, delta, low, high))
        cross = (box_slack(before, delta, low, high) + box_slack(slope, came, low, high)) / 2.0
        last = np.flatnonzero(theta == 0)
        if last.size:
            # On the last piece 2Σδ = θv: for moves u that cost nothing gᵀu = (g − v)ᵀu.
            with np.errstate(divide="ignore", invalid="ignore"):
                multiplier = (before[last] - slope[last]) / self.theta[rows[last], None]
            bound = np.maximum(multiplier * low[last], multiplier * high[last]).sum(1)
            self.free_bound[rows[last]] = np.where(np.isnan(bound), np.inf, bound)
        return np.maximum(ends, cross)

    def path(self, *, unfinished: IntArray) -> MarginPath:
        """Put the layers together."""
        theta, margin, cost, slack, z = (np.stack(part) for part in zip(*self.layers, strict=True))
        complete = np.isfinite(margin).all(0) & np.isfinite(cost).all(0) & np.isfinite(slack).all(0)
        complete[unfinished] = False
        return MarginPath(theta, margin, cost, slack[1:], z, self.free_bound, complete)
