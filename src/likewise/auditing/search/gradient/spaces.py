"""The coordinates a search moves in: what a point is worth, where to go from it, and how far it may go.

Every space has the row itself at 0, so a point is a displacement. Three of them:

- `WhitenedSpace` (whitened_space.py): no domain, no free direction. With δ = Σ^(−½) v the penalty is λ‖v‖², and
  Σ^(−½) is folded into the first layer of the model, so that a step knows nothing of the metric any more.
- `RowSpace` (row_space.py): any metric, any domain; products with Σ cost O(dK) per row.
- `FreeSpace` (free_space.py): K coefficients along directions that cost nothing (phase 1 of Appendix C).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass

import torch

from likewise.models.single_layer import SingleLayer

__all__ = ["LONGEST", "LONGEST_FREE", "Move", "Point", "Space", "of_length", "row_dot", "row_square"]

LONGEST = 2.0
"""Largest reach of a penalised step: 1 is the fixed point, and beyond 2 a quadratic diverges."""
LONGEST_FREE = 1024.0
"""Largest reach of a free step, in units of its radius."""


@dataclass(frozen=True)
class Point:
    """What is known at one point of each row.

    Attributes
    ----------
    loss, squared : Tensor of shape (n,)
        ℓ and d².
    gradient : Tensor of shape (n, D)
        Of ℓ − λ d² by the coordinates, up to `Space.gradient_scale`.
    slope : Tensor of shape (n, D)
        Gradient of ℓ alone, or `gradient` itself where the space needs no more than that.
    """

    loss: torch.Tensor
    squared: torch.Tensor
    gradient: torch.Tensor
    slope: torch.Tensor


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

    @abstractmethod
    def steeper(self, point: Point, factor: torch.Tensor) -> Point:
        """Return a point with d² = 0 as it would be if the loss were `factor` (n,) times as steep there."""

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
    """Inner product of paired rows, (n,).

    Examples
    --------
    >>> row_dot(torch.tensor([[1.0, 2.0]]), torch.tensor([[3.0, 4.0]]))
    tensor([11.])
    """
    return (a * b).sum(1)


def row_square(a: torch.Tensor) -> torch.Tensor:
    """Squared length of each row, (n,), without a temporary of the size of `a`.

    Examples
    --------
    >>> row_square(torch.tensor([[3.0, 4.0]]))
    tensor([25.])
    """
    length: torch.Tensor = torch.linalg.vector_norm(a, dim=1)
    return length.square_()


def of_length(direction: torch.Tensor, length: torch.Tensor) -> torch.Tensor:
    """Scale each row to a length; a row of zeros stays.

    Examples
    --------
    >>> of_length(torch.tensor([[3e-30, 4e-30], [0.0, 0.0]]), torch.ones(2))
    tensor([[0.6000, 0.8000],
            [0.0000, 0.0000]])
    """
    tiny = torch.finfo(direction.dtype).tiny
    # Divided by the peak first: the square of 1e-30 is 0.
    even = direction / direction.abs().amax(1, keepdim=True).clamp(min=tiny)
    # With a peak of 1 the length is at least 1, unless the row is 0.
    return even * (length / even.square().sum(1).sqrt().clamp(min=1.0))[:, None]
