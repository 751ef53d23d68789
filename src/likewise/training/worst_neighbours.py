"""The worst case of a boosting round: people moved to comparable people, within a budget, solved exactly.

The support of each person is themselves and their nearest neighbours under the fair metric, so distances never change
and the rows that a worst case is made of are rows of the training table: what moves is mass, from place to place and
with its label. On this support the auditor's dual (paper, equation 4; `likewise.auditing.support.finite_dual`) is a
piecewise-linear convex function of λ alone. It is minimised by intersecting the lines at the two ends of a bracket
that starts around the λ of the round before.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from likewise.core.arrays import FloatArray
from likewise.fair_metrics.neighbours import NearestPlaces

__all__ = ["NeighbourSupport", "WorstCase", "worst_case"]

Ints = np.ndarray[Any, np.dtype[np.int64]]

# A squared distance below this share of the typical one is rounding: the move costs nothing.
_FREE = 1e-15
_MAX_STEPS = 100


@dataclass(frozen=True, eq=False)
class NeighbourSupport:
    """Where the mass of each node may go.

    Parameters
    ----------
    index : int array of shape (m, k + 1)
        The node itself, then its neighbours by rising distance.
    squared_distance : float array of shape (m, k + 1)

    Examples
    --------
    >>> NeighbourSupport.of(np.array([[0.0], [1.0], [3.0]]), 1).index.tolist()
    [[0, 1], [1, 0], [2, 1]]
    """

    index: Ints
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
    """The worst distribution within the budget.

    Parameters
    ----------
    mass : ndarray of shape (m, C)
        Where the mass of each label ends.
    value : float
        V(ε) of the support: the mean loss there.
    lambda_ : float
        λ*.
    """

    mass: FloatArray
    value: float
    lambda_: float


def worst_case(
    losses: FloatArray, mass: FloatArray, support: NeighbourSupport, eps: float, *, start: float = 1.0
) -> WorstCase:
    """Solve the auditor's problem on a support of neighbours.

    Parameters
    ----------
    losses : ndarray of shape (m, C)
        Of each node under each label.
    mass : ndarray of shape (m, C)
        Of people at each node, by label.
    support : NeighbourSupport
    eps : float
        Budget of mean squared fair distance; at 0 only moves that cost nothing are made.
    start : float, default=1.0
        A guess of λ*, such as that of the round before.

    Returns
    -------
    WorstCase

    Examples
    --------
    >>> support = NeighbourSupport.of(np.array([[0.0], [1.0]]), 1)
    >>> worst = worst_case(np.array([[0.0], [3.0]]), np.array([[1.0], [1.0]]), support, 0.25)
    >>> worst.value, worst.mass.ravel().tolist(), worst.lambda_
    (2.25, [0.5, 1.5], 3.0)
    """
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
        if middle.value(lam, eps) - meet <= 1e-12 * max(1.0, abs(meet)):
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
    choice: list[Ints]

    def value(self, lam: float, eps: float) -> float:
        return self.height + lam * (eps - self.transport)


@dataclass(frozen=True, eq=False)
class _Moves:
    """For each label: nodes that have mass of it, the share of all mass, the loss at each place, the cost."""

    parts: list[tuple[Ints, FloatArray, FloatArray, FloatArray]]
    index: Ints
    total: float
    shape: tuple[int, int]

    @classmethod
    def of(cls, losses: FloatArray, mass: FloatArray, support: NeighbourSupport) -> _Moves:
        total = float(mass.sum())
        parts = []
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
