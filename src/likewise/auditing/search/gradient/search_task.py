"""What a gradient search needs besides the rows: read once, used for every block of them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import torch

from likewise.auditing.search.gradient.free_moves import FreeMoves, free_moves
from likewise.auditing.search.gradient.quadratic_penalty import Quadratic
from likewise.auditing.search.gradient.row_space import RowSpace
from likewise.auditing.search.gradient.shared_probes import Probes, find_probes
from likewise.auditing.search.gradient.spaces import Space
from likewise.auditing.search.gradient.whitened_space import WhitenedSpace
from likewise.domains.boxes import Unbounded
from likewise.domains.domain import Domain
from likewise.fair_metrics.metric import FairMetric
from likewise.models.mlp import MLPOracle
from likewise.models.oracle import Oracle

if TYPE_CHECKING:
    from likewise.auditing.search.gradient.gradient_search import GradientSearch

__all__ = ["SearchTask", "prepare"]

_PROBE_STARTS = 12


@dataclass(frozen=True)
class SearchTask:
    """Everything that does not depend on the block of rows.

    Attributes
    ----------
    choices : GradientSearch
    oracle : Oracle
    metric : FairMetric
    domain : Domain
    penalty : Quadratic
    free : Tensor of shape (d, K)
        Basis of the metric's free directions.
    moves : FreeMoves or None
        Those of them that phase 1 takes at a finite λ.
    whiteners : pair of Tensors or None
        Where phase 2 can fold the metric into the model.
    log_odds : bool
        Whether the loss is cross-entropy, which knows the log-odds.
    probes : Probes or None
    restarts : list of (Tensor of shape (d,), float)
        Random directions, and how far to go along them.
    """

    choices: GradientSearch
    oracle: Oracle
    metric: FairMetric
    domain: Domain
    penalty: Quadratic
    free: torch.Tensor
    moves: FreeMoves | None
    whiteners: tuple[torch.Tensor, torch.Tensor] | None
    log_odds: bool
    probes: Probes | None
    restarts: list[tuple[torch.Tensor, float]]

    def full_space(self, x: torch.Tensor, y: torch.Tensor, lam: torch.Tensor) -> Space:
        """Return the coordinates of phase 2, for λ all positive or all 0: then every direction is free."""
        paid = bool((lam > 0).all())
        if paid and self.whiteners is not None:
            return WhitenedSpace.of(self.oracle, x, y, lam, self.whiteners)
        penalty = self.penalty if paid else Quadratic.nothing(x)
        radius = self.choices.subspace_step_size
        return RowSpace(self.oracle, x, y, lam, penalty=penalty, domain=self.domain, radius=radius)


def prepare(
    choices: GradientSearch,
    oracle: Oracle,
    x: torch.Tensor,
    y: torch.Tensor,
    *,
    metric: FairMetric,
    domain: Domain,
    lam: float | None,
    generator: torch.Generator | None,
) -> SearchTask:
    """Read the metric, draw the random directions and find the probes.

    Parameters
    ----------
    choices, oracle, metric, domain, generator
        As in `GradientSearch.run`.
    x, y : Tensors of shapes (n, d) and (n,)
        Only the width and dtype of x and the labels that occur are looked at.
    lam : float or None
        λ where it is the same for all rows.
    """
    penalty = Quadratic.of(metric, x)
    free = x.new_zeros(x.shape[1], 0)
    if metric.n_features and penalty.has_free:
        free = torch.as_tensor(metric.null_space.basis, dtype=x.dtype, device=x.device)
    fixed = choices.method == "fixed_point"
    folds = fixed and isinstance(oracle, MLPOracle) and isinstance(domain, Unbounded) and not penalty.has_free
    if generator is None:
        generator = torch.Generator().manual_seed(0)

    def noise(*shape: int) -> torch.Tensor:
        return torch.randn(shape, generator=generator, dtype=torch.float64, device=generator.device).to(x)

    start_noise = noise(_PROBE_STARTS, x.shape[1])
    task = SearchTask(
        choices=choices,
        oracle=oracle,
        metric=metric,
        domain=domain,
        penalty=penalty,
        free=free,
        moves=free_moves(domain, free, exact=False),
        whiteners=penalty.whiteners if folds else None,
        log_odds=oracle.objective.name == "cross_entropy",
        probes=None,
        # One at a time: more of them must begin with the same ones.
        restarts=[_restart(noise(x.shape[1] + 1)) for _ in range(choices.restarts)],
    )
    if lam is None or not 0 < lam < float("inf") or y.is_floating_point():
        return task
    if not (fixed and choices.probes and choices.full_steps):
        return task
    return replace(task, probes=_probes(task, start_noise, torch.unique(y), lam))


def _restart(drawn: torch.Tensor) -> tuple[torch.Tensor, float]:
    """A direction and, from the last number drawn, a share between 0.03 and 1: near starts as well as far ones."""
    return drawn[:-1], float(10 ** (-1.5 * torch.special.ndtr(drawn[-1])))


def _probes(task: SearchTask, noise: torch.Tensor, labels: torch.Tensor, lam: float) -> Probes:
    """Find displacements at the point of the domain next to 0, where standardised data has its middle."""
    origin: torch.Tensor = task.domain.project(torch.zeros_like(noise[:1]))

    def make_space(targets: torch.Tensor) -> Space:
        rows = origin.expand(len(targets), -1).contiguous()
        return task.full_space(rows, targets, torch.full_like(rows[:, 0], lam))

    def cost(deltas: torch.Tensor) -> torch.Tensor:
        return lam * task.penalty.squared(deltas)

    return find_probes(make_space, labels, noise, origin, count=task.choices.probes, cost=cost)
