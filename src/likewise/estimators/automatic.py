"""The gap of a network on people held out, over them and their twins: to compare two networks by, in a moment."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal, TypeAlias

import numpy as np
import torch
from scipy.special import log_softmax
from torch import nn

from likewise.auditing.dual.finite_dual import dual_curve
from likewise.auditing.dual.frontier import Frontier
from likewise.auditing.search.gradient.search import GradientSearch
from likewise.core.checks import FloatArray, IntArray, to_numpy
from likewise.data.domain import DataRangeDomain, Domain
from likewise.estimators.networks import scores_of
from likewise.estimators.rows import classes_alike
from likewise.fair_metrics import FairMetric
from likewise.training.batch import Batch

# Settings that the table decides: what "auto" stands for in an estimator, as pure functions of rows and
# metric.


Auto: TypeAlias = Literal["auto"]

# Budgets ε one after the other, and how many steps were made with each.
Plan: TypeAlias = tuple[tuple[float, int], ...]

# Fewer people than this are all needed to learn from.
_TOO_FEW_TO_HOLD_OUT = 100
_HELD_OUT_SHARE = 0.2
# A loss is known to a percent or two by so many people; more would only cost time.
_HELD_OUT_MOST = 2000
_SMALLEST_BATCH, _LARGEST_BATCH = 64, 512
# Of the mean squared fair distance between two people: what "auto" is where nothing can be compared.
_EPS_SHARE = 1e-4
# In units of that one, the budgets that are tried after none, the smallest first.
_RUNGS = (0.1, 1.0, 10.0)
# A fifth of fewer people does not show what a budget costs, nor when to stop.
_FEW = 2000
# Balanced accuracy that fairness may cost on people held out; and a budget, where being blind costs more already.
_TOLERATED, _AND_MORE = 0.01, 0.0025
_SUBSPACE_STEPS, _FULL_STEPS = 5, 3
# Steps between two looks at the people held out.
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

    Batches are a sixteenth of the table, so that an update sees enough people and a small table still gets several
    updates per pass; people are held out to stop by, up to as many as a loss needs to be known.
    """
    rows = int(np.clip(2 ** round(np.log2(max(n, 1) / 16)), _SMALLEST_BATCH, _LARGEST_BATCH))
    held = held_out_people(n)
    return Schedule(
        n_steps=400,
        batch_size=rows,
        validation=held / n if held else None,
        patience=4 if held else None,
    )


def held_out_people(n: int) -> int:
    """Return how many of n people are held out to stop by and to compare on; none where they are too few."""
    if n < _TOO_FEW_TO_HOLD_OUT:
        return 0
    return min(round(_HELD_OUT_SHARE * n), _HELD_OUT_MOST)


def auto_eps(metric: FairMetric, x: FloatArray, weights: FloatArray | None = None) -> float:
    """Return the budget ε that "auto" means: a small share of the mean squared fair distance between two people.

    So it does not depend on the number of columns nor on their units: people may be moved, on average, by a
    fixed share of how far apart people are. That mean is twice the trace of the covariance of Σ^½ x.
    """
    places = metric.without_feature_map().embed(x)
    centred = places - np.average(places, axis=0, weights=weights)
    spread = np.average(np.square(centred), axis=0, weights=weights).sum()
    return _EPS_SHARE * 2.0 * float(spread)


def eps_ladder(eps: float, n: int) -> tuple[float, ...]:
    """Return the budgets to try one after the other from below, as long as they cost no accuracy."""
    return (eps,) if few_people(n) else tuple(eps * rung for rung in _RUNGS)


def few_people(n: int) -> bool:
    """Whether one part of a table is too few people to judge a network by."""
    return n < _FEW


def median_plan(plans: Sequence[Plan]) -> Plan:
    """Return the plan of the same budgets with the median of the steps, from plans for several parts of a table."""
    return tuple(
        (stages[0][0], round(float(np.median([n for _, n in stages])))) for stages in zip(*plans, strict=True)
    )


def too_costly(lost: float, without: float) -> bool:
    """Whether a budget costs too much balanced accuracy."""
    return lost > max(_TOLERATED, without + _AND_MORE)


def auto_search(metric: FairMetric, domain: Domain | None) -> GradientSearch:
    """Return the search that "auto" means: a few steps, the first along free directions half of the data's range long."""
    if not metric.null_space.dim:
        return GradientSearch(subspace_steps=0, full_steps=_FULL_STEPS, probes=0)
    widths = np.ones(1)
    if isinstance(domain, DataRangeDomain):
        widths = np.asarray(domain.upper - domain.lower) / 2.0
    size = float(np.median(widths))
    return GradientSearch(
        subspace_steps=_SUBSPACE_STEPS,
        subspace_step_size=size if size > 0 else 1.0,
        full_steps=_FULL_STEPS,
        probes=0,
    )


# Who a network is trained on, and who is held out to stop by and to compare on.


@dataclass(frozen=True, eq=False)
class HeldOut:
    """Who a network is trained on, and who is held out."""

    rows: torch.Tensor
    people: Batch


def hold_out(batch: Batch, share: float, rng: np.random.Generator, *, alike: bool) -> HeldOut:
    """Hold out a share of the rows, class by class; at least one of each, and never all."""
    held: list[int] = []
    codes = batch.y.numpy()
    for code in np.unique(codes):
        own = np.flatnonzero(codes == code)
        count = min(max(1, round(share * len(own))), len(own) - 1)
        held += rng.permutation(own)[:count].tolist()
    return _apart(batch, np.asarray(held, dtype=np.intp), alike)


def other_folds(
    batch: Batch, first: HeldOut, rng: np.random.Generator, *, alike: bool
) -> tuple[HeldOut, ...]:
    """Hold out those trained on so far, part by part of about the same size, class by class."""
    codes, rest = batch.y.numpy(), first.rows.numpy()
    count = max(2, round(len(rest) / max(len(first.people), 1)))
    place = np.zeros(len(rest), dtype=np.intp)
    for code in np.unique(codes[rest]):
        own = rng.permutation(np.flatnonzero(codes[rest] == code))
        place[own] = np.arange(len(own)) % count
    return tuple(_apart(batch, rest[place == fold], alike) for fold in range(count))


def _apart(batch: Batch, held: IntArray, alike: bool) -> HeldOut:
    out = np.zeros(len(batch), dtype=bool)
    out[held] = True
    people = batch.take(torch.as_tensor(np.flatnonzero(out)))
    if alike:
        given = None if people.weight is None else people.weight.numpy().astype(float)
        weight = torch.as_tensor(classes_alike(people.y.numpy(), given)).to(people.x)
        people = replace(people, weight=weight)
    return HeldOut(torch.as_tensor(np.flatnonzero(~out)), people)


# The budget that `likewise.audit` has by default.
AUDITED_EPS = 0.1
# More would only cost time: a gap is wanted to a tenth of itself.
_MOST_PEOPLE, _MOST_KINDS = 250, 4


def held_out_gap(
    net: nn.Module, people: Batch, sensitive: list[int], metric: FairMetric, *, eps: float = AUDITED_EPS
) -> float:
    """Return V(ε) minus the mean loss, where each person may become any other or one of the others' twins.

    What `likewise.audit` starts from, without its searches: a lower bound of its gap.
    """
    some = np.unique(np.linspace(0, len(people) - 1, min(len(people), _MOST_PEOPLE)).astype(np.int64))
    x, y = np.asarray(to_numpy(people.x), dtype=float)[some], to_numpy(people.y)[some]
    others = [x]
    for kind in commonest_kinds(x, sensitive, _MOST_KINDS) if sensitive else ():
        others.append(x.copy())
        others[-1][:, sensitive] = kind
    candidates = np.concatenate(others)
    table = -log_softmax(scores_of(net, candidates), axis=1)
    base = table[np.arange(len(y)), y]
    losses = table[:, y].T
    row, candidate = np.nonzero(losses > base[:, None])
    distance = np.asarray(to_numpy(metric.pairwise(x, candidates)), dtype=float)
    frontier = Frontier.from_points(
        base_loss=base,
        row=row,
        squared_distance=np.maximum(distance[row, candidate], 0.0),
        loss=losses[row, candidate],
        candidate=candidate,
    )
    return float(dual_curve(frontier).gap(eps))


def commonest_kinds(x: FloatArray, sensitive: list[int], most: int) -> FloatArray:
    """Return the combinations of values of the sensitive coordinates that people have, the commonest first."""
    kinds, counts = np.unique(x[:, sensitive], axis=0, return_counts=True)
    return np.asarray(kinds[np.argsort(-counts, kind="stable")[:most]])
