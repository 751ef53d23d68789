"""How far a row may go along the free directions without leaving the domain."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import torch

from likewise.auditing.search.gradient.spaces import LONGEST_FREE, Move, Point, Space, of_length, row_dot
from likewise.core.checks import to_numpy
from likewise.data.domain import BoxDomain, DataRangeDomain, Domain, Unbounded
from likewise.data.tabular import TabularDomain
from likewise.models.oracle import FoldedOracle, Oracle, SingleLayer

# Where free directions cut a box: the rows of a closed box that lie in x + span(Q), as limits on K
# coefficients.


_PIVOTS = 40
_TOL = 1e-9
_TINY = 1e-11


@dataclass(frozen=True)
class BoxSection:
    """The polytope lower ≤ x + Qz ≤ upper of each row."""

    basis: torch.Tensor
    lower: torch.Tensor
    upper: torch.Tensor
    fixed: torch.Tensor

    def slide(self, z: torch.Tensor, step: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
        """Go a step (n, K) from z, along the faces that stop it; return what was gone.

        On every face the rest of the step goes on without its part across that face, so the step never turns against
        itself: gone · step ≥ 0.
        """
        Q, low, high = self._around(x)
        begun, rest = z.double(), step.double()
        at, active = begun, torch.full(z.shape, -1, dtype=torch.int64, device=z.device)
        along = torch.eye(z.shape[1], dtype=Q.dtype, device=z.device).repeat(len(z), 1, 1)
        for k in range(z.shape[1]):
            room, blocked, _ = _room(Q, at, rest, low, high, active)
            share = room.clamp(max=1.0)
            at = torch.addcmul(at, rest, share[:, None])
            active[:, k] = blocked
            along = _along_face(along, Q[blocked])
            rest = torch.einsum("nkl,nl->nk", along, rest * (1.0 - share)[:, None])
        return (_shorten(Q, at, low, high) - begun).to(z.dtype)

    def vertex(self, gradient: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
        """Return the vertex with the largest gradientᵀz, (n, K): a linear programme per row, by the simplex method."""
        Q, low, high = self._around(x)
        return _shorten(Q, _best_vertex(Q, gradient.double(), low, high), low, high).to(gradient.dtype)

    def _around(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """Q, and the room of each row below and above it, which holds 0 even where the row lies outside."""
        rows = x.double()
        low = (self.lower.double() - rows).clamp(max=0.0).masked_fill(self.fixed, 0.0)
        high = (self.upper.double() - rows).clamp(min=0.0).masked_fill(self.fixed, 0.0)
        return self.basis.double(), low, high


def _shorten(Q: torch.Tensor, z: torch.Tensor, low: torch.Tensor, high: torch.Tensor) -> torch.Tensor:
    """Shorten moves until they stay inside, up to rounding."""
    at = z @ Q.t()
    room = torch.where(at > 0, high + _TOL, low - _TOL) / torch.where(at == 0, 1.0, at)
    share = torch.where(at == 0, 1.0, room).amin(1).clamp(0.0, 1.0)
    return z * share[:, None]


def _best_vertex(Q: torch.Tensor, g: torch.Tensor, low: torch.Tensor, high: torch.Tensor) -> torch.Tensor:
    """Go to some vertex along the gradient, then from vertex to vertex while the gradient rises."""
    z, active, side = _some_vertex(Q, g, low, high)
    going = torch.arange(len(g), device=g.device)
    for _ in range(_PIVOTS):
        held = Q[active[going]]
        inverse = torch.linalg.inv_ex(held).inverse
        price = torch.einsum("nk,nkr->nr", g[going], inverse) * side[going]
        least, which = price.min(1)
        # Not a number where the held faces do not make a vertex: such a row stays where it is.
        rises = least < -_TINY * g[going].abs().amax(1)
        going, which, inverse = going[rises], which[rises], inverse[rises]
        if len(going) == 0:
            break
        each = torch.arange(len(going), device=g.device)
        edge = -inverse[each, :, which] * side[going, which][:, None]
        held_back = active[going].scatter(1, which[:, None], -1)
        length, blocked, sign = _room(Q, z[going], edge, low[going], high[going], held_back)
        z[going] += length[:, None] * edge
        active[going, which], side[going, which] = blocked, sign
    return z


def _some_vertex(
    Q: torch.Tensor, g: torch.Tensor, low: torch.Tensor, high: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Follow the gradient along K faces: coefficients (n, K), the faces (n, K), and +1 for upper or −1 for lower."""
    n, k = g.shape
    z = torch.zeros_like(g)
    along = torch.eye(k, dtype=Q.dtype, device=Q.device).repeat(n, 1, 1)
    active = torch.full((n, k), -1, dtype=torch.int64, device=Q.device)
    side = torch.ones_like(g)
    # Where the gradient says nothing any more, any direction leads to a vertex of the same face.
    other = torch.linspace(1.0, 2.0, k, dtype=Q.dtype, device=Q.device)
    for step in range(k):
        way = torch.einsum("nkl,nl->nk", along, g)
        flat = way.abs().amax(1) <= _TINY * g.abs().amax(1)
        way = torch.where(flat[:, None], torch.einsum("nkl,l->nk", along, other), way)
        length, blocked, sign = _room(Q, z, way, low, high, active)
        z = z + length[:, None] * way
        active[:, step], side[:, step] = blocked, sign
        along = _along_face(along, Q[blocked])
    return z, active, side


def _along_face(along: torch.Tensor, normal: torch.Tensor) -> torch.Tensor:
    """Projections (n, K, K) on what the faces held so far leave, once one more with this normal is held."""
    face = torch.einsum("nkl,nl->nk", along, normal)
    size = (face * normal).sum(1)
    # A normal that the held faces span already takes nothing more away.
    share = torch.where(size > 1e-14, 1.0 / size.clamp(min=1e-14), 0.0)
    return along - face[:, :, None] * face[:, None, :] * share[:, None, None]


def _room(
    Q: torch.Tensor,
    z: torch.Tensor,
    way: torch.Tensor,
    low: torch.Tensor,
    high: torch.Tensor,
    active: torch.Tensor,
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """How far along a way the box lets, which face stops it, and whether that is an upper (+1) or a lower one (−1)."""
    at, change = z @ Q.t(), way @ Q.t()
    still = change.abs() <= _TINY * change.abs().amax(1, keepdim=True)
    # A face that is held does not move; without one the place is a copy of the last coordinate, which is put back.
    held = torch.zeros_like(still, dtype=torch.int8).scatter_add_(
        1, active.clamp(min=0), (active >= 0).to(torch.int8)
    )
    still = still | (held > 0)
    room = torch.where(change > 0, high - at, low - at) / torch.where(still, 1.0, change)
    length, blocked = torch.where(still, torch.inf, room.clamp(min=0.0)).min(1)
    sign = torch.where(change.gather(1, blocked[:, None])[:, 0] > 0, 1.0, -1.0).to(z.dtype)
    return torch.where(torch.isfinite(length), length, 0.0), blocked, sign


Limit: TypeAlias = Callable[[torch.Tensor, torch.Tensor], torch.Tensor]

_ROUNDS = 60
_MEET_TOL = 1e-7
_MAX_CORNER_DIMS = 4


@dataclass(frozen=True)
class CoefficientBox:
    """Bounds on coordinates of x + Qz along directions R inside the span of Q: lower ≤ Rᵀ(x + Qz) ≤ upper."""

    directions: torch.Tensor
    mix: torch.Tensor
    lower: torch.Tensor
    upper: torch.Tensor

    def __call__(self, z: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
        """Project coefficients z (n, K) of the rows x (n, d)."""
        at = torch.addmm(x @ self.directions, z, self.mix)
        return torch.addmm(z, at.clamp(self.lower, self.upper) - at, self.mix.t())

    def corners(self, x: torch.Tensor) -> list[torch.Tensor]:
        """Coefficients of every corner of the box, each (n, K); none where it is open or has too many."""
        r = len(self.lower)
        if r > _MAX_CORNER_DIMS or not bool(
            torch.isfinite(self.lower).all() & torch.isfinite(self.upper).all()
        ):
            return []
        at = x @ self.directions
        ends = torch.cartesian_prod(*torch.stack([self.lower, self.upper], dim=1)).reshape(-1, r)
        return [(end - at) @ self.mix.t() for end in ends]

    def vertex(self, gradient: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
        """Coefficients of the corner that is farthest along a gradient (n, K), each (n, K); 0 along open sides."""
        slope, at = gradient @ self.mix, x @ self.directions
        end = torch.where(slope > 0, self.upper, self.lower)
        end = torch.where((slope == 0) | ~torch.isfinite(end), at, end)
        return (end - at) @ self.mix.t()


@dataclass(frozen=True)
class FreeMoves:
    """Free directions of a metric together with what the domain says about them."""

    basis: torch.Tensor
    limit: Limit | None
    section: BoxSection | None = None


def free_moves(domain: Domain, basis: torch.Tensor, *, exact: bool) -> FreeMoves | None:
    """Return the free moves that a search can make with K coefficients per row."""
    if basis.shape[1] == 0:
        return None
    if isinstance(domain, Unbounded):
        return FreeMoves(basis, None)
    if isinstance(domain, DataRangeDomain):
        R = torch.as_tensor(to_numpy(domain.subspace.basis), dtype=basis.dtype, device=basis.device)
        mix = basis.t() @ R
        if torch.allclose(basis @ mix, R, atol=1e-5):
            ends = (
                torch.as_tensor(end, dtype=basis.dtype, device=basis.device)
                for end in (domain.lower, domain.upper)
            )
            return FreeMoves(basis, CoefficientBox(R, mix, *ends))
    axes = _box_axes(domain, basis)
    if len(axes) and (not exact or len(axes) == basis.shape[1]):
        columns = torch.eye(len(basis), dtype=basis.dtype, device=basis.device)[:, axes]
        eye = torch.eye(len(axes), dtype=basis.dtype, device=basis.device)
        ends = (torch.as_tensor(end[axes], dtype=basis.dtype, device=basis.device) for end in domain.bounds())
        return FreeMoves(columns, CoefficientBox(columns, eye, *ends))
    if not exact:
        return None
    return FreeMoves(basis, meet(domain, basis), _section(domain, basis))


def _section(domain: Domain, basis: torch.Tensor) -> BoxSection | None:
    """Return where the free directions cut a closed box; None for other domains."""
    if not isinstance(domain, BoxDomain):
        return None
    lower, upper = (torch.as_tensor(end, dtype=torch.float64, device=basis.device) for end in domain.bounds())
    if not bool(torch.isfinite(lower).all() & torch.isfinite(upper).all()):
        return None
    fixed = torch.zeros(len(lower), dtype=torch.bool, device=basis.device)
    fixed[list(domain.immutable)] = True
    return BoxSection(basis, lower, upper, fixed)


def _box_axes(domain: Domain, basis: torch.Tensor) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    """Coordinates whose axis lies in the span of the basis and that the domain bounds by themselves."""
    inside = np.isclose(to_numpy(basis.square().sum(1)), 1.0, rtol=0.0, atol=1e-5)
    if isinstance(domain, BoxDomain):
        inside[list(domain.immutable)] = False
    elif isinstance(domain, TabularDomain):
        alone = np.zeros_like(inside)
        for column in domain.columns_:
            alone[column.slice] = column.stop - column.start == 1 and not column.immutable
        inside &= alone
    else:
        inside[:] = False
    return np.flatnonzero(inside)


def meet(domain: Domain, basis: torch.Tensor) -> Limit:
    """Return the projection on the rows of the domain that lie in x + span(basis), as a limit on coefficients.

    Dykstra's alternating projections (Boyle & Dykstra 1986), each row stopping by itself. A row that the rounds
    did not bring inside is drawn back towards x, which lies in both sets.
    """

    def limit(z: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
        z = z.clone()
        correction = torch.zeros_like(x)
        going = torch.arange(len(z), device=z.device)
        for _ in range(_ROUNDS):
            wanted = torch.addmm(x[going], z[going], basis.t()).add_(correction)
            inside = domain.project(wanted, x[going])
            correction = wanted - inside
            nearer = (inside - x[going]) @ basis
            z[going] = nearer
            off = (torch.addmm(x[going], nearer, basis.t()) - inside).abs().amax(1)
            keep = (off > _MEET_TOL).nonzero()[:, 0]
            going, correction = going[keep], correction[keep]
            if len(going) == 0:
                return z
        return _draw_back(domain, basis, z, x, going)

    return limit


def _draw_back(
    domain: Domain, basis: torch.Tensor, z: torch.Tensor, x: torch.Tensor, rows: torch.Tensor
) -> torch.Tensor:
    """Halve the coefficients of some rows until x + Qz lies in the domain; after 30 times they are 0."""
    for _ in range(30):
        at = torch.addmm(x[rows], z[rows], basis.t())
        off = (at - domain.project(at, x[rows])).abs().amax(1)
        rows = rows[off > 10 * _MEET_TOL]
        if len(rows) == 0:
            return z
        z[rows] *= 0.5
    z[rows] = 0.0
    return z


# Phase 1: coefficients along the directions that cost nothing.


class FreeSpace(Space):
    """K coefficients z of x + Qz along free directions Q: d² = 0 whatever they are.

    Q is folded into the first layer of the model, so a step costs K and not d per unit of that layer.
    """

    longest = LONGEST_FREE

    def __init__(
        self, folded: FoldedOracle, x: torch.Tensor, y: torch.Tensor, moves: FreeMoves, radius: float
    ) -> None:
        self._folded, self._x, self._y, self._moves, self._radius = folded, x, y, moves, radius
        self.lam = torch.zeros(len(x), dtype=x.dtype, device=x.device)
        self.gradient_scale = torch.ones_like(self.lam)

    @classmethod
    def of(
        cls, oracle: Oracle, x: torch.Tensor, y: torch.Tensor, moves: FreeMoves, radius: float
    ) -> FreeSpace:
        """Fold the directions into an oracle."""
        return cls(oracle.fold(x, moves.basis), x, y, moves, radius)

    def zero(self) -> torch.Tensor:
        """Return the rows themselves."""
        return self._x.new_zeros(len(self._x), self._moves.basis.shape[1])

    def loss(self, v: torch.Tensor) -> torch.Tensor:
        """Return ℓ."""
        return self._folded.loss(v, self._y)

    def squared(self, v: torch.Tensor) -> torch.Tensor:
        """Return 0."""
        return torch.zeros_like(self.lam)

    def look(self, v: torch.Tensor) -> Point:
        """Evaluate loss and gradient."""
        loss, slope = self._folded(v, self._y)
        return Point(loss, torch.zeros_like(loss), slope, slope)

    def move(self, v: torch.Tensor, point: Point, reach: torch.Tensor) -> Move:
        """Go along the gradient, as far as the domain lets."""
        step = self._within(v, of_length(point.slope, self._radius * reach))
        return Move(step, torch.ones_like(reach), row_dot(step, point.gradient))

    def _within(self, v: torch.Tensor, step: torch.Tensor) -> torch.Tensor:
        """As much of a step as the domain lets."""
        if self._moves.section is not None:
            return self._moves.section.slide(v, step, self._x)
        return step if self._moves.limit is None else self.limit(v + step) - v

    def vertex(self, point: Point) -> torch.Tensor | None:
        """Return the corner of the domain that is farthest along the gradient, (n, K); None where there are none."""
        limit, section = self._moves.limit, self._moves.section
        if section is not None:
            return section.vertex(point.slope, self._x)
        return limit.vertex(point.slope, self._x) if isinstance(limit, CoefficientBox) else None

    def leap(self, v: torch.Tensor, point: Point) -> torch.Tensor:
        """Go along the gradient to the edge of the domain; one step where there is none."""
        far = 1.0 if self._moves.limit is None else LONGEST_FREE
        return self._within(v, of_length(point.slope, torch.full_like(self.lam, self._radius * far)))

    def limit(self, v: torch.Tensor) -> torch.Tensor:
        """Bring the coefficients back to where x + Qz lies in the domain."""
        return v if self._moves.limit is None else self._moves.limit(v, self._x)

    def point(self, delta: torch.Tensor) -> torch.Tensor:
        """Return the coefficients of the free part of δ."""
        return delta @ self._moves.basis

    def rows(self, v: torch.Tensor) -> torch.Tensor:
        """Return x + Qz."""
        return torch.addmm(self._x, v, self._moves.basis.t())

    def single_layer(self) -> SingleLayer | None:
        """Return the model as a function of the coefficients for a compiled loop; None if a domain limits them."""
        return None if self._moves.limit is not None else self._folded.single_layer(self._y)

    def take(self, keep: torch.Tensor) -> FreeSpace:
        """Return the same for some of the rows."""
        x, y = self._x.index_select(0, keep), self._y.index_select(0, keep)
        return FreeSpace(self._folded.take(keep), x, y, self._moves, self._radius)
