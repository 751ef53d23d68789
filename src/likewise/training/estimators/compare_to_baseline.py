"""A fair network beside a plain one on the people held out: did the method help, and if not, what to do."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import log_softmax
from torch import nn

from likewise.auditing.dual.finite_dual import dual_curve
from likewise.auditing.dual.frontier import Frontier
from likewise.core.checks import FloatArray, to_numpy
from likewise.evaluation.classification import balanced_accuracy
from likewise.fair_metrics import FairMetric
from likewise.training.batch import Batch
from likewise.training.estimators.networks import scores_of
from likewise.training.findings import Finding

# What a method may cost before it is said.
_ACCURACY = 0.03
_FLIPS = 0.01
# The gap that should be left, as a share of a plain network's; and one below which there is nothing to halve.
_GAP, _SMALL_GAP = 0.5, 0.05
# Standard errors: nine times out of ten the truth is not beyond.
_DOUBT = 1.28
# People put aside for a check, as a share of those trained on: a fifth of a table beside the other four.
_PUT_ASIDE = 0.25
# Combinations of sensitive values that people are given in turn, the commonest first.
_MOST_TWINS = 16
# The ε that `likewise.audit` has by default.
AUDITED_EPS = 0.1
# The gap is wanted to a tenth of itself; more would only cost time.
_MOST_PEOPLE, _MOST_KINDS = 250, 4


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
    n_people: int = 0

    @property
    def lost(self) -> float:
        """What the method costs in balanced accuracy."""
        return self.baseline_balanced_accuracy - self.balanced_accuracy

    @property
    def n_put_aside(self) -> int:
        """People of the usual check: a fifth of a table, where the others were trained on."""
        return round(_PUT_ASIDE * self.n_people)

    @property
    def chance_error(self) -> float:
        """Standard error of what a check on the usual number of people will show; 0 if that is not known."""
        return self.lost_error * float(np.sqrt(self.n / self.n_put_aside)) if self.n_put_aside else 0.0


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

    @classmethod
    def joined(cls, parts: Sequence[Decisions]) -> Decisions:
        """The decisions about several groups of people as those about one."""
        return cls(
            *(np.concatenate([getattr(part, name) for part in parts]) for name in ("y", "own", "plain"))
        )

    @property
    def lost(self) -> float:
        """What the first network's balanced accuracy is below the plain one's."""
        return balanced_loss(self.y, self.own, self.plain)[0]

    @property
    def doubtful(self) -> bool:
        """Whether it may well be more below than should be."""
        lost, error = balanced_loss(self.y, self.own, self.plain)
        return lost + _DOUBT * error > _ACCURACY


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


def compare(
    nets: tuple[nn.Module, nn.Module],
    people: Batch,
    decisions: Decisions,
    sensitive: list[int],
    metric: FairMetric,
    *,
    losses: tuple[float, float],
    n_people: int,
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
        n_people=n_people,
    )


def held_out_gap(
    net: nn.Module, people: Batch, sensitive: list[int], metric: FairMetric, *, eps: float = AUDITED_EPS
) -> float:
    """Return V(ε) minus the mean loss if each person may become any other or one of the others' counterparts.

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


def twin_flips(net: nn.Module, x: FloatArray, sensitive: list[int]) -> float:
    """Return the share of rows whose decision changes when they are given the sensitive values of others."""
    own = scores_of(net, x).argmax(axis=1)
    changed = np.zeros(len(x), dtype=bool)
    for kind in commonest_kinds(x, sensitive, _MOST_TWINS):
        twins = x.copy()
        twins[:, sensitive] = kind
        changed |= scores_of(net, twins).argmax(axis=1) != own
    return float(changed.mean())


def sayings(seen: BesideBaseline, *, owner: str, eps: float = 0.0) -> tuple[Finding, ...]:
    """Return what a user should be told about the comparison; nothing if the method did what it is for."""
    said = (_about_accuracy(seen, owner), _about_flips(seen, owner), _about_robustness(seen, owner, eps))
    return tuple(one for one in said if one is not None)


def _about_accuracy(seen: BesideBaseline, owner: str) -> Finding | None:
    lost, gained = seen.lost, seen.balanced_accuracy - seen.chance
    shown = (
        f"balanced accuracy {seen.balanced_accuracy:.3f} on {seen.n} people held out, a plain network "
        f"{seen.baseline_balanced_accuracy:.3f}, guessing {seen.chance:.3f}"
    )
    if gained < max(0.03, 0.25 * (lost + gained)):
        return Finding(
            "near_chance", f"{owner}: the network is near chance: {shown}. {_why_near_chance(lost)}", 1.0
        )
    if lost > _ACCURACY:
        return Finding(
            "less_accurate",
            f"{owner}: fairness costs accuracy here: {shown}. A smaller 'eps' keeps more of it; so does a metric "
            "with fewer directions. If it is all in the metric, the columns that predict y also tell the "
            "sensitive attributes.",
            lost,
        )
    most = lost + _DOUBT * seen.lost_error
    if most > _ACCURACY:
        return Finding(
            "cost_uncertain",
            f"{owner}: {seen.n} people held out are too few to tell whether fairness costs more than {_ACCURACY:.2f} of "
            f"balanced accuracy here: {shown}, a difference of {-lost:+.3f} ± {_DOUBT * seen.lost_error:.3f}. Collect "
            "more people (of the rarer class above all), or compare over several seeds before you rely on it.",
            most,
        )
    by_chance = _DOUBT * seen.chance_error
    if by_chance > _ACCURACY:
        return Finding(
            "few_people",
            f"{owner}: {seen.n_people} people are too few to judge by one split: on {seen.n_put_aside} people put aside, the "
            f"usual fifth, balanced accuracy differs from a plain network's by {-lost:+.3f} ± {by_chance:.3f} by chance "
            f"alone, and fairness should cost no more than {_ACCURACY:.2f}. Compare over several splits (`likewise improve` "
            "cross-validates), or collect more people (of the rarer class above all).",
            by_chance,
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
        f"{owner}: the gap at a budget of {AUDITED_EPS} is about {seen.gap:.3f} on people held out, a plain network's "
        f"{seen.baseline_gap:.3f}: people a little apart are still treated differently, and more robustness "
        f"would have cost accuracy or was not asked for. To choose fairness, pass an 'eps' larger than {eps:.2g}.",
        seen.gap / seen.baseline_gap,
    )


def _why_near_chance(lost: float) -> str:
    if lost <= _ACCURACY:
        return (
            "The plain network hardly predicts y from these columns either: check the target and the columns."
        )
    return (
        "The metric calls people comparable who differ in what predicts y. Lower 'eps'; name fewer attributes or merge "
        "rare categories; or make only the sensitive columns themselves free: metric=ExpertSubspace([...])."
    )
