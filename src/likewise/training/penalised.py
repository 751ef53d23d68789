"""CoCL, and any objective plus its covariance penalty."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar

import torch
from torch import nn

from likewise.core.checks import check_number
from likewise.core.errors import InputError, bad_parameter
from likewise.models.losses import LossLike
from likewise.models.oracle import evaluating
from likewise.training.batch import Batch, BatchLike, as_batch
from likewise.training.distributed import current_share, total
from likewise.training.objective import Objective, State, network_scores, weighted_mean

# CoCL, the covariance-constrained loss of Romanov et al. 2019 ("What's in a Name?").


@dataclass(frozen=True)
class CoCL(Objective):
    """Mean loss plus, class by class, the norm of the covariance of predictions and a proxy vector.

    The proxy is the embedding of the person's name, or any vector that leans on protected attributes (the
    attributes themselves if there are no names). It is needed in training only.

    Parameters
    ----------
    strength : float, default=1.0
        What the penalty counts for; 0 is plain training.
    loss : str, Loss or callable, default="cross_entropy"

    Notes
    -----
    For each class c among the labels of the batch, over its rows i: ‖mean_i (p_i − p̄)(z_i − z̄)‖₂, where p_i is
    the predicted probability of the row's own class and z_i its proxy; the penalty is the mean over classes.

    Examples
    --------
    >>> net, objective = nn.Linear(2, 2), CoCL(strength=2.0)
    >>> batch = Batch(torch.rand(6, 2), torch.tensor([0, 1] * 3), proxy=torch.rand(6, 3))
    >>> loss, state = objective.step(net, batch, objective.init(net))
    >>> bool(loss >= 0), sorted(state.last)
    (True, ['penalty'])
    """

    strength: float = 1.0
    loss: LossLike = "cross_entropy"
    sums_over_ranks: ClassVar[bool] = True

    def __post_init__(self) -> None:
        check_number(self.strength, owner="CoCL", name="strength", low=0)

    def check(self, batch: Batch) -> None:
        """Raise when the rows have no proxy."""
        if batch.proxy is None or batch.proxy.ndim != 2:
            raise bad_parameter(
                "CoCL",
                "proxy",
                allowed="a matrix with one vector per row",
                got="none" if batch.proxy is None else f"shape {tuple(batch.proxy.shape)}",
                remedy="Pass Batch.from_arrays(X, y, proxy=Z).",
            )
        if self.row_loss.regression:
            raise InputError("CoCL: it penalises class probabilities; use a loss for classification.")

    def init(self, net: nn.Module) -> State:
        """Return an empty state."""
        return State()

    def step(self, net: nn.Module, batch: BatchLike, state: State) -> tuple[torch.Tensor, State]:
        """Return loss plus penalty, and the next state; see `Objective.step`."""
        loss, penalty = self._parts(net, as_batch(batch))
        return loss + self.strength * penalty, state.after(last={"penalty": float(penalty.detach())})

    def robust_loss(self, net: nn.Module, batch: BatchLike, state: State) -> float:
        """Return the penalised loss."""
        with evaluating(net, keep_tensors=False), torch.no_grad():
            loss, penalty = self._parts(net, as_batch(batch))
        return float(loss + self.strength * penalty)

    def _parts(self, net: nn.Module, rows: Batch) -> tuple[torch.Tensor, torch.Tensor]:
        self.check(rows)
        loss = self.row_loss
        scores = network_scores(net, rows.x, loss)
        return weighted_mean(loss.torch_losses(scores, rows.y), rows.weight), _penalty(scores, rows)


def _penalty(scores: torch.Tensor, rows: Batch) -> torch.Tensor:
    """The penalty of class scores (n, C) on rows that have a proxy."""
    assert rows.proxy is not None
    own = scores.softmax(dim=1).gather(1, rows.y[:, None])[:, 0]
    return class_covariance_norm(own, rows.proxy, rows.y)


def class_covariance_norm(p: torch.Tensor, proxy: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    """Return the mean over classes of ‖Cov(p, proxy | y = c)‖₂."""
    if current_share() is not None:
        return _shared_covariance_norm(p, proxy, y)
    norms = []
    for c in torch.unique(y):
        own = y == c
        centred = proxy[own] - proxy[own].mean(dim=0)
        # Σ (p − p̄)(z − z̄) = Σ p (z − z̄). The tiny term keeps the slope of the norm finite at 0.
        covariance = p[own] @ centred / len(centred)
        norms.append((covariance.square().sum() + torch.finfo(p.dtype).tiny).sqrt())
    return torch.stack(norms).mean()


def _shared_covariance_norm(p: torch.Tensor, proxy: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    """`class_covariance_norm` of a batch of which this rank has a share."""
    share = current_share()
    assert share is not None
    # The classes of the whole batch, also those that this rank has no row of.
    classes, codes = torch.unique(share.whole.y, return_inverse=True)
    own = share.part(codes)
    size = p.new_zeros(len(classes)).index_add(0, own, torch.ones_like(p))
    sums = proxy.new_zeros(len(classes), proxy.shape[1]).index_add(0, own, proxy)
    counted = total(torch.cat([size[:, None], sums], dim=1))
    size, mean = counted[:, :1], counted[:, 1:] / counted[:, :1]
    products = p[:, None] * (proxy - mean[own])
    covariance = total(proxy.new_zeros(mean.shape).index_add(0, own, products)) / size
    return (covariance.square().sum(dim=1) + torch.finfo(p.dtype).tiny).sqrt().mean()


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
        return {"objective": type(self).__name__, "inner": self.inner.describe(), "strength": self.strength}

    def _penalty(self, net: nn.Module, rows: Batch) -> torch.Tensor:
        self.check(rows)
        return _penalty(network_scores(net, rows.x, self.row_loss), rows)
