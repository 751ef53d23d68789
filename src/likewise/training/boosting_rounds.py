"""Boosting rounds that look at the worst case first: worst distribution, its gradients, the next tree.

BuDRO (Vargo, Zhang, Yurochkin, Sun: Individually Fair Gradient Boosting, ICLR 2021) with an exact inner step. The worst
distribution of a round moves mass between rows of the training table, so the gradient of the robust loss is a
weighted logistic one at the same rows: g_jc = Σ_y P_jy (p_jc − [c = y]), where P_jy is the mass with label y that the
worst case puts on row j.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from likewise.core.arrays import FloatArray
from likewise.training.soft_group_gap import GroupCells, soft_gap
from likewise.training.tree_growers import TreeGrower
from likewise.training.worst_neighbours import NeighbourSupport, worst_case

__all__ = ["BoostingPeople", "BoostingRun", "RobustGoal", "boost"]

Ints = np.ndarray[Any, np.dtype[np.int64]]

# How much of the worst case of the rounds before stays: alone, a round's own worst case makes the next swing back.
INERTIA = 0.7
_LEAST_HESSIAN = 1e-6
# Share of the penalty's curvature bound that dampens the steps: at first, after a round that made things worse
# (times), after one that did not (times).
_DAMPING, _MORE, _LESS = 0.1, 3.0, 0.8


@dataclass(frozen=True, eq=False)
class BoostingPeople:
    """People as nodes: rows that the trees cannot tell apart and the metric does not part are one.

    Parameters
    ----------
    node : int array of shape (n,)
        The node of each person.
    labels : int array of shape (n,)
    weight : array of shape (n,)
    n_nodes, n_classes : int
    cells : GroupCells or None
        Means over the nodes, for the group penalty.
    support : NeighbourSupport or None
        Of the nodes, for the worst case.
    """

    node: Ints
    labels: Ints
    weight: FloatArray
    n_nodes: int
    n_classes: int
    cells: GroupCells | None = None
    support: NeighbourSupport | None = None

    @property
    def mass(self) -> FloatArray:
        """Weight at each node by label, (m, C)."""
        flat = np.bincount(
            self.node * self.n_classes + self.labels, self.weight, self.n_nodes * self.n_classes
        )
        return np.asarray(flat.reshape(self.n_nodes, self.n_classes), dtype=np.float64)


@dataclass(frozen=True)
class RobustGoal:
    """What is minimised: the mean loss in the worst case within eps, plus the penalty times the groups' gaps.

    Parameters
    ----------
    eps : float
        Budget of mean squared fair distance.
    penalty : float
        μ.
    """

    eps: float = 0.0
    penalty: float = 0.0


@dataclass(frozen=True, eq=False)
class BoostingRun:
    """How the rounds went.

    Parameters
    ----------
    rounds : int
        How many are kept: those up to the best held-out value.
    train, held_out : arrays of shape (rounds made,)
        The goal's value before each round; `held_out` is empty where nobody was held out.
    lambda_ : array
        λ* of each round; empty without a worst case.
    stopped_early : bool
    """

    rounds: int
    train: FloatArray
    held_out: FloatArray
    lambda_: FloatArray
    stopped_early: bool


class _Adversary:
    """The worst case of some people, remembered from round to round."""

    def __init__(self, people: BoostingPeople, goal: RobustGoal, inertia: float) -> None:
        self._people, self._goal, self._inertia = people, goal, inertia
        self._own = people.mass
        self.mass, self.lambda_ = self._own, 1.0

    def look(self, losses: FloatArray) -> float:
        """Bring the worst case up to date and return its mean loss."""
        if self._people.support is None:
            return float((self._own * losses).sum() / self._own.sum())
        worst = worst_case(losses, self._own, self._people.support, self._goal.eps, start=self.lambda_)
        self.lambda_ = worst.lambda_
        self.mass = self._inertia * self.mass + (1.0 - self._inertia) * worst.mass
        return worst.value


def boost(
    grower: TreeGrower,
    people: BoostingPeople,
    goal: RobustGoal,
    *,
    rounds: int,
    held_out: BoostingPeople | None = None,
    patience: int | None = None,
    report: Callable[[int, float], None] | None = None,
) -> BoostingRun:
    """Grow an ensemble on the worst cases of its own rounds.

    Parameters
    ----------
    grower : TreeGrower
        Over the nodes of `people`, and of `held_out`.
    people : BoostingPeople
    goal : RobustGoal
    rounds : int
        At most.
    held_out : BoostingPeople, optional
        On whom the goal is measured; the ensemble ends where they fare best.
    patience : int, optional
        Rounds without a better value before it stops.
    report : callable, optional
        Called with the round and the goal's value.

    Returns
    -------
    BoostingRun
    """
    adversary = _Adversary(people, goal, INERTIA)
    watcher = None if held_out is None else _Adversary(held_out, goal, 0.0)
    train: list[float] = []
    outside: list[float] = []
    lambdas: list[float] = []
    best, best_round, damping = np.inf, rounds, _DAMPING
    for number in range(rounds + 1):
        if watcher is not None and held_out is not None:
            value = _look(grower.held_out_scores(), held_out, goal, watcher).value
            outside.append(value)
            if value < best:
                best, best_round = value, number
            elif patience is not None and number - best_round >= patience:
                break
        if number == rounds:
            break
        scores = grower.scores()
        now = _look(scores, people, goal, adversary)
        damping = _DAMPING if not train else min(1.0, damping * (_MORE if now.value > train[-1] else _LESS))
        train.append(now.value)
        if people.support is not None:
            lambdas.append(adversary.lambda_)
        if report is not None:
            report(number, now.value)
        chance = _softmax(scores)
        total = adversary.mass.sum(axis=1, keepdims=True)
        hessian = total * chance * (1.0 - chance) + damping * now.curvature
        grower.grow(total * chance - adversary.mass + now.gradient, np.maximum(hessian, _LEAST_HESSIAN))
    kept = best_round if watcher is not None else len(train)
    # An ensemble needs a tree: without one it has no columns to be saved with.
    kept = max(kept, 1)
    return BoostingRun(kept, np.array(train), np.array(outside), np.array(lambdas), len(train) < rounds)


@dataclass(frozen=True, eq=False)
class _Look:
    """The goal at some scores; gradient and curvature of its penalty by the scores of the nodes."""

    value: float
    gradient: FloatArray | float = 0.0
    curvature: FloatArray | float = 0.0


def _look(scores: FloatArray, people: BoostingPeople, goal: RobustGoal, adversary: _Adversary) -> _Look:
    value = adversary.look(_losses(scores))
    if people.cells is None or goal.penalty == 0:
        return _Look(value)
    gap, gradient, curvature = soft_gap(scores, people.cells)
    # The trees minimise sums over people, the goal is a mean.
    scale = goal.penalty * float(people.weight.sum())
    return _Look(value + goal.penalty * gap, scale * gradient, scale * curvature)


def _losses(scores: FloatArray) -> FloatArray:
    """Cross-entropy of each node under each label, (m, C)."""
    top = scores.max(axis=1, keepdims=True)
    return np.asarray(top + np.log(np.exp(scores - top).sum(axis=1, keepdims=True)) - scores)


def _softmax(scores: FloatArray) -> FloatArray:
    weights = np.exp(scores - scores.max(axis=1, keepdims=True))
    return np.asarray(weights / weights.sum(axis=1, keepdims=True))
