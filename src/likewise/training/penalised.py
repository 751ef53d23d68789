"""Any objective plus CoCL's covariance penalty."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar

import torch
from torch import nn

from likewise.core.checks import check_number
from likewise.models.guard import evaluating
from likewise.models.losses import LossLike
from likewise.training.batch import Batch, BatchLike, as_batch
from likewise.training.cocl import CoCL, class_covariance_norm
from likewise.training.objective import Objective, State, network_scores

__all__ = ["WithCovariancePenalty"]


@dataclass(frozen=True)
class WithCovariancePenalty(Objective):
    """An objective for individuals plus a penalty for groups.

    The penalty is that of `CoCL`: class by class, the norm of the covariance of the predicted probability of the
    true class, on the rows as they are, and ``batch.proxy``.

    Parameters
    ----------
    inner : Objective
        What is minimised besides, such as `SenSR`.
    strength : float, default=1.0
        What the penalty counts for.

    Examples
    --------
    >>> from likewise.training import ERM
    >>> net, objective = nn.Linear(2, 2), WithCovariancePenalty(ERM(), strength=2.0)
    >>> batch = Batch(torch.rand(6, 2), torch.tensor([0, 1] * 3), proxy=torch.rand(6, 3))
    >>> loss, state = objective.step(net, batch, objective.init(net))
    >>> sorted(state.last)
    ['penalty']
    """

    inner: Objective
    strength: float = 1.0
    sums_over_ranks: ClassVar[bool] = True

    def __post_init__(self) -> None:
        check_number(self.strength, owner="WithCovariancePenalty", name="strength", low=0)

    @property
    def loss(self) -> LossLike:  # type: ignore[override]
        """The loss of one row: the objective's."""
        return self.inner.loss

    @property
    def parts(self) -> tuple[Objective, ...]:
        """The objective that the penalty is added to."""
        return (self.inner,)

    def check(self, batch: Batch) -> None:
        """Raise when the rows have no proxy, or do not fit the objective."""
        self.inner.check(batch)
        CoCL(strength=self.strength, loss=self.loss).check(batch)

    def init(self, net: nn.Module) -> State:
        """Return the state of the objective."""
        return self.inner.init(net)

    def step(self, net: nn.Module, batch: BatchLike, state: State) -> tuple[torch.Tensor, State]:
        """Return the objective's loss plus the penalty, and its next state; see `Objective.step`."""
        rows = as_batch(batch)
        loss, after = self.inner.step(net, rows, state)
        penalty = self._penalty(net, rows)
        noted = {**after.last, "penalty": float(penalty.detach())}
        return loss + self.strength * penalty, replace(after, last=noted)

    def robust_loss(self, net: nn.Module, batch: BatchLike, state: State) -> float:
        """Return the objective's robust loss plus the penalty."""
        rows = as_batch(batch)
        with evaluating(net, keep_tensors=False), torch.no_grad():
            penalty = float(self._penalty(net, rows))
        return self.inner.robust_loss(net, rows, state) + self.strength * penalty

    def describe(self) -> dict[str, Any]:
        """Return the choices of both as a plain dict."""
        return {
            "objective": type(self).__name__,
            "inner": self.inner.describe(),
            "strength": self.strength,
        }

    def _penalty(self, net: nn.Module, rows: Batch) -> torch.Tensor:
        self.check(rows)
        assert rows.proxy is not None
        scores = network_scores(net, rows.x, self.row_loss)
        own = scores.softmax(dim=1).gather(1, rows.y[:, None])[:, 0]
        return class_covariance_norm(own, rows.proxy, rows.y)
