"""Objectives with a penalty for what answers say of groups: CoCL, covariance added to any objective, an adversary."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import torch
from torch import nn

from likewise.core.checks import check_number
from likewise.core.errors import InputError, bad_parameter
from likewise.models.losses import LossLike
from likewise.models.oracle import evaluating, module_device, module_dtype
from likewise.training.batch import Batch, BatchLike, as_batch
from likewise.training.distributed import current_share, evenly, total, whole_gradients
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
                "a matrix with one vector per row",
                "none" if batch.proxy is None else f"shape {tuple(batch.proxy.shape)}",
                "Pass Batch.from_arrays(X, y, proxy=Z).",
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


# Adversarial debiasing (Zhang, Lemoine & Mitchell 2018), for any number of protected attributes.


@dataclass(frozen=True)
class AdversarialDebiasing(Objective):
    """Train against an adversary that guesses the protected attributes from the prediction.

    The network's update is ∇L − proj_{∇A} ∇L − α ∇A: its own gradient without the part that would help the
    adversary, minus α times the adversary's. The adversary is one softmax regression per attribute on the
    sharpened probabilities s = ``softmax((1 + |c|) scores)``, and s times the label for equalised odds; it learns
    with its own Adam in the state.

    Parameters
    ----------
    n_values : sequence of int, default=(2,)
        Number of values of each protected attribute; ``batch.sensitive_features`` has a column of indices for each.
    strength : float, default=0.1
        α. The paper's Adult run used 0.001.
    equalized_odds : bool, default=True
        Whether the adversary sees the label; False makes it demographic parity.
    adversary_lr : float, default=1e-3
    project : bool, default=True
        Whether the part that helps the adversary is taken out.
    seed : int, default=0
        For the adversary's first weights.
    loss : str, Loss or callable, default="cross_entropy"

    Examples
    --------
    >>> net, objective = nn.Linear(2, 2), AdversarialDebiasing(n_values=(2, 3))
    >>> batch = Batch(torch.rand(6, 2), torch.tensor([0, 1] * 3), torch.tensor([[0, 2], [1, 0]] * 3))
    >>> loss, state = objective.step(net, batch, objective.init(net))
    >>> sorted(state.last)
    ['adversary_loss']
    """

    n_values: Sequence[int] = (2,)
    strength: float = 0.1
    equalized_odds: bool = True
    adversary_lr: float = 1e-3
    project: bool = True
    seed: int = 0
    loss: LossLike = "cross_entropy"
    sums_over_ranks: ClassVar[bool] = True

    def __post_init__(self) -> None:
        check_number(self.strength, owner="AdversarialDebiasing", name="strength", low=0)
        check_number(
            self.adversary_lr, owner="AdversarialDebiasing", name="adversary_lr", low=0, open_low=True
        )
        values = tuple(int(v) for v in self.n_values)
        if not values or min(values) < 2:
            raise bad_parameter(
                "AdversarialDebiasing", "n_values", "one number of at least 2 per attribute", values
            )
        object.__setattr__(self, "n_values", values)

    def check(self, batch: Batch) -> None:
        """Raise when the protected attributes are absent or are not what `n_values` says."""
        given, k, owner = batch.sensitive_features, len(self.n_values), "AdversarialDebiasing"
        if given is None or given.shape != (len(batch), k):
            raise bad_parameter(
                owner,
                "sensitive_features",
                f"an (n, {k}) matrix of value indices",
                "none" if given is None else f"shape {tuple(given.shape)}",
                "Pass Batch.from_arrays(X, y, sensitive_features=S).",
            )
        if self.row_loss.regression:
            raise InputError(f"{owner}: the adversary reads class probabilities; use a classification loss.")
        top = given.amax(dim=0).tolist()
        if int(given.min()) < 0 or any(t >= v for t, v in zip(top, self.n_values, strict=True)):
            raise bad_parameter(
                owner,
                "sensitive_features",
                f"indices below {self.n_values}, one bound per attribute",
                f"indices up to {top}",
            )

    def init(self, net: nn.Module) -> State:
        """Return a state with the adversary's sharpness; its weights follow once the number of classes is known."""
        sharpness = torch.ones((), dtype=module_dtype(net), device=module_device(net))
        return State(tensors={"w.sharpness": sharpness})

    def step(self, net: nn.Module, batch: BatchLike, state: State) -> tuple[torch.Tensor, State]:
        """Let the adversary learn once; return a loss whose gradient is the debiased update."""
        rows = as_batch(batch)
        self.check(rows)
        loss, scores = self._loss_and_scores(net, rows)
        tensors = self._complete(state.tensors, scores)
        weights = {k: v.detach().requires_grad_() for k, v in tensors.items() if k.startswith("w.")}
        adversary = self._adversary_loss(weights, scores, rows)
        parameters = [p for p in net.parameters() if p.requires_grad]
        gradients = torch.autograd.grad(
            adversary, [*weights.values(), *parameters], retain_graph=True, allow_unused=True
        )
        own_part = torch.autograd.grad(loss, parameters, allow_unused=True)
        # The projection is of whole gradients, and so is what the adversary learns from.
        whole = whole_gradients([*gradients, *own_part])
        k, m = len(weights), len(weights) + len(parameters)
        learned, felt, own = whole[:k], whole[k:m], whole[m:]
        update = evenly(self._combine(own, felt, parameters))
        moved = adam_update(
            tensors, dict(zip(weights, learned, strict=True)), self.adversary_lr, state.step + 1
        )
        last = {"adversary_loss": float(adversary.detach())}
        # A scalar with this gradient, though no function has it: the loop calls ``loss.backward()``.
        linear = torch.stack([(p * g).sum() for p, g in zip(parameters, update, strict=True)]).sum()
        return loss.detach() + (linear - linear.detach()), state.after(last=last, tensors=moved)

    def robust_loss(self, net: nn.Module, batch: BatchLike, state: State) -> float:
        """Return the loss minus α times the adversary's."""
        rows = as_batch(batch)
        with evaluating(net, keep_tensors=False), torch.no_grad():
            loss, scores = self._loss_and_scores(net, rows)
            tensors = self._complete(state.tensors, scores)
            return float(loss - self.strength * self._adversary_loss(tensors, scores, rows))

    def _loss_and_scores(self, net: nn.Module, rows: Batch) -> tuple[torch.Tensor, torch.Tensor]:
        loss = self.row_loss
        scores = network_scores(net, rows.x, loss)
        return weighted_mean(loss.torch_losses(scores, rows.y), rows.weight), scores

    def _complete(self, tensors: Mapping[str, torch.Tensor], scores: torch.Tensor) -> dict[str, torch.Tensor]:
        """Add the adversary's first weights if it has none yet."""
        found = dict(tensors)
        if "w.0.weight" in found:
            return found
        generator = torch.Generator().manual_seed(self.seed)
        classes = scores.shape[1]
        width = classes * (1 + classes) if self.equalized_odds else classes
        for i, values in enumerate(self.n_values):
            weight = torch.randn(width, values, generator=generator, dtype=torch.float64) / width**0.5
            found[f"w.{i}.weight"] = weight.to(scores)
            found[f"w.{i}.bias"] = torch.zeros(values).to(scores)
        return found

    def _adversary_loss(
        self, weights: Mapping[str, torch.Tensor], scores: torch.Tensor, rows: Batch
    ) -> torch.Tensor:
        assert rows.sensitive_features is not None
        seen = (scores * (1 + weights["w.sharpness"].abs())).softmax(dim=1)
        if self.equalized_odds:
            label = nn.functional.one_hot(rows.y, scores.shape[1]).to(scores.dtype)
            seen = torch.cat([seen, (seen[:, :, None] * label[:, None, :]).flatten(1)], dim=1)
        total = scores.new_zeros(())
        for i in range(len(self.n_values)):
            guess = torch.addmm(weights[f"w.{i}.bias"], seen, weights[f"w.{i}.weight"])
            losses = nn.functional.cross_entropy(guess, rows.sensitive_features[:, i], reduction="none")
            total = total + weighted_mean(losses, rows.weight)
        return total

    def _combine(
        self,
        own: Sequence[torch.Tensor | None],
        felt: Sequence[torch.Tensor | None],
        parameters: Sequence[torch.Tensor],
    ) -> list[torch.Tensor]:
        """∇L − proj_{∇A} ∇L − α ∇A, parameter by parameter (equation 1 of Zhang et al.)."""
        update = []
        for g, a, p in zip(own, felt, parameters, strict=True):
            mine = torch.zeros_like(p) if g is None else g
            if a is not None:
                if self.project:
                    unit = a / (a.norm() + torch.finfo(a.dtype).tiny)
                    mine = mine - (mine * unit).sum() * unit
                mine = mine - self.strength * a
            update.append(mine)
        return update


# The means over steps that Adam keeps of gradients and of their squares.
_BETAS = (0.9, 0.999)


def adam_update(
    tensors: Mapping[str, torch.Tensor], gradients: Mapping[str, torch.Tensor | None], lr: float, step: int
) -> Mapping[str, torch.Tensor]:
    """Return weights and moments after one step of Adam; names "m.*" and "v.*" hold the moments of "w.*"."""
    moved = dict(tensors)
    for name, gradient in gradients.items():
        g = torch.zeros_like(tensors[name]) if gradient is None else gradient
        key = name.removeprefix("w.")
        zero = torch.zeros_like(g)
        m = _BETAS[0] * tensors.get(f"m.{key}", zero) + (1 - _BETAS[0]) * g
        v = _BETAS[1] * tensors.get(f"v.{key}", zero) + (1 - _BETAS[1]) * g.square()
        scale = (v / (1 - _BETAS[1] ** step)).sqrt() + 1e-8
        moved[name] = tensors[name].detach() - lr * (m / (1 - _BETAS[0] ** step)) / scale
        moved[f"m.{key}"], moved[f"v.{key}"] = m, v
    return moved
