"""Best-first branch and bound for sup over x of loss(x, y) − λ d²(x, x₀), person by person, at any time a bracket.

A family of models says how high the loss can be over a region and where to cut it; everything else is here and in
`evaluation`. People are worked on in batches, each with open regions of their own: what is found for one does not depend
on the others.
"""

from __future__ import annotations

import heapq
import time
from typing import Any

import numpy as np

from likewise.auditing.bounds.brackets import Brackets, RegionBudget
from likewise.auditing.bounds.family import Family
from likewise.auditing.bounds.node_pool import NodePool
from likewise.auditing.bounds.region_evaluation import Evaluated, RegionEvaluation
from likewise.auditing.bounds.regions import divide
from likewise.core.arrays import FloatArray

__all__ = ["maximise"]

# People worked on at the same time, and open regions of each that are cut at once.
_TOGETHER = 48
_AT_ONCE = 4


def maximise(
    family: Family,
    metric: Any,
    X: FloatArray,
    targets: Any,
    lambda_: float,
    *,
    starts: FloatArray | None = None,
    budget: RegionBudget | None = None,
    tol: float = 1e-4,
) -> Brackets:
    """Bracket sup over rows x that can exist of loss(x, y_i) − λ d²(x, x_i), for each person.

    Parameters
    ----------
    family : Family
        The model over the domain's columns.
    metric : FairMetric
        On encoded rows.
    X : float array of shape (n, d)
        The people, encoded.
    targets : array of shape (n,)
        Class indices, or numbers for a regression.
    lambda_ : float
        λ ≥ 0; inf allows only moves that cost nothing.
    starts : float array of shape (n, s, d), optional
        Encoded valid rows to begin from, such as what a search found; NaN where a person has none.
    budget : RegionBudget, optional
    tol : float, default=1e-4
        Width at which a person's bracket counts as closed.

    Returns
    -------
    Brackets

    Examples
    --------
    >>> from likewise.auditing.bounds.table_layout import TableLayout
    >>> from likewise.auditing.bounds.trees.feature_sources import encoded_sources
    >>> from likewise.auditing.bounds.trees.tree_family import TreeFamily
    >>> from likewise.domains import BoxDomain
    >>> from likewise.fair_metrics import euclidean
    >>> from likewise.models.losses import ZeroOne
    >>> from likewise.models.tree_ensemble import TreeEnsemble
    >>> stump = TreeEnsemble.from_nodes(
    ...     roots=[0], left=[1, -1, -1], right=[2, -1, -1], feature=[0, 0, 0], threshold=[0.5, 0.0, 0.0],
    ...     values=[[0.0], [-1.0], [2.0]], base=[0.0], kind="scores", n_features=1,
    ... )
    >>> layout = TableLayout.of(BoxDomain([0.0], [1.0]))
    >>> family = TreeFamily(stump, layout, encoded_sources(layout), ZeroOne())
    >>> found = maximise(family, euclidean(1), np.array([[0.2]]), np.array([0]), 1.0)
    >>> found.lower.round(3), found.rows.round(3)
    (array([0.91]), array([[0.5]]))
    """
    work = RegionEvaluation(
        family, metric, np.asarray(X, dtype=np.float64), np.asarray(targets), float(lambda_), tol
    )
    if starts is not None:
        work.offer_starts(starts)
    limit = budget or RegionBudget()
    clock = time.perf_counter()
    opened = _Open(work)
    waiting = list(range(work.n - 1, -1, -1))
    active: list[int] = []
    while waiting or active:
        if limit.stop is not None and limit.stop():
            break
        if limit.seconds is not None and time.perf_counter() - clock > limit.seconds:
            break
        while waiting and len(active) < _TOGETHER:
            person = waiting.pop()
            if opened.begin(person):
                active.append(person)
        active = opened.advance(active, limit.nodes)
    return opened.brackets()


class _Open:
    """Open regions of everybody: a heap per person, highest bound first."""

    def __init__(self, work: RegionEvaluation) -> None:
        self.work, regions = work, work.domains()
        self.settled = np.full(work.n, -np.inf)  # the highest bound among regions that are done
        self.nodes = np.zeros(work.n, dtype=np.int64)
        self.heaps: list[list[tuple[float, int, int]]] = [[] for _ in range(work.n)]
        self.pool = NodePool()
        self._counter = 0
        step = 512
        for first in range(0, work.n, step):
            people = np.arange(first, min(first + step, work.n))
            found = work.evaluate(
                people,
                work.shrink(people, regions.take(people)),
                work.family.state(len(people)),
                work.origin[people],
                np.full(len(people), np.inf),
                np.full(len(people), np.inf),
            )
            self._keep(found)

    def begin(self, person: int) -> bool:
        """Whether the person has anything open."""
        return bool(self.heaps[person])

    def _keep(self, found: Evaluated) -> None:
        """File evaluated regions: closed ones by their bound, open ones in their person's heap."""
        np.add.at(self.nodes, found.done, 1)
        np.add.at(self.nodes, found.people, 1)
        np.maximum.at(self.settled, found.done, found.done_upper)
        lower = self.work.lower[found.people]
        is_open = (found.upper > lower + self.work.tol) & (found.split.column >= 0)
        shut = ~is_open
        np.maximum.at(self.settled, found.people[shut], found.upper[shut])
        at = np.flatnonzero(is_open)
        slots = self.pool.add(
            found.regions.take(at), found.state[at], found.point[at], found.split.take(at), found.reach[at]
        )
        for i, slot in zip(at, slots, strict=True):
            self._counter += 1
            heapq.heappush(self.heaps[found.people[i]], (-float(found.upper[i]), self._counter, slot))

    def advance(self, active: list[int], max_nodes: int) -> list[int]:
        """Cut the most promising regions of active people; return those with work left."""
        people, slots, uppers, going = [], [], [], []
        for person in active:
            heap = self.heaps[person]
            limit = self.work.lower[person] + self.work.tol
            taken = 0
            while heap and taken < _AT_ONCE and -heap[0][0] > limit and self.nodes[person] < max_nodes:
                bound, _, slot = heapq.heappop(heap)
                people.append(person)
                slots.append(slot)
                uppers.append(-bound)
                taken += 1
            if taken:
                going.append(person)
            else:
                self._finish(person)
        if not people:
            return []
        regions, state, warm, split, reach = self.pool.take(slots)
        who, upper = np.array(people), np.array(uppers)
        parts = divide(self.work.layout, regions, split)
        twice = np.concatenate([who, who])
        found = self.work.evaluate(
            twice,
            parts,
            np.concatenate([state, state]),
            np.concatenate([warm, warm]),
            np.concatenate([upper, upper]),
            np.concatenate([reach, reach]),
        )
        self._keep(found)
        return going

    def _finish(self, person: int) -> None:
        """Settle what a person has left, and free it."""
        heap = self.heaps[person]
        if heap:
            self.settled[person] = max(self.settled[person], -heap[0][0])
            self.pool.free([slot for _, _, slot in heap])
            heap.clear()

    def brackets(self) -> Brackets:
        """What is known now."""
        work = self.work
        for person in range(work.n):
            self._finish(person)
        upper = np.maximum(self.settled, work.lower) + work.family.slack
        rows = work.layout.encode(work.values)
        slack = work.family.slack
        return Brackets(work.lower, upper, rows, work.loss, work.cost, self.nodes, work.tol, slack)
