"""Choices that the table decides: what "auto" means, ε raised rung by rung, a plain network beside it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, TypeAlias

import numpy as np
import torch
from scipy.special import log_softmax
from torch import nn

from likewise.auditing.dual.finite_dual import Frontier, dual_curve
from likewise.auditing.search.gradient.search import GradientSearch
from likewise.core.checks import FloatArray, to_numpy
from likewise.data.domain import DataRangeDomain, Domain
from likewise.data.target import stratified_split
from likewise.evaluation.summary import balanced_accuracy
from likewise.fair_metrics import FairMetric
from likewise.fair_metrics.learner import MOST
from likewise.training.batch import Batch
from likewise.training.estimators.rows import classes_alike, spaced
from likewise.training.networks import scores_of
from likewise.training.results import Finding, TrainingResult

Auto: TypeAlias = Literal["auto"]

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
# Balanced accuracy that a method may cost before it is said.
MAX_LOSS = 0.03
# Standard errors: nine times out of ten the truth is not beyond.
DOUBT = 1.28
# Combinations of sensitive values that people are given in turn, the commonest first.
_MOST_TWINS = 16
# The ε that `likewise.audit` has by default.
AUDITED_EPS = 0.1
# The gap is wanted to a tenth of itself; more would only cost time.
_MOST_PEOPLE, _MOST_KINDS = 250, 4


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
    kept, held = stratified_split(batch.y.numpy(), share, rng)
    people = batch.take(torch.as_tensor(held))
    if alike:
        given = None if people.weight is None else people.weight.numpy().astype(float)
        weight = torch.as_tensor(classes_alike(people.y.numpy(), given)).to(people.x)
        people = replace(people, weight=weight)
    return HeldOut(torch.as_tensor(kept), people)


# How ε is chosen.


@dataclass(frozen=True, eq=False)
class Decisions:
    """What a network and a plain one decide about people that neither was trained on."""

    y: np.ndarray[Any, Any]
    own: np.ndarray[Any, Any]
    plain: np.ndarray[Any, Any]

    @classmethod
    def of(cls, net: nn.Module, plain: nn.Module, people: Batch) -> Decisions:
        """Ask both networks of encoded rows."""
        x = np.asarray(to_numpy(people.x), dtype=float)
        own, other = (scores_of(one, x).argmax(axis=1) for one in (net, plain))
        return cls(to_numpy(people.y), own, other)

    @property
    def lost(self) -> float:
        """What the first network's balanced accuracy is below the plain one's."""
        return balanced_loss(self.y, self.own, self.plain)[0]

    @property
    def doubtful(self) -> bool:
        """Whether it may well be more below than should be."""
        lost, error = balanced_loss(self.y, self.own, self.plain)
        return lost + DOUBT * error > MAX_LOSS


def balanced_loss(y: Any, own: Any, plain: Any) -> tuple[float, float]:
    """Return what balanced accuracy is lost against a plain network on the same people, and its standard error.

    Only people whom one of them gets right and the other wrong tell the two apart. One more of them
    is assumed in each class, so that a handful of people is never sure.
    """
    y, own, plain = (np.asarray(part) for part in (y, own, plain))
    means, squares = [], []
    for label in np.unique(y):
        of = y == label
        worse = (plain[of] == label).astype(float) - (own[of] == label)
        n = len(worse)
        means.append(worse.mean())
        # One person more who tells them apart in either direction: else none of a few would mean none at all.
        squares.append((np.square(worse).sum() + 1.0) / (n + 1.0) / n - np.square(worse.mean()) / n)
    k = len(means)
    return float(np.mean(means)), float(np.sqrt(max(sum(squares), 0.0)) / k)


def eps_rungs(usual: float, n: int) -> tuple[float, ...]:
    """Return the values of ε that are tried after 0 for n people."""
    return tuple(usual * rung for rung in ((1.0,) if is_small(n) else _RUNGS))


def is_small(n: int) -> bool:
    """Whether the people held out of n are too few to show what ε costs, and all are needed to learn from."""
    return n < _FEW


def continued(result: TrainingResult) -> TrainingResult:
    """Return the result without "loss_flat": the loss began where the training before had ended."""
    return replace(result, findings=tuple(one for one in result.findings if one.code != "loss_flat"))


def too_costly(lost: float, without: float) -> bool:
    """Whether a value of ε costs too much balanced accuracy, given what ε = 0 costs."""
    return lost > max(_TOLERATED, without + _AND_MORE)


# The chosen network beside a plain one.


@dataclass(frozen=True)
class BesideBaseline:
    """Figures of a trained network and of a plain one, on people that neither was trained on."""

    n: int
    balanced_accuracy: float
    baseline_balanced_accuracy: float
    chance: float
    twin_flips: float | None
    baseline_twin_flips: float | None
    robust_loss: float
    baseline_robust_loss: float
    lost_error: float = 0.0
    gap: float | None = None
    baseline_gap: float | None = None

    @property
    def lost(self) -> float:
        """What the method costs in balanced accuracy."""
        return self.baseline_balanced_accuracy - self.balanced_accuracy


def compare(
    nets: tuple[nn.Module, nn.Module],
    people: Batch,
    decisions: Decisions,
    sensitive: list[int],
    metric: FairMetric,
    *,
    losses: Sequence[float],
) -> BesideBaseline:
    """Gather the figures of both networks on the people held out."""
    x, y = np.asarray(to_numpy(people.x), dtype=float), decisions.y
    flips = [twin_flips(net, x, sensitive) if sensitive else None for net in nets]
    gaps = [held_out_gap(net, people, sensitive, metric) for net in nets]
    return BesideBaseline(
        n=len(y),
        balanced_accuracy=balanced_accuracy(y, decisions.own),
        baseline_balanced_accuracy=balanced_accuracy(y, decisions.plain),
        chance=1.0 / len(np.unique(y)),
        twin_flips=flips[0],
        baseline_twin_flips=flips[1],
        robust_loss=losses[0],
        baseline_robust_loss=losses[1],
        lost_error=balanced_loss(y, decisions.own, decisions.plain)[1],
        gap=gaps[0],
        baseline_gap=gaps[1],
    )


def held_out_gap(
    net: nn.Module, people: Batch, sensitive: list[int], metric: FairMetric, *, eps: float = AUDITED_EPS
) -> float:
    """Return V(ε) minus the mean loss if each person may become any other or one of the others' counterparts.

    What `likewise.audit` starts from, without its searches: a lower bound of its gap.
    """
    some = spaced(len(people), _MOST_PEOPLE)
    x, y = np.asarray(to_numpy(people.x), dtype=float)[some], to_numpy(people.y)[some]
    others = [x]
    for kind in commonest_kinds(x, sensitive, _MOST_KINDS) if sensitive else ():
        others.append(x.copy())
        others[-1][:, sensitive] = kind
    candidates = np.concatenate(others)
    table = -log_softmax(scores_of(net, candidates), axis=1)
    squared = np.maximum(np.asarray(to_numpy(metric.pairwise(x, candidates)), dtype=float), 0.0)
    people_, moves = np.indices(squared.shape).reshape(2, -1)
    support = Frontier.from_points(
        base_loss=table[np.arange(len(y)), y],
        row=people_,
        squared_distance=squared.ravel(),
        loss=table[:, y].T.ravel(),
        candidate=moves,
    )
    return float(dual_curve(support).gap(eps))


def commonest_kinds(x: FloatArray, sensitive: list[int], most: int) -> FloatArray:
    """Return the combinations of values of the sensitive coordinates that people have, the commonest first."""
    kinds, counts = np.unique(x[:, sensitive], axis=0, return_counts=True)
    return np.asarray(kinds[np.argsort(-counts, kind="stable")[:most]])


def twin_flips(net: nn.Module, x: FloatArray, sensitive: list[int]) -> float:
    """Return the share of rows whose decision changes when they are given the sensitive values of others."""
    own = scores_of(net, x).argmax(axis=1)
    changed = np.zeros(len(x), dtype=bool)
    for kind in commonest_kinds(x, sensitive, _MOST_TWINS):
        twins = x.copy()
        twins[:, sensitive] = kind
        changed |= scores_of(net, twins).argmax(axis=1) != own
    return float(changed.mean())


# What is said about a trained network: what was seen and what helps, each a `Finding`.


# What is freed by rounding.
_NOTHING = 1e-6
# After fewer nobody expects a network to have learned anything.
ENOUGH_STEPS = 50
# What balanced accuracy should be above that of guessing.
_ABOVE = 0.03
# So many people know it to a percent or two.
_MOST_JUDGED = 2000
# Decisions that may change with the sensitive columns alone before it is said.
_FLIPS = 0.01
# The gap that should be left, as a share of a plain network's; and one below which there is nothing to halve.
_GAP, _SMALL_GAP = 0.5, 0.05


def _only_columns(names: Sequence[str]) -> str:
    listed = ", ".join(map(repr, names)) or "..."
    return f"make only the sensitive columns themselves free: metric=ExpertSubspace([{listed}])"


def at_chance(net: nn.Module, people: Batch, *, seen: bool, owner: str, other: str) -> tuple[Finding, ...]:
    """Return a finding if a network decides no better than a guess."""
    some = spaced(len(people), _MOST_JUDGED)
    rows = people.take(torch.as_tensor(some, device=people.x.device))
    y = to_numpy(rows.y)
    classes = len(np.unique(y))
    if classes < 2:
        return ()
    right = balanced_accuracy(y, scores_of(net, np.asarray(to_numpy(rows.x), dtype=float)).argmax(axis=1))
    if right >= 1.0 / classes + _ABOVE:
        return ()
    whom = "the people it was trained on" if seen else "people held out"
    return (
        Finding(
            "near_chance",
            f"{owner}: the network is near chance: balanced accuracy {right:.3f} on {whom}, guessing "
            f"{1.0 / classes:.3f}. Either these columns do not tell y, or {other}.",
            1.0,
        ),
    )


def frees_too_much(freed: float, metric: FairMetric, owner: str) -> tuple[Finding, ...]:
    """Return a finding if most of the variance of the columns that are not sensitive costs nothing."""
    if freed <= MOST:
        return ()
    named = f" (told: {', '.join(metric.sensitive_features)})" if metric.sensitive_features else ""
    return (
        Finding(
            "subspace_swallows",
            f"{owner}: {freed:.0%} of the variance of all other columns costs nothing under the metric{named}, "
            f"{metric.null_space.dim} of {metric.n_features} directions: people who differ in nearly everything count as "
            f"comparable, and little may be learned. Merge rare categories, or {_only_columns(metric.sensitive_features)}.",
            freed,
        ),
    )


def compared(
    seen: BesideBaseline,
    *,
    owner: str,
    eps: float = 0.0,
    asked: bool = False,
    freed: float = 0.0,
    names: Sequence[str] = (),
) -> tuple[Finding, ...]:
    """Return what a user should be told about the comparison; nothing if the method did what it is for.

    `asked` says whether the user chose ε, `freed` what share of the other columns' variance the metric makes free, and
    `names` what it was told is sensitive.
    """
    advice = _what_keeps_accuracy(eps if asked else 0.0, freed, names)
    said = (
        _about_accuracy(seen, owner, advice),
        _about_flips(seen, owner),
        _about_robustness(seen, owner, eps),
    )
    return tuple(one for one in said if one is not None)


def _what_keeps_accuracy(eps: float, freed: float, names: Sequence[str]) -> str:
    """Return advice that helps: an ε found by "auto" costs little, and a metric that frees the columns alone frees least."""
    if freed > MOST:
        return f"The metric makes {freed:.0%} of the other columns' variance free, whatever 'eps' is: {_only_columns(names)}"
    ways = [f"lower 'eps' (it was {eps:.2g})"] if eps > 0 else []
    ways += [_only_columns(names)] if freed > _NOTHING else []
    if not ways:
        return "It is the sensitive columns themselves that tell y, and no metric that makes them free keeps more"
    advice = " or ".join(ways)
    return advice[0].upper() + advice[1:]


def _about_accuracy(seen: BesideBaseline, owner: str, advice: str) -> Finding | None:
    lost, gained = seen.lost, seen.balanced_accuracy - seen.chance
    shown = (
        f"balanced accuracy {seen.balanced_accuracy:.3f} on {seen.n} people held out, a plain network "
        f"{seen.baseline_balanced_accuracy:.3f}, guessing {seen.chance:.3f}"
    )
    if gained < max(0.03, 0.25 * (lost + gained)):
        why = (
            "The plain network hardly predicts y from these columns either: check the target and the columns"
            if lost <= MAX_LOSS
            else f"The metric calls people comparable who differ in what predicts y. {advice}"
        )
        return Finding("near_chance", f"{owner}: the network is near chance: {shown}. {why}.", 1.0)
    if lost > MAX_LOSS:
        return Finding(
            "less_accurate",
            f"{owner}: fairness costs accuracy here: {shown}. What predicts y also tells the sensitive attributes. "
            f"{advice}.",
            lost,
        )
    most = lost + DOUBT * seen.lost_error
    if most > MAX_LOSS:
        return Finding(
            "cost_uncertain",
            f"{owner}: {seen.n} people held out are too few to tell whether fairness costs more than {MAX_LOSS:.2f} of "
            f"balanced accuracy here: {shown}, a difference of {-lost:+.3f} ± {DOUBT * seen.lost_error:.3f}. Collect "
            "more people (of the rarer class above all), or compare over several splits before you rely on it (`likewise "
            "improve` cross-validates).",
            most,
            # Without figures: the same for every fit of a search, so Python shows it once.
            summary=f"{owner}: the people are too few to tell whether fairness costs more than {MAX_LOSS:.2f} of balanced "
            "accuracy; `findings_` has the figures. Collect more (of the rarer class above all), or compare over several "
            "splits (`likewise improve` cross-validates)",
        )
    return None


def _about_flips(seen: BesideBaseline, owner: str) -> Finding | None:
    flips, before = seen.twin_flips, seen.baseline_twin_flips
    if flips is None or before is None or flips <= _FLIPS:
        return None
    return Finding(
        "flips_not_down",
        f"{owner}: the decisions of {flips:.1%} of the people held out still change with the sensitive "
        f"columns alone (plain network: {before:.1%}). Leave 'blind_to' at its default, which makes that "
        "impossible, or train longer.",
        flips,
    )


def _about_robustness(seen: BesideBaseline, owner: str, eps: float) -> Finding | None:
    if not seen.robust_loss < seen.baseline_robust_loss:
        return Finding(
            "not_more_robust",
            f"{owner}: the robust loss on people held out is {seen.robust_loss:.4g}, no lower than a plain network's "
            f"{seen.baseline_robust_loss:.4g}: the method did not help. Try more 'n_steps', or another 'lr' or 'eps'.",
            1.0,
        )
    if seen.gap is None or seen.baseline_gap is None:
        return None
    if seen.gap <= max(_SMALL_GAP, _GAP * seen.baseline_gap):
        return None
    return Finding(
        "gap_not_halved",
        f"{owner}: the gap at ε = {AUDITED_EPS} is about {seen.gap:.3f} on people held out, a plain network's "
        f"{seen.baseline_gap:.3f}: people a little apart are still treated differently, and more robustness "
        f"would have cost accuracy or was not asked for. To choose fairness, pass an 'eps' larger than {eps:.2g}.",
        seen.gap / seen.baseline_gap,
    )
