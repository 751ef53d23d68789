"""The coordinates a search moves in: what a point is worth, where to go from it, and how far it may go.

Every space has the row itself at 0, so a point is a displacement. Two of them:

- `RowSpace`: any metric, any domain; products with Σ cost O(dK) per row.
- `FreeSpace` (free_moves.py): K coefficients along directions that cost nothing (phase 1 of Appendix C).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeAlias
from weakref import WeakKeyDictionary

import numpy as np
import torch

from likewise.core.checks import to_numpy
from likewise.data.domain import BoxDomain, DataRangeDomain, Domain, Unbounded
from likewise.data.tabular import TabularDomain
from likewise.fair_metrics.metric import FairMetric
from likewise.models.oracle import FoldedOracle, Oracle, SingleLayer

LONGEST = 2.0
"""Largest reach of a penalised step: 1 is the fixed point, and beyond 2 a quadratic diverges."""
LONGEST_FREE = 1024.0
"""Largest reach of a free step, in units of its radius."""


@dataclass(frozen=True)
class Point:
    """What is known at one point of each row."""

    loss: torch.Tensor
    squared: torch.Tensor
    gradient: torch.Tensor
    slope: torch.Tensor

    def take(self, rows: torch.Tensor) -> Point:
        """Return what is known of some rows."""
        return self._each(self, lambda mine, _: mine.index_select(0, rows))

    def put(self, rows: torch.Tensor, some: Point) -> Point:
        """Return the same with some rows replaced."""
        return self._each(some, lambda mine, new: mine.index_copy(0, rows, new))

    def _each(self, some: Point, how: Callable[[torch.Tensor, torch.Tensor], torch.Tensor]) -> Point:
        gradient = how(self.gradient, some.gradient)
        slope = gradient if self.slope is self.gradient else how(self.slope, some.slope)
        return Point(how(self.loss, some.loss), how(self.squared, some.squared), gradient, slope)


class Space(ABC):
    """Coordinates of a batch of rows, with the row itself at 0."""

    lam: torch.Tensor
    longest: float = LONGEST

    @abstractmethod
    def zero(self) -> torch.Tensor:
        """Return the rows themselves, (n, D)."""

    @abstractmethod
    def loss(self, v: torch.Tensor) -> torch.Tensor:
        """Return ℓ, (n,)."""

    @abstractmethod
    def squared(self, v: torch.Tensor) -> torch.Tensor:
        """Return d² from the rows themselves, (n,)."""

    @abstractmethod
    def look(self, v: torch.Tensor) -> Point:
        """Evaluate loss, distance and gradient."""

    @abstractmethod
    def move(self, v: torch.Tensor, point: Point, reach: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Return the step to try from a point and the rise it promises; a `reach` of 1 is the fixed point."""

    @abstractmethod
    def leap(self, v: torch.Tensor, point: Point) -> torch.Tensor:
        """Return the displacement to the fixed point and, along what is free, to the edge of the domain, (n, D)."""

    @abstractmethod
    def limit(self, v: torch.Tensor) -> torch.Tensor:
        """Bring points back into the domain."""

    @abstractmethod
    def point(self, delta: torch.Tensor) -> torch.Tensor:
        """Return the coordinates of displacements δ, (n, d) to (n, D), whatever the domain says."""

    @abstractmethod
    def rows(self, v: torch.Tensor) -> torch.Tensor:
        """Return the rows that the points stand for, (n, d)."""

    @abstractmethod
    def take(self, keep: torch.Tensor) -> Space:
        """Return the same for some of the rows, by their indices."""

    def single_layer(self) -> SingleLayer | None:
        """Return the model as a function of the coordinates for a compiled loop; None if none serves."""
        return None

    def objective(self, loss: torch.Tensor, squared: torch.Tensor) -> torch.Tensor:
        """Return ℓ − λ d², (n,)."""
        return torch.addcmul(loss, self.lam, squared, value=-1.0)


def row_dot(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """Inner product of paired rows, (n,)."""
    return (a * b).sum(1)


def of_length(direction: torch.Tensor, length: torch.Tensor) -> torch.Tensor:
    """Scale each row to a length; a row of zeros stays."""
    tiny = torch.finfo(direction.dtype).tiny
    # Divided by the peak first: the square of 1e-30 is 0.
    even = direction / direction.abs().amax(1, keepdim=True).clamp(min=tiny)
    # With a peak of 1 the length is at least 1, unless the row is 0.
    return even * (length / even.square().sum(1).sqrt().clamp(min=1.0))[:, None]


# The penalty λ δᵀΣδ on tensors: what a move costs, and where the stationarity condition says to go.


# Largest system that is solved for each row.
_MAX_SOLVE = 64
# Cost of a free direction, relative to the others, where a system needs one.
_CHEAP = 1e-2


@dataclass(frozen=True)
class Quadratic:
    """The matrix of a metric as tensors: Σ = scale·I + Q diag(costs − scale) Qᵀ."""

    scale: float
    basis: torch.Tensor
    costs: torch.Tensor
    free: torch.Tensor | None

    @classmethod
    def of(cls, metric: FairMetric, like: torch.Tensor) -> Quadratic:
        """Read a metric as tensors like `like` (n, d); once, since a training asks at every step."""
        known = _KNOWN.setdefault(metric, {})
        key = (like.dtype, like.device, like.shape[1])
        if key not in known:
            known[key] = cls._read(metric, like)
        return known[key]

    @classmethod
    def _read(cls, metric: FairMetric, like: torch.Tensor) -> Quadratic:
        basis = metric.basis if metric.n_features else torch.zeros(like.shape[1], 0)
        Q = torch.as_tensor(basis, dtype=like.dtype, device=like.device)
        costs = torch.as_tensor(metric.scale + metric.values, dtype=like.dtype, device=like.device)
        return cls(metric.scale, Q, costs, Q[:, costs == 0] if metric.scale > 0 else None)

    @classmethod
    def nothing(cls, like: torch.Tensor) -> Quadratic:
        """Return the penalty under which every direction is free (λ = 0)."""
        return cls(0.0, like.new_zeros(like.shape[1], 0), like.new_zeros(0), None)

    @property
    def has_free(self) -> bool:
        """Whether some direction costs nothing."""
        if self.free is not None:
            return self.free.shape[1] > 0
        return self.basis.shape[1] < self.basis.shape[0]

    def free_part(self, g: torch.Tensor) -> torch.Tensor:
        """Part of each row along free directions, (n, d)."""
        Q = self.basis if self.free is None else self.free
        inside = (g @ Q) @ Q.t()
        return g - inside if self.free is None else inside

    def squared(self, delta: torch.Tensor) -> torch.Tensor:
        """δᵀΣδ, (n,); what lies inside the basis is taken out first, so that no digits are lost."""
        inside = delta @ self.basis
        total = (inside.square() * self.costs).sum(1)
        if self.scale > 0:
            outside = torch.addmm(delta, inside, self.basis.t(), alpha=-1.0)
            total = total + self.scale * outside.square_().sum(1)
        return total

    def apply(self, delta: torch.Tensor) -> torch.Tensor:
        """Σδ, (n, d)."""
        inside = (delta @ self.basis) * (self.costs - self.scale)
        return torch.addmm(delta, inside, self.basis.t(), beta=self.scale)

    def step(self, delta: torch.Tensor, g: torch.Tensor, half: torch.Tensor) -> torch.Tensor:
        """Σ⁺g/(2λ) − δ outside the free directions, (n, d); `half` is 1/(2λ), (n, 1).

        The stationarity condition of ℓ(x) − λ d²(x, x_i) is Σδ = ∇ℓ/(2λ): this is where it says to go.
        """
        inside, slope = delta @ self.basis, (g @ self.basis) * half
        paid = self.costs > 0
        target = torch.where(paid, slope / self.costs.clamp(min=torch.finfo(g.dtype).tiny) - inside, 0.0)
        if self.scale == 0:
            return target @ self.basis.t()
        outside = torch.addcmul(-delta, g, half / self.scale)
        return torch.addmm(outside, target - slope / self.scale + inside, self.basis.t())

    @cached_property
    def steepest(self) -> float:
        """Largest eigenvalue of Σ."""
        return max(self.scale, float(self.costs.max()) if len(self.costs) else 0.0)

    @cached_property
    def couples(self) -> bool:
        """Whether Σ ties coordinates together, so that stopping one of them changes where the others should go."""
        Q = self.basis
        if Q.shape[1] == 0 or Q.shape[1] > _MAX_SOLVE:
            return False
        away = (Q * (self.costs - self.scale)) @ Q.t()
        away = away - torch.diag(torch.diagonal(away))
        return bool((away.abs() > 1e-6 * self.steepest).any())

    def step_among(
        self, delta: torch.Tensor, g: torch.Tensor, half: torch.Tensor, moving: torch.Tensor
    ) -> torch.Tensor:
        """The same where only some coordinates move, (n, d); `moving` is 1 for those and 0 for the others.

        With F the moving ones it is Σ_FF⁻¹ (∇ℓ/(2λ) − Σδ_C)_F − δ_F, by one k × k system per row. Free
        directions count as cheap here, so that the system has a solution.
        """
        scale = self.scale if self.scale > 0 else _CHEAP * float(self.costs.max())
        excess = self.costs.clamp(min=_CHEAP * scale) - scale
        held = delta * (1 - moving)
        whole = scale * held + ((held @ self.basis) * excess) @ self.basis.t()
        wanted = (g * half - whole) * moving
        k = len(excess)
        pairs = (self.basis[:, :, None] * self.basis[:, None, :]).reshape(-1, k * k)
        system = (moving @ pairs).reshape(-1, k, k) * (excess / scale)[:, None]
        system.diagonal(dim1=1, dim2=2).add_(1.0)
        inside = torch.linalg.solve_ex(system, (wanted @ self.basis) * excess).result
        target: torch.Tensor = (wanted - (inside / scale) @ self.basis.t() * moving) / scale
        return target - delta * moving


_KNOWN: WeakKeyDictionary[FairMetric, dict[Any, Quadratic]] = WeakKeyDictionary()


# Phase 2 in general: displacements of the rows themselves, under any metric and in any domain.


class RowSpace(Space):
    """Coordinates δ = x − x_i themselves.

    A step goes towards the fixed point of the penalised part, and `radius` along the free part of the gradient,
    and is brought back into the domain at once. Shorter trials stay on the segment to that point, which lies in
    the domain because the domain is convex.
    """

    def __init__(
        self,
        oracle: Oracle,
        x: torch.Tensor,
        y: torch.Tensor,
        lam: torch.Tensor,
        *,
        penalty: Quadratic,
        domain: Domain,
        radius: float,
    ) -> None:
        self._oracle, self._x, self._y, self.penalty, self._radius = oracle, x, y, penalty, radius
        self._domain = domain
        self._bounded = not isinstance(domain, Unbounded)
        self.lam = lam
        # λ = 0 comes with a penalty that has no paid direction, so 1/(2λ) is never used there.
        self._half = (0.5 / lam.clamp(min=torch.finfo(lam.dtype).tiny))[:, None]
        self.longest = LONGEST_FREE if penalty.has_free else LONGEST
        # A data range stops directions and not coordinates.
        self._couples = self._bounded and not isinstance(domain, DataRangeDomain) and penalty.couples

    def zero(self) -> torch.Tensor:
        return torch.zeros_like(self._x)

    def loss(self, v: torch.Tensor) -> torch.Tensor:
        return self._oracle.loss(self._x + v, self._y)

    def squared(self, v: torch.Tensor) -> torch.Tensor:
        return self.penalty.squared(v)

    def look(self, v: torch.Tensor) -> Point:
        loss, slope = self._oracle(self._x + v, self._y)
        gradient = torch.addcmul(slope, self.penalty.apply(v), self.lam[:, None], value=-2.0)
        return Point(loss, self.penalty.squared(v), gradient, slope)

    def move(self, v: torch.Tensor, point: Point, reach: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        if not self._bounded:
            wanted = self._wanted(v, point.slope, reach, None)
            return wanted, row_dot(wanted, point.gradient)
        careful = self._careful(v, point.gradient) if self._couples else None
        moving = None if careful is None else careful[1]
        wanted = self._wanted(v, point.slope, reach, moving)
        step = self.limit(v + wanted) - v
        rise = row_dot(step, point.gradient)
        # Scaled by Σ⁺, a step may be turned around by the projection; the plain gradient never is.
        if careful is not None:
            plain, sure = careful[0], row_dot(careful[0], point.gradient)
            return torch.where((rise < sure)[:, None], plain, step), rise.maximum(sure)
        if bool((rise <= 0).any()):
            plain = self.limit(v + of_length(point.gradient, wanted.square().sum(1).sqrt())) - v
            step = torch.where((rise <= 0)[:, None], plain, step)
            rise = row_dot(step, point.gradient)
        return step, rise

    def _wanted(
        self, v: torch.Tensor, slope: torch.Tensor, reach: torch.Tensor, moving: torch.Tensor | None
    ) -> torch.Tensor:
        """Where to go if there were no domain, among the coordinates that it does not stop."""
        penalty = self.penalty
        wanted = torch.zeros_like(v)
        if penalty.scale > 0 or penalty.basis.shape[1] > 0:
            if moving is None:
                wanted = penalty.step(v, slope, self._half)
            else:
                wanted = penalty.step_among(v, slope, self._half, moving)
            wanted = wanted * reach.clamp(max=LONGEST)[:, None]
        if penalty.has_free:
            free = penalty.free_part(slope)
            wanted = wanted + of_length(free if moving is None else free * moving, self._radius * reach)
        return wanted

    def _careful(self, v: torch.Tensor, gradient: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Projected gradient step that the penalty cannot overshoot, and the coordinates it moves (1, else 0)."""
        small = gradient * (self._half / self.penalty.steepest)
        went = self.limit(v + small) - v
        return went, (went.abs() > 0.01 * small.abs()).to(v.dtype)

    def leap(self, v: torch.Tensor, point: Point) -> torch.Tensor:
        once = torch.ones_like(self.lam)
        wanted = self._wanted(v, point.slope, once, None)
        if not self._bounded:
            return wanted
        if self.penalty.has_free:
            free = self.penalty.free_part(point.slope)
            wanted = wanted + of_length(free, self._radius * LONGEST_FREE * once)
        return self.limit(v + wanted) - v

    def limit(self, v: torch.Tensor) -> torch.Tensor:
        if not self._bounded:
            return v
        projected: torch.Tensor = self._domain.project(self._x + v, self._x)
        return projected - self._x

    def point(self, delta: torch.Tensor) -> torch.Tensor:
        return delta

    def rows(self, v: torch.Tensor) -> torch.Tensor:
        found: torch.Tensor = self._x + v
        return self._domain.project(found, self._x) if self._bounded else found

    def single_layer(self) -> SingleLayer | None:
        return None if self._bounded else self._oracle.single_layer(self._x, self._y)

    def take(self, keep: torch.Tensor) -> RowSpace:
        x, y, lam = (part.index_select(0, keep) for part in (self._x, self._y, self.lam))
        return RowSpace(
            self._oracle, x, y, lam, penalty=self.penalty, domain=self._domain, radius=self._radius
        )


# How far a row may go along the free directions without leaving the domain.


# Where free directions cut a box: the rows of a closed box that lie in x + span(Q), as limits on K
# coefficients.


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
            room, blocked = _room(Q, at, rest, low, high, active)
            share = room.clamp(max=1.0)
            at = torch.addcmul(at, rest, share[:, None])
            active[:, k] = blocked
            # Projections (n, K, K) on what the faces held so far leave, once this one is held; a normal that they span
            # already takes nothing more away.
            normal = Q[blocked]
            face = torch.einsum("nkl,nl->nk", along, normal)
            size = (face * normal).sum(1)
            less = torch.where(size > 1e-14, 1.0 / size.clamp(min=1e-14), 0.0)
            along = along - face[:, :, None] * face[:, None, :] * less[:, None, None]
            rest = torch.einsum("nkl,nl->nk", along, rest * (1.0 - share)[:, None])
        # Shorter, until it stays inside, up to rounding.
        there = at @ Q.t()
        room = torch.where(there > 0, high + _TOL, low - _TOL) / torch.where(there == 0, 1.0, there)
        share = torch.where(there == 0, 1.0, room).amin(1).clamp(0.0, 1.0)
        return (at * share[:, None] - begun).to(z.dtype)

    def _around(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """Q, and the room of each row below and above it, which holds 0 even where the row lies outside."""
        rows = x.double()
        low = (self.lower.double() - rows).clamp(max=0.0).masked_fill(self.fixed, 0.0)
        high = (self.upper.double() - rows).clamp(min=0.0).masked_fill(self.fixed, 0.0)
        return self.basis.double(), low, high


def _room(
    Q: torch.Tensor,
    z: torch.Tensor,
    way: torch.Tensor,
    low: torch.Tensor,
    high: torch.Tensor,
    active: torch.Tensor,
) -> tuple[torch.Tensor, torch.Tensor]:
    """How far along a way the box lets, and which face stops it."""
    at, change = z @ Q.t(), way @ Q.t()
    still = change.abs() <= _TINY * change.abs().amax(1, keepdim=True)
    # A face that is held does not move; without one the place is a copy of the last coordinate, which is put back.
    held = torch.zeros_like(still, dtype=torch.int8).scatter_add_(
        1, active.clamp(min=0), (active >= 0).to(torch.int8)
    )
    still = still | (held > 0)
    room = torch.where(change > 0, high - at, low - at) / torch.where(still, 1.0, change)
    length, blocked = torch.where(still, torch.inf, room.clamp(min=0.0)).min(1)
    return torch.where(torch.isfinite(length), length, 0.0), blocked


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
        """Coefficients of every corner of the box, each (n, K); none if it is open or has too many."""
        r = len(self.lower)
        if r > _MAX_CORNER_DIMS or not bool(
            torch.isfinite(self.lower).all() & torch.isfinite(self.upper).all()
        ):
            return []
        at = x @ self.directions
        ends = torch.cartesian_prod(*torch.stack([self.lower, self.upper], dim=1)).reshape(-1, r)
        return [(end - at) @ self.mix.t() for end in ends]


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

    @classmethod
    def of(
        cls, oracle: Oracle, x: torch.Tensor, y: torch.Tensor, moves: FreeMoves, radius: float
    ) -> FreeSpace:
        """Fold the directions into an oracle."""
        return cls(oracle.fold(x, moves.basis), x, y, moves, radius)

    def zero(self) -> torch.Tensor:
        return self._x.new_zeros(len(self._x), self._moves.basis.shape[1])

    def loss(self, v: torch.Tensor) -> torch.Tensor:
        return self._folded.loss(v, self._y)

    def squared(self, v: torch.Tensor) -> torch.Tensor:
        return torch.zeros_like(self.lam)

    def look(self, v: torch.Tensor) -> Point:
        loss, slope = self._folded(v, self._y)
        return Point(loss, torch.zeros_like(loss), slope, slope)

    def move(self, v: torch.Tensor, point: Point, reach: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        step = self._within(v, of_length(point.slope, self._radius * reach))
        return step, row_dot(step, point.gradient)

    def _within(self, v: torch.Tensor, step: torch.Tensor) -> torch.Tensor:
        """As much of a step as the domain lets."""
        if self._moves.section is not None:
            return self._moves.section.slide(v, step, self._x)
        return step if self._moves.limit is None else self.limit(v + step) - v

    def leap(self, v: torch.Tensor, point: Point) -> torch.Tensor:
        far = 1.0 if self._moves.limit is None else LONGEST_FREE
        return self._within(v, of_length(point.slope, torch.full_like(self.lam, self._radius * far)))

    def limit(self, v: torch.Tensor) -> torch.Tensor:
        return v if self._moves.limit is None else self._moves.limit(v, self._x)

    def point(self, delta: torch.Tensor) -> torch.Tensor:
        return delta @ self._moves.basis

    def rows(self, v: torch.Tensor) -> torch.Tensor:
        return torch.addmm(self._x, v, self._moves.basis.t())

    def single_layer(self) -> SingleLayer | None:
        return None if self._moves.limit is not None else self._folded.single_layer(self._y)

    def take(self, keep: torch.Tensor) -> FreeSpace:
        x, y = self._x.index_select(0, keep), self._y.index_select(0, keep)
        return FreeSpace(self._folded.take(keep), x, y, self._moves, self._radius)
