"""An objective with its state in one object, for training loops that want a loss and nothing else."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn

from likewise.core.errors import bad_parameter
from likewise.training import Objective, State
from likewise.training.batch import BatchLike


class StatefulLoss:
    """A loss of a network on a batch that remembers what its objective remembers: λ, steps, warm starts.

    Parameters
    ----------
    objective : Objective
        `SenSR`, `SenSeI`, or another.

    Attributes
    ----------
    state : State or None
        After the last step; None before the first.

    Examples
    --------
    >>> from likewise.core.subspace import Subspace
    >>> from likewise.fair_metrics import FairMetric
    >>> from likewise.training import SenSR
    >>> metric = FairMetric.from_subspace(Subspace.from_directions([[1.0, 0.0]]))
    >>> fair, net = StatefulLoss(SenSR(metric)), nn.Linear(2, 2)
    >>> loss = fair(net, (torch.zeros(4, 2), torch.tensor([0, 1, 0, 1])))
    >>> loss.requires_grad, fair.state.step
    (True, 1)
    """

    def __init__(self, objective: Objective) -> None:
        if not isinstance(objective, Objective):
            raise bad_parameter(
                "StatefulLoss",
                "objective",
                "an Objective, such as SenSR(metric)",
                f"a {type(objective).__name__}",
            )
        self.objective = objective
        self.state: State | None = None

    def __call__(self, net: nn.Module, batch: BatchLike) -> torch.Tensor:
        """Return the loss to call ``backward()`` on, and go on to the next state."""
        before = self.objective.init(net) if self.state is None else self.state
        loss, self.state = self.objective.step(net, batch, before)
        return loss

    def state_dict(self) -> dict[str, Any]:
        """Return the state as tensors and text, for a checkpoint."""
        if self.state is None:
            return {}
        tensors, numbers = self.state.to_tensors()
        return {"tensors": tensors, "numbers": numbers}

    def load_state_dict(self, saved: dict[str, Any]) -> None:
        """Take over what `state_dict` returned."""
        self.state = State.from_tensors(saved["tensors"], saved["numbers"]) if saved else None
