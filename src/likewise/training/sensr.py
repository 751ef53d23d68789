"""SenSR, Sensitive Subspace Robustness (the paper's Algorithm 2), its Euclidean case, and SenSeI."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal

import torch
from torch import nn

from likewise.auditing.search.gradient.ascent import SearchResult
from likewise.auditing.search.gradient.search import GradientSearch
from likewise.core.checks import FloatArray, check_choice, check_number
from likewise.core.errors import InputError, bad_parameter
from likewise.fair_metrics import euclidean
from likewise.models.losses import Loss, Wanted
from likewise.models.oracle import evaluating, make_oracle
from likewise.training.batch import Batch, BatchLike, as_batch
from likewise.training.distributed import anywhere, current_share, total
from likewise.training.objective import State, network_scores, weighted_mean
from likewise.training.robust import RobustObjective


@dataclass(frozen=True)
class SenSR(RobustObjective):
    """The loss of each row at its worst comparable row: min over the network of V(ε) (equation 6).

    Parameters
    ----------
    metric : FairMetric
        Who is comparable, on the rows that the network gets.
    eps : float, default=1e-3
        The tolerance ε of squared fair distance. 0 allows only moves that cost nothing.
    lambda_init : float, default=2.0
        λ at the start.
    lambda_rule : {"paper", "authors", "dual", "fixed"}, default="paper"
        How λ moves: as Algorithm 2 says, as the authors' code does, towards the exact minimiser of the dual on
        each batch, or not at all. It moves only if the search has a full phase and ε > 0.
    lambda_step : float, default=1.0
        α of the rule "paper".
    search : {"two_phase", "paper", "fast"} or GradientSearch, default="two_phase"
        "two_phase": Appendix C with few steps, 10 Adam steps of size 10 inside the subspace, then 10 of size 0.01
        everywhere, as in Table 3 for sentiment. "paper": Table 3's numbers for Adult, 50 steps of size 10, then 40 of
        size 1e-4; these move nobody as far as ε = 1e-3. "fast": the subspace phase of "two_phase" alone, so ε has no
        effect, which `init` warns of.
    domain : Domain, optional
        Which rows can exist. None sets no bound, as the paper does: it is the *large* moves along the
        subspace that bring group gaps down.
    warm_start : bool, default=False
        Begin the search of each row where it ended last time or, every other time, where another row of its
        class did (for data with row numbers); what it knew is kept if that was better. Meant for bounded
        problems: without a bound the moves would grow from pass to pass.
    loss : str, Loss or callable, default="cross_entropy"

    Examples
    --------
    >>> from likewise.core.subspace import Subspace
    >>> from likewise.fair_metrics import FairMetric
    >>> metric = FairMetric.from_subspace(Subspace.from_directions([[1.0, 0.0]]))
    >>> net, objective = nn.Linear(2, 2), SenSR(metric)
    >>> loss, state = objective.step(net, (torch.zeros(4, 2), torch.tensor([0, 1, 0, 1])), objective.init(net))
    >>> bool(loss > 0.69), state.last["squared_distance"] > 0
    (True, True)
    """

    sums_over_ranks: ClassVar[bool] = True

    def step(self, net: nn.Module, batch: BatchLike, state: State) -> tuple[torch.Tensor, State]:
        """Find the worst cases, and return the mean loss there and the next state; see `Objective.step`."""
        rows = as_batch(batch)
        oracle = make_oracle(net, self.loss)
        found = self._find(oracle, rows, rows.y, state)
        base = oracle.loss(rows.x, rows.y) if self.lambda_rule == "dual" else None
        x = found.x
        if not bool(found.finite.all()):
            x = torch.where(found.finite[:, None], x, rows.x)
        loss = self.row_loss
        # Danskin: the worst case is held fixed, only the network's parameters are differentiated.
        losses = loss.torch_losses(network_scores(net, x.detach(), loss), rows.y)
        return weighted_mean(losses, rows.weight), self._after(rows, found, base, state)

    def worst_case(self, net: nn.Module, batch: BatchLike, state: State) -> SearchResult:
        """Return the unfair map of a batch at the λ of the state.

        Parameters
        ----------
        net : torch.nn.Module
        batch : Batch, (x, y) or mapping
        state : State

        Returns
        -------
        SearchResult
            ``x`` has the worst comparable row of each row.
        """
        rows = as_batch(batch)
        return self._find(make_oracle(net, self.loss), rows, rows.y, state)

    def robust_loss(self, net: nn.Module, batch: BatchLike, state: State) -> float:
        """Return the dual value λε + mean(ℓ − λ d²) at the λ of the state; an estimate of V(ε) from above."""
        # Without row numbers: held-out rows have no warm starts of their own.
        rows = replace(as_batch(batch), index=None)
        with evaluating(net, keep_tensors=False):
            found = self._find(make_oracle(net, self.loss), rows, rows.y, state)
        if anywhere(not bool(found.finite.all())):
            return math.inf
        spent = 0.0 if math.isinf(state.lambda_) else state.lambda_ * self.eps
        return spent + float(weighted_mean(found.objective(state.lambda_), rows.weight))


def wasserstein_robust(
    n_features: int | None = None, *, eps: float = 0.1, lambda_init: float = 2.0, **choices: Any
) -> SenSR:
    """Return SenSR with the Euclidean metric: the distributionally robust training of Sinha et al. 2018.

    Every direction costs the same, so there is no sensitive subspace and no phase inside one.

    Parameters
    ----------
    n_features : int, optional
        Number of columns.
    eps, lambda_init
        As in `SenSR`.
    **choices
        Any other choice of `SenSR`. The default search is a damped fixed point, and λ follows the dual.

    Examples
    --------
    >>> wasserstein_robust(2).describe()["metric"]["class"]
    'FairMetric'
    """
    choices.setdefault("search", GradientSearch(subspace_steps=0, full_steps=15))
    choices.setdefault("lambda_rule", "dual")
    return SenSR(euclidean(n_features), eps=eps, lambda_init=lambda_init, **choices)


# SenSeI, Sensitive Set Invariance (Yurochkin & Sun 2021, arXiv 2006.14168).


# At the row itself the output distance and its slope are 0, so the search could not start. The reference outputs are
# therefore shifted by this share of their spread.
_NUDGE = 1e-2


@dataclass(frozen=True)
class SenSeI(RobustObjective):
    """Mean loss plus ρ times the largest change of output between comparable rows.

    The regulariser is sup E d_y(h(x), h(x′)) over moves of mean squared fair distance ε; its inner problem is
    SenSR's with the output distance in place of the loss. Labels are not needed for it, and accuracy and
    fairness are traded by ρ.

    Parameters
    ----------
    metric, eps, lambda_init, lambda_rule, lambda_step, search, domain, warm_start, loss
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
            raise bad_parameter("SenSeI", "outputs", "'logits' for a regression", self.outputs)

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
        # Noise of the whole batch: a row's own does not depend on the rank that works on it.
        share = current_share()
        n = len(outputs) if share is None else len(share.whole)
        noise = torch.randn(n, outputs.shape[1], generator=source, dtype=torch.float64)
        noise = (noise if share is None else share.part(noise)).to(outputs)
        reference = outputs + _NUDGE * _spread(outputs).clamp(min=1e-3) * noise
        oracle = make_oracle(net, OutputDistance(reference, self.outputs))
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


def _spread(outputs: torch.Tensor) -> torch.Tensor:
    """Standard deviation of all outputs of the batch."""
    share = current_share()
    if share is None:
        return outputs.std() if outputs.numel() > 1 else outputs.new_ones(())
    n = len(share.whole) * outputs.shape[1]
    mean = total(outputs.double().sum()) / n
    return (total((outputs.double() - mean).square().sum()) / (n - 1)).sqrt().to(outputs)
