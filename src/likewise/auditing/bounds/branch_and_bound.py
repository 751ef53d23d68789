"""Best-first branch and bound for sup over x of loss(x, y) − λ d²(x, x₀), person by person, at any time a bracket.

A family of models says how high the loss can be over a region and where to cut it; everything else is here. People are
worked on in batches, each with open regions of their own: what is found for one does not depend on the others.
"""

from __future__ import annotations

import heapq
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np

from likewise.auditing.bounds.free_moves import free_regions
from likewise.auditing.bounds.least_cost import LeastCost, Quadratic
from likewise.auditing.bounds.node_pool import NodePool
from likewise.auditing.bounds.reachable import within_reach
from likewise.auditing.bounds.regions import Regions, Split, divide, encoded_box, whole_domain
from likewise.auditing.bounds.table_layout import IntArray, TableLayout
from likewise.core.arrays import FloatArray

__all__ = ["Brackets", "Budget", "Family", "LossBound", "maximise"]

# People worked on at the same time, and open regions of each that are cut at once.
_TOGETHER = 48
_AT_ONCE = 4
# A region that reaches less than this share of what it did is looked over again for what is out of reach.
_NEARER = 0.95
# A move costs nothing when d² is below this share of its squared length, times the largest eigenvalue of Σ.
FREE = 1e-9


@dataclass(frozen=True, eq=False)
class LossBound:
    """What a family says of regions: loss(x) ≤ upper + slopeᵀ(x − x₀) for every row x of the region.

    Parameters
    ----------
    upper : float array of shape (n,)
    slope : float array of shape (n, d), optional
        By the encoded row; None is 0.
    state : array of shape (n, …)
        What the family wants back with the parts of a region.
    extra : object
        What it wants back when it is asked where to cut.
    """

    upper: FloatArray
    slope: FloatArray | None
    state: Any
    extra: Any = None

    def take(self, at: Any) -> LossBound:
        """Return some of them."""
        extra = None if self.extra is None else tuple(part[at] for part in self.extra)
        slope = None if self.slope is None else self.slope[at]
        return LossBound(self.upper[at], slope, self.state[at], extra)


    def put(self, at: IntArray, other: LossBound) -> None:
        """Overwrite some of them."""
        self.upper[at], self.state[at] = other.upper, other.state
        if self.slope is not None and other.slope is not None:
            self.slope[at] = other.slope
        for part, new in zip(self.extra or (), other.extra or (), strict=True):
            part[at] = new


class Family(Protocol):
    """A family of models that can be bounded over regions.

    Attributes
    ----------
    layout : TableLayout
    slack : float
        How far the model's own losses, rounded as they are, may lie from the exact ones that are bounded here. It is
        added to every upper value at the end: cutting regions cannot remove it.
    """

    layout: TableLayout
    slack: float

    def state(self, n: int) -> Any:
        """State of n whole domains, an array of n rows."""

    def bound(self, regions: Regions, origin: FloatArray, targets: Any, state: Any) -> LossBound:
        """Upper bound of the loss over each region."""

    def look(
        self, regions: Regions, targets: Any, bound: LossBound, values: FloatArray
    ) -> tuple[FloatArray, FloatArray, Split]:
        """Loss at a row of each region, how much the bound leaves open there, and where to cut."""

    def losses(self, values: FloatArray, targets: Any) -> FloatArray:
        """Exact loss of rows of values."""


@dataclass(frozen=True)
class Budget:
    """What a branch and bound may spend.

    Parameters
    ----------
    nodes : int, default=10_000
        Regions per person.
    seconds : float, optional
        Of wall time, in all; None is no limit. The whole domain of every person is always looked at.
    stop : callable, optional
        Asked between rounds; True ends the work with the brackets so far.
    """

    nodes: int = 10_000
    seconds: float | None = None
    stop: Callable[[], bool] | None = None


@dataclass(frozen=True, eq=False)
class Brackets:
    """For each person what is attained and what cannot be exceeded.

    Parameters
    ----------
    lower, upper : float arrays of shape (n,)
        Bracket of the supremum.
    rows : float array of shape (n, d)
        Encoded valid rows that attain `lower`.
    loss, cost : float arrays of shape (n,)
        Loss and squared fair distance there (0 where a move costs nothing).
    nodes : int array of shape (n,)
        Regions looked at.
    tol : float
        A person is closed when upper − lower ≤ tol + slack.
    slack : float
        The model's own rounding, within `upper`.
    """

    lower: FloatArray
    upper: FloatArray
    rows: FloatArray
    loss: FloatArray
    cost: FloatArray
    nodes: IntArray
    tol: float
    slack: float = 0.0

    @property
    def closed(self) -> np.ndarray[Any, np.dtype[np.bool_]]:
        """Whose bracket is closed, (n,)."""
        return np.asarray(self.upper - self.lower <= (self.tol + self.slack) * (1 + 1e-9))


def maximise(
    family: Family,
    metric: Any,
    X: FloatArray,
    targets: Any,
    lambda_: float,
    *,
    starts: FloatArray | None = None,
    budget: Budget | None = None,
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
    budget : Budget, optional
    tol : float, default=1e-4
        Width at which a person's bracket counts as closed.

    Returns
    -------
    Brackets

    Examples
    --------
    >>> from likewise.auditing.bounds.trees.feature_sources import encoded_sources
    >>> from likewise.auditing.bounds.trees.tree_family import TreeFamily
    >>> from likewise.domains import BoxDomain
    >>> from likewise.fair_metrics import Euclidean
    >>> from likewise.models.losses import ZeroOne
    >>> from likewise.models.tree_ensemble import TreeEnsemble
    >>> stump = TreeEnsemble.from_nodes(
    ...     roots=[0], left=[1, -1, -1], right=[2, -1, -1], feature=[0, 0, 0], threshold=[0.5, 0.0, 0.0],
    ...     values=[[0.0], [-1.0], [2.0]], base=[0.0], kind="scores", n_features=1,
    ... )
    >>> layout = TableLayout.of(BoxDomain([0.0], [1.0]))
    >>> family = TreeFamily(stump, layout, encoded_sources(layout), ZeroOne())
    >>> found = maximise(family, Euclidean(1), np.array([[0.2]]), np.array([0]), 1.0)
    >>> found.lower.round(3), found.rows.round(3)
    (array([0.91]), array([[0.5]]))
    """
    work = _Work(family, metric, np.asarray(X, dtype=np.float64), np.asarray(targets), float(lambda_), tol)
    if starts is not None:
        work.offer_starts(starts)
    limit = budget or Budget()
    clock = time.perf_counter()
    opened = work.open_domains()
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


@dataclass(eq=False)
class _Work:
    """The people, their incumbents, and the evaluation of regions."""

    family: Family
    metric: Any
    X: FloatArray
    targets: Any
    lam: float
    tol: float
    layout: TableLayout = field(init=False)

    def __post_init__(self) -> None:
        self.layout, self.n = self.family.layout, len(self.X)
        self.form = Quadratic.of(self.metric, self.layout.width)
        self.own = self.layout.values(self.X)
        # Encoded anew: a person's distance to themself is exactly 0.
        self.origin = self.layout.encode(self.own)
        self.lower, self.cost = np.full(self.n, -np.inf), np.zeros(self.n)
        self.loss, self.values = np.zeros(self.n), self.own.copy()
        self.offer(np.arange(self.n), self.own, self.family.losses(self.own, self.targets))

    def costs(self, people: IntArray, values: FloatArray) -> FloatArray:
        """Squared fair distances; exactly 0 where it is rounding."""
        delta = self.layout.encode(values) - self.origin[people]
        cost = np.asarray(self.metric.squared_norm(delta))
        free = cost <= FREE * self.form.largest * (delta**2).sum(axis=1)
        return np.where(free if np.isinf(self.lam) else (delta == 0).all(axis=1), 0.0, cost)

    def offer(self, people: IntArray, values: FloatArray, loss: FloatArray) -> FloatArray:
        """Keep rows that beat the incumbents; return what each attains."""
        cost = self.costs(people, values)
        with np.errstate(invalid="ignore"):
            attained = loss - np.where(cost > 0, self.lam * cost, 0.0)
        # The last assignment of a person wins, and the values rise.
        for i in np.argsort(attained, kind="stable"):
            person = people[i]
            if attained[i] > self.lower[person]:
                self.lower[person], self.loss[person], self.cost[person] = attained[i], loss[i], cost[i]
                self.values[person] = values[i]
        return np.asarray(attained)

    def offer_starts(self, starts: FloatArray) -> None:
        """Look at given rows, as far as they lie in the person's domain."""
        whole = whole_domain(self.layout, self.own)
        for s in range(starts.shape[1]):
            people = np.flatnonzero(np.isfinite(starts[:, s]).all(axis=1))
            values, domain = self.layout.values(starts[people, s]), whole.take(people)
            inside = ((values >= domain.low) & (values <= domain.high)).all(axis=1)
            for i in np.flatnonzero(self.layout.is_category):
                place = self.layout.offset[i] + values[:, i].astype(np.int64)
                inside &= domain.allowed[np.arange(len(people)), place] != 0
            people, values = people[inside], values[inside]
            self.offer(people, values, self.family.losses(values, self.targets[people]))

    def open_domains(self) -> _Open:
        regions = whole_domain(self.layout, self.own)
        if np.isinf(self.lam):
            regions = free_regions(self.layout, self.metric, regions, self.own)
        return _Open(self, regions)

    def shrink(self, people: IntArray, regions: Regions) -> Regions:
        """Take off whole domains what no move that costs nothing reaches."""
        if not np.isinf(self.lam):
            return regions
        origin = self.origin[people]
        lower, upper = encoded_box(self.layout, regions)
        far = np.maximum(np.abs(lower - origin), np.abs(upper - origin))
        reach = FREE * self.form.largest * (far**2).sum(axis=1)
        return within_reach(self.layout, self.form, regions, origin, origin, reach)

    def evaluate(
        self, people: IntArray, regions: Regions, state: Any, warm: FloatArray, parent: FloatArray, reach: FloatArray
    ) -> _Evaluated:
        """Bound regions; those that cannot beat the incumbent are told apart before any distance is computed."""
        targets = self.targets[people]
        bound = self.family.bound(regions, self.origin[people], targets, state)
        upper = np.minimum(parent, _highest(self.layout, regions, bound, self.origin[people]))
        kept = np.flatnonzero(upper > self.lower[people] + self.tol)
        dropped = np.setdiff1d(np.arange(len(people)), kept, assume_unique=True)
        who, part, bound, reach = people[kept], regions.take(kept), bound.take(kept), reach[kept]
        reach = self._nearer(who, part, bound, reach, warm[kept])
        least = self._least(part, bound, who, warm[kept])
        above = self._above(part, bound, who, least)
        above = np.minimum(above, upper[kept])
        losses, gap, split = self.family.look(part, targets[kept], bound, least.values)
        self.offer(who, least.values, losses)
        split = self._by_distance(part, who, least, gap, split)
        return _Evaluated(people[dropped], upper[dropped], who, above, part, bound.state, least.point, split, reach)

    def _nearer(
        self, people: IntArray, regions: Regions, bound: LossBound, reach: FloatArray, warm: FloatArray
    ) -> FloatArray:
        """Take off regions, in place, what is too far to matter, if they reach less far than when that was last done."""
        if np.isinf(self.lam) or self.lam == 0:
            return reach
        top = _highest(self.layout, regions, bound, self.origin[people])
        now = np.maximum(top - self.lower[people], 0.0) / self.lam
        at = np.flatnonzero(now < _NEARER * reach)
        if not len(at):
            return reach
        who = people[at]
        smaller = within_reach(self.layout, self.form, regions.take(at), self.origin[who], warm[at], now[at])
        regions.low[at], regions.high[at], regions.allowed[at] = smaller.low, smaller.high, smaller.allowed
        bound.put(at, self.family.bound(smaller, self.origin[who], self.targets[who], bound.state[at]))
        reach[at] = now[at]
        return reach

    def _least(self, regions: Regions, bound: LossBound, people: IntArray, warm: FloatArray) -> LeastCost:
        flat = bound.slope is None or np.isinf(self.lam)
        price = np.full(len(people), 1.0 if flat else self.lam)
        slope = None if flat else bound.slope
        return LeastCost.over(self.layout, self.form, regions, self.origin[people], warm, price, slope)

    def _above(self, regions: Regions, bound: LossBound, people: IntArray, least: LeastCost) -> FloatArray:
        """Upper bound of loss − λ d² over each region."""
        if np.isinf(self.lam):
            lower, upper = encoded_box(self.layout, regions)
            reach = np.maximum(np.abs(lower - self.origin[people]), np.abs(upper - self.origin[people]))
            costly = least.bound > FREE * self.form.largest * (reach**2).sum(axis=1)
            top = _highest(self.layout, regions, bound, self.origin[people])
            return np.where(costly, -np.inf, top)
        if bound.slope is None:
            return np.asarray(bound.upper - self.lam * np.maximum(least.bound, 0.0))
        at_origin = (bound.slope * self.origin[people]).sum(axis=1)
        return np.asarray(bound.upper - at_origin - least.bound)

    def _by_distance(
        self, regions: Regions, people: IntArray, least: LeastCost, gap: FloatArray, split: Split
    ) -> Split:
        """Where the model is decided, or the distance leaves more open than it, cut where the point is no row."""
        off = np.abs(self.layout.encode(least.values) - least.point)
        cost = np.asarray(self.metric.squared_norm(self.layout.encode(least.values) - self.origin[people]))
        relaxed = np.asarray(self.metric.squared_norm(least.point - self.origin[people]))
        lam = 1.0 if np.isinf(self.lam) else self.lam
        other = (split.column < 0) | (lam * (cost - relaxed) > gap)
        if not other.any():
            return split
        per_column = np.zeros((len(people), self.layout.n_columns))
        np.maximum.at(per_column, (slice(None), self.layout.owner), off)
        open_number = regions.high > regions.low
        first = np.append(self.layout.offset, self.layout.n_categories)
        for i in np.flatnonzero(self.layout.is_category):
            open_number[:, i] = regions.allowed[:, first[i] : first[i + 1]].sum(axis=1) > 1
        per_column[~open_number] = -1.0
        column = per_column.argmax(axis=1)
        rows = np.arange(len(people))
        useful = other & (per_column[rows, column] > 1e-9)
        result = Split(split.column.copy(), split.cut.copy(), split.left.copy())
        result.column[useful] = column[useful]
        result.column[other & ~useful & (split.column < 0)] = -1
        for i in np.flatnonzero(useful):
            self._cut_at_point(regions, least, int(i), int(column[i]), result)
        return result

    def _cut_at_point(self, regions: Regions, least: LeastCost, i: int, column: int, split: Split) -> None:
        layout = self.layout
        if layout.is_category[column]:
            # The row's category on one side, all others on the other.
            split.left[i] = 0
            split.left[i, int(layout.offset[column]) + int(least.values[i, column])] = 1
            return
        at = least.point[i, layout.start[column]] * layout.scale[column] + layout.mean[column]
        if layout.is_integer[column]:
            at = np.floor(at)
            split.cut[i] = min(max(at, regions.low[i, column]), regions.high[i, column] - 1.0)
        else:
            ends = regions.low[i, column], np.nextafter(regions.high[i, column], -np.inf)
            split.cut[i] = min(max((at + least.values[i, column]) / 2.0, ends[0]), ends[1])


@dataclass(frozen=True, eq=False)
class _Evaluated:
    """Regions that are done (whose, how high), and those that stay open."""

    done: IntArray
    done_upper: FloatArray
    people: IntArray
    upper: FloatArray
    regions: Regions
    state: Any
    point: FloatArray
    split: Split
    reach: FloatArray


def _highest(
    layout: TableLayout, regions: Regions, bound: LossBound, origin: FloatArray
) -> FloatArray:
    """The largest value of a linear loss bound over each region, distances aside."""
    if bound.slope is None:
        return bound.upper
    lower, upper = encoded_box(layout, regions)
    slope = bound.slope
    with np.errstate(invalid="ignore"):
        ends = np.where(slope > 0, slope * upper, np.where(slope < 0, slope * lower, 0.0))
    for first, last, _ in layout.blocks:
        part = np.where(upper[:, first:last] > 0, slope[:, first:last], -np.inf)
        ends[:, first] = part.max(axis=1)
        ends[:, first + 1 : last] = 0.0
    return np.asarray(bound.upper + ends.sum(axis=1) - (slope * origin).sum(axis=1))


class _Open:
    """Open regions of everybody: a heap per person, highest bound first."""

    def __init__(self, work: _Work, regions: Regions) -> None:
        self.work = work
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

    def _keep(self, found: _Evaluated) -> None:
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
