"""Phase 2 without a domain: the metric folded into the model, so that a step costs one call of it."""

from __future__ import annotations

import torch

from likewise.auditing.search.gradient.spaces import Move, Point, Space, row_square
from likewise.models.oracle import FoldedOracle, Oracle

__all__ = ["WhitenedSpace"]


class WhitenedSpace(Space):
    """Coordinates v with δ = Σ^(−½) v, folded into the first layer; for no domain and no free direction.

    Here the gradient of the objective is 2λ times the way to the fixed point ∇ℓ/(2λ) − v, so that one row of
    numbers is both the gradient and the step.

    Parameters
    ----------
    folded : FoldedOracle
        The model as a function of v.
    x, y, lam : Tensors of shapes (n, d), (n,) and (n,)
    whiteners : pair of Tensors
        See `Quadratic.whiteners`.
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

    def steeper(self, point: Point, factor: torch.Tensor) -> Point:
        """Scale the way to the fixed point, which at v = 0 is the gradient of the loss alone."""
        gradient = point.gradient * factor[:, None]
        return Point(point.loss, point.squared, gradient, gradient)

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
