"""What comes out of a training."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

import torch
from torch import nn

from likewise.training.findings import Finding
from likewise.training.history import History
from likewise.training.objective import State

__all__ = ["Status", "TrainingResult"]

Status: TypeAlias = Literal["finished", "stopped_early", "interrupted", "diverged"]


@dataclass(frozen=True, eq=False)
class TrainingResult:
    """What came out of a training.

    Attributes
    ----------
    net : torch.nn.Module
        The network that was passed, with its final weights: those of the best validation where there was one.
    status : {"finished", "stopped_early", "interrupted", "diverged"}
    reason : str
        The status in a sentence.
    history : History
    state : State
        Of the objective after the last step.
    optimizer : torch.optim.Optimizer
        To go on with.
    steps : int
        Steps done, those before a resume included.
    best_step : int
        The step whose weights the network has.
    best_validation : float or None
        The robust loss there on the validation rows.
    findings : tuple of Finding
        What a user should look at.
    seconds : float
        Wall time of the steps made here.

    Examples
    --------
    >>> import torch
    >>> from likewise.training import mlp, train
    >>> X = torch.tensor([[-1.0], [-2.0], [1.0], [2.0]])
    >>> result = train(mlp(1, (), 2), (X, [0, 0, 1, 1]), steps=20, lr=0.1)
    >>> result.status, result.steps, result.findings
    ('finished', 20, ())
    """

    net: nn.Module
    status: Status
    reason: str
    history: History
    state: State
    optimizer: torch.optim.Optimizer
    steps: int
    best_step: int
    best_validation: float | None
    findings: tuple[Finding, ...]
    seconds: float

    def __repr__(self) -> str:
        last = self.history["loss"][-1] if len(self.history) else float("nan")
        return (
            f"TrainingResult({self.status} after {self.steps} steps, loss {last:.4g}, "
            f"weights of step {self.best_step})"
        )
