"""Robust boosting rounds: the worst distribution, its gradients, the next tree.

BuDRO (Vargo, Zhang, Yurochkin, Sun: Individually Fair Gradient Boosting, ICLR 2021) with an exact inner step. The worst
distribution of a round moves mass between rows of the training table, so the gradient of the robust loss is a
weighted logistic one at the same rows: g_jc = Σ_y P_jy (p_jc − [c = y]), where P_jy is the mass with label y that the
worst case puts on row j.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse
from scipy.special import log_softmax, softmax

from likewise.core.checks import FloatArray, IntArray
from likewise.core.progress import deferred_interrupts
from likewise.fair_metrics.neighbours import NearestPlaces
from likewise.training.boosting.growers import TreeGrower

# A penalty on the groups' different rates of decisions, class by class, with its gradient by hand.


KAPPA = 3.0
# The mean of fewer people says little about their group.
MIN_PEOPLE = 20


@dataclass(frozen=True, eq=False)
class GroupCells:
    """People by attribute, class and group."""

    average: sparse.csr_array
    centre: sparse.csr_array

    @classmethod
    def of(
        cls, groups: list[IntArray], labels: IntArray, weight: FloatArray, *, min_people: int = MIN_PEOPLE
    ) -> GroupCells:
        """Count people into cells."""
        n = len(labels)
        rows: list[tuple[IntArray, FloatArray]] = []
        blocks = []
        for codes in groups:
            for label in np.unique(labels):
                members = [
                    np.flatnonzero((codes == g) & (labels == label)) for g in np.unique(codes[codes >= 0])
                ]
                kept = [m for m in members if len(m) >= min_people and weight[m].sum() > 0]
                if len(kept) < 2:
                    continue
                rows += [(m, weight[m] / weight[m].sum()) for m in kept]
                blocks.append(np.eye(len(kept)) - 1.0 / len(kept))
        indptr = np.concatenate([[0], np.cumsum([len(m) for m, _ in rows])]).astype(np.int64)
        index = np.concatenate([np.zeros(0, dtype=np.int64), *(m for m, _ in rows)])
        values = np.concatenate([np.zeros(0), *(share for _, share in rows)])
        average = sparse.csr_array((values, index, indptr), shape=(len(rows), n))
        centre = sparse.csr_array(sparse.block_diag(blocks)) if blocks else sparse.csr_array((0, 0))
        return cls(average, centre)

    def at(self, node: IntArray, n_nodes: int) -> GroupCells:
        """Return the same means over nodes at which people stand, `node` saying where each does."""
        n = len(node)
        place = sparse.csr_array((np.ones(n), node, np.arange(n + 1)), shape=(n, n_nodes))
        return GroupCells(sparse.csr_array(self.average @ place), self.centre)


def soft_gap(scores: FloatArray, cells: GroupCells) -> tuple[float, FloatArray, FloatArray]:
    """Return the penalty, its gradient by the scores and a bound of its curvature."""
    if not cells.average.shape[0]:
        return 0.0, np.zeros_like(scores), np.zeros_like(scores)
    soft = softmax(KAPPA * scores, axis=1)
    apart = cells.centre @ (cells.average @ soft)
    # The centred means sum to 0 within a class, so the mean over the groups has no gradient of its own.
    by_soft = 2.0 * (cells.average.T @ apart)
    by_scores = KAPPA * soft * (by_soft - (by_soft * soft).sum(axis=1, keepdims=True))
    # A score moves its own soft decision by κ s (1 − s), and the others together by no more.
    moves = np.sqrt(2.0) * KAPPA * soft * (1.0 - soft)
    curvature = 2.0 * moves * (cells.average.T @ (cells.average @ moves))
    return float((apart**2).sum()), np.asarray(by_scores), np.asarray(curvature)


# The worst case of a boosting round: people moved to comparable people, within a budget, solved exactly.


# A squared distance below this share of the typical one is rounding: the move costs nothing.
_FREE = 1e-15
_MAX_STEPS = 100


@dataclass(frozen=True, eq=False)
class NeighbourSupport:
    """Where the mass of each node may go."""

    index: IntArray
    squared_distance: FloatArray

    @classmethod
    def of(cls, places: FloatArray, k: int) -> NeighbourSupport:
        """Find the k nearest nodes of each node, in a space whose Euclidean distance is the fair distance."""
        m = len(places)
        itself = np.arange(m)[:, None]
        if m < 2:
            return cls(itself, np.zeros((m, 1)))
        index, distance = NearestPlaces(places).among_themselves(min(k, m - 1))
        spread = float(np.einsum("ij,ij->", places - places.mean(axis=0), places - places.mean(axis=0))) / m
        distance = np.where(distance <= _FREE * spread, 0.0, distance)
        return cls(np.hstack([itself, index]), np.hstack([np.zeros((m, 1)), distance]))


@dataclass(frozen=True, eq=False)
class WorstCase:
    """The worst distribution within the budget."""

    mass: FloatArray
    value: float
    lambda_: float


def worst_case(
    losses: FloatArray, mass: FloatArray, support: NeighbourSupport, eps: float, *, start: float = 1.0
) -> WorstCase:
    """Solve the auditor's problem on a support of neighbours."""
    moves = _Moves.of(losses, mass, support)
    if eps <= 0:
        line = moves.line(np.inf)
        return WorstCase(moves.moved([(1.0, line)]), line.height, np.inf)
    free = moves.line(0.0)
    if free.transport <= eps:
        return WorstCase(moves.moved([(1.0, free)]), free.height, 0.0)
    low, high = _bracket(moves, free, eps, start)
    for _ in range(_MAX_STEPS):
        # Two lines of the dual, one falling and one rising at λ; they meet at or below its minimum.
        lam = (high.height - low.height) / (high.transport - low.transport)
        meet = low.height + lam * (eps - low.transport)
        middle = moves.line(lam)
        if middle.height + lam * (eps - middle.transport) - meet <= 1e-12 * max(1.0, abs(meet)):
            break
        if middle.transport > eps:
            low = middle
        else:
            high = middle
    share = (eps - high.transport) / (low.transport - high.transport)
    value = share * low.height + (1.0 - share) * high.height
    return WorstCase(moves.moved([(share, low), (1.0 - share, high)]), float(value), float(lam))


@dataclass(frozen=True, eq=False)
class _Line:
    """The best moves at some λ: their mean loss and transport, one line λ ↦ height + λ (ε − transport)."""

    height: float
    transport: float
    choice: list[IntArray]


@dataclass(frozen=True, eq=False)
class _Moves:
    """For each label: nodes that have mass of it, the share of all mass, the loss at each place, the cost."""

    parts: list[tuple[IntArray, FloatArray, FloatArray, FloatArray]]
    index: IntArray
    total: float
    shape: tuple[int, int]

    @classmethod
    def of(cls, losses: FloatArray, mass: FloatArray, support: NeighbourSupport) -> _Moves:
        total = float(mass.sum())
        parts: list[tuple[IntArray, FloatArray, FloatArray, FloatArray]] = []
        for label in range(mass.shape[1]):
            nodes = np.flatnonzero(mass[:, label] > 0)
            reach = losses[:, label][support.index[nodes]]
            parts.append((nodes, mass[nodes, label] / total, reach, support.squared_distance[nodes]))
        return cls(parts, support.index, total, mass.shape)

    def line(self, lam: float) -> _Line:
        height = transport = 0.0
        choices = []
        for _, share, reach, cost in self.parts:
            # Neighbours come by rising distance, so of equals the nearest is taken.
            gain = np.where(cost > 0, -np.inf, reach) if np.isinf(lam) else reach - lam * cost
            best = gain.argmax(axis=1)
            row = np.arange(len(best))
            height += float(share @ reach[row, best])
            transport += float(share @ cost[row, best])
            choices.append(best)
        return _Line(height, transport, choices)

    def moved(self, lines: list[tuple[float, _Line]]) -> FloatArray:
        mass = np.zeros(self.shape)
        for weight, line in lines:
            for label, ((nodes, share, _, _), best) in enumerate(zip(self.parts, line.choice, strict=True)):
                goal = self.index[nodes, best]
                mass[:, label] += np.bincount(goal, weight * self.total * share, self.shape[0])
        return mass


def _bracket(moves: _Moves, free: _Line, eps: float, start: float) -> tuple[_Line, _Line]:
    """Lines whose transport is above and not above the budget, near the guess."""
    lam = start if np.isfinite(start) and start > 0 else 1.0
    line = moves.line(lam)
    low, high = (line, None) if line.transport > eps else (None, line)
    for _ in range(_MAX_STEPS):
        lam = lam * 1.5 if high is None else lam / 1.5
        line = moves.line(lam)
        if line.transport > eps:
            low = line
        else:
            high = line
        if low is not None and high is not None:
            return low, high
    return free if low is None else low, moves.line(np.inf) if high is None else high


# Share of the earlier rounds' worst case that is kept; without it successive rounds oscillate.
INERTIA = 0.7
_LEAST_HESSIAN = 1e-6
# Share of the penalty's curvature bound that dampens the steps: at first, after a round that made things worse
# (times), after one that did not (times).
_DAMPING, _MORE, _LESS = 0.1, 3.0, 0.8


@dataclass(frozen=True, eq=False)
class BoostingPeople:
    """People as nodes: rows that the trees cannot tell apart and the metric does not part are one."""

    node: IntArray
    labels: IntArray
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
    """What is minimised: the mean loss in the worst case within eps, plus the penalty times the groups' gaps."""

    eps: float = 0.0
    penalty: float = 0.0


@dataclass(frozen=True, eq=False)
class BoostingRun:
    """How the rounds went."""

    rounds: int
    train: FloatArray
    held_out: FloatArray
    lambda_: FloatArray
    interrupted: bool


class _Adversary:
    """The worst case of some people, remembered from round to round."""

    def __init__(self, people: BoostingPeople, goal: RobustGoal, inertia: float) -> None:
        self._people, self._goal, self._inertia = people, goal, inertia
        self._own = people.mass
        self.mass, self.lambda_ = self._own, 1.0

    def look(self, scores: FloatArray) -> tuple[float, Any, Any]:
        """Bring the worst case up to date; return the goal at some scores, and its penalty's gradient and curvature by them."""
        people, losses = self._people, -log_softmax(scores, axis=1)
        if people.support is None:
            value = float((self._own * losses).sum() / self._own.sum())
        else:
            worst = worst_case(losses, self._own, people.support, self._goal.eps, start=self.lambda_)
            value, self.lambda_ = worst.value, worst.lambda_
            self.mass = self._inertia * self.mass + (1.0 - self._inertia) * worst.mass
        if people.cells is None or self._goal.penalty == 0:
            return value, 0.0, 0.0
        gap, gradient, curvature = soft_gap(scores, people.cells)
        # The trees minimise sums over people, the goal is a mean.
        scale = self._goal.penalty * float(people.weight.sum())
        return value + self._goal.penalty * gap, scale * gradient, scale * curvature


def boost(
    grower: TreeGrower,
    people: BoostingPeople,
    goal: RobustGoal,
    *,
    rounds: int,
    held_out: BoostingPeople | None = None,
    patience: int | None = None,
) -> BoostingRun:
    """Grow an ensemble on the worst cases of its own rounds; Ctrl-C ends it after the round, with what was grown."""
    interrupts: list[None] = []
    adversary = _Adversary(people, goal, INERTIA)
    watcher = None if held_out is None else _Adversary(held_out, goal, 0.0)
    train: list[float] = []
    outside: list[float] = []
    lambdas: list[float] = []
    best, best_round, damping = np.inf, rounds, _DAMPING
    with deferred_interrupts(lambda: interrupts.append(None)):
        for number in range(rounds + 1):
            if watcher is not None:
                value = watcher.look(grower.held_out_scores())[0]
                outside.append(value)
                if value < best:
                    best, best_round = value, number
                elif patience is not None and number - best_round >= patience:
                    break
            if number == rounds or (interrupts and train):
                break
            scores = grower.scores()
            value, gradient, curvature = adversary.look(scores)
            damping = _DAMPING if not train else min(1.0, damping * (_MORE if value > train[-1] else _LESS))
            train.append(value)
            if people.support is not None:
                lambdas.append(adversary.lambda_)
            chance = softmax(scores, axis=1)
            total = adversary.mass.sum(axis=1, keepdims=True)
            hessian = total * chance * (1.0 - chance) + damping * curvature
            grower.grow(total * chance - adversary.mass + gradient, np.maximum(hessian, _LEAST_HESSIAN))
    kept = best_round if watcher is not None else len(train)
    # An ensemble needs a tree: without one it has no columns to be saved with.
    kept = max(kept, 1)
    return BoostingRun(kept, np.array(train), np.array(outside), np.array(lambdas), bool(interrupts))
