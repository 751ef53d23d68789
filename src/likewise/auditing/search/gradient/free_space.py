"""Phase 1: coefficients along the directions that cost nothing."""

from __future__ import annotations

import torch

from likewise.auditing.search.gradient.free_moves import CoefficientBox, FreeMoves
from likewise.auditing.search.gradient.spaces import LONGEST_FREE, Move, Point, Space, of_length, row_dot
from likewise.models.oracle import FoldedOracle, Oracle
from likewise.models.single_layer import SingleLayer

__all__ = ["FreeSpace"]


class FreeSpace(Space):
    """K coefficients z of x + Qz along free directions Q: d² = 0 whatever they are.

    Q is folded into the first layer of the model, so a step costs K and not d per unit of that layer.

    Parameters
    ----------
    folded : FoldedOracle
        The model as a function of z.
    x, y : Tensors of shapes (n, d) and (n,)
    moves : FreeMoves
        The directions and what the domain says about them.
    radius : float
        Length of a step of reach 1.
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

    def steeper(self, point: Point, factor: torch.Tensor) -> Point:
        """Scale the gradient; the length of a step does not depend on it."""
        slope = point.slope * factor[:, None]
        return Point(point.loss, point.squared, slope, slope)

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
