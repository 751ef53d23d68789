"""The coordinates a search moves in: what a point is worth, where to go from it, and how far it may go.

Every space has the row itself at 0, so a point is a displacement. Three of them:

- `WhitenedSpace`: no domain, no free direction. With δ = Σ^(−½) v the penalty is λ‖v‖², and
  Σ^(−½) is folded into the first layer of the model, so that a step knows nothing of the metric any more.
- `RowSpace`: any metric, any domain; products with Σ cost O(dK) per row.
- `FreeSpace` (free_moves.py): K coefficients along directions that cost nothing (phase 1 of Appendix C).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any
from weakref import WeakKeyDictionary

import torch

from likewise.data.domain import DataRangeDomain, Domain, Unbounded
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


@dataclass(frozen=True)
class Move:
    """A displacement to try, point + size · step, and the rise it promises per unit of size."""

    step: torch.Tensor
    size: torch.Tensor
    rise: torch.Tensor


class Space(ABC):
    """Coordinates of a batch of rows, with the row itself at 0."""

    lam: torch.Tensor
    gradient_scale: torch.Tensor
    """What `Point.gradient` must be multiplied with to be the gradient of ℓ − λ d², (n,)."""
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
    def move(self, v: torch.Tensor, point: Point, reach: torch.Tensor) -> Move:
        """Return the step to try from a point; `reach` (n,) is 1 for the fixed point of the penalised part."""

    @abstractmethod
    def leap(self, v: torch.Tensor, point: Point) -> torch.Tensor:
        """Return the displacement to the fixed point and, along what is free, to the edge of the domain, (n, D)."""

    def steeper(self, point: Point, factor: torch.Tensor) -> Point:
        """Return a point with d² = 0 as it would be if the loss were `factor` (n,) times as steep there."""
        slope = point.slope * factor[:, None]
        return Point(point.loss, point.squared, slope, slope)

    @abstractmethod
    def limit(self, v: torch.Tensor) -> torch.Tensor:
        """Bring points back into the domain."""

    @abstractmethod
    def point(self, delta: torch.Tensor) -> torch.Tensor:
        """Return the coordinates of displacements δ, (n, d) to (n, D), whatever the domain says."""

    def away(self, base: torch.Tensor, delta: torch.Tensor) -> torch.Tensor:
        """Return as much of a displacement (n, D) from `base` as the domain lets."""
        return self.limit(base + delta) - base

    def shifted(self, base: torch.Tensor, delta: torch.Tensor) -> torch.Tensor:
        """Return the point a displacement away from a base with d² = 0."""
        return base + delta

    @abstractmethod
    def rows(self, v: torch.Tensor) -> torch.Tensor:
        """Return the rows that the points stand for, (n, d)."""

    @abstractmethod
    def take(self, keep: torch.Tensor) -> Space:
        """Return the same for some of the rows, by their indices."""

    def single_layer(self) -> SingleLayer | None:
        """Return the model as a function of the coordinates for a compiled loop; None where none serves."""
        return None

    def objective(self, loss: torch.Tensor, squared: torch.Tensor) -> torch.Tensor:
        """Return ℓ − λ d², (n,)."""
        return torch.addcmul(loss, self.lam, squared, value=-1.0)


def row_dot(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """Inner product of paired rows, (n,)."""
    return (a * b).sum(1)


def row_square(a: torch.Tensor) -> torch.Tensor:
    """Squared length of each row, (n,), without a temporary of the size of `a`."""
    length: torch.Tensor = torch.linalg.vector_norm(a, dim=1)
    return length.square_()


def of_length(direction: torch.Tensor, length: torch.Tensor) -> torch.Tensor:
    """Scale each row to a length; a row of zeros stays."""
    tiny = torch.finfo(direction.dtype).tiny
    # Divided by the peak first: the square of 1e-30 is 0.
    even = direction / direction.abs().amax(1, keepdim=True).clamp(min=tiny)
    # With a peak of 1 the length is at least 1, unless the row is 0.
    return even * (length / even.square().sum(1).sqrt().clamp(min=1.0))[:, None]


# Phase 2 without a domain: the metric folded into the model, so that a step costs one call of it.


class WhitenedSpace(Space):
    """Coordinates v with δ = Σ^(−½) v, folded into the first layer; for no domain and no free direction.

    Here the gradient of the objective is 2λ times the way to the fixed point ∇ℓ/(2λ) − v, so that one row of
    numbers is both the gradient and the step.
    """

    def __init__(
        self,
        folded: FoldedOracle,
        x: torch.Tensor,
        y: torch.Tensor,
        lam: torch.Tensor,
        whiteners: tuple[torch.Tensor, torch.Tensor],
    ) -> None:
        self._folded, self._x, self._y, self._whiteners = folded, x, y, whiteners
        self.lam, self.gradient_scale = lam, 2 * lam
        self._half = (0.5 / lam)[:, None]

    @classmethod
    def of(
        cls,
        oracle: Oracle,
        x: torch.Tensor,
        y: torch.Tensor,
        lam: torch.Tensor,
        whiteners: tuple[torch.Tensor, torch.Tensor],
    ) -> WhitenedSpace:
        """Fold Σ^(−½) into an oracle."""
        return cls(oracle.fold(x, whiteners[0]), x, y, lam, whiteners)

    def zero(self) -> torch.Tensor:
        """Return the rows themselves."""
        return self._x.new_zeros(len(self._x), self._whiteners[0].shape[1])

    def loss(self, v: torch.Tensor) -> torch.Tensor:
        """Return ℓ."""
        return self._folded.loss(v, self._y)

    def squared(self, v: torch.Tensor) -> torch.Tensor:
        """Return d² = ‖v‖²."""
        return row_square(v)

    def look(self, v: torch.Tensor) -> Point:
        """Evaluate; the gradient is the way to the fixed point."""
        loss, slope = self._folded(v, self._y)
        step = slope.mul_(self._half).sub_(v)
        return Point(loss, row_square(v), step, step)

    def move(self, v: torch.Tensor, point: Point, reach: torch.Tensor) -> Move:
        """Go `reach` of the way to the fixed point."""
        return Move(point.gradient, reach, row_square(point.gradient))

    def leap(self, v: torch.Tensor, point: Point) -> torch.Tensor:
        """Go all the way to the fixed point."""
        return point.gradient

    def limit(self, v: torch.Tensor) -> torch.Tensor:
        """Return v: there is no domain."""
        return v

    def point(self, delta: torch.Tensor) -> torch.Tensor:
        """Return v = Σ^½ δ."""
        return delta @ self._whiteners[1]

    def away(self, base: torch.Tensor, delta: torch.Tensor) -> torch.Tensor:
        """Return the displacement: there is no domain."""
        return delta

    def shifted(self, base: torch.Tensor, delta: torch.Tensor) -> torch.Tensor:
        """Return the displacement: only v = 0 has d² = 0."""
        return delta

    def rows(self, v: torch.Tensor) -> torch.Tensor:
        """Return x + Σ^(−½) v."""
        return torch.addmm(self._x, v, self._whiteners[0].t())

    def take(self, keep: torch.Tensor) -> WhitenedSpace:
        """Return the same for some of the rows."""
        x, y, lam = (part.index_select(0, keep) for part in (self._x, self._y, self.lam))
        return WhitenedSpace(self._folded.take(keep), x, y, lam, self._whiteners)


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

    @cached_property
    def whiteners(self) -> tuple[torch.Tensor, torch.Tensor]:
        """Matrices W, U with δ = v Wᵀ, v = δ U and δᵀΣδ = ‖v‖², for a Σ without free directions."""
        Q, roots = self.basis, self.costs.sqrt()
        if self.scale == 0:
            return Q / roots, Q * roots
        eye, root = torch.eye(len(Q), dtype=Q.dtype, device=Q.device), self.scale**0.5
        back = eye / root + (Q * (1 / roots - 1 / root)) @ Q.t()
        return back, eye * root + (Q * (roots - root)) @ Q.t()


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
        self.lam, self.gradient_scale = lam, torch.ones_like(lam)
        # λ = 0 comes with a penalty that has no paid direction, so 1/(2λ) is never used there.
        self._half = (0.5 / lam.clamp(min=torch.finfo(lam.dtype).tiny))[:, None]
        self.longest = LONGEST_FREE if penalty.has_free else LONGEST
        # A data range stops directions and not coordinates.
        self._couples = self._bounded and not isinstance(domain, DataRangeDomain) and penalty.couples

    def zero(self) -> torch.Tensor:
        """Return the rows themselves."""
        return torch.zeros_like(self._x)

    def loss(self, v: torch.Tensor) -> torch.Tensor:
        """Return ℓ."""
        return self._oracle.loss(self._x + v, self._y)

    def squared(self, v: torch.Tensor) -> torch.Tensor:
        """Return d²."""
        return self.penalty.squared(v)

    def look(self, v: torch.Tensor) -> Point:
        """Evaluate loss, distance and gradient."""
        loss, slope = self._oracle(self._x + v, self._y)
        gradient = torch.addcmul(slope, self.penalty.apply(v), self.lam[:, None], value=-2.0)
        return Point(loss, self.penalty.squared(v), gradient, slope)

    def move(self, v: torch.Tensor, point: Point, reach: torch.Tensor) -> Move:
        """Go towards the fixed point and along the free part, as far as the domain lets."""
        if not self._bounded:
            wanted = self._wanted(v, point.slope, reach, None)
            return Move(wanted, torch.ones_like(reach), row_dot(wanted, point.gradient))
        careful = self._careful(v, point.gradient) if self._couples else None
        moving = None if careful is None else careful[1]
        wanted = self._wanted(v, point.slope, reach, moving)
        step = self.limit(v + wanted) - v
        rise = row_dot(step, point.gradient)
        # Scaled by Σ⁺, a step may be turned around by the projection; the plain gradient never is.
        if careful is not None:
            plain, sure = careful[0], row_dot(careful[0], point.gradient)
            return Move(
                torch.where((rise < sure)[:, None], plain, step), torch.ones_like(reach), rise.maximum(sure)
            )
        if bool((rise <= 0).any()):
            plain = self.limit(v + of_length(point.gradient, wanted.square().sum(1).sqrt())) - v
            step = torch.where((rise <= 0)[:, None], plain, step)
            rise = row_dot(step, point.gradient)
        return Move(step, torch.ones_like(reach), rise)

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
        """Go to the fixed point of the penalised part, and along the free part to the edge of the domain."""
        once = torch.ones_like(self.lam)
        wanted = self._wanted(v, point.slope, once, None)
        if not self._bounded:
            return wanted
        if self.penalty.has_free:
            free = self.penalty.free_part(point.slope)
            wanted = wanted + of_length(free, self._radius * LONGEST_FREE * once)
        return self.limit(v + wanted) - v

    def limit(self, v: torch.Tensor) -> torch.Tensor:
        """Project x + δ on the domain."""
        if not self._bounded:
            return v
        projected: torch.Tensor = self._domain.project(self._x + v, self._x)
        return projected - self._x

    def point(self, delta: torch.Tensor) -> torch.Tensor:
        """Return δ."""
        return delta

    def rows(self, v: torch.Tensor) -> torch.Tensor:
        """Return x + δ, once more in the domain: x + (x' − x) is x' only up to rounding."""
        found: torch.Tensor = self._x + v
        return self._domain.project(found, self._x) if self._bounded else found

    def single_layer(self) -> SingleLayer | None:
        """Return the model as a function of δ for a compiled loop; None where it is not one, or a domain limits δ."""
        return None if self._bounded else self._oracle.single_layer(self._x, self._y)

    def take(self, keep: torch.Tensor) -> RowSpace:
        """Return the same for some of the rows."""
        x, y, lam = (part.index_select(0, keep) for part in (self._x, self._y, self.lam))
        return RowSpace(
            self._oracle, x, y, lam, penalty=self.penalty, domain=self._domain, radius=self._radius
        )
