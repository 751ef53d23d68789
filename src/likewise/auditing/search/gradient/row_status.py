"""How the search of one row ended, and what a search hands back."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from typing import Any

import torch

__all__ = ["RowStatus", "SearchResult"]


class RowStatus(IntEnum):
    """How the search of one row ended.

    Examples
    --------
    >>> RowStatus(2).name
    'NON_FINITE'
    """

    CONVERGED = 0
    """The value can no longer be raised by more than the tolerance from where the search stands."""
    MAX_STEPS = 1
    """The steps ran out while the value was still rising: more steps may find a worse case."""
    NON_FINITE = 2
    """A loss or a gradient was not finite. What was found until then is no evidence of fairness."""


@dataclass(frozen=True, eq=False)
class SearchResult:
    """The worst case found for each row.

    Attributes
    ----------
    x : Tensor of shape (n, d)
        The unfair map T_λ(x_i) (paper, equation 5), a row of the domain for each row.
    loss : Tensor of shape (n,)
        Loss of the model there, under the label of the row.
    squared_distance : Tensor of shape (n,)
        Squared fair distance spent.
    status : Tensor of shape (n,), int8
        `RowStatus` of each row.
    steps : Tensor of shape (n,), int32
        Gradient steps that the row took.

    Examples
    --------
    >>> zeros = torch.zeros(2)
    >>> found = SearchResult(
    ...     torch.zeros(2, 3), torch.ones(2), zeros, torch.tensor([0, 2], dtype=torch.int8), zeros.int()
    ... )
    >>> found.counts()
    {'CONVERGED': 1, 'MAX_STEPS': 0, 'NON_FINITE': 1}
    """

    x: torch.Tensor
    loss: torch.Tensor
    squared_distance: torch.Tensor
    status: torch.Tensor
    steps: torch.Tensor

    def objective(self, lam: Any) -> torch.Tensor:
        """Return ℓ − λ d² of each row, (n,); for λ = ∞ the loss, since only free moves were made."""
        weight = torch.as_tensor(lam, dtype=self.loss.dtype, device=self.loss.device)
        paid = torch.where(torch.isinf(weight), torch.zeros_like(weight), weight) * self.squared_distance
        return self.loss - paid

    def counts(self) -> dict[str, int]:
        """Return how many rows ended in each way."""
        return {status.name: int((self.status == status.value).sum()) for status in RowStatus}

    @property
    def finite(self) -> torch.Tensor:
        """Rows whose search never met a value that is not finite, bool (n,)."""
        return self.status != RowStatus.NON_FINITE.value
