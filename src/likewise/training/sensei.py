"""SenSeI, Sensitive Set Invariance (Yurochkin & Sun 2021, arXiv 2006.14168)."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import ClassVar, Literal

import torch
from torch import nn

from likewise.auditing.search.gradient.ascent import SearchResult
from likewise.core.checks import FloatArray, check_choice, check_number
from likewise.core.errors import InputError, bad_parameter
from likewise.models.losses import Loss, Wanted
from likewise.models.oracle import evaluating, make_oracle
from likewise.training.batch import Batch, BatchLike, as_batch
from likewise.training.distributed import anywhere, current_share, total
from likewise.training.objective import State, network_scores, weighted_mean
from likewise.training.robust import RobustObjective

# At the row itself the output distance is 0 and so is its slope: the search would never leave. Seen from outputs
# that are off by this share of their spread, it leaves in the first step.
_NUDGE = 1e-2


@dataclass(frozen=True)
class SenSeI(RobustObjective):
    """Mean loss plus ρ times the largest change of output between comparable rows.

    The regulariser is sup E d_y(h(x), h(x′)) over moves of mean squared fair distance ε; its inner problem is
    SenSR's with the output distance in place of the loss. Labels are not needed for it, and accuracy and
    fairness are traded by ρ.

    Parameters
    ----------
    metric, eps, lambda_init, lambda_rule, lambda_step, search, domain, warm_start, fast, loss
        As in `SenSR`.
    rho : float, default=1.0
        ρ, what the regulariser counts for; 0 is plain training.
    outputs : {"probabilities", "logits"}, default="probabilities"
        What d_y compares, by squared Euclidean distance. Logits have no bound: with a domain that has none
        either, the regulariser has none.

    Examples
    --------
    >>> from likewise.core.subspace import Subspace
    >>> from likewise.fair_metrics import FairMetric
    >>> metric = FairMetric.from_subspace(Subspace.from_directions([[1.0, 0.0]]))
    >>> net, objective = nn.Linear(2, 2), SenSeI(metric, rho=2.0)
    >>> loss, state = objective.step(net, (torch.zeros(4, 2), torch.tensor([0, 1, 0, 1])), objective.init(net))
    >>> bool(state.last["output_distance"] > 0)
    True
    """

    rho: float = 1.0
    outputs: Literal["probabilities", "logits"] = "probabilities"
    sums_over_ranks: ClassVar[bool] = True

    def __post_init__(self) -> None:
        super().__post_init__()
        check_number(self.rho, owner="SenSeI", name="rho", low=0)
        check_choice(self.outputs, ("probabilities", "logits"), owner="SenSeI", name="outputs")

    def check(self, batch: Batch) -> None:
        """Raise when metric, domain and rows do not fit, or the loss has no class scores."""
        super().check(batch)
        if self.row_loss.regression and self.outputs == "probabilities":
            raise bad_parameter("SenSeI", "outputs", allowed="'logits' for a regression", got=self.outputs)

    def step(self, net: nn.Module, batch: BatchLike, state: State) -> tuple[torch.Tensor, State]:
        """Find where the output changes most, and return loss + ρ · change and the next state."""
        rows = as_batch(batch)
        found = self.worst_case(net, rows, state)
        moved = torch.where(found.finite[:, None], found.x, rows.x).detach()
        loss, change = self._parts(net, rows, moved)
        # Without moving the output does not change.
        after = self._after(rows, found, torch.zeros_like(found.loss), state)
        noted = {**after.last, "output_distance": float(change.detach())}
        return loss + self.rho * change, replace(after, last=noted)

    def worst_case(self, net: nn.Module, batch: BatchLike, state: State) -> SearchResult:
        """Return the comparable row of each row whose output is farthest from its own, at the λ of the state.

        Parameters
        ----------
        net : torch.nn.Module
        batch : Batch, (x, y) or mapping
        state : State

        Returns
        -------
        SearchResult
            ``loss`` is the output distance, seen from slightly nudged outputs.
        """
        rows, loss = as_batch(batch), self.row_loss
        with evaluating(net, keep_tensors=False), torch.no_grad():
            outputs = _outputs(network_scores(net, rows.x, loss), self.outputs)
        source = torch.Generator().manual_seed(state.step)
        noise = _noise(outputs, source)
        reference = outputs + _NUDGE * _spread(outputs).clamp(min=1e-3) * noise
        oracle = make_oracle(net, OutputDistance(reference, self.outputs), fast=self.fast)
        index = torch.arange(len(rows), device=rows.x.device)
        # Probes are displacements that work for every row of a label; here every row is a target of its own.
        plain = replace(self, search=replace(self.inner, probes=0))
        return plain._find(oracle, rows, index, state)

    def robust_loss(self, net: nn.Module, batch: BatchLike, state: State) -> float:
        """Return mean loss + ρ(λε + mean(d_y − λ d²)) at the λ of the state."""
        rows = replace(as_batch(batch), index=None)
        with evaluating(net, keep_tensors=False):
            found = self.worst_case(net, rows, state)
            if anywhere(not bool(found.finite.all())):
                return math.inf
            with torch.no_grad():
                loss, change = self._parts(net, rows, found.x)
        paid = 0.0
        if not math.isinf(state.lambda_):
            paid = state.lambda_ * (self.eps - float(weighted_mean(found.squared_distance, rows.weight)))
        return float(loss) + self.rho * (float(change) + paid)

    def _parts(self, net: nn.Module, rows: Batch, moved: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Mean loss, and mean output distance with the graph through both outputs."""
        loss = self.row_loss
        scores = network_scores(net, torch.cat([rows.x, moved]), loss)
        own, far = scores[: len(rows)], scores[len(rows) :]
        change = (_outputs(own, self.outputs) - _outputs(far, self.outputs)).square().sum(dim=1)
        return weighted_mean(loss.torch_losses(own, rows.y), rows.weight), weighted_mean(change, rows.weight)


@dataclass(frozen=True, eq=False)
class OutputDistance(Loss):
    """Squared Euclidean distance of a row's output to the output of the row it started from."""

    reference: torch.Tensor
    outputs: Literal["probabilities", "logits"] = "logits"
    name: ClassVar[str] = "output_distance"
    wants: ClassVar[Wanted] = "scores"
    row_targets: ClassVar[bool] = True

    def table(self, outputs: FloatArray, *, probabilities: bool = False) -> FloatArray:
        """Raise: a distance has no class labels to tabulate."""
        raise InputError("OutputDistance: it has no class labels, so there is no table of them.")

    def torch_losses(self, scores: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
        """Return the squared distance of each row, (n,)."""
        return (_outputs(scores, self.outputs) - self.reference[target]).square().sum(dim=1)

    def value_and_slope(
        self, scores: torch.Tensor, target: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Return the squared distance (n,) and its derivative by the scores (n, C)."""
        found = _outputs(scores, self.outputs)
        apart = found - self.reference[target]
        slope = 2.0 * apart
        if self.outputs == "probabilities":
            # The derivative of a softmax: p ⊙ (g − ⟨g, p⟩).
            slope = found * (slope - (slope * found).sum(dim=1, keepdim=True))
        return apart.square().sum(dim=1), slope


def _outputs(scores: torch.Tensor, kind: str) -> torch.Tensor:
    return scores.softmax(dim=1) if kind == "probabilities" else scores


def _noise(outputs: torch.Tensor, source: torch.Generator) -> torch.Tensor:
    """Normal numbers of the shape of the outputs; a row's own are the same whoever works on it."""
    share = current_share()
    n = len(outputs) if share is None else len(share.whole)
    noise = torch.randn(n, outputs.shape[1], generator=source, dtype=torch.float64)
    return (noise if share is None else share.part(noise)).to(outputs)


def _spread(outputs: torch.Tensor) -> torch.Tensor:
    """Standard deviation of all outputs of the batch."""
    share = current_share()
    if share is None:
        return outputs.std() if outputs.numel() > 1 else outputs.new_ones(())
    n = len(share.whole) * outputs.shape[1]
    mean = total(outputs.double().sum()) / n
    return (total((outputs.double() - mean).square().sum()) / (n - 1)).sqrt().to(outputs)
