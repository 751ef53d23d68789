"""A Lightning module that minimises one of our objectives."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import torch
from torch import nn

from likewise.core.errors import require
from likewise.integrations.torch_losses import StatefulLoss
from likewise.training import Objective

require("lightning", why="FairLightningModule")
from lightning.pytorch import LightningModule  # noqa: E402 - after the message about what to install

MakeOptimizer = Callable[[Iterable[nn.Parameter]], torch.optim.Optimizer]


class FairLightningModule(LightningModule):
    """A network that a Lightning `Trainer` trains by an objective such as `SenSR` or `SenSeI`.

    Batches are ``(x, y)``. The loss, λ and the objective's other numbers are logged under ``fair/``; λ and warm starts
    are kept in checkpoints. One device: if several share a batch, use ``likewise.training``.

    Parameters
    ----------
    net : torch module
        Maps (n, d) encoded rows to (n, C) logits.
    objective : Objective
        On the rows that the network gets.
    optimizer : callable, optional
        Makes an optimiser of parameters; Adam with a rate of 1e-3 by default.

    Examples
    --------
    >>> import numpy as np, likewise as lw
    >>> metric = lw.ExpertSubspace([2]).fit(np.eye(3)).metric_
    >>> module = FairLightningModule(nn.Linear(3, 2), lw.SenSR(metric))
    >>> module(torch.zeros(4, 3)).shape
    torch.Size([4, 2])
    """

    def __init__(self, net: nn.Module, objective: Objective, optimizer: MakeOptimizer | None = None) -> None:
        super().__init__()
        self.net = net
        self.fair_loss = StatefulLoss(objective)
        self.make_optimizer = optimizer

    def forward(self, x: torch.Tensor) -> Any:
        """Return the network's answer."""
        return self.net(x)

    def training_step(self, batch: Any, batch_idx: int) -> torch.Tensor:
        """Return the objective's loss of a batch."""
        loss = self.fair_loss(self.net, batch)
        state = self.fair_loss.state
        assert state is not None  # a step has been made
        self.log("fair/loss", loss.detach(), prog_bar=True)
        self.log_dict(
            {"fair/lambda": state.lambda_, **{f"fair/{key}": value for key, value in state.last.items()}}
        )
        return loss

    def configure_optimizers(self) -> torch.optim.Optimizer:
        """Return the optimiser."""
        if self.make_optimizer is None:
            return torch.optim.Adam(self.net.parameters(), lr=1e-3)
        return self.make_optimizer(self.net.parameters())

    def on_save_checkpoint(self, checkpoint: dict[str, Any]) -> None:
        """Keep what the objective remembers."""
        checkpoint["likewise"] = self.fair_loss.state_dict()

    def on_load_checkpoint(self, checkpoint: dict[str, Any]) -> None:
        """Take over what the objective remembered."""
        self.fair_loss.load_state_dict(checkpoint.get("likewise", {}))
