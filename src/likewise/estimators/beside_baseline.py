"""A fair network beside a plain one on the people held out: did the method help, and if not, what to do."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from torch import nn

from likewise.core.arrays import FloatArray, to_numpy
from likewise.estimators.networks import scores_of
from likewise.evaluation.accuracy import balanced_accuracy
from likewise.training.batch import Batch
from likewise.training.findings import Finding

__all__ = ["BesideBaseline", "look_at", "sayings", "twin_flips"]

# What a method may cost before it is said.
_ACCURACY = 0.03
_FLIPS = 0.01
# Combinations of sensitive values that people are given in turn, the commonest first.
_MOST_TWINS = 16


@dataclass(frozen=True)
class BesideBaseline:
    """Figures of a trained network and of a plain one, on people that neither was trained on.

    Parameters
    ----------
    n : int
        People held out.
    balanced_accuracy, baseline_balanced_accuracy : float
    chance : float
        Balanced accuracy of guessing.
    twin_flips, baseline_twin_flips : float or None
        Share of people whose decision changes with the values of the sensitive columns; None where none is a column.
    robust_loss, baseline_robust_loss : float
        What the method minimises.
    """

    n: int
    balanced_accuracy: float
    baseline_balanced_accuracy: float
    chance: float
    twin_flips: float | None
    baseline_twin_flips: float | None
    robust_loss: float
    baseline_robust_loss: float

    @property
    def lost(self) -> float:
        """What the method costs in balanced accuracy."""
        return self.baseline_balanced_accuracy - self.balanced_accuracy


def look_at(
    net: nn.Module, baseline: nn.Module, people: Batch, sensitive: list[int], losses: tuple[float, float]
) -> BesideBaseline:
    """Measure both networks on the people held out.

    Parameters
    ----------
    net, baseline : torch.nn.Module
        Of encoded rows.
    people : Batch
    sensitive : list of int
        Coordinates of the sensitive columns.
    losses : (float, float)
        Robust losses of both.
    """
    x, y = np.asarray(to_numpy(people.x), dtype=float), to_numpy(people.y)
    right = [balanced_accuracy(y, scores_of(one, x).argmax(axis=1)) for one in (net, baseline)]
    flips = [twin_flips(one, x, sensitive) if sensitive else None for one in (net, baseline)]
    chance = 1.0 / len(np.unique(y))
    return BesideBaseline(len(x), right[0], right[1], chance, flips[0], flips[1], *losses)


def twin_flips(net: nn.Module, x: FloatArray, sensitive: list[int]) -> float:
    """Return the share of rows whose decision changes when they are given the sensitive values of others.

    Examples
    --------
    >>> import torch
    >>> net = nn.Linear(2, 2, bias=False)
    >>> _ = net.weight.data.copy_(torch.tensor([[0.0, 0.0], [1.0, 2.0]]))
    >>> twin_flips(net, np.array([[1.0, -1.0], [3.0, 1.0]]), [1])
    0.5
    """
    kinds, counts = np.unique(x[:, sensitive], axis=0, return_counts=True)
    own = scores_of(net, x).argmax(axis=1)
    changed = np.zeros(len(x), dtype=bool)
    for kind in kinds[np.argsort(-counts, kind="stable")[:_MOST_TWINS]]:
        twins = x.copy()
        twins[:, sensitive] = kind
        changed |= scores_of(net, twins).argmax(axis=1) != own
    return float(changed.mean())


def sayings(seen: BesideBaseline, *, owner: str) -> tuple[Finding, ...]:
    """Return what a user should be told about the comparison; nothing where the method did what it is for.

    Examples
    --------
    >>> seen = BesideBaseline(500, 0.52, 0.70, 0.5, 0.0, 0.1, 0.6, 0.9)
    >>> [finding.code for finding in sayings(seen, owner="SenSRClassifier")]
    ['near_chance']
    """
    found: list[Finding] = []
    lost = seen.lost
    gained = seen.balanced_accuracy - seen.chance
    shown = (
        f"balanced accuracy {seen.balanced_accuracy:.3f} on {seen.n} people held out, a plain network "
        f"{seen.baseline_balanced_accuracy:.3f}, guessing {seen.chance:.3f}"
    )
    if gained < max(0.03, 0.25 * (lost + gained)):
        found.append(
            Finding(
                "near_chance",
                f"{owner}: the network is near chance: {shown}. {_why_near_chance(lost)}",
                1.0,
            )
        )
    elif lost > _ACCURACY:
        found.append(
            Finding(
                "less_accurate",
                f"{owner}: fairness costs accuracy here: {shown}. A smaller 'eps' keeps more of it; so does a metric "
                "with fewer directions. If it is all in the metric, the columns that predict y also tell the "
                "sensitive attributes.",
                lost,
            )
        )
    flips, before = seen.twin_flips, seen.baseline_twin_flips
    if flips is not None and before is not None and flips > max(_FLIPS, 0.5 * before):
        found.append(
            Finding(
                "flips_not_down",
                f"{owner}: the decisions of {flips:.1%} of the people held out still change with the sensitive "
                f"columns alone (plain network: {before:.1%}). Leave 'blind_to' at its default, which makes that "
                "impossible, or train longer.",
                flips,
            )
        )
    if not seen.robust_loss < seen.baseline_robust_loss:
        found.append(
            Finding(
                "not_more_robust",
                f"{owner}: the robust loss on people held out is {seen.robust_loss:.4g}, no lower than a plain network's "
                f"{seen.baseline_robust_loss:.4g}: the method did not help. Try more 'n_steps', or another 'lr' or 'eps'.",
                1.0,
            )
        )
    return tuple(found)


def _why_near_chance(lost: float) -> str:
    if lost <= _ACCURACY:
        return (
            "The plain network hardly predicts y from these columns either: check the target and the columns."
        )
    return (
        "The metric calls people comparable who differ in what predicts y. Lower 'eps'; name fewer attributes or merge "
        "rare categories; or make only the sensitive columns themselves free: metric=ExpertSubspace([...])."
    )
