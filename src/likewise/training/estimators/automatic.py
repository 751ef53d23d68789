"""What "auto" means in an estimator: settings that the table decides, and ε chosen by training (`BudgetLadder`)."""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Literal, TypeAlias

import numpy as np
import torch
from torch import nn

from likewise.auditing.search.gradient.search import GradientSearch
from likewise.core.checks import FloatArray, IntArray
from likewise.data.domain import DataRangeDomain, Domain
from likewise.fair_metrics import FairMetric
from likewise.training.batch import Batch
from likewise.training.checkpoint import TrainingResult
from likewise.training.estimators.compare_to_baseline import Decisions
from likewise.training.estimators.rows import classes_alike, stratified_split

Auto: TypeAlias = Literal["auto"]

# Values of ε one after the other, and how many steps were made with each.
Plan: TypeAlias = tuple[tuple[float, int], ...]

# Fewer people than this are all needed to learn from.
_TOO_FEW_TO_HOLD_OUT = 100
_HELD_OUT_SHARE = 0.2
# A loss is known to a percent or two from so many people; more would only cost time.
_HELD_OUT_MOST = 2000
_SMALLEST_BATCH, _LARGEST_BATCH = 64, 512
# The usual ε, as a share of the mean squared fair distance between two people.
_EPS_SHARE = 1e-4
# The values of ε that are tried after 0, in units of the usual one.
_RUNGS = (0.1, 1.0, 10.0)
# A fifth of fewer people does not show what ε costs, nor when to stop.
_FEW = 2000
# Balanced accuracy that fairness may cost on held-out people; and what ε may add if ε = 0 costs more already.
_TOLERATED, _AND_MORE = 0.01, 0.0025
_SUBSPACE_STEPS, _FULL_STEPS = 5, 3
# Steps between two validations.
VALIDATE_EVERY = 25


@dataclass(frozen=True)
class Schedule:
    """How a network is trained, resolved."""

    n_steps: int
    batch_size: int
    validation: float | None
    patience: int | None


def auto_schedule(n: int) -> Schedule:
    """Return what "auto" means for a table of n people.

    Batches are a sixteenth of the table, so that a small table still gets several updates per pass; a fifth is held
    out to stop by, up to as many people as a loss needs to be known, and nobody of a small table.
    """
    size = int(np.clip(2 ** round(np.log2(max(n, 1) / 16)), _SMALLEST_BATCH, _LARGEST_BATCH))
    held = 0 if n < _TOO_FEW_TO_HOLD_OUT else min(round(_HELD_OUT_SHARE * n), _HELD_OUT_MOST)
    return Schedule(400, size, held / n if held else None, 4 if held else None)


def auto_eps(metric: FairMetric, x: FloatArray, weights: FloatArray | None = None) -> float:
    """Return the usual ε: a small share of the mean squared fair distance between two people.

    So it does not depend on the number of columns nor on their units. That mean is twice the trace of the covariance
    of Σ^½ x.
    """
    places = metric.without_feature_map().embed(x)
    centred = places - np.average(places, axis=0, weights=weights)
    spread = np.average(np.square(centred), axis=0, weights=weights).sum()
    return _EPS_SHARE * 2.0 * float(spread)


def auto_search(metric: FairMetric, domain: Domain | None) -> GradientSearch:
    """Return the search that "auto" means: a few steps, the first along free directions half of the data's range long."""
    if not metric.null_space.dim:
        return GradientSearch(subspace_steps=0, full_steps=_FULL_STEPS, probes=0)
    size = 1.0
    if isinstance(domain, DataRangeDomain):
        size = float(np.median(np.asarray(domain.upper - domain.lower) / 2.0)) or 1.0
    return GradientSearch(
        subspace_steps=_SUBSPACE_STEPS, subspace_step_size=size, full_steps=_FULL_STEPS, probes=0
    )


# Who a network is trained on, and who is held out to stop by and to compare on.


@dataclass(frozen=True, eq=False)
class HeldOut:
    """Row numbers to train on, and the people held out."""

    rows: torch.Tensor
    people: Batch


def hold_out(batch: Batch, share: float, rng: np.random.Generator, *, alike: bool) -> HeldOut:
    """Hold out a share of the rows, class by class; with `alike`, every class counts the same among them."""
    return _apart(batch, stratified_split(batch.y.numpy(), share, rng)[1], alike)


def other_folds(
    batch: Batch, first: HeldOut, rng: np.random.Generator, *, alike: bool
) -> tuple[HeldOut, ...]:
    """Hold out those trained on so far, in parts of about the same size, class by class."""
    codes, rest = batch.y.numpy(), first.rows.numpy()
    count = max(2, round(len(rest) / max(len(first.people), 1)))
    fold = np.zeros(len(rest), dtype=np.intp)
    for code in np.unique(codes[rest]):
        own = rng.permutation(np.flatnonzero(codes[rest] == code))
        fold[own] = np.arange(len(own)) % count
    return tuple(_apart(batch, rest[fold == number], alike) for number in range(count))


def _apart(batch: Batch, held: IntArray, alike: bool) -> HeldOut:
    out = np.zeros(len(batch), dtype=bool)
    out[held] = True
    people = batch.take(torch.as_tensor(np.flatnonzero(out)))
    if alike:
        given = None if people.weight is None else people.weight.numpy().astype(float)
        weight = torch.as_tensor(classes_alike(people.y.numpy(), given)).to(people.x)
        people = replace(people, weight=weight)
    return HeldOut(torch.as_tensor(np.flatnonzero(~out)), people)


# How ε is chosen.


@dataclass(frozen=True)
class Trainer:
    """What the choice of ε needs of an estimator."""

    new_network: Callable[[], nn.Module]
    # (network, ε, people, held out, steps) -> result
    train: Callable[[nn.Module, float, Batch, HeldOut | None, int | None], TrainingResult]
    train_plain: Callable[[Batch, HeldOut], nn.Module]
    # The network of encoded rows, projection included.
    as_module: Callable[[nn.Module], nn.Module]
    # The people in parts, each held out once, besides those held out first.
    folds: Callable[[], tuple[HeldOut, ...]]


@dataclass(frozen=True, eq=False)
class Trained:
    """A network and how its training ended."""

    network: nn.Module
    result: TrainingResult


@dataclass(frozen=True, eq=False)
class Choice:
    """The chosen ε, the final network, the one that held-out people judged, and a plain one."""

    eps: float
    final: Trained
    judged: Trained
    plain: nn.Module
    decisions: Decisions


@dataclass(frozen=True)
class BudgetLadder:
    """Raise ε from `start` over `rungs` as long as held-out people do not show that it costs accuracy.

    Each rung begins with the weights of the one before. With `cross_fit` (few people), everybody is held out once,
    trained with the same values of ε, and the final network is trained on everybody for the median number of steps.
    """

    start: float
    rungs: tuple[float, ...]
    usual: float
    steps: int
    cross_fit: bool

    @classmethod
    def of(cls, eps: float, n: int, *, auto: bool, n_steps: int, cross_fit: bool) -> BudgetLadder:
        """Return the ladder for n people; without `auto` ε stays as it is."""
        rungs = (1.0,) if n < _FEW else _RUNGS
        return cls(
            start=0.0 if auto else eps,
            rungs=tuple(eps * rung for rung in rungs) if auto else (),
            usual=eps,
            steps=max(1, n_steps // 4),
            cross_fit=cross_fit and n < _FEW,
        )

    def choose(self, trainer: Trainer, batch: Batch, held_out: HeldOut, first: Trained) -> Choice:
        """Return the choice; `first` was trained at `start` on all but the people held out."""
        part = batch.take(held_out.rows)
        plain = trainer.train_plain(part, held_out)
        judged, decisions, plan = self._climb(trainer, part, held_out, first, plain)
        final = judged
        if self.cross_fit:
            seen, plans = [decisions], [plan]
            for fold in trainer.folds():
                own_decisions, own_plan = self._repeat(trainer, batch.take(fold.rows), fold, plan)
                seen.append(own_decisions)
                plans.append(own_plan)
            decisions = Decisions.joined(seen)
            final = self._train_everybody(trainer, batch, median_plan(plans)) or judged
        return Choice(plan[-1][0], final, judged, plain, decisions)

    def _climb(
        self, trainer: Trainer, part: Batch, held_out: HeldOut, first: Trained, plain: nn.Module
    ) -> tuple[Trained, Decisions, Plan]:
        best, plan = first, [(self.start, first.result.best_step)]
        decisions = Decisions.of(trainer.as_module(first.network), plain, held_out.people)
        without = decisions.lost
        for eps in self.rungs:
            network = copy.deepcopy(best.network)
            result = trainer.train(network, eps, part, held_out, self.steps)
            seen = Decisions.of(trainer.as_module(network), plain, held_out.people)
            if not result.ended or too_costly(seen.lost, without):
                break
            # More than the usual ε only if the table shows that it can bear it.
            if eps > self.usual and seen.doubtful:
                break
            best, decisions = Trained(network, _continued(result)), seen
            plan.append((eps, result.best_step))
        return best, decisions, tuple(plan)

    def _repeat(self, trainer: Trainer, part: Batch, fold: HeldOut, plan: Plan) -> tuple[Decisions, Plan]:
        network, made = trainer.new_network(), []
        for place, (eps, _) in enumerate(plan):
            result = trainer.train(network, eps, part, fold, self.steps if place else None)
            made.append((eps, result.best_step))
        plain = trainer.train_plain(part, fold)
        return Decisions.of(trainer.as_module(network), plain, fold.people), tuple(made)

    def _train_everybody(self, trainer: Trainer, batch: Batch, plan: Plan) -> Trained | None:
        network = trainer.new_network()
        for eps, steps in plan:
            result = trainer.train(network, eps, batch, None, steps)
            if result.status != "finished":
                return None
        return Trained(network, _continued(result) if len(plan) > 1 else result)


def _continued(result: TrainingResult) -> TrainingResult:
    """The result without "loss_flat": the loss began where the training before had ended."""
    return replace(result, findings=tuple(one for one in result.findings if one.code != "loss_flat"))


def median_plan(plans: list[Plan]) -> Plan:
    """Return the same values of ε with the median of the steps."""
    return tuple(
        (stages[0][0], round(float(np.median([n for _, n in stages])))) for stages in zip(*plans, strict=True)
    )


def too_costly(lost: float, without: float) -> bool:
    """Whether a value of ε costs too much balanced accuracy, given what ε = 0 costs."""
    return lost > max(_TOLERATED, without + _AND_MORE)
