"""A network with one hidden layer of ReLUs and one margin, as plain tensors for a compiled loop."""

from __future__ import annotations

from dataclasses import dataclass

import torch

__all__ = ["SingleLayer"]


@dataclass(frozen=True, eq=False)
class SingleLayer:
    """The margin s₁ − s₀ = head · a(before + v directions) + offset of each row, by displacements v (n, D).

    Attributes
    ----------
    before : Tensor of shape (n, H)
        What enters the hidden units at v = 0.
    directions : Tensor of shape (D, H)
        How a displacement changes it.
    head : Tensor of shape (H,)
    offset : float
    leak : float
        a(u) = max(u, leak · u).
    signs : Tensor of shape (n,)
        −1 for rows of class 0, 1 for rows of class 1.
    loss : str
        Name of the loss of the margin.
    """

    before: torch.Tensor
    directions: torch.Tensor
    head: torch.Tensor
    offset: float
    leak: float
    signs: torch.Tensor
    loss: str
