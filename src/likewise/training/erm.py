"""Empirical risk minimisation: the mean loss, and nothing else."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import nn

from likewise.models.guard import evaluating
from likewise.models.losses import LossLike
from likewise.training.batch import BatchLike, as_batch
from likewise.training.objective import Objective, State, network_scores, weighted_mean

__all__ = ["ERM"]


@dataclass(frozen=True)
class ERM(Objective):
    """The mean loss of the batch: the paper's "Baseline", and "Project" behind a projection.

    Parameters
    ----------
    loss : {"cross_entropy", "hinge", "squared"}, Loss or callable, default="cross_entropy"

    Examples
    --------
    >>> net, objective = nn.Linear(2, 2), ERM()
    >>> loss, state = objective.step(net, (torch.zeros(4, 2), torch.tensor([0, 1, 0, 1])), objective.init(net))
    >>> loss.requires_grad, state.step
    (True, 1)
    """

    loss: LossLike = "cross_entropy"
    sums_over_ranks: ClassVar[bool] = True

    def init(self, net: nn.Module) -> State:
        """Return an empty state."""
        return State()

    def step(self, net: nn.Module, batch: BatchLike, state: State) -> tuple[torch.Tensor, State]:
        """Return the mean loss and the next state; see `Objective.step`."""
        return self._mean_loss(net, batch), state.after()

    def robust_loss(self, net: nn.Module, batch: BatchLike, state: State) -> float:
        """Return the mean loss."""
        with evaluating(net, keep_tensors=False), torch.no_grad():
            return float(self._mean_loss(net, batch))

    def _mean_loss(self, net: nn.Module, batch: BatchLike) -> torch.Tensor:
        rows, loss = as_batch(batch), self.row_loss
        return weighted_mean(loss.torch_losses(network_scores(net, rows.x, loss), rows.y), rows.weight)
