"""Phase 2 in general: displacements of the rows themselves, under any metric and in any domain."""

from __future__ import annotations

import torch

from likewise.auditing.search.gradient.quadratic_penalty import Quadratic
from likewise.auditing.search.gradient.spaces import (
    LONGEST,
    LONGEST_FREE,
    Move,
    Point,
    Space,
    of_length,
    row_dot,
)
from likewise.domains.boxes import DataRangeDomain, Unbounded
from likewise.domains.domain import Domain
from likewise.models.oracle import Oracle
from likewise.models.single_layer import SingleLayer

__all__ = ["RowSpace"]


class RowSpace(Space):
    """Coordinates δ = x − x_i themselves.

    A step goes towards the fixed point of the penalised part, and `radius` along the free part of the gradient,
    and is brought back into the domain at once. Shorter trials stay on the segment to that point, which lies in
    the domain because the domain is convex.

    Parameters
    ----------
    oracle : Oracle
    x, y, lam : Tensors of shapes (n, d), (n,) and (n,)
    penalty : Quadratic
    domain : Domain
    radius : float
        Length of a free step of reach 1.
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
        self._oracle, self._x, self._y, self._penalty, self._radius = oracle, x, y, penalty, radius
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
        return self._penalty.squared(v)

    def look(self, v: torch.Tensor) -> Point:
        """Evaluate loss, distance and gradient."""
        loss, slope = self._oracle(self._x + v, self._y)
        gradient = torch.addcmul(slope, self._penalty.apply(v), self.lam[:, None], value=-2.0)
        return Point(loss, self._penalty.squared(v), gradient, slope)

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
        penalty = self._penalty
        wanted = torch.zeros_like(v)
        if penalty.has_paid:
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
        small = gradient * (self._half / self._penalty.steepest)
        went = self.limit(v + small) - v
        return went, (went.abs() > 0.01 * small.abs()).to(v.dtype)

    def leap(self, v: torch.Tensor, point: Point) -> torch.Tensor:
        """Go to the fixed point of the penalised part, and along the free part to the edge of the domain."""
        once = torch.ones_like(self.lam)
        wanted = self._wanted(v, point.slope, once, None)
        if not self._bounded:
            return wanted
        if self._penalty.has_free:
            free = self._penalty.free_part(point.slope)
            wanted = wanted + of_length(free, self._radius * LONGEST_FREE * once)
        return self.limit(v + wanted) - v

    def steeper(self, point: Point, factor: torch.Tensor) -> Point:
        """Scale the gradient of the loss, which is the whole gradient where d² = 0."""
        slope = point.slope * factor[:, None]
        return Point(point.loss, point.squared, slope, slope)

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

    @property
    def penalty(self) -> Quadratic:
        """Σ of the penalty λ δᵀΣδ."""
        return self._penalty

    def single_layer(self) -> SingleLayer | None:
        """Return the model as a function of δ for a compiled loop; None where it is not one, or a domain limits δ."""
        return None if self._bounded else self._oracle.single_layer(self._x, self._y)

    def take(self, keep: torch.Tensor) -> RowSpace:
        """Return the same for some of the rows."""
        x, y, lam = (part.index_select(0, keep) for part in (self._x, self._y, self.lam))
        return RowSpace(
            self._oracle, x, y, lam, penalty=self._penalty, domain=self._domain, radius=self._radius
        )
