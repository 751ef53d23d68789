"""The base of SenSR and SenSeI: an inner search for the worst case of each row, and the rules of λ."""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass, replace
from typing import Any, Literal, TypeAlias, get_args

import numpy as np
import torch
from torch import nn

from likewise.auditing.search.gradient.ascent import RowStatus, SearchResult
from likewise.auditing.search.gradient.search import GradientSearch
from likewise.core.checks import check_choice, check_number, to_numpy
from likewise.core.errors import InputError, bad_parameter
from likewise.data.domain import Domain, Unbounded
from likewise.data.tabular import TabularDomain
from likewise.fair_metrics import FairMetric
from likewise.models.losses import LossLike
from likewise.models.oracle import Oracle
from likewise.training.batch import Batch
from likewise.training.distributed import current_share, total
from likewise.training.objective import Objective, State
from likewise.training.results import TrainingWarning

# How λ, the price of fair distance, moves from step to step: named rules, pure functions.


LambdaRule: TypeAlias = Literal["paper", "authors", "dual", "fixed"]

# The least λ of the authors' code.
AUTHORS_FLOOR = 1e-5


def paper_rule(lambda_: float, eps: float, mean_squared_distance: float, step_size: float) -> float:
    """Return the next λ of Algorithms 1 and 2, line 4: max(0, λ − α(ε − mean d²))."""
    return max(0.0, lambda_ - step_size * (eps - mean_squared_distance))


def authors_rule(lambda_: float, eps: float, mean_squared_distance: float) -> float:
    """Return the next λ of the authors' code: λ + max(m, ε)/min(m, ε) · (m − ε), at least 1e-5.

    The step grows with the ratio of what was spent to what was allowed, so λ falls to its floor in a few steps
    if the worst case costs much less than ε.
    """
    least, most = sorted((mean_squared_distance, eps))
    if most == 0.0:
        return lambda_
    if least == 0.0:
        # The ratio is infinite: down to the floor, or up as far as the distance itself.
        return AUTHORS_FLOOR if mean_squared_distance < eps else lambda_ + mean_squared_distance
    return max(AUTHORS_FLOOR, lambda_ + most / least * (mean_squared_distance - eps))


def dual_rule(
    lambda_: float, eps: float, base_loss: Any, squared_distance: Any, loss: Any, smoothing: float = 0.1
) -> float:
    """Move λ towards the exact minimiser of the dual on the worst cases that this batch found.

    Every row may stay where it is or go to the point that the search found (or anything between, in
    probability): on that support the dual (equation 4) is solved exactly, and λ goes a share of the way.
    """
    base, squared, worst = (to_numpy(part).astype(np.float64) for part in (base_loss, squared_distance, loss))
    moved = (worst > base) & (squared > 0)
    price = (worst - base)[moved] / squared[moved]
    order = np.argsort(-price, kind="stable")
    # ε pays for the moves that gain most for their distance; λ* is the price of the first that it does not pay for.
    spent = np.cumsum(squared[moved][order]) / len(base)
    first = int(np.searchsorted(spent, eps, side="right"))
    best = float(price[order[first]]) if first < len(order) else 0.0
    return lambda_ + smoothing * (best - lambda_)


SearchLike: TypeAlias = "GradientSearch | Literal['two_phase', 'fast', 'paper']"

#: Named searches of a training step.
#: "two_phase": both phases of Appendix C, few steps each: s = 10, se = 10, and Table 3's full phase for sentiment,
#: f = 0.01, fe = 10, whose steps are long enough to spend a budget ε.
#: "paper": Table 3, Adult: s = 10, se = 50, f = 1e-4, fe = 40. The full phase moves nobody as far as ε = 1e-3.
#: "fast": the subspace phase of "two_phase" alone, so ε has no effect.
SEARCHES: dict[str, GradientSearch] = {
    "two_phase": GradientSearch(
        method="adam", subspace_steps=10, subspace_step_size=10.0, full_steps=10, full_step_size=0.01
    ),
    "paper": GradientSearch(
        method="adam", subspace_steps=50, subspace_step_size=10.0, full_steps=40, full_step_size=1e-4
    ),
    "fast": GradientSearch(method="adam", subspace_steps=10, subspace_step_size=10.0, full_steps=0),
}


@dataclass(frozen=True)
class RobustObjective(Objective):
    """Choices that every objective with an inner search has; see `SenSR`."""

    metric: FairMetric
    eps: float = 1e-3
    lambda_init: float = 2.0
    lambda_rule: LambdaRule = "paper"
    lambda_step: float = 1.0
    search: SearchLike = "two_phase"
    domain: Domain | None = None
    warm_start: bool = False
    loss: LossLike = "cross_entropy"

    def __post_init__(self) -> None:
        owner = type(self).__name__
        check_number(self.eps, owner=owner, name="eps", low=0)
        check_number(self.lambda_init, owner=owner, name="lambda_init", low=0)
        check_number(self.lambda_step, owner=owner, name="lambda_step", low=0, open_low=True)
        check_choice(self.lambda_rule, get_args(LambdaRule), owner=owner, name="lambda_rule")
        if not isinstance(self.search, GradientSearch):
            check_choice(self.search, SEARCHES, owner=owner, name="search", besides="a GradientSearch")
        # Once and not at every step: without a feature map it is the same object from then on.
        object.__setattr__(self, "metric", encoded_metric(self.metric, owner=owner))

    def check(self, batch: Batch) -> None:
        """Raise when metric or domain are of another width than the rows."""
        owner, width = type(self).__name__, batch.x.shape[1]
        for name, n_features in (
            ("metric", self.metric.n_features),
            ("domain", None if self.domain is None else self.domain.n_features),
        ):
            if n_features is not None and n_features != width:
                raise InputError(
                    f"{owner}: the {name} is of {n_features} columns, the rows have {width}. "
                    f"Learn the {name} on the rows that the network gets."
                )

    def init(self, net: nn.Module) -> State:
        """Return the state before the first step: λ where it starts.

        Warns if ε > 0 has no effect because the search has no full phase.
        """
        if self.eps > 0 and not self.inner.full_steps:
            warnings.warn(
                f"{type(self).__name__}: eps={self.eps:g} has no effect, because the search has no full phase: people "
                "are moved only if it costs nothing, and λ stays where it is. Pass a search with full_steps > 0, "
                "such as search='two_phase', or eps=0 to say that only free moves are meant.",
                TrainingWarning,
                stacklevel=2,
            )
        return State(lambda_=math.inf if self.eps == 0 else self.lambda_init)

    @property
    def inner(self) -> GradientSearch:
        """The search as the object it is."""
        return SEARCHES[self.search] if isinstance(self.search, str) else self.search

    def _find(self, oracle: Oracle, rows: Batch, y: torch.Tensor, state: State) -> SearchResult:
        """The worst case of each row at the λ of the state (Algorithm 2, line 3)."""
        if math.isinf(state.lambda_) and not self.metric.null_space.dim:
            # Only free moves would be made, and none is free.
            loss = oracle.loss(rows.x, y)
            ended = torch.where(torch.isfinite(loss), RowStatus.CONVERGED.value, RowStatus.NON_FINITE.value)
            none = torch.zeros_like(ended, dtype=torch.int32)
            return SearchResult(rows.x, loss, torch.zeros_like(loss), ended.to(torch.int8), none)

        own, other = self._starts(rows, state)
        # Every other time a row begins where somebody else of its class ended: its own last place is often a local
        # maximum, and is kept all the same if it turns out better.
        explore = other is not None and state.step % 2 == 1
        search = self.inner
        if own is not None and not explore:
            # Most rows have converged before; the network has moved a little since.
            search = replace(search, full_steps=(search.full_steps + 1) // 2)
        found = search.run(
            oracle,
            rows.x,
            y,
            metric=self.metric,
            domain=Unbounded() if self.domain is None else self.domain,
            lam=state.lambda_,
            start=other if explore else own,
            generator=torch.Generator(rows.x.device).manual_seed(state.step),
        )
        # A full phase that began at `own` is never below it.
        if own is None or (search.full_steps and not explore):
            return found
        return _better(found, own, oracle.loss(own, y), self.metric.squared_norm(own - rows.x), state.lambda_)

    def _starts(self, rows: Batch, state: State) -> tuple[torch.Tensor | None, torch.Tensor | None]:
        """Where each row ended last time, and where a row of the last batch with its label ended."""
        if not self.warm_start or state.warm is None or rows.index is None:
            return None, None
        index, n = rows.index, len(state.warm)
        moved = state.warm.index_select(0, index.clamp(max=n - 1))
        if int(index.max()) >= n:
            moved = torch.where((index < n)[:, None], moved, 0.0)
        before, labels = state.tensors["last_index"], state.tensors["last_y"]
        share = current_share()
        if rows.y.is_floating_point() or len(before) != len(rows if share is None else share.whole):
            return self._inside(rows.x + moved, rows.x), None
        if share is not None:
            before, labels = share.part(before), share.part(labels)
        # Batches are in random order within each class, so the row at the same place is any row.
        borrowed = torch.where((labels == rows.y)[:, None], state.warm.index_select(0, before), moved)
        # A row that never moved, or was never seen, has nothing of its own to begin with.
        still = (moved.abs().amax(dim=1) == 0)[:, None]
        own = rows.x + torch.where(still, borrowed, moved)
        return self._inside(own, rows.x), self._inside(rows.x + borrowed, rows.x)

    def _inside(self, x: torch.Tensor, origin: torch.Tensor) -> torch.Tensor:
        if self.domain is None:
            return x
        projected: torch.Tensor = self.domain.project(x, origin)
        return projected

    def _after(self, rows: Batch, found: SearchResult, base_loss: torch.Tensor | None, state: State) -> State:
        """The next state: λ moved (Algorithm 2, line 4), warm starts kept, counters."""
        mean, count = _spent(rows, found)
        lambda_ = state.lambda_
        # Without a full phase, or with ε = 0, only free moves are made: there is nothing to price, see `init`.
        if self.eps > 0 and self.inner.full_steps > 0 and self.lambda_rule != "fixed":
            lambda_, floor = self._next_lambda(state.lambda_, mean, found, base_loss)
            count |= {"lambda_steps": 1, "at_floor": int(lambda_ <= floor)}
        changes: dict[str, Any] = {}
        if self.warm_start and rows.index is not None:
            changes = self._kept(rows, found, state)
        return state.after(
            count=count,
            lambda_=lambda_,
            **changes,
            last={"squared_distance": mean, "failed_rows": float(count["failed_rows"])},
        )

    def _next_lambda(
        self, lambda_: float, mean: float, found: SearchResult, base_loss: torch.Tensor | None
    ) -> tuple[float, float]:
        if self.lambda_rule == "paper":
            return paper_rule(lambda_, self.eps, mean, self.lambda_step), 0.0
        if self.lambda_rule == "authors":
            return authors_rule(lambda_, self.eps, mean), AUTHORS_FLOOR
        assert base_loss is not None
        moved: tuple[torch.Tensor, ...] = (base_loss, found.squared_distance, found.loss, found.finite)
        share = current_share()
        if share is not None:
            moved = share.rejoin(torch.stack([part.to(found.loss) for part in moved], dim=1)).unbind(dim=1)
        finite = moved[-1].bool()
        base, squared, loss = (part[finite] for part in moved[:-1])
        return max(AUTHORS_FLOOR, dual_rule(lambda_, self.eps, base, squared, loss)), AUTHORS_FLOOR

    def _kept(self, rows: Batch, found: SearchResult, state: State) -> dict[str, Any]:
        """What changes in the state so that these rows begin next time where they ended now.

        Next time they may be other ranks' rows, so every rank keeps the places of all.
        """
        moved = found.x - rows.x
        if not bool(found.finite.all()):
            moved = torch.where(found.finite[:, None], moved, 0.0)
        share = current_share()
        if share is not None:
            moved, rows = share.rejoin(moved), share.whole
        assert rows.index is not None
        needed = int(rows.index.max()) + 1
        warm = moved.new_zeros(0, moved.shape[1]) if state.warm is None else state.warm
        if len(warm) < needed:
            # Doubled, so that a growing index costs no more than a copy or two in all.
            warm = torch.cat([warm, warm.new_zeros(max(needed, 2 * len(warm)) - len(warm), warm.shape[1])])
        seen = {"last_index": rows.index, "last_y": rows.y}
        return {"warm": warm.index_copy_(0, rows.index, moved), "tensors": seen}


def _spent(rows: Batch, found: SearchResult) -> tuple[float, dict[str, int]]:
    """Mean squared distance of the worst cases that are finite, and what is counted for the diagnosis."""
    n, failed = len(rows), int((~found.finite).sum())
    distance = found.squared_distance if not failed else found.squared_distance[found.finite]
    # A hundred rows of each batch tell as well as all whether anybody moves.
    every = slice(None, None, max(1, n // 100))
    unmoved = (found.x[every] == rows.x[every]).all(dim=1)
    names = ("searched_rows", "failed_rows", "looked_at_rows", "unmoved_rows")
    numbers = [n, failed, len(unmoved), int(unmoved.sum())]
    if current_share() is None:
        mean = float(distance.mean()) if len(distance) else 0.0
    else:
        sums = total(torch.tensor([*numbers, float(distance.double().sum())], dtype=torch.float64)).tolist()
        numbers = [int(number) for number in sums[:-1]]
        mean = sums[-1] / max(1, numbers[0] - numbers[1])
    return mean, dict(zip(names, numbers, strict=True))


def _better(
    found: SearchResult, x: torch.Tensor, loss: torch.Tensor, squared: torch.Tensor, lambda_: float
) -> SearchResult:
    """Each row's better of what was found and a place that is known."""
    price = 0.0 if math.isinf(lambda_) else lambda_
    value = loss - price * squared
    higher = (value > found.loss - price * found.squared_distance) & torch.isfinite(value)
    return replace(
        found,
        x=torch.where(higher[:, None], x, found.x),
        loss=torch.where(higher, loss, found.loss),
        squared_distance=torch.where(higher, squared, found.squared_distance),
    )


def encoded_metric(metric: FairMetric, *, owner: str) -> FairMetric:
    """Return the metric on the rows that the network gets: the same Σ without the encoding that made them."""
    if not isinstance(metric, FairMetric):
        raise bad_parameter(
            owner,
            "metric",
            "a FairMetric",
            type(metric).__name__,
            "A learner has it as metric_ once it is fitted.",
        )
    if metric.feature_map is None:
        return metric
    if isinstance(metric.feature_map, TabularDomain):
        return metric.without_feature_map()
    raise bad_parameter(
        owner,
        "metric",
        "a metric on the encoded rows (feature_map None or a TabularDomain)",
        f"one with the feature map {type(metric.feature_map).__name__}",
        "Train on φ(x) with metric.without_feature_map().",
    )
